"""Weighted connectives: combine operand costs with given weights, and find how the weights should move."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from dualogic.compile.implication import unrest
from dualogic.compile.plan import Plan
from dualogic.compile.tree import Branch, JunctionBranch, Leaf, Level, QuantifierBranch
from dualogic.duals.rules import UpdateRule
from dualogic.methods.lean import TAUGHT, Leaning, Stand, follow, lean, note


@dataclasses.dataclass
class Joined:
    """What happened at one level: all that the closed-form step needs."""

    values: Tensor  # the operands' costs
    weights: Tensor  # the stored ones, which move
    result: Tensor  # what these give
    columns: Tensor | None  # as stored
    mask: Tensor | None  # which operands exist
    extent: tuple[int, ...]  # the reduced sizes of this batch
    passed: Tensor  # the weights that the loss has, through which its slope passes down


Led = tuple[Tensor | None, Tensor | None]


class Mixture:
    """Combines operands with the weights stored in table rows, and remembers what it saw.

    Args:
        rule: how rows become weights.
        rows: ``(batch, width)`` or ``(1, width)``; ``None`` for equal weights.
        remember: keep what :func:`steps` needs.
        leads: the operations whose weights are multiplied by what leads: ``|`` by :func:`nearness`, ``&`` by :func:`dearness`.
        stands: how the antecedents of each level of implications stand; without it they are no evidence.
        believed: a mixture that has folded what is believed, and remembers it; it says which operand leads and what an
            implication's beliefs are. Without it the values themselves do.
        led: for each such level whose operands no weight changes, these factors and those of
            :func:`~dualogic.compile.implication.unrest`, or ``None`` until they are known; to be shared by all that fold the same
            values.
        sloped: the values have no gradient to record; keep the slopes of implications instead.
    """

    def __init__(
        self,
        rule: UpdateRule,
        rows: Tensor | None,
        remember: bool = False,
        leads: str = "",
        stands: Mapping[int, Stand] | None = None,
        believed: Mixture | None = None,
        led: dict[int, Led | None] | None = None,
        sloped: bool = False,
    ) -> None:
        self.rule = rule
        self.rows = rows
        self.joined: dict[int, Joined | Leaning] | None = {} if remember else None
        self.leads = leads
        self.stands = stands or {}
        self.believed = {} if believed is None else believed.joined or {}
        self.led = led or {}
        self.sloped = sloped

    def again(self) -> Mixture:
        """The same weights, for values that have a gradient."""
        return Mixture(self.rule, self.rows, leads=self.leads, stands=self.stands)

    def stand(self, level: Level) -> Stand:
        """How the antecedents of a level of implications stand."""
        return self.stands.get(level.number, TAUGHT)

    def __call__(self, level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
        columns = None
        if level.operation == ">>":
            return self._lean(level, values, mask)
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
        passed = weights
        if (level.operation in self.leads or level.rests) and not level.uniform:
            lead, kept = self._lead(level, values, mask)
            if lead is not None:
                passed = weights * lead
                passed = passed / passed.sum(1, keepdim=True).clamp_min_(torch.finfo(passed.dtype).tiny)
            passed = passed if kept is None else passed * kept
        result = (passed * values).sum(1)
        if mask is not None and level.operation == "|":
            result = torch.where(mask.any(1), result, torch.inf)
        if self.joined is not None:
            stored = result if passed is weights else (weights * values).sum(1)
            self.joined[level.number] = Joined(values, weights, stored, columns, mask, extent, passed)
        return result

    def _lead(self, level: Level, values: Tensor, mask: Tensor | None) -> Led:
        """What leads, and how much is kept of what rests; of what is believed."""
        if (found := self.led.get(level.number)) is None:
            believed = self.believed.get(level.number)
            costs = (values if believed is None else believed.values).detach()
            lead = None
            if level.operation in self.leads:
                lead = dearness(costs) if level.operation == "&" else nearness(costs, mask)
            found = lead, unrest(costs, mask, level.logarithmic, level.rests) if level.rests else None
            if level.number in self.led:
                self.led[level.number] = found
        return found

    def _lean(self, level: Level, values: Tensor, mask: Tensor | None) -> Tensor:
        shape = (1, *values.shape[2 : 2 + level.lanes], *(1,) * (values.dim() - 2 - level.lanes))
        share, rates = self.stand(level)
        share = share.view(shape) if isinstance(share, Tensor) else share
        stand = Stand(share, None if rates is None else rates.view(shape))
        believed = self.believed.get(level.number)
        assert not isinstance(believed, Joined), "a level is one thing or the other"
        result, seen = lean(level, values, mask, stand, self.joined is not None, believed, self.sloped)
        if seen is not None and self.joined is not None:
            self.joined[level.number] = seen
            if self.rows is not None:
                columns = level.columns(self.rows)
                seen.stored = level.fit(columns, level.sizes, values.shape[2:]) if level.ragged else columns
        return result


def find_settled(branch: Branch) -> Iterator[JunctionBranch]:
    """The implications below a branch whose operands have no weights: nothing that moves changes their values."""
    if isinstance(branch, QuantifierBranch):
        yield from find_settled(branch.operand)
    elif isinstance(branch, JunctionBranch):
        weighted = [group for group in branch.groups if isinstance(group, (JunctionBranch, QuantifierBranch))]
        if branch.level.operation == ">>" and not (weighted or branch.can_be_empty or branch.level.ragged):
            yield branch
        for group in weighted:
            yield from find_settled(group)


def find_fixed(branch: Branch) -> Iterator[int]:
    """The levels of ``and`` and ``or`` below a branch whose operands are atoms: no weight changes their values."""
    below = branch.groups if isinstance(branch, JunctionBranch) else ()
    below = (branch.operand,) if isinstance(branch, QuantifierBranch) else below
    for group in below:
        yield from find_fixed(group)
    if below and all(isinstance(group, Leaf) for group in below) and branch.level.operation != ">>":  # type: ignore[attr-defined]
        yield branch.level.number  # type: ignore[attr-defined]


def nearness(costs: Tensor, mask: Tensor | None) -> Tensor:
    """``(c_min / c)^4`` for the costs ``c`` of an ``or``, ``(batch, k, ...)``: 1 for the nearest operand, and 0 for all others if
    that one is met.

    Example:
        >>> import torch
        >>> nearness(torch.tensor([[1.0, 2.0], [0.0, 2.0], [0.0, 0.0]]), None)
        tensor([[1.0000, 0.0625],
                [1.0000, 0.0000],
                [1.0000, 1.0000]])
    """
    if mask is None and costs.shape[1]:
        above = costs + torch.finfo(costs.dtype).tiny  # so that 0 / 0 is 1
        return (above.amin(1, keepdim=True) / above).square_().square_()
    if mask is not None:
        costs = costs.masked_fill(~mask, torch.inf)
    least = costs.amin(1, keepdim=True) if costs.shape[1] else costs
    return torch.where(costs > least, least / costs, 1.0).square().square()


def dearness(costs: Tensor) -> Tensor:
    """``(c / c_max)^2`` for the costs ``c`` of an ``and``, ``(batch, k, ...)``: 1 for the dearest operand, and 0 for those that
    are met, so that they do not dilute what is not.

    Example:
        >>> import torch
        >>> dearness(torch.tensor([[1.0, 2.0], [0.0, 2.0], [0.0, 0.0]]))
        tensor([[0.2500, 1.0000],
                [0.0000, 1.0000],
                [1.0000, 1.0000]])
    """
    if not costs.shape[1]:
        return costs
    limits = torch.finfo(costs.dtype)
    costs = costs.clamp(limits.tiny, limits.max)  # so that 0 / 0, and one infinity by another, is 1
    return (costs / costs.amax(1, keepdim=True)).square_()


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
    """How weights move, apart from the size of the step."""

    # The slope is not multiplied on the way down, and in a step that is proportional to the weight `w` that moves, `min(w k /
    # 2, 1)` is in its place, for `k` operands: each connective moves as if it were the whole rule and had two. Where entries
    # share something, the mean over them takes the place of the sum.
    local: bool = False
    share: float = 0.0  # of the weights, divided equally among the operands after a step
    masked: bool = False  # some connectives do not exist for some samples; theirs stay as they are
    slow: float = 1.0  # what the step of `and` is to that of `or`


SMALLEST = 1e-20
"""A slope that moves nothing, and is not 0."""
GRADIENT = Manner()
"""Along the gradient, and nothing else."""


def steps(plan: Plan, mixture: Mixture, slope: Tensor, manner: Manner = GRADIENT) -> tuple[Tensor, Tensor | None]:
    """The moves of all dual variables, ``(batch, width)``: ``slope * w * (c - m)`` for softmax logits; and what the batch tells
    about implications, ``(batch, 4, implications)``, if there are any of which it is to be found out who gives way.

    On the way down the tree the slope is multiplied by the weights that it passes: it stays the derivative of the loss with
    respect to the connective's own cost, times the step size. No second backward pass is made.

    Args:
        plan: the compiled rules.
        mixture: has folded the plan with ``remember=True``.
        slope: the step size times the slope of the loss at each rule, ``(batch, rules)``.
        manner: of the moves.
    """
    moves: dict[int, Tensor] = {}
    notes: dict[int, Tensor] = {}
    for branch, places in plan.roots:
        whole = len(places) == slope.shape[1]
        part = slope if whole else slope.index_select(1, plan.positions(tuple(places), slope.device))
        _descend(branch, part, mixture, moves, notes, manner)
    ordered = [moves[level.number].flatten(1) for level in plan.levels if not level.uniform]
    noted = [notes[level.number] for level in plan.levels if level.number in notes]
    return (
        ordered[0] if len(ordered) == 1 else torch.cat(ordered, dim=1),
        None if not noted else noted[0] if len(noted) == 1 else torch.cat(noted, dim=2),
    )


def _descend(
    branch: Branch, slope: Tensor, mixture: Mixture, moves: dict[int, Tensor], notes: dict[int, Tensor], manner: Manner
) -> None:
    # Not a closure: one that calls itself is a cycle, and would keep a step's tensors until Python looks for cycles.
    if not isinstance(branch, (JunctionBranch, QuantifierBranch)):
        return
    level, local = branch.level, manner.local
    seen = mixture.joined[level.number]  # type: ignore[index]
    if isinstance(seen, Leaning):
        exists = slope != 0 if manner.masked else None
        moves[level.number] = follow(level, seen, exists)
        if level.share is None:
            notes[level.number] = note(level, seen, exists)
    elif not level.uniform:
        paced = slope * manner.slow if level.operation == "&" and manner.slow != 1.0 else slope
        moves[level.number] = _move(level, seen, mixture.rule, paced, branch.can_be_empty, manner)
    if isinstance(branch, QuantifierBranch):
        if not isinstance(branch.operand, (JunctionBranch, QuantifierBranch)):
            return
        assert isinstance(seen, Joined)
        below = _pass_down(slope, seen, manner)
        if below.shape[1] == 1:  # the same for all operands
            below = below.view(below.shape[0], *(1,) * len(branch.dims), *below.shape[2:])
        else:
            below = below.expand(below.shape[0], *seen.values.shape[1:]).unflatten(1, seen.extent)
        front = tuple(range(1, 1 + len(branch.dims)))
        _descend(
            branch.operand, below if branch.dims == front else below.movedim(front, branch.dims), mixture, moves, notes, manner
        )
        return
    start = 0
    for group, count in zip(branch.groups, branch.counts):
        if isinstance(group, (JunctionBranch, QuantifierBranch)):
            below = _pass_down(slope, seen, manner)
            below = below if below.shape[1] == 1 else below.narrow(1, start, count)
            result = mixture.joined[group.level.number].result  # type: ignore[index]
            _descend(group, _sum_to(below, result.shape, 2 + len(branch.lanes), local), mixture, moves, notes, manner)
        start += count


def _pass_down(slope: Tensor, seen: Joined | Leaning, manner: Manner) -> Tensor:
    """The slope at each operand ``(batch, k, ...)``, or ``(batch, 1, ...)`` if it is the same; 0 at those that do not exist."""
    slope = slope.unsqueeze(1)
    if isinstance(seen, Leaning):
        return slope if manner.local else slope * torch.stack([1.0 - seen.weight, seen.weight], 1)
    if not manner.local and not manner.masked:
        return slope * seen.passed
    # Where some do not exist only these have 0: one that another outweighs is still there.
    below = slope if manner.local else slope * seen.passed.clamp_min(SMALLEST)
    return below if seen.mask is None else below * seen.mask


def _move(level: Level, seen: Joined, rule: UpdateRule, slope: Tensor, can_be_empty: bool, manner: Manner) -> Tensor:
    assert seen.columns is not None
    local = manner.local
    result = seen.result.unsqueeze(1)
    centred = seen.values - result if level.operation == "&" else result - seen.values
    slope, mask, weights = slope.unsqueeze(1), seen.mask, seen.weights
    reached = slope != 0 if manner.masked and (manner.share or not rule.rests) else None
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
    if manner.share:
        moved = rule.share(seen.columns + move, manner.share, mask)
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
        if isinstance(seen, Leaning):
            columns, mask, extent = seen.stored, None, level.sizes
        else:
            columns, mask, extent = seen.columns, _shared_mask(level, seen.mask), seen.extent
        if mask is None:
            shape = (batch, *columns.shape[1:])  # type: ignore[union-attr]
            mask = torch.ones(shape, dtype=torch.bool, device=columns.device)  # type: ignore[union-attr]
        if level.ragged:
            # Operands past the end of this batch do not exist; connectives past it do, with weights nobody has moved yet.
            operands = level.unfit(torch.ones_like(mask, dtype=torch.uint8), extent, 0).bool()
            mask = level.unfit(mask.to(torch.uint8), extent, 1).bool()
            if mask.dim() > 2:
                operands = operands.flatten(2).any(2).view(*mask.shape[:2], *(1,) * (mask.dim() - 2))
            mask = mask & operands
        parts.append(mask.flatten(1))
    return torch.cat(parts, dim=1)
