import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dualogic import LogicLoss, methods, var
from dualogic_paper.convergence.problem import make_problem


def _weights(seed, chains, parameters=3):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(chains, parameters, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("rule", ["exact", "square", "mean"])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_the_gradient_is_that_of_the_library_in_training(rule, scale):
    problem = make_problem(samples=8, parameters=3, seed=1, scale=scale)
    r = var("r")
    written = r**2 / (1 + r**2) * scale <= 0
    logic = LogicLoss(written, method=methods.Dual(delta=rule, floor=problem.floor), dtype=torch.float64)
    before, after = _weights(0, 2)
    logic(r=problem.residuals(before.unsqueeze(0))[0].requires_grad_())  # sets delta
    delta = problem.delta(rule, problem.costs(before.unsqueeze(0)))
    torch.testing.assert_close(logic.delta, delta)
    after.requires_grad_()
    task = torch.nn.functional.binary_cross_entropy_with_logits(problem.inputs @ after, problem.labels)
    loss = task + logic(r=problem.residuals(after.unsqueeze(0))[0])
    (expected,) = torch.autograd.grad(loss, after)
    torch.testing.assert_close(problem.gradient(after.detach().unsqueeze(0), delta)[0], expected)
    torch.testing.assert_close(problem.loss(after.detach().unsqueeze(0), delta)[0], loss.detach())


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_the_derivatives_are_those_of_the_loss(seed):
    problem = make_problem(samples=6, parameters=3, seed=seed)
    weights, delta = _weights(seed, 2).requires_grad_(), torch.tensor([0.3, 2.0], dtype=torch.float64, requires_grad=True)
    on_weights, on_delta = torch.autograd.grad(problem.loss(weights, delta).sum(), (weights, delta))
    weights, delta = weights.detach(), delta.detach()
    torch.testing.assert_close(problem.gradient(weights, delta), on_weights)
    torch.testing.assert_close(problem.delta_gradient(problem.costs(weights), delta), on_delta)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_the_reduced_gradient_is_that_of_the_minimum_over_delta(seed):
    problem = make_problem(samples=6, parameters=3, seed=seed)
    weights, direction, h = _weights(seed, 1), _weights(seed + 1, 1), 1e-5

    def minimum(point):
        return problem.loss(point, problem.delta("exact", problem.costs(point)))

    numeric = (minimum(weights + h * direction) - minimum(weights - h * direction)) / (2 * h)
    exact = (problem.reduced_gradient(weights) * direction).sum(1)
    torch.testing.assert_close(exact, numeric, rtol=1e-4, atol=1e-7)


def test_shares_choose_samples():
    problem = make_problem(samples=4, parameters=2, seed=0)
    weights, delta = _weights(0, 1, 2), torch.ones(1, dtype=torch.float64)
    single = [problem.gradient(weights, delta, row.unsqueeze(0)) for row in torch.eye(4, dtype=torch.float64)]
    torch.testing.assert_close(torch.stack(single).mean(0), problem.gradient(weights, delta))
