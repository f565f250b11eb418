"""The rules for delta against their definitions."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dualogic as dl
from dualogic.losses import DELTA_RULES, exact_delta, truncated_normal_loss
from dualogic.losses.delta import violations_delta

COSTS = st.lists(st.floats(0, 50), min_size=1, max_size=20)


def costs_of(values):
    return torch.tensor(values, dtype=torch.float64).unsqueeze(1), torch.tensor(float(len(values)), dtype=torch.float64)


@given(COSTS.filter(lambda values: max(values) > 1e-3))
def test_exact_delta_is_a_stationary_point_and_a_minimum(values):
    mu, count = costs_of(values)
    delta = exact_delta(mu, count).requires_grad_()
    loss = truncated_normal_loss(mu, delta).mean()
    (slope,) = torch.autograd.grad(loss, delta)
    assert abs(slope.item()) < 1e-8
    with torch.no_grad():
        for factor in (0.5, 0.9, 1.1, 2.0):
            assert truncated_normal_loss(mu, delta * factor).mean() >= loss


@given(COSTS)
def test_letter_and_bound(values):
    mu, count = costs_of(values)
    assert DELTA_RULES["mean"](mu, count).item() ** 2 == pytest.approx(sum(values) / len(values), abs=1e-12)
    square = DELTA_RULES["square"](mu, count)
    assert square.item() ** 2 == pytest.approx(sum(v * v for v in values) / len(values), abs=1e-12)
    # The exact minimiser is never below the bound's.
    assert exact_delta(mu, count).item() >= square.item() - 1e-9


@pytest.mark.parametrize("rule", ["square", "exact"])
def test_scale_free_rules_follow_the_unit_of_the_cost(rule):
    mu = torch.rand(16, 3, dtype=torch.float64)
    count = torch.tensor(16.0, dtype=torch.float64)
    torch.testing.assert_close(DELTA_RULES[rule](7 * mu, count), 7 * DELTA_RULES[rule](mu, count))


def test_exact_delta_of_no_cost_is_zero_and_single_precision_agrees():
    assert exact_delta(torch.zeros(4, 2), torch.tensor(4.0)).tolist() == [0.0, 0.0]
    mu = torch.rand(64, 5, dtype=torch.float64) * torch.tensor([1e-4, 1e-2, 1.0, 10.0, 1e4])
    count = torch.tensor(64.0, dtype=torch.float64)
    single = exact_delta(mu.float(), count.float())
    torch.testing.assert_close(single.double(), exact_delta(mu, count), rtol=1e-4, atol=0)


# ---------------------------------------------------------------------- the scale of violations


def typical(values):
    """Where the scale goes if these costs stay."""
    return (sum(values) / sum(value**0.5 for value in values)) ** 2


@given(st.lists(st.floats(0.01, 50), min_size=1, max_size=20), st.integers(0, 200))
def test_the_scale_of_violations_is_a_typical_cost_that_samples_which_hold_do_not_dilute(values, held):
    mu, _ = costs_of([*values, *(0.0,) * held])
    alone, _ = costs_of(values)
    start = torch.tensor([1.0], dtype=torch.float64)
    moved = violations_delta(mu, start)
    torch.testing.assert_close(moved, violations_delta(alone, start))
    assert min(values) - 1e-9 <= typical(values) <= max(values) + 1e-9
    low, high = sorted((1.0, typical(values)))
    assert low - 1e-9 <= moved.item() <= high + 1e-9
    for _ in range(40):
        moved = violations_delta(alone.repeat(200, 1), moved)
    assert moved.item() == pytest.approx(typical(values), rel=1e-6)


@given(st.lists(st.floats(0.01, 50), min_size=1, max_size=20))
def test_the_scale_of_violations_follows_the_unit_of_the_cost(values):
    mu, _ = costs_of(values)
    start = torch.tensor([2.0], dtype=torch.float64)
    torch.testing.assert_close(violations_delta(10 * mu, 10 * start), 10 * violations_delta(mu, start))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_batch_without_violations_leaves_the_scale_as_it_was(dtype):
    delta = torch.tensor([1.5, 0.7], dtype=dtype)
    assert torch.equal(violations_delta(torch.zeros(8, 2, dtype=dtype), delta), delta)
    assert torch.isfinite(violations_delta(torch.full((8, 2), 1e-30, dtype=dtype), delta)).all()


def run(costs, steps=300, **options):
    """A rule whose costs are given, and one that is met at once; ``costs`` maps a step to the first one's."""
    rules = {"violated": dl.var("x") <= 0, "met": dl.var("y") <= 0}
    logic = dl.LogicLoss(rules, method=dl.methods.Dual(**options), dtype=torch.float64)
    for number in range(steps):
        x = torch.full((32,), costs(number), dtype=torch.float64, requires_grad=True)
        logic(x=x, y=torch.zeros(32, dtype=torch.float64, requires_grad=True))
    return logic, x


def test_delta_rises_for_a_rule_that_stays_violated_so_that_it_pulls_less():
    logic, x = run(lambda number: 5.0)
    assert logic.delta[0] == pytest.approx(5.0, rel=0.01)
    assert logic.delta[1] == 1.0
    with logic.frozen():
        (late,) = torch.autograd.grad(logic(x=x, y=torch.zeros(32, requires_grad=True)), x)
    fresh = dl.LogicLoss(logic.rules, dtype=torch.float64)
    (early,) = torch.autograd.grad(fresh(x=x, y=torch.zeros(32)), x)
    assert late.abs().max() < 0.1 * early.abs().max()


def test_delta_falls_to_the_floor_for_a_rule_that_comes_to_be_met():
    logic, _ = run(lambda number: 5.0 if number < 100 else 0.01, steps=800, floor=0.5)
    assert logic.delta[0] == 0.5


def test_delta_above_the_floor_has_the_unit_of_the_cost():
    once, _ = run(lambda number: 5.0 + number % 3, steps=2000)
    tenfold, _ = run(lambda number: 10 * (5.0 + number % 3), steps=2000)
    assert tenfold.delta[0].item() == pytest.approx(10 * once.delta[0].item(), rel=1e-6)
