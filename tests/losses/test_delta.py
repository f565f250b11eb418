"""The rules for delta against their definitions."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dualogic.losses import DELTA_RULES, exact_delta, truncated_normal_loss

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
