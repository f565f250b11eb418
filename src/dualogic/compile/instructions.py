"""The tensor operations that give terms their values.

Every value has the shape ``(batch, *lanes, *axes)``. *Lanes* number the nodes that are computed together (see
``signature``), *axes* are the declared ones. A value that is the same for all lanes has none and is broadcast.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dualogic.compile.binding import Bound
from dualogic.errors import ShapeError
from dualogic.formula.shape import Shape, format_shape

Key = tuple[Any, ...]
Operand = tuple[int, "Key | None"]
"""A register and the index that brings its value to the rank of the operation."""
Span = tuple[int, int, tuple[int, ...], tuple[int, ...]]
Stride = tuple[int, int, int]


@dataclasses.dataclass
class Context:
    """What instructions read besides registers."""

    bound: Bound
    constants: list[Tensor]
    tol: float = 0.0
    lead: float = 0.0


Registers = list[Tensor]


@dataclasses.dataclass(frozen=True)
class Guided:
    """Registers of what is taught, with those of what is believed beside them."""

    taught: Registers
    believed: Registers

    def __getitem__(self, number: int) -> Tensor:
        return self.taught[number]


@dataclasses.dataclass
class Settled:
    """Registers, with what no move of a weight changes: computed once, for a step and for its loss."""

    taught: Registers  # the registers
    levels: dict[int, Tensor]  # the value of each such level
    seen: dict[int, Any]  # what a step needs of it
    led: dict[int, Any]  # see `Mixture`
    stands: dict[int, Any]  # likewise

    def __getitem__(self, number: int) -> Tensor:
        return self.taught[number]


def fetch(registers: Registers | Guided | Settled, operand: Operand) -> Tensor:
    """The value of an operand at the rank of the operation."""
    value = registers[operand[0]]
    return value if operand[1] is None else value[operand[1]]


class Instruction:
    """One operation; its result goes to the next register."""

    def run(self, registers: Registers, context: Context) -> Tensor:
        """Compute the result."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Read(Instruction):
    """A bound tensor."""

    name: str

    def run(self, registers: Registers, context: Context) -> Tensor:
        return context.bound.tensors[self.name]


@dataclasses.dataclass(frozen=True)
class Fixed(Instruction):
    """A constant."""

    number: int

    def run(self, registers: Registers, context: Context) -> Tensor:
        return context.constants[self.number]


@dataclasses.dataclass(frozen=True)
class Stack(Instruction):
    """Several values side by side, along a new first lane."""

    operands: tuple[int, ...]

    def run(self, registers: Registers, context: Context) -> Tensor:
        return torch.stack([registers[operand] for operand in self.operands], dim=1)


@dataclasses.dataclass(frozen=True)
class Pick(Instruction):
    """Basic indexing, the same for all lanes."""

    operand: int
    key: Key

    def run(self, registers: Registers, context: Context) -> Tensor:
        return registers[self.operand][self.key]


@dataclasses.dataclass(frozen=True)
class Gather(Instruction):
    """A different position for each lane, along dimensions that come right after the batch."""

    operand: int  # of shape `(batch, *sizes, *rest)`; `dims` positions are flattened together
    dims: int  # how many dimensions are gathered
    lanes: tuple[int, ...]  # the shape of the result between batch and rest
    constant: int | None  # the flat positions, if they follow no regular pattern
    span: Span | None  # `(start, length, sizes, order)` if they are a permuted block
    stride: Stride | None  # `(start, stop, step)` if they are a progression

    def run(self, registers: Registers, context: Context) -> Tensor:
        value = registers[self.operand]
        if self.dims > 1:
            value = value.flatten(1, self.dims)
        batch, rest = value.shape[0], value.shape[2:]
        if self.span is not None:
            start, length, sizes, order = self.span
            if length < value.shape[1]:
                value = value.narrow(1, start, length)
            if list(order) == sorted(order):
                return value.reshape(batch, *self.lanes, *rest)
            block: Tensor = value.unflatten(1, sizes)
            # One copy here is cheaper than strided access in every operation that follows.
            block = block.permute(0, *order, *range(1 + len(sizes), block.dim())).contiguous()
            return block.view(batch, *self.lanes, *rest)
        if self.stride is not None:
            start, stop, step = self.stride
            return value[:, start:stop:step].reshape(batch, *self.lanes, *rest)
        assert self.constant is not None
        return value.index_select(1, context.constants[self.constant]).view(batch, *self.lanes, *rest)


