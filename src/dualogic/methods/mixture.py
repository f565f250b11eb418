"""Weighted connectives: combine operand costs with given weights, and find how the weights should move."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from dualogic.compile.plan import Plan
from dualogic.compile.tree import Branch, JunctionBranch, Level, QuantifierBranch
from dualogic.duals.rules import UpdateRule


@dataclasses.dataclass
class Joined:
    """What happened at one level: all that the closed-form step needs."""

    values: Tensor
    weights: Tensor
    result: Tensor
    columns: Tensor | None
    mask: Tensor | None
    extent: tuple[int, ...]


class Mixture:
    """Combines operands with the weights stored in table rows, and remembers what it saw.

    Args:
        rule: how rows become weights.
        rows: ``(batch, width)`` or ``(1, width)``; ``None`` for equal weights.
        remember: keep what :func:`steps` needs.
    """

    def __init__(self, rule: UpdateRule, rows: Tensor | None, remember: bool = False) -> None:
        self.rule = rule
        self.rows = rows
        self.joined: dict[int, Joined] | None = {} if remember else None

    def __call__(self, level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
        columns = None
        if self.rows is None or level.uniform:
            weights = _equal_weights(values, mask)
        else:
            columns = level.columns(self.rows)
            if level.ragged:
                columns = level.fit(columns, extent, values.shape[2:])
            weights = self.rule.weights(columns, _shared_mask(level, mask))
        if mask is not None:
            values = values.masked_fill(~mask, 0.0)
            if level.shared and columns is not None:
                # Weights shared by entries of which some do not exist are spread over those that do.
                weights = weights * mask
                weights = weights / weights.sum(1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
        result = (weights * values).sum(1)
        if mask is not None and level.operation == "|":
            result = torch.where(mask.any(1), result, torch.inf)
        if self.joined is not None:
            self.joined[level.number] = Joined(values, weights, result, columns, mask, extent)
        return result


def _shared_mask(level: Level, mask: Tensor | None) -> Tensor | None:
    """Which operands exist for any of the entries that share weights."""
    for position in level.shared if mask is not None else ():
        mask = mask.any(2 + position, keepdim=True)  # type: ignore[union-attr]
    return mask


def _equal_weights(values: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return torch.full((1,) * values.dim(), 1.0 / values.shape[1], dtype=values.dtype, device=values.device)
    return mask.to(values.dtype) / mask.sum(1, keepdim=True).clamp_min(1)


@dataclasses.dataclass(frozen=True)
class Manner:
    """How weights move, apart from the size of the step.

    Attributes:
        local: the slope is not multiplied on the way down, and in a step that is proportional to the weight ``w`` that moves,
            ``min(w k / 2, 1)`` is in its place, for ``k`` operands: each connective moves as if it were the whole rule and had
            two. Where entries share something, the mean over them takes the place of the sum.
        forget: the share of what is stored that is taken back before a step.
        share: of the weights, divided equally among the operands after a step.
        masked: some connectives do not exist for some samples; theirs stay as they are.
    """

    local: bool = False
    forget: float = 0.0
    share: float = 0.0
    masked: bool = False


GRADIENT = Manner()
"""Along the gradient, and nothing else."""


def steps(plan: Plan, mixture: Mixture, slope: Tensor, manner: Manner = GRADIENT) -> Tensor:
    """The moves of all dual variables, ``(batch, width)``: ``slope * w * (c - m)`` for softmax logits.

    On the way down the tree the slope is multiplied by the weights that it passes: it stays the derivative of the loss with
    respect to the connective's own cost, times the step size. No second backward pass is made.

    Args:
        plan: the compiled rules.
        mixture: has folded the plan with ``remember=True``.
        slope: the step size times the slope of the loss at each rule, ``(batch, rules)``.
        manner: of the moves.
    """
    moves: dict[int, Tensor] = {}

    for branch, places in plan.roots:
        whole = len(places) == slope.shape[1]
        _descend(
            branch, slope if whole else slope.index_select(1, plan.positions(tuple(places), slope.device)), mixture, moves, manner
        )
    ordered = [moves[level.number].flatten(1) for level in plan.levels if not level.uniform]
    return ordered[0] if len(ordered) == 1 else torch.cat(ordered, dim=1)


def _descend(branch: Branch, slope: Tensor, mixture: Mixture, moves: dict[int, Tensor], manner: Manner) -> None:
    # Not a closure: one that calls itself is a cycle, and would keep a step's tensors until Python looks for cycles.
    if not isinstance(branch, (JunctionBranch, QuantifierBranch)):
        return
    level, local = branch.level, manner.local
    seen = mixture.joined[level.number]  # type: ignore[index]
    if not level.uniform:
        moves[level.number] = _move(level, seen, mixture.rule, slope, branch.can_be_empty, manner)
    if isinstance(branch, QuantifierBranch):
        if not isinstance(branch.operand, (JunctionBranch, QuantifierBranch)):
            return
        below = _pass_down(slope, seen, local)
        below = below.expand(below.shape[0], *seen.values.shape[1:]).unflatten(1, seen.extent)
        front = tuple(range(1, 1 + len(branch.dims)))
        _descend(branch.operand, below if branch.dims == front else below.movedim(front, branch.dims), mixture, moves, manner)
        return
    start = 0
    for group, count in zip(branch.groups, branch.counts):
        if isinstance(group, (JunctionBranch, QuantifierBranch)):
            below = _pass_down(slope, seen, local).narrow(1, start, count)
            result = mixture.joined[group.level.number].result  # type: ignore[index]
            _descend(group, _sum_to(below, result.shape, 2 + len(branch.lanes), local), mixture, moves, manner)
        start += count


def _pass_down(slope: Tensor, seen: Joined, local: bool) -> Tensor:
    """The slope at each operand ``(batch, k, ...)``; 0 at those that do not exist."""
    slope = slope.unsqueeze(1)
    if not local:
        return slope * seen.weights
    if seen.mask is not None:
        return slope * seen.mask
    return slope.expand(torch.broadcast_shapes(slope.shape, seen.weights.shape))


def _move(level: Level, seen: Joined, rule: UpdateRule, slope: Tensor, can_be_empty: bool, manner: Manner) -> Tensor:
    assert seen.columns is not None
    local = manner.local
    result = seen.result.unsqueeze(1)
    centred = seen.values - result if level.operation == "&" else result - seen.values
    slope, mask, weights = slope.unsqueeze(1), seen.mask, seen.weights
    reached = slope != 0 if manner.masked and (manner.forget or manner.share or not rule.rests) else None
    if mask is not None:
        centred = centred.masked_fill(~mask, 0.0)
    if can_be_empty:
        # An operand that cannot hold costs infinity; where an alternative takes over, its weights stay as they are.
        centred = torch.where(torch.isfinite(centred), centred, 0.0)
    if level.shared:
        # Entries that share their weights add up their gradients.
        axes = tuple(2 + position for position in level.shared)
        centred = (slope * centred).mean(axes, keepdim=True) if local else (slope * centred).sum(axes, keepdim=True)
        slope = torch.ones_like(centred[:, :1])
        for axis in axes if reached is not None else ():
            reached = reached.any(axis, keepdim=True)  # type: ignore[union-attr]
        mask = _shared_mask(level, mask)
        weights = rule.weights(seen.columns, mask)
    if local and rule.shrinks and weights.shape[1] != 2:
        count = seen.values.shape[1] if mask is None else mask.sum(1, keepdim=True)
        weights = (weights * (0.5 * count)).clamp_max(1.0)
    move = rule.move(seen.columns, weights, slope, centred, mask)
    if manner.forget or manner.share:
        moved = seen.columns * (1.0 - manner.forget) + move
        if manner.share:
            moved = rule.share(moved, manner.share, mask)
        move = moved - seen.columns if mask is None else (moved - seen.columns).masked_fill(~mask, 0.0)
    if reached is not None:
        move = torch.where(reached, move, 0.0)
    return level.unfit(move, seen.extent, 0.0) if level.ragged else move


def _sum_to(value: Tensor, shape: torch.Size, axes_from: int, mean: bool) -> Tensor:
    """Undo the broadcasting of a group's axes against its siblings'."""
    while value.dim() > len(shape):
        value = value.mean(axes_from) if mean else value.sum(axes_from)
    dims = tuple(dim for dim in range(axes_from, len(shape)) if shape[dim] == 1 and value.shape[dim] > 1)
    if not dims:
        return value
    return value.mean(dims, keepdim=True) if mean else value.sum(dims, keepdim=True)


def existing_columns(plan: Plan, mixture: Mixture, batch: int) -> Tensor:
    """Which dual variables belong to operands that exist in this batch, ``(batch, width)``."""
    parts = []
    for level in plan.levels:
        if level.uniform:
            continue
        seen = mixture.joined[level.number]  # type: ignore[index]
        mask = _shared_mask(level, seen.mask)
        if mask is None:
            shape = (batch, *seen.columns.shape[1:])  # type: ignore[union-attr]
            mask = torch.ones(shape, dtype=torch.bool, device=seen.values.device)
        if level.ragged:
            # Operands past the end of this batch do not exist; connectives past it do, with weights nobody has moved yet.
            operands = level.unfit(torch.ones_like(mask, dtype=torch.uint8), seen.extent, 0).bool()
            mask = level.unfit(mask.to(torch.uint8), seen.extent, 1).bool()
            if mask.dim() > 2:
                operands = operands.flatten(2).any(2).view(*mask.shape[:2], *(1,) * (mask.dim() - 2))
            mask = mask & operands
        parts.append(mask.flatten(1))
    return torch.cat(parts, dim=1)
