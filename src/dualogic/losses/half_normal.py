"""The loss of a rule that only mostly holds: its target is a half-normal of some spread instead of a Dirac at 0."""

from __future__ import annotations

import math

from torch import Tensor

from dualogic.losses.truncated_normal import truncated_normal_loss, truncated_normal_slope

MEAN_OF_HALF_NORMAL = math.sqrt(2.0 / math.pi)
"""Of the half-normal with scale 1; its second moment is 1."""


def half_normal_loss(mu: Tensor, delta: Tensor, spread: Tensor | float) -> Tensor:
    r"""``log delta + (mu^2 - 2 sqrt(2/pi) s mu + s^2) / (2 delta^2) + log Phi(mu / delta)`` with the spread ``s``.

    With ``log 2 - log s - 1/2`` added it is the KL divergence from the half-normal with scale ``s`` to the truncated normal with
    location ``mu`` and scale ``delta``, both on ``[0, inf)``. At ``s = 0`` it is
    :func:`~dualogic.losses.truncated_normal.truncated_normal_loss`.

    Its slope at ``mu = 0`` has the sign of ``delta - s``. Where ``delta`` is below ``s`` a small violation would be rewarded, so
    ``delta`` is to be kept at or above ``s``; there the loss rises with ``mu`` everywhere, at ``delta = s`` from a slope of 0.

    Args:
        mu: costs, at least 0, shape ``(batch, rules)``.
        delta: scales, above 0, broadcast against ``mu``.
        spread: of the target, at least 0, broadcast against ``mu``.

    Returns:
        The loss of each sample and rule.

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
