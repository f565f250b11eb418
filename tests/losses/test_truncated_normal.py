"""The truncated-normal loss: its derivatives, of the first and of the second order."""

import pytest
import torch

from dualogic.losses.truncated_normal import half_normal_loss, truncated_normal_loss, truncated_normal_slope

MU = [1e-3, 0.2, 1.0, 3.0]


def leaf(values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("delta", [0.3, 1.0, 2.0])
def test_the_value_is_the_same_with_and_without_a_gradient(delta):
    scale = torch.tensor(delta, dtype=torch.float64)
    ratio = torch.tensor(MU, dtype=torch.float64) / delta
    expected = scale.log() + 0.5 * ratio.square() + torch.special.log_ndtr(ratio)
    torch.testing.assert_close(truncated_normal_loss(torch.tensor(MU, dtype=torch.float64), scale), expected)
    torch.testing.assert_close(truncated_normal_loss(leaf(MU), scale), expected)
    torch.testing.assert_close(truncated_normal_loss(leaf(MU), scale.clone().requires_grad_()), expected)


@pytest.mark.parametrize("delta", [0.3, 1.0, 2.0])
def test_second_derivatives(delta):
    scale = torch.tensor(delta, dtype=torch.float64)
    assert torch.autograd.gradgradcheck(lambda mu: truncated_normal_loss(mu, scale), (leaf(MU),))
    assert torch.autograd.gradgradcheck(lambda mu: half_normal_loss(mu, scale, 0.2), (leaf(MU),))
    mu = leaf(MU)
    (slope,) = torch.autograd.grad(truncated_normal_loss(mu, scale).sum(), mu, create_graph=True)
    torch.testing.assert_close(slope, truncated_normal_slope(mu.detach(), scale))
    (curvature,) = torch.autograd.grad(slope.sum(), mu)
    ratio = mu.detach() / delta
    mills = torch.exp(-0.5 * ratio**2) / (2 * torch.pi) ** 0.5 / torch.special.ndtr(ratio)
    torch.testing.assert_close(curvature, (1 - mills * (ratio + mills)) / delta**2)


def test_second_derivatives_reach_the_network():
    """A gradient penalty through the loss: the gradient of the squared gradient, against differences."""
    import dualogic as dl

    x = dl.var("x", 3)
    rule = (x <= 0).all()
    point = torch.tensor([[0.4, -1.0, 0.9], [0.1, 0.3, 0.2]], dtype=torch.float64)

    def penalty(values):
        logic = dl.LogicLoss(rule, dtype=torch.float64, method=dl.methods.Dual(step=0.0, first="equal", floor=0.7, ceiling=0.7))
        (gradient,) = torch.autograd.grad(logic(x=values), values, create_graph=True)
        return gradient.square().sum()

    values = point.clone().requires_grad_()
    (found,) = torch.autograd.grad(penalty(values), values)
    for place in ((0, 0), (0, 2), (1, 1)):
        shift = torch.zeros_like(point)
        shift[place] = 1e-5
        ahead, behind = (penalty((point + sign * shift).requires_grad_()).item() for sign in (1, -1))
        assert found[place].item() == pytest.approx((ahead - behind) / 2e-5, rel=1e-4)
    assert found.abs().sum() > 0
