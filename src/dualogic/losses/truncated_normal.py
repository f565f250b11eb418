"""The distributional loss of a rule's cost (the logic part of Eq. 7 of the paper)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from dualogic import numerics
from dualogic.kernels import fused

MEAN_OF_HALF_NORMAL = math.sqrt(2.0 / math.pi)
"""Of the half-normal with scale 1; its second moment is 1."""


def truncated_normal_loss(mu: Tensor, delta: Tensor) -> Tensor:
    r"""``log delta + mu^2 / (2 delta^2) + log Phi(mu / delta)``, the KL divergence from a Dirac at 0, up to a constant.

    The cost ``mu`` is the location and ``delta`` the scale of a normal truncated to ``[0, inf)``. The sign of ``log delta``
    is that of the main text (the appendix has a minus, which is a slip).
    ``mu`` is ``(batch, rules)`` and at least 0, ``delta`` above 0 and broadcast against it.

    Example:
        >>> import torch
        >>> truncated_normal_loss(torch.tensor([0.0, 1.0]), torch.tensor(1.0))
        tensor([-0.6931,  0.3272])
    """
    if delta.requires_grad or not mu.requires_grad or numerics.is_transformed():
        return _above_scale(mu / delta) + delta.log()
    return _LossWithSlope.apply(mu, delta)  # type: ignore[no-any-return, no-untyped-call]


def truncated_normal_slope(mu: Tensor, delta: Tensor) -> Tensor:
    """The derivative of :func:`truncated_normal_loss` with respect to ``mu``; positive everywhere.

    Example:
        >>> import torch
        >>> truncated_normal_slope(torch.tensor([0.0, 100.0]), torch.tensor(1.0))
        tensor([  0.7979, 100.0000])
    """
    if mu.requires_grad or delta.requires_grad:
        ratio = mu / delta
        return (ratio + numerics.inverse_mills(ratio)) / delta
    if fused.usable(mu):
        return fused.loss_and_slope(mu, delta)[1]
    ratio = mu / delta
    return _slope(ratio, _above_scale(ratio), delta)


def loss_and_slope(mu: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
    """The loss and its slope in as few operations as there are; without a gradient."""
    if fused.usable(mu):
        return fused.loss_and_slope(mu, delta)
    ratio = mu / delta
    above = _above_scale(ratio)
    return above + delta.log(), _slope(ratio, above, delta)


def _above_scale(ratio: Tensor) -> Tensor:
    """The loss less the logarithm of its scale, ``x^2 / 2 + log Phi(x)``."""
    return torch.addcmul(numerics.log_normal_cdf(ratio), ratio, ratio, value=0.5)


def _slope(ratio: Tensor, above: Tensor, delta: Tensor) -> Tensor:
    # phi(x) / Phi(x) is exp(-above) / sqrt(2 pi).
    return torch.add(ratio, above.neg().exp_(), alpha=numerics.INVERSE_SQRT_TWO_PI).div_(delta)


class _LossWithSlope(torch.autograd.Function):
    """The same, with its derivative computed in closed form on the way: a dozen operations fewer per step."""

    @staticmethod
    def forward(ctx: Any, mu: Tensor, delta: Tensor) -> Tensor:
        loss, slope = loss_and_slope(mu, delta)
        ctx.save_for_backward(mu, delta, slope)
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        mu, delta, slope = ctx.saved_tensors
        if torch.is_grad_enabled():
            # A second derivative is wanted: give one that can be differentiated.
            slope = truncated_normal_slope(mu, delta)
        return gradients[0] * slope, None


def half_normal_loss(mu: Tensor, delta: Tensor, spread: Tensor | float) -> Tensor:
    r"""``log delta + (mu^2 - 2 sqrt(2/pi) s mu + s^2) / (2 delta^2) + log Phi(mu / delta)`` with the spread ``s``.

    With ``log 2 - log s - 1/2`` added it is the KL divergence from the half-normal with scale ``s`` to the truncated normal with
    location ``mu`` and scale ``delta``, both on ``[0, inf)``. At ``s = 0`` it is :func:`truncated_normal_loss`.

    Its slope at ``mu = 0`` has the sign of ``delta - s``. Where ``delta`` is below ``s`` a small violation would be rewarded, so
    ``delta`` is to be kept at or above ``s``; there the loss rises with ``mu`` everywhere, at ``delta = s`` from a slope of 0.

    Example:
        >>> import torch
        >>> half_normal_loss(torch.tensor([0.0, 1.0]), torch.tensor(1.0), 1.0)
        tensor([-0.1931,  0.0294])
    """
    scaled = spread / (delta * delta)
    return truncated_normal_loss(mu, delta) + scaled * (0.5 * spread - MEAN_OF_HALF_NORMAL * mu)


def half_normal_slope(mu: Tensor, delta: Tensor, spread: Tensor | float) -> Tensor:
    """The derivative of :func:`half_normal_loss` with respect to ``mu``; never negative where ``delta`` is at least ``spread``.

    Example:
        >>> import torch
        >>> half_normal_slope(torch.tensor([0.0, 1.0]), torch.tensor(1.0), 1.0)
        tensor([0.0000, 0.4897])
    """
    return truncated_normal_slope(mu, delta) - MEAN_OF_HALF_NORMAL * spread / (delta * delta)
