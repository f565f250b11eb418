"""Truth values of every operand of a plan's connectives, and which of them exist."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection
from typing import Union

import torch
from torch import Tensor

from dualogic.compile.binding import Bound
from dualogic.compile.evaluate import autocast_off, decide
from dualogic.compile.extreme import take_extreme
from dualogic.compile.plan import Plan
from dualogic.compile.tree import Branch, Combine, JunctionBranch, Level, QuantifierBranch


@dataclasses.dataclass(frozen=True)
class Observed:
    """One connective, of which each unit is a sample or an entry of one."""

    level: Level  # where it stands in the plan
    axes: tuple[int, ...]  # the axes that the units stand for
    exists: Tensor  # which units exist, `(batch, units)`
    holds: Tensor  # which operands hold, `(batch, units, k)`
    decided: Tensor  # which of them hold without the help of undecided classes; see `observe`
    mask: Tensor | None  # which operands exist (entries of a quantifier); `None` if all do


class _Recorder(dict[int, tuple[Tensor, Union[Tensor, None], tuple[int, ...]]]):
    """Plain logic, or another way to join operands, that remembers what it joined.

    By level number: the operands ``(batch, k, *lanes, *axes)``, which of them exist, and the sizes of a quantifier's axes.
    """

    join: Combine = staticmethod(decide)

    def __call__(self, level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
        self[level.number] = (values, mask, extent)
        return self.join(level, values, mask, extent)


@torch.no_grad()
def observe(
    plan: Plan, bound: Bound, tol: float, lead: float, wanted: Collection[str]
) -> tuple[Tensor, Tensor, dict[str, Observed]]:
    """Evaluate a plan of mode ``"truth"``: which rules hold, ``(batch, rules)``; which do decidedly; and the wanted connectives.

    ``f != k`` is the complement of ``f == k``, so it holds also where ``k`` leads by less than ``lead``: such samples are
    *undecided*. In the decided reading (the paper's), ``f != k`` holds where some other class leads ``k`` by at least
    ``lead``, and a negated Boolean likewise; at ``lead=0`` the two readings agree.
    """
    with autocast_off(bound.device):
        registers = plan.evaluate(bound, tol, lead)
        plain = _Recorder()
        holds = plan.fold(registers, plain)
        strict, decided = plain, holds
        if lead > 0:
            strict = _Recorder()
            # With -lead in place of lead, `f == k` holds more often and its complement less often. So the conjunction of the two
            # is `f == k` itself for a positive literal, and "another class leads k by lead" for a negative one.
            pairs = zip(registers, plan.evaluate(bound, tol, -lead))
            decided = plan.fold([one & two if one.dtype is torch.bool else one for one, two in pairs], strict)
    return holds, decided, _collect(plan, bound, (plain, strict), wanted)


def observe_costs(plan: Plan, bound: Bound, wanted: Collection[str]) -> tuple[Tensor, dict[str, Observed]]:
    """The costs of rules at the optimal duals, ``(batch, rules)``, and those of operands, as ``holds``, differentiably."""
    recorder = _Recorder()
    recorder.join = take_extreme
    with autocast_off(bound.device):
        costs = plan.fold(plan.evaluate(bound), recorder)
    return costs, _collect(plan, bound, (recorder, recorder), wanted)


def _collect(plan: Plan, bound: Bound, seen: tuple[_Recorder, _Recorder], wanted: Collection[str]) -> dict[str, Observed]:
    """The wanted connectives, each of which is there with its parents, by path."""
    found: dict[str, Observed] = {}
    for branch, places in plan.roots:
        exists = torch.ones(bound.batch, len(places), dtype=torch.bool, device=bound.device)
        _descend(branch, exists, seen, wanted, found)
    return found


def _descend(
    branch: Branch, exists: Tensor, seen: tuple[_Recorder, _Recorder], wanted: Collection[str], found: dict[str, Observed]
) -> None:
    """Collect the wanted levels, taking along which of their units exist: ``(batch, *lanes, *axes)``."""
    if not isinstance(branch, (JunctionBranch, QuantifierBranch)):
        return
    level = branch.level
    if not any(path in wanted for path in level.paths):
        return
    values, mask, extent = seen[0][level.number]
    shape = values.shape
    there = _by_unit(level, exists.unsqueeze(1), ordered=False).squeeze(-1)
    holds, decided = (_by_unit(level, side[level.number][0]) for side in seen)
    entries = None if mask is None or isinstance(branch, JunctionBranch) else _by_unit(level, mask)
    for lane, path in enumerate(level.paths):
        if path in wanted:
            mine = None if entries is None else entries[:, lane]
            found[path] = Observed(level, tuple(shape[2 + level.lanes :]), there[:, lane], holds[:, lane], decided[:, lane], mine)
    inside = exists.unsqueeze(1).expand(shape)
    if isinstance(branch, QuantifierBranch):
        if mask is not None:
            inside = inside & mask
        inside = inside.unflatten(1, extent)
        front = tuple(range(1, 1 + len(branch.dims)))
        _descend(branch.operand, inside if branch.dims == front else inside.movedim(front, branch.dims), seen, wanted, found)
        return
    start = 0
    for group, count in zip(branch.groups, branch.counts):
        if isinstance(group, (JunctionBranch, QuantifierBranch)):
            sizes = seen[0][group.level.number][0].shape
            part = inside.narrow(1, start, count)
            _descend(group, _any_to(part, sizes[:1] + sizes[2:], 2 + len(branch.lanes)), seen, wanted, found)
        start += count


def _by_unit(level: Level, values: Tensor, ordered: bool = True) -> Tensor:
    """``(batch, k, *lanes, *axes)`` as ``(batch, lanes, units, k)``, operands in the order of the formula."""
    if ordered and level.order and level.order != tuple(range(len(level.order))):
        values = values[:, list(level.order)]
    batch, operands = values.shape[:2]
    units = math.prod(values.shape[2 + level.lanes :])
    return values.reshape(batch, operands, len(level.paths), units).movedim(1, -1)


def _any_to(value: Tensor, shape: torch.Size, axes_from: int) -> Tensor:
    """An operand with fewer axes than its siblings exists where any of the entries that it serves does."""
    while value.dim() > len(shape):
        value = value.any(axes_from)
    for dim in range(axes_from, len(shape)):
        if shape[dim] == 1 and value.shape[dim] != 1:
            value = value.any(dim, keepdim=True)
    return value


def fit_weights(weights: Tensor, axes: tuple[int, ...], batch: int) -> Tensor:
    """Weights ``(batch or 1, *axes, k)`` of a connective as ``(batch, units, k)``: shared ones repeated, unused ones cut off."""
    for dim, size in enumerate(axes, start=1):
        if weights.shape[dim] > size:
            weights = weights.narrow(dim, 0, size)
    return weights.expand(batch, *axes, -1).reshape(batch, math.prod(axes), weights.shape[-1])
