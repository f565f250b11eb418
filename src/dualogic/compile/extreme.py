"""How connectives join costs at the optimal duals."""

from __future__ import annotations

import torch
from torch import Tensor

from dualogic.compile.implication import deny, excess, possible_sides
from dualogic.compile.tree import Level


def take_extreme(level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
    """The optimal duals' combination: all weight on the worst operand of an ``and``, on the best of an ``or``."""
    if level.operation == ">>":
        if mask is None:
            return excess(values[:, 0], values[:, 1], level.logarithmic)
        antecedent, consequent = possible_sides(values, mask)
        cost = excess(antecedent, consequent, level.logarithmic)
        return torch.where(mask[:, 1], cost, deny(antecedent, 0.0, level.logarithmic))
    # An empty "and" holds, at no cost; an empty "or" cannot hold.
    neutral = 0.0 if level.operation == "&" else torch.inf
    if values.shape[1] == 0:
        return values.sum(1) + neutral  # a sum of nothing, which still has a gradient
    if mask is not None:
        values = values.masked_fill(~mask, neutral)
    return values.amax(1) if level.operation == "&" else values.amin(1)
