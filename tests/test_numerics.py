"""Value and gradient at the extremes, against independent references."""

import math
import operator

import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from dualogic import numerics
from dualogic.losses import truncated_normal_loss, truncated_normal_slope

RATIOS = [0.0, 1e-8, 1e-3, 0.1, 0.5, 1.0, 3.0, 6.0, 10.0, 40.0, 1e3, 1e6]


@pytest.mark.parametrize("x", RATIOS)
def test_log_normal_cdf_matches_scipy(x):
    value = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    result = numerics.log_normal_cdf(value)
    result.backward()
    assert result.item() == pytest.approx(scipy.stats.norm.logcdf(x), rel=1e-12, abs=1e-300)
    expected = math.exp(scipy.stats.norm.logpdf(x) - scipy.stats.norm.logcdf(x))
    assert value.grad.item() == pytest.approx(expected, rel=1e-12, abs=1e-300)
    assert numerics.inverse_mills(value).item() == pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("delta", [1e-4, 1e-2, 1.0, 100.0])
@pytest.mark.parametrize("ratio", RATIOS)
def test_loss_is_finite_and_its_slope_positive(dtype, delta, ratio):
    mu = torch.tensor(ratio * delta, dtype=dtype, requires_grad=True)
    scale = torch.tensor(delta, dtype=dtype)
    loss = truncated_normal_loss(mu, scale)
    loss.backward()
    assert math.isfinite(loss.item())
    assert mu.grad.item() > 0
    assert math.isfinite(mu.grad.item())
    assert truncated_normal_slope(mu.detach(), scale).item() == pytest.approx(mu.grad.item(), rel=1e-5)
    x = float(mu.detach().double() / scale.double())
    expected = math.log(delta) + 0.5 * x * x + scipy.stats.norm.logcdf(x)
    assert loss.item() == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_loss_passes_gradcheck():
    mu = torch.tensor([0.0, 1e-3, 0.3, 2.0, 30.0], dtype=torch.float64, requires_grad=True)
    delta = torch.tensor([0.7], dtype=torch.float64, requires_grad=True)
    # The derivative at mu = 0 exists from both sides for the formula itself, so the numeric one agrees there too.
    assert torch.autograd.gradcheck(truncated_normal_loss, (mu, delta))


def test_loss_is_the_divergence_from_a_narrow_normal_up_to_a_constant():
    """KL(TN(0, s) || TN(mu, delta)) by quadrature, minus the part that depends on s alone (the paper's appendix)."""
    narrow = 1e-4
    grid = torch.linspace(0, 12 * narrow, 200_001, dtype=torch.float64)
    target = scipy.stats.halfnorm.pdf(grid.numpy(), scale=narrow)
    losses, divergences = [], []
    for mu, delta in [(0.0, 1.0), (0.5, 1.0), (0.5, 0.2), (2.0, 3.0)]:
        log_model = scipy.stats.norm.logpdf(grid.numpy(), mu, delta) - scipy.stats.norm.logcdf(mu / delta)
        log_target = scipy.stats.halfnorm.logpdf(grid.numpy(), scale=narrow)
        integrand = torch.tensor(target * (log_target - log_model))
        divergences.append(torch.trapezoid(integrand, grid).item())
        losses.append(truncated_normal_loss(torch.tensor(mu).double(), torch.tensor(delta).double()).item())
    differences = [divergence - loss for divergence, loss in zip(divergences, losses)]
    # What is left does not depend on mu and delta: the loss has the right sign of log delta.
    assert max(differences) - min(differences) < 2e-3


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")  # torch.func.jvp's own doing
@pytest.mark.parametrize("share", [0.25, 0.75, 1.0])
def test_held_back_gradients(share):
    x = torch.tensor([-3.0, 0.1, 1e30], dtype=torch.float64, requires_grad=True)
    held = numerics.hold_back(x * x, share)
    assert torch.equal(held, x * x)
    if share < 1:
        (first,) = torch.autograd.grad(held.sum(), x, create_graph=True)
        torch.testing.assert_close(first, (1 - share) * 2 * x)
        (second,) = torch.autograd.grad(first.sum(), x)
        torch.testing.assert_close(second, torch.full_like(x, 2 * (1 - share)))
    plain = x.detach()
    through = torch.func.grad(lambda value: numerics.hold_back(value * value, share).sum())(plain)
    torch.testing.assert_close(through, (1 - share) * 2 * plain)
    forward = torch.func.jvp(lambda value: numerics.hold_back(value * value, share), (plain,), (torch.ones_like(plain),))[1]
    torch.testing.assert_close(forward, (1 - share) * 2 * plain)
    for infinite in (torch.tensor([torch.inf]), torch.tensor([torch.inf], requires_grad=True)):
        assert torch.equal(numerics.hold_back(infinite, share), infinite)
    assert share == 1 or torch.autograd.grad(numerics.hold_back(infinite, share), infinite)[0] == 1 - share
    assert numerics.hold_back(x, share, infinite.expand(3).double())[0] == infinite


