"""How the scale ``delta`` of a rule's truncated normal follows its costs.

A rule maps the costs of a batch to a new scale before bounds are applied. The paper's text minimises an upper bound of the
loss, whose minimiser is ``mean(mu^2)``, yet its Algorithm 1 writes ``mean(mu)``. Both are here, with the exact minimiser. For a
rule whose target has a spread (:func:`~dualogic.losses.half_normal_loss`) the two that minimise something do so for that target;
what they give is then kept at or above the spread, as are the others.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from dualogic import numerics
from dualogic.losses.truncated_normal import MEAN_OF_HALF_NORMAL

NEWTON_STEPS = 24
RUNNING = 100.0
"""How many violating samples a running scale remembers."""


def algorithm_one_delta(mu: Tensor, count: Tensor, spread: Tensor | float = 0.0) -> Tensor:
    """``delta^2 = mean(mu)``: as Algorithm 1 prints it, whatever the spread; its unit is that of a square root of the cost."""
    return (mu.sum(0) / count).sqrt()


def bound_delta(mu: Tensor, count: Tensor, spread: Tensor | float = 0.0) -> Tensor:
    """``delta^2 = mean(mu^2)``: the minimiser of the upper bound in the paper's text; scale-free.

    With a spread ``s``, ``delta^2 = mean(mu^2 - 2 sqrt(2/pi) s mu + s^2)``: the mean square distance from costs to the target.
    """
    return _square_distance(mu, count, spread).sqrt()


def _square_distance(mu: Tensor, count: Tensor, spread: Tensor | float) -> Tensor:
    second = mu.square().sum(0) / count
    if isinstance(spread, float) and not spread:
        return second
    # At least (1 - 2/pi) spread^2, so nothing cancels.
    return (second - 2.0 * MEAN_OF_HALF_NORMAL * spread * (mu.sum(0) / count) + spread * spread).clamp_min(0.0)


def exact_delta(mu: Tensor, count: Tensor, spread: Tensor | float = 0.0) -> Tensor:
    """The minimiser of the loss itself: ``delta^2 = mean(mu^2 + mu delta phi(mu/delta) / Phi(mu/delta))``.

    ``x^2 + x phi(x) / Phi(x)`` increases with ``x = mu / delta``, so there is one solution; because ``phi / Phi`` is at most
    ``sqrt(2/pi)`` for positive arguments, it lies between ``sqrt(mean(mu^2))`` and the positive root of a quadratic. A fixed
    number of Newton steps on ``log delta``, kept within that bracket, finds it without waiting for the device.

    With a spread ``s`` there is ``mu^2 - 2 sqrt(2/pi) s mu + s^2`` in the place of ``mu^2``. The loss is convex in ``1 / delta``,
    so there is still one solution, and where it lies below ``s`` the best scale that is allowed is ``s`` itself.

    Of the costs ``mu``, ``(batch, rules)``, ``count`` rows count, and the others are 0. ``spread`` is that of all rules or
    ``(rules,)``, as is the result, which is 0 where all costs and the spread are.

    Example:
        >>> import torch
        >>> exact_delta(torch.ones(4, 1, dtype=torch.float64), torch.tensor(4.0))
        tensor([1.1906], dtype=torch.float64)
    """
    first, second = mu.sum(0) / count, _square_distance(mu, count, spread)
    half = 0.5 * MEAN_OF_HALF_NORMAL * first
    root = second.sqrt()
    low = root.clamp_min(torch.finfo(mu.dtype).tiny)
    high = (half + (half.square() + second).sqrt()).clamp_min(torch.finfo(mu.dtype).tiny)
    log_low, log_high = low.log(), high.log()
    log_delta = 0.5 * (log_low + log_high)
    for _ in range(NEWTON_STEPS):
        ratio = mu * torch.exp(-log_delta)
        mills = numerics.inverse_mills(ratio)
        distance = (root * torch.exp(-log_delta)).square()
        value = distance + (ratio * mills).sum(0) / count - 1.0
        slope = -2.0 * distance - (ratio * mills * (1.0 - ratio * (ratio + mills))).sum(0) / count
        log_low = torch.where(value > 0, log_delta, log_low)
        log_high = torch.where(value > 0, log_high, log_delta)
        newton = log_delta - value / slope
        inside = (newton >= log_low) & (newton <= log_high)
        log_delta = torch.where(inside, newton, 0.5 * (log_low + log_high))
    return torch.where(second > 0, log_delta.exp(), torch.zeros_like(second))


def violations_delta(mu: Tensor, delta: Tensor) -> Tensor:
    """A running ``(sum(mu) / sum(sqrt(mu)))^2``: the cost that is typical where the rule is violated, by however few.

    Where costs fall the rule pulls harder, down to the floor; where they stay, because labels or other rules say otherwise, it
    gives way. The unit is that of the cost. A batch counts by how many of its samples violate the rule, ``n = sum(sqrt(mu))^2 /
    sum(mu)``, as ``n / (n + 100)``.

    Example:
        >>> import torch
        >>> violations_delta(torch.tensor([[3.0], [0.0], [3.0]]), torch.tensor([1.0]))  # two of them: 2 / 102 of the way to 3
        tensor([1.0392])
    """
    total, roots = mu.sum(0), mu.sqrt().sum(0)
    some = roots.clamp_min(torch.finfo(mu.dtype).tiny)
    typical = total / some
    # As n / (n + 100), with both sides times the square root of the typical cost.
    return torch.lerp(delta, typical.square(), roots / torch.add(some, typical, alpha=RUNNING))


DELTA_RULES: dict[str, Callable[..., Tensor]] = {"mean": algorithm_one_delta, "square": bound_delta, "exact": exact_delta}
