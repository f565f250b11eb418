"""The distributional loss of a rule's cost (the logic part of Eq. 7 of the paper)."""

from __future__ import annotations

from torch import Tensor

from dualogic import numerics


def truncated_normal_loss(mu: Tensor, delta: Tensor) -> Tensor:
    r"""``log delta + mu^2 / (2 delta^2) + log Phi(mu / delta)``, the KL divergence from a Dirac at 0, up to a constant.

    The cost ``mu`` is the location and ``delta`` the scale of a normal truncated to ``[0, inf)``. The sign of ``log delta``
    is that of the main text (the appendix has a minus, which is a slip).

    Args:
        mu: costs, at least 0, shape ``(batch, rules)``.
        delta: scales, above 0, broadcast against ``mu``.

    Returns:
        The loss of each sample and rule; finite for ``mu / delta`` up to 1e6 and beyond.

    Example:
        >>> import torch
        >>> truncated_normal_loss(torch.tensor([0.0, 1.0]), torch.tensor(1.0))
        tensor([-0.6931,  0.3272])
    """
    ratio = mu / delta
    return delta.log() + 0.5 * ratio * ratio + numerics.log_normal_cdf(ratio)


def truncated_normal_slope(mu: Tensor, delta: Tensor) -> Tensor:
    """The derivative of :func:`truncated_normal_loss` with respect to ``mu``; positive everywhere.

    Example:
        >>> import torch
        >>> truncated_normal_slope(torch.tensor([0.0, 100.0]), torch.tensor(1.0))
        tensor([  0.7979, 100.0000])
    """
    ratio = mu / delta
    return (ratio + numerics.inverse_mills(ratio)) / delta
