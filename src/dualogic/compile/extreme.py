"""How connectives join costs at the optimal duals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from dualogic.compile.implication import IMPOSSIBLE, deny, optimum, possible_sides, unrest
from dualogic.compile.instructions import Guided, Registers
from dualogic.compile.threshold import best_threshold, deny_threshold
from dualogic.compile.tree import Level

if TYPE_CHECKING:
    from dualogic.compile.plan import Plan


def take_extreme(level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
    """The optimal duals' combination: all weight on the worst operand of an ``and``, on the best of an ``or``."""
    if level.operation == ">>":
        if level.compares[0]:
            sides = values if mask is None else possible_sides(values, mask)
            best = best_threshold(sides)
            return best if mask is None else torch.where(mask[:, 1], best, deny_threshold(sides[:, 0]))
        if mask is None:
            return optimum(values, level.logarithmic)
        sides = possible_sides(values, mask)
        return torch.where(mask[:, 1], optimum(sides, level.logarithmic), deny(sides[:, 0], 0.0, level.logarithmic))
    # An empty "and" holds, at no cost; an empty "or" cannot hold.
    extreme = _join(level, values, mask, 0.0 if level.operation == "&" else torch.inf)
    return extreme * unrest(values.detach(), mask, level.logarithmic, level.rests).squeeze(1) if level.rests else extreme


def take_depth(level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
    """The same of values that :mod:`dualogic.compile.threshold` describes: an empty ``and`` is a fact that holds."""
    return _join(level, values, mask, -IMPOSSIBLE if level.operation == "&" else IMPOSSIBLE)


def _join(level: Level, values: Tensor, mask: Tensor | None, neutral: float) -> Tensor:
    if values.shape[1] == 0:
        return values.sum(1) + neutral  # a sum of nothing, which still has a gradient
    if mask is not None:
        values = values.masked_fill(~mask, neutral)
    return values.amax(1) if level.operation == "&" else values.amin(1)


def fold_extremes(plan: Plan, registers: Registers | Guided) -> Tensor:
    """Costs ``(batch, rules)`` at the optimal duals of what is believed: taught is the operand that is extreme there."""
    if not isinstance(registers, Guided):
        return plan.fold(registers, take_extreme)
    seen: dict[int, Tensor] = {}

    def believe(level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
        seen[level.number] = values
        return take_extreme(level, values, mask, extent)

    def teach(level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
        return take_believed(level, values, seen[level.number], mask, extent)

    with torch.no_grad():
        plan.fold(registers.believed, believe)
    return plan.fold(registers, teach)


def take_believed(level: Level, values: Tensor, believed: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
    """As :func:`take_extreme`, with the operand that is extreme among ``believed``, of the shape of ``values``."""
    if level.operation == ">>":
        return take_extreme(level, torch.cat([believed[:, :1], values[:, 1:]], 1), mask, extent)
    if values.shape[1] == 0:
        return take_extreme(level, values, mask, extent)
    conjunction = level.operation == "&"
    if mask is not None:
        values, believed = (side.masked_fill(~mask, 0.0 if conjunction else torch.inf) for side in (values, believed))
    place = believed.argmax(1, keepdim=True) if conjunction else believed.argmin(1, keepdim=True)
    fixed = values.detach()
    equal = believed == believed.gather(1, place)
    # Operands that are equally extreme share the gradient, as they do where maximum and minimum are taken.
    moving = torch.where(equal & fixed.isfinite(), values - fixed, 0.0).sum(1) / equal.sum(1)
    extreme = fixed.gather(1, place).squeeze(1) + moving
    return extreme * unrest(believed, mask, level.logarithmic, level.rests).squeeze(1) if level.rests else extreme