def find_pattern(positions: Tensor) -> tuple[Span | None, Stride | None]:
    """Recognise positions that can be read without gathering: a permuted block, or a progression."""
    flat = positions.flatten().tolist()
    shape = tuple(positions.shape)
    start = flat[0]
    if min(flat) != start or len(flat) == 1:
        return (None, None) if len(flat) > 1 or start < 0 else (None, (start, start + 1, 1))
    strides = [0 if size == 1 else int(positions.movedim(dim, 0)[1].flatten()[0]) - start for dim, size in enumerate(shape)]
    expected = torch.full(shape, start)
    for dim, (size, stride) in enumerate(zip(shape, strides)):
        view = [1] * len(shape)
        view[dim] = size
        expected = expected + (torch.arange(size) * stride).reshape(view)
    if not torch.equal(expected, positions):
        return None, None
    real = [dim for dim, size in enumerate(shape) if size > 1]
    ordered = sorted(real, key=lambda dim: -strides[dim])
    block = 1
    for dim in reversed(ordered):
        if strides[dim] != block:
            break
        block *= shape[dim]
    else:
        sizes = tuple(shape[dim] for dim in ordered)
        return (start, math.prod(sizes), sizes, tuple(1 + ordered.index(dim) for dim in real)), None
    if len(real) == 1 and strides[real[0]] > 0:
        step = strides[real[0]]
        return None, (start, start + (len(flat) - 1) * step + 1, step)
    return None, None


@dataclasses.dataclass(frozen=True)
class GatherRagged(Instruction):
    """As :class:`Gather`, along dimensions whose sizes are not known in advance: one constant for each."""

    operand: int
    lanes: tuple[int, ...]
    constants: tuple[int, ...]

    def run(self, registers: Registers, context: Context) -> Tensor:
        key: Key = (slice(None), *(context.constants[number] for number in self.constants))
        gathered: Tensor = registers[self.operand][key].unflatten(1, self.lanes)
        return gathered


@dataclasses.dataclass(frozen=True)
class GatherEach(Instruction):
    """A different position for each lane of a value that differs between lanes too."""

    operand: int
    lane_rank: int
    dims: tuple[int, ...]
    constants: tuple[int, ...]

    def run(self, registers: Registers, context: Context) -> Tensor:
        value = registers[self.operand]
        lanes = value.shape[1 : 1 + self.lane_rank]
        flat = value.flatten(1, self.lane_rank)
        front = flat.movedim(tuple(dim - self.lane_rank + 1 for dim in self.dims), tuple(range(2, 2 + len(self.dims))))
        each = torch.arange(front.shape[1], device=value.device)
        key: Key = (slice(None), each, *(context.constants[number] for number in self.constants))
        picked: Tensor = front[key].unflatten(1, lanes)
        return picked


@dataclasses.dataclass(frozen=True)
class Unary(Instruction):
    """A function of one value."""

    function: Callable[[Tensor], Tensor]
    operand: int

    def run(self, registers: Registers, context: Context) -> Tensor:
        return self.function(registers[self.operand])


@dataclasses.dataclass(frozen=True)
class Binary(Instruction):
    """A function of two values, of which one may be a plain number."""

    function: Callable[[Any, Any], Tensor]
    left: Operand | float
    right: Operand | float

    def run(self, registers: Registers, context: Context) -> Tensor:
        left = self.left if isinstance(self.left, float) else fetch(registers, self.left)
        right = self.right if isinstance(self.right, float) else fetch(registers, self.right)
        return self.function(left, right)


@dataclasses.dataclass(frozen=True)
class WithConstant(Instruction):
    """A function of one value and a constant."""

    function: Callable[[Tensor, Tensor], Tensor]
    operand: int
    constant: int

    def run(self, registers: Registers, context: Context) -> Tensor:
        return self.function(registers[self.operand], context.constants[self.constant])


@dataclasses.dataclass(frozen=True)
class Apply(Instruction):
    """A user's function of tensors ``(batch, *axes)``, whose result must have the axes ``shape``."""

    name: str
    function: Callable[..., Tensor]
    operands: tuple[int | float, ...]
    shape: Shape

    def run(self, registers: Registers, context: Context) -> Tensor:
        bound = context.bound
        result = self.function(*(self._argument(operand, registers, bound) for operand in self.operands))
        sizes = result.shape if isinstance(result, Tensor) else ()
        known = [size if isinstance(size, int) else actual for size, actual in zip(self.shape, sizes[1:])]
        if len(known) < len(self.shape) or tuple(sizes) != (bound.batch, *known):
            got = tuple(result.shape) if isinstance(result, Tensor) else f"a {type(result).__name__}"
            raise ShapeError(
                f"the function {self.name} must return a tensor of shape (batch, *axes) with {bound.batch} samples and the axes "
                f"{format_shape(self.shape)}; it returned {got}. Declare other axes with dl.apply(..., shape=(...))"
            )
        return result.to(bound.dtype)

    @staticmethod
    def _argument(operand: float, registers: Registers, bound: Bound) -> Tensor:
        if isinstance(operand, float):
            return torch.full((bound.batch,), operand, dtype=bound.dtype, device=bound.device)
        value = registers[operand]
        return value if value.shape[0] == bound.batch else value.expand(bound.batch, *value.shape[1:])
