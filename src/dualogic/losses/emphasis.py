"""How much heavier than in a plain mean the losses of several rules are where only a few of them are violated."""

from __future__ import annotations

import torch
from torch import Tensor

LEAST = 0.25
"""How hard all rules together pull at a sample that violates any of them, at least, beside a rule that is alone."""


def emphasise(costs: Tensor, delta: Tensor, floor: Tensor | float) -> Tensor:
    """Factors ``max(1, (m / n) / 4 * floor / delta)``, where a sample violates ``n`` of ``m`` rules.

    In a mean over rules, those that a sample meets dilute those that it violates: one of fifty pulls fiftyfold less than alone.
    With these factors it pulls fourfold less. ``n = sum(sqrt(c))^2 / sum(c)`` counts rules by their costs ``c``: rules of the
    same cost count 1 each, and a rule that costs nothing counts 0. So all rules together never count more than the dearest of
    them alone, copies of a rule count as one does, and up to four rules are plainly averaged. A rule whose violations stay dear,
    because labels or other rules say otherwise, has a ``delta`` above its floor, and is raised that much less.

    Args:
        costs: at least 0, ``(batch, rules)``.
        delta: the scale of each rule, ``(rules,)``.
        floor: of ``delta``, above 0, for all rules or ``(rules,)``.

    Returns:
        ``(batch, rules)``, at least 1.

    Example:
        >>> import torch
        >>> costs = torch.zeros(2, 12)
        >>> costs[0, :2] = 0.3  # two of twelve
        >>> emphasise(costs, torch.ones(12), floor=1.0)[:, 0]
        tensor([1.5000, 1.0000])
    """
    roots = costs.sqrt().mean(1, keepdim=True).square().clamp_min(torch.finfo(costs.dtype).tiny)
    return (costs.mean(1, keepdim=True) / roots * (LEAST * floor / delta)).clamp_min(1.0)
