"""The connectives of a plan: which values each level joins, and where its weights stand in the table."""

from __future__ import annotations

import dataclasses
import math
from typing import Protocol

import torch
from torch import Tensor

from dualogic import numerics
from dualogic.compile.instructions import Guided, Operand, Registers, Settled, fetch
from dualogic.formula.connective import Formula


@dataclasses.dataclass(frozen=True)
class Level:
    """All connectives of one signature at one place of the tree, joined in one operation.

    Values have shape ``(batch, k, *rest)``: the ``k`` operands first, then lanes and declared axes.
    """

    number: int  # position among the plan's levels, parents before children
    # "&", "|" or ">>", for an implication that rests: its two operands are the costs of antecedent and consequent, and its one
    # column is described in methods/lean.py.
    operation: str
    offset: int  # first column of its weights in the table; columns are laid out as `(*sizes, *rest)`
    sizes: tuple[int, ...]  # the reduced sizes at their maximum; their product is `k`, but 1 for ">>"
    rest: tuple[int, ...]  # lanes and axes at their maximum, 1 where weights are shared along an axis
    lanes: int  # how many of `rest` number separate connectives
    shared: tuple[int, ...]  # positions in `rest` along which weights are shared
    uniform: bool  # the weights are fixed (a quantifier with tied duals), so it has no columns
    ragged: bool  # some size is smaller in some batches
    order: tuple[int, ...]  # where each operand of the formula stands among the `k`
    paths: tuple[str, ...]  # the path of each lane's connective
    formulas: tuple[Formula, ...] = dataclasses.field(repr=False)  # the connectives themselves, for messages
    share: float | None = 0.0  # for ">>", how much of the antecedent is evidence; `None` where that is to be found out
    logarithmic: bool = True  # class costs are `-log p`
    turned: bool = False  # for ">>", it was written the other way round
    mutual: bool = False  # for ">>", both sides teach each other; with no `share`, whether both fall is to be found out
    # For ">>", whether antecedent and consequent compare numbers, and nothing else. The value of such an antecedent is not a
    # cost, but what compile/threshold.py says.
    compares: tuple[bool, bool] = (False, False)
    # For ">>", whether antecedent and consequent are made of Booleans alone: how rare these are says how much a belief tells.
    yes_or_no: tuple[bool, bool] = (False, False)
    rests: int = 0  # for "|", it costs nothing where so many of its operands, the most believed ones, sum to 1; 0 for never

    @property
    def operands(self) -> int:
        """How many columns a connective has: the largest number of its operands, and 1 for ``">>"``."""
        return math.prod(self.sizes)

    @property
    def width(self) -> int:
        """How many columns of the table it owns."""
        return 0 if self.uniform else self.operands * math.prod(self.rest)

    def columns(self, rows: Tensor) -> Tensor:
        """Its part of table rows ``(batch, width)`` as ``(batch, k, *rest)``; ``(batch, 1, *rest)`` for ``">>"``."""
        part = rows.narrow(1, self.offset, self.width)
        return part.view(part.shape[0], self.operands, *self.rest) if self.rest else part

    def fit(self, columns: Tensor, extent: tuple[int, ...], rest: torch.Size) -> Tensor:
        """Cut ``(batch, k, *rest)`` columns of a ragged level down to the sizes of this batch."""
        value: Tensor = columns.unflatten(1, self.sizes)
        for dim, (full, actual) in enumerate(zip((*self.sizes, *self.rest), (*extent, *rest)), start=1):
            if full > actual:
                value = value.narrow(dim, 0, actual)
        return value.flatten(1, len(self.sizes))

    def unfit(self, value: Tensor, extent: tuple[int, ...], fill: float) -> Tensor:
        """Undo :meth:`fit`, with ``fill`` in the columns that this batch does not use."""
        value = value.unflatten(1, extent)
        padding: list[int] = []
        for full, actual in zip(reversed((*self.sizes, *self.rest)), reversed(value.shape[1:])):
            padding += [0, full - actual]
        return torch.nn.functional.pad(value, padding, value=fill).flatten(1, len(self.sizes))


