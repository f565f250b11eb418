import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dualogic import LogicLoss, methods, var
from dualogic.duals.rules import UPDATE_RULES
from dualogic_paper.convergence.cycles import classify, contraction, find_minimum
from dualogic_paper.convergence.dual_steps import measure_dual_steps, visit
from dualogic_paper.convergence.problem import make_problem
from dualogic_paper.convergence.rate import GAMMA, Chains, Variant, fit_slopes, measure_plateaus


@given(slope=st.floats(-2, 1), factor=st.floats(0.01, 100), count=st.integers(2, 8))
def test_a_power_law_is_recovered(slope, factor, count):
    horizons = [2**power for power in range(3, 3 + count)]
    squares = torch.tensor([[factor * (horizon + 1) ** slope] for horizon in horizons], dtype=torch.float64)
    assert fit_slopes(horizons, squares).item() == pytest.approx(slope, abs=1e-9)


@pytest.mark.parametrize("steps", ["constant", "decreasing"])
@pytest.mark.parametrize("rule", ["exact", "mean"])
def test_a_chain_is_stochastic_gradient_descent(rule, steps):
    horizon, batch = 12, 4
    measured = Chains([Variant("square"), Variant(rule, steps=steps)], 1, batch, samples=8, parameters=3).run(horizon)[1]
    problem = make_problem(8, 3, seed=0)
    generator = torch.Generator().manual_seed(horizon)
    weights, delta, squares = problem.start(1), torch.ones(1, dtype=torch.float64), []
    for iteration in range(horizon):
        squares.append(problem.reduced_gradient(weights).square().sum())
        drawn = torch.randint(8, (2, 1, batch), generator=generator)[0, 0]
        part = type(problem)(problem.inputs[drawn], problem.labels[drawn], problem.directions[drawn], problem.offsets[drawn])
        size = GAMMA / ((horizon if steps == "constant" else iteration) + 1) ** 0.5
        weights = weights - size * part.gradient(weights, delta)
        delta = problem.delta(rule, problem.costs(weights))
    assert measured.item() == pytest.approx(torch.stack(squares).mean().item())


def test_delta_from_a_batch_is_not_that_of_all_samples():
    whole, batch = Chains([Variant("exact"), Variant("exact", costs="batch")], 1, 4, samples=8, parameters=3).run(8)
    assert whole.item() != batch.item()


def test_only_the_exact_rule_settles_at_a_stationary_point():
    runs = {(run["delta"], run["scale"]): run for run in measure_plateaus(1200, scales=(0.1, 10.0))["runs"]}
    assert all(run["settled"] < 1e-4 for run in runs.values())
    for scale in (0.1, 10.0):
        assert runs["exact", scale]["gradient"] < 1e-4
        assert runs["mean", scale]["gradient"] > 0.05
        assert runs["mean", scale]["excess"] > 0
    # Only the letter of Algorithm 1 depends on the unit of the cost.
    assert runs["square", 0.1]["gradient"] == pytest.approx(runs["square", 10.0]["gradient"], rel=1e-3)
    assert runs["mean", 0.1]["gradient"] != pytest.approx(runs["mean", 10.0]["gradient"], rel=0.1)


@pytest.mark.parametrize("name", UPDATE_RULES)
@pytest.mark.parametrize("operation", ["&", "|"])
def test_a_visit_is_a_step_of_the_library(name, operation):
    x, y, z = var("x"), var("y"), var("z")
    rule = (x <= 0) & (y <= 0) & (z <= 0) if operation == "&" else (x <= 0) | (y <= 0) | (z <= 0)
    logic = LogicLoss(rule, 1, methods.Dual(step=0.3, rule=name, local=False, first="equal", ceiling=1.0), dtype=torch.float64)
    costs = torch.tensor([[0.2, 1.5, 0.7]], dtype=torch.float64)
    columns = torch.zeros_like(costs)
    step = torch.full((1, 1), 0.3, dtype=torch.float64)
    sign = torch.ones_like(step) if operation == "&" else -torch.ones_like(step)
    for _ in range(10):
        bound = {key: costs[:, position].clone().requires_grad_() for position, key in enumerate("xyz")}
        logic(torch.tensor([0]), **bound)
        columns, weights = visit(UPDATE_RULES[name], columns, costs, step, sign)
        torch.testing.assert_close(logic.weights(torch.tensor([0]))["rule"], weights)


def test_visits_are_counted_once_and_fall_with_the_step():
    found = measure_dual_steps(limit=300, steps=(0.2, 1.0))
    for rule, operation in itertools.product(UPDATE_RULES, "&|"):
        small, large = (
            entry["visits"] or 301
            for entry in found["settle"]
            if (entry["rule"], entry["operation"], entry["operands"]) == (rule, operation, 2)
        )
        assert large < small
    assert [entry["visits"] for entry in found["reverse"] if entry["rule"] == "softmax" and entry["start"] == 0.9997] == [
        None
    ] * 4
    assert all(entry["visits"] for entry in found["reverse"] if entry["rule"] == "projected")
    for curve in found["curves"].values():
        assert all(after <= before for before, after in itertools.pairwise(curve))


@settings(max_examples=30, deadline=None)
@given(period=st.integers(2, 20), seed=st.integers(0, 1000))
def test_a_period_is_found(period, seed):
    part = torch.rand(period, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    assert classify(part.repeat(256 // period, 1)) == ("cycle", period)


def test_other_ends_are_told_apart():
    assert classify(torch.rand(256, 1, dtype=torch.float64)) == ("wandering", 0)
    assert classify(torch.linspace(0, 1e9, 256).unsqueeze(1)) == ("diverged", 0)
    assert classify(torch.full((256, 1), torch.nan)) == ("diverged", 0)
    assert classify(torch.ones(256, 3)) == ("converged", 1)


def test_the_linearised_iteration_predicts_the_fate_of_a_small_push():
    problem = make_problem(8, 2, seed=0, floor=0.01)
    minimum, best = find_minimum(problem)
    a, b = (side.flatten() for side in torch.meshgrid(*[torch.logspace(-2, 1, 5, dtype=torch.float64)] * 2, indexing="ij"))
    factor = contraction(problem, a, b, minimum, best)
    weights, delta = minimum + 1e-6 * torch.ones(len(a), 2, dtype=torch.float64), best.repeat(len(a))
    for _ in range(60):
        weights = weights - a.unsqueeze(1) * problem.gradient(weights, delta)
        delta = (delta - b * problem.delta_gradient(problem.costs(weights), delta)).clamp_min(0.01)
    distance = (weights - minimum).norm(dim=1)
    assert (factor < 0.95).any()
    assert (factor > 1.3).any()
    assert (distance[factor < 0.95] < 1e-6).all()
    assert (distance[factor > 1.3] > 1e-5).all()