def test_negative_log_at_the_ends():
    p = torch.tensor([0.0, 1e-30, 0.5, 1.0, 1.0 + 1e-6], requires_grad=True)
    cost = numerics.negative_log(p)
    cost.sum().backward()
    assert torch.isfinite(cost).all()
    assert torch.isfinite(p.grad).all()
    assert (cost >= 0).all()
    assert p.grad[1] < -1e29


NUMBERS = st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, -1.0, 1e300, -0.0, 1e-300])


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=6), st.sampled_from([operator.truediv, operator.pow]))
def test_quotients_and_powers_are_those_of_torch_with_its_gradient_where_that_is_finite(pairs, function):
    plain, tame = (torch.tensor(pairs, dtype=torch.float64, requires_grad=True) for _ in range(2))
    expected, found = function(*plain.unbind(1)), numerics.tame(function, *tame.unbind(1))
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    for result, leaf in ((expected, plain), (found, tame)):
        result.sum().backward()
        assert leaf.grad.shape == (len(pairs), 2)
    sound = torch.isfinite(plain.grad).all(1) & torch.isfinite(expected) & ~((plain[:, 0] == 0) & (plain[:, 1] < 1))
    assert torch.equal(tame.grad[sound], plain.grad[sound])
    assert not tame.grad[~torch.isfinite(expected)].any()


@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=7),
    st.data(),
)
def test_projection_is_the_nearest_point_of_the_simplex(values, data):
    mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))))
    point = torch.tensor(values, dtype=torch.float64)
    result = numerics.project_to_simplex(point, 0, mask)
    assert (result[~mask] == 0).all()
    if not mask.any():
        return
    assert result.sum().item() == pytest.approx(1.0)
    assert (result >= 0).all()
    # Optimality: moving mass from an entry that has some to any other cannot bring the point nearer.
    gap = (point - result)[mask]
    used = result[mask] > 1e-12
    assert (gap[used] >= gap.max() - 1e-9).all()


def test_masked_softmax_ignores_what_does_not_exist():
    logits = torch.tensor([[1.0, 50.0, 2.0], [0.0, 0.0, 0.0]])
    mask = torch.tensor([[True, False, True], [False, False, False]])
    weights = numerics.masked_softmax(logits, mask, 1)
    assert weights[0].tolist() == pytest.approx([1 / (1 + math.e), 0.0, math.e / (1 + math.e)])
    assert weights[1].tolist() == [0.0, 0.0, 0.0]


@given(st.lists(st.sampled_from([0.0, 0.5, -2.0, 3.0]), max_size=9))
def test_product_is_prod_with_its_gradient(values):
    one = torch.tensor([values], dtype=torch.float64).reshape(1, len(values)).requires_grad_()
    other = one.detach().clone().requires_grad_()
    numerics.product(one).sum().backward()
    other.prod(1).sum().backward()
    torch.testing.assert_close(numerics.product(one), other.prod(1))
    torch.testing.assert_close(one.grad, other.grad)