class Combine(Protocol):
    """How a method joins the operands of a level."""

    def __call__(self, level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
        """Reduce ``(batch, k, *rest)`` to ``(batch, *rest)``; ``mask`` says which operands exist."""


class Branch:
    """A node of the tree; its value has shape ``(batch, *lanes, *axes)``."""

    can_be_empty = False

    def fold(self, registers: Registers | Guided | Settled, combine: Combine) -> Tensor:
        """Compute its value from those of the atoms."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Leaf(Branch):
    """Atoms that are computed together."""

    operand: Operand
    kind: str  # "comparison", "class" or "boolean"
    lanes: tuple[int, ...]  # how many atoms, along each lane dimension
    formulas: tuple[Formula, ...] = dataclasses.field(repr=False)  # the atom of each lane, for messages
    # How much of the gradient into them is held back, where they are evidence; as much of their value is what is believed, and
    # not what is taught.
    share: float = 0.0

    def fold(self, registers: Registers | Guided | Settled, combine: Combine) -> Tensor:
        value = fetch(registers, self.operand)
        if not self.share:
            return value
        believed = fetch(registers.believed, self.operand) if isinstance(registers, Guided) else value
        return numerics.hold_back(value, self.share, believed)


@dataclasses.dataclass(frozen=True)
class PremiseBranch(Branch):
    """An antecedent, whose own connectives have no weights: it is what its parts say at the optimal duals."""

    operand: Branch  # the antecedent
    read: Combine  # joins operands so
    can_be_empty: bool

    def fold(self, registers: Registers | Guided | Settled, combine: Combine) -> Tensor:
        return self.operand.fold(registers, self.read)


@dataclasses.dataclass(frozen=True)
class JunctionBranch(Branch):
    """``&``, ``|`` or ``>>`` over groups of operands; each group's value has its operands as first lane."""

    level: Level
    groups: tuple[Branch, ...]
    counts: tuple[int, ...]
    lanes: tuple[int, ...]
    ranks: tuple[int, ...]
    rank: int
    can_be_empty: bool

    def fold(self, registers: Registers | Guided | Settled, combine: Combine) -> Tensor:
        if isinstance(registers, Settled) and self.level.number in registers.levels:
            return registers.levels[self.level.number]
        values = self.operands(registers, combine)
        mask = values != torch.inf if self.can_be_empty and self.level.operation != "&" else None
        return combine(self.level, values, mask, self.level.sizes)

    def operands(self, registers: Registers | Guided | Settled, combine: Combine) -> Tensor:
        """The values of its operands, ``(batch, k, *lanes, *axes)``."""
        return self._join([group.fold(registers, combine) for group in self.groups])

    def _join(self, parts: list[Tensor]) -> Tensor:
        lane_rank = 1 + len(self.lanes)
        aligned = []
        for part, rank in zip(parts, self.ranks):
            for _ in range(self.rank - rank):
                part = part.unsqueeze(1 + lane_rank)
            aligned.append(part)
        axes = aligned[0].shape[1 + lane_rank :]
        if any(part.shape[1 + lane_rank :] != axes for part in aligned):
            axes = torch.broadcast_shapes(*(part.shape[1 + lane_rank :] for part in aligned))
        full = [
            part if part.shape[1:] == (count, *self.lanes, *axes) else part.expand(-1, count, *self.lanes, *axes)
            for part, count in zip(aligned, self.counts)
        ]
        return full[0] if len(full) == 1 else torch.cat(full, dim=1)


@dataclasses.dataclass(frozen=True)
class QuantifierBranch(Branch):
    """``all`` or ``any`` over axes."""

    level: Level
    operand: Branch
    dims: tuple[int, ...]  # tensor dimensions of the operand's value that are reduced
    mask: Operand | None  # which entries exist
    full_shape: tuple[int, ...]  # lanes and axes of the operand, -1 for those whose length is known only when bound
    can_be_empty: bool

    def fold(self, registers: Registers | Guided | Settled, combine: Combine) -> Tensor:
        value = self.operand.fold(registers, combine)
        if value.shape[1:] != self.full_shape:
            value = value.expand(-1, *self.full_shape)
        extent = tuple(value.shape[dim] for dim in self.dims)
        mask = None if self.mask is None else self._front(fetch(registers, self.mask).expand(value.shape))
        values = self._front(value)
        if self.operand.can_be_empty and self.level.operation == "|":
            possible = values != torch.inf
            mask = possible if mask is None else mask & possible
        elif mask is None and values.shape[1] == 0:
            # A ragged axis of which slicing left nothing.
            mask = torch.ones_like(values, dtype=torch.bool)
        return combine(self.level, values, mask, extent)

    def _front(self, value: Tensor) -> Tensor:
        front = tuple(range(1, 1 + len(self.dims)))
        if self.dims != front:
            value = value.movedim(self.dims, front)
        return value.flatten(1, len(self.dims)) if len(self.dims) > 1 else value
