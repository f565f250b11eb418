"""The tensor operations that a plan is made of: terms first, then the values of atoms.

Every value has the shape ``(batch, *lanes, *axes)``. *Lanes* number the nodes that are computed together (see
``signature``), *axes* are the declared ones. A value that is the same for all lanes has none and is broadcast.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dualogic import numerics

Key = tuple[Any, ...]
Operand = tuple[int, "Key | None"]
"""A register and the index that brings its value to the rank of the operation."""


@dataclasses.dataclass(frozen=True)
class Context:
    """What instructions read besides registers."""

    tensors: dict[str, Tensor]
    constants: list[Tensor]
    tol: float = 0.0
    lead: float = 0.0


Registers = list[Tensor]


def fetch(registers: Registers, operand: Operand) -> Tensor:
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
        return context.tensors[self.name]


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
class Take(Instruction):
    """A list of positions along one dimension."""

    operand: int
    dim: int
    constant: int

    def run(self, registers: Registers, context: Context) -> Tensor:
        return registers[self.operand].index_select(self.dim, context.constants[self.constant])


@dataclasses.dataclass(frozen=True)
class Gather(Instruction):
    """A different position for each lane, along dimensions that come right after the batch.

    Args:
        operand: of shape ``(batch, *sizes, *rest)``; ``dims`` positions are flattened together.
        dims: how many dimensions are gathered.
        lanes: the shape of the result between batch and rest.
        constant: the flat positions, if they follow no regular pattern.
        span: ``(start, length, sizes, order)`` if they are a permuted block, read without copying.
        stride: ``(start, stop, step)`` if they are a progression.
    """

    operand: int
    dims: int
    lanes: tuple[int, ...]
    constant: int | None
    span: tuple[int, int, tuple[int, ...], tuple[int, ...]] | None
    stride: tuple[int, int, int] | None

    def run(self, registers: Registers, context: Context) -> Tensor:
        value = registers[self.operand]
        if self.dims > 1:
            value = value.flatten(1, self.dims)
        batch, rest = value.shape[0], value.shape[2:]
        if self.span is not None:
            start, length, sizes, order = self.span
            block = value.narrow(1, start, length).unflatten(1, sizes)
            return block.permute(0, *order, *range(1 + len(sizes), block.dim())).reshape(batch, *self.lanes, *rest)
        if self.stride is not None:
            start, stop, step = self.stride
            return value[:, start:stop:step].reshape(batch, *self.lanes, *rest)
        assert self.constant is not None
        return value.index_select(1, context.constants[self.constant]).view(batch, *self.lanes, *rest)


@dataclasses.dataclass(frozen=True)
class GatherRagged(Instruction):
    """As :class:`Gather`, along dimensions whose sizes are not known in advance: one constant for each."""

    operand: int
    lanes: tuple[int, ...]
    constants: tuple[int, ...]

    def run(self, registers: Registers, context: Context) -> Tensor:
        positions = [context.constants[number] for number in self.constants]
        return registers[self.operand][(slice(None), *positions)].unflatten(1, self.lanes)


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
        flat = value.flatten(1, self.lane_rank) if self.lane_rank else value.unsqueeze(1)
        front = flat.movedim(tuple(dim - self.lane_rank + 1 for dim in self.dims), tuple(range(2, 2 + len(self.dims))))
        each = torch.arange(front.shape[1], device=value.device)
        picked = front[(slice(None), each, *(context.constants[number] for number in self.constants))]
        return picked.unflatten(1, lanes) if self.lane_rank else picked.squeeze(1)


@dataclasses.dataclass(frozen=True)
class Move(Instruction):
    """Dimensions brought to the front, right after the batch."""

    operand: int
    dims: tuple[int, ...]

    def run(self, registers: Registers, context: Context) -> Tensor:
        return registers[self.operand].movedim(self.dims, tuple(range(1, 1 + len(self.dims))))


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
class Reduce(Instruction):
    """Sum, maximum or minimum over axes, counted from the end."""

    operation: str
    operand: int
    dims: tuple[int, ...]

    def run(self, registers: Registers, context: Context) -> Tensor:
        value = registers[self.operand]
        if self.operation == "sum":
            return value.sum(self.dims)
        return value.amax(self.dims) if self.operation == "max" else value.amin(self.dims)


@dataclasses.dataclass(frozen=True)
class Multiply(Instruction):
    """A matrix product with a constant."""

    operand: int
    constant: int

    def run(self, registers: Registers, context: Context) -> Tensor:
        return registers[self.operand] @ context.constants[self.constant]


@dataclasses.dataclass(frozen=True)
class Apply(Instruction):
    """A user's function."""

    function: Callable[..., Tensor]
    operands: tuple[Operand | float, ...]

    def run(self, registers: Registers, context: Context) -> Tensor:
        arguments = [
            torch.as_tensor(operand) if isinstance(operand, float) else fetch(registers, operand) for operand in self.operands
        ]
        return self.function(*arguments)


@dataclasses.dataclass(frozen=True)
class Compare(Instruction):
    """The cost of a comparison (Eq. 1) from the difference of its sides, or whether it holds.

    Args:
        kind: ``"order"`` for a difference that should be at most 0, ``"equal"`` or ``"unequal"``.
        operand: the difference ``left - right``.
        sign: -1 for lanes that compare the other way round; a constant's number if lanes disagree.
        margin: added to the difference; a constant's number (as ``(number,)``) if lanes disagree.
        strict: for truth: which comparisons exclude equality; likewise.
        truth: give a bool instead of a cost.
    """

    kind: str
    operand: int
    sign: float | tuple[int]
    margin: float | tuple[int]
    strict: bool | tuple[int]
    truth: bool

    def run(self, registers: Registers, context: Context) -> Tensor:
        difference = registers[self.operand]
        if self.kind != "order":
            distance = difference.abs()
            if self.truth:
                return distance <= context.tol if self.kind == "equal" else distance > context.tol
            return distance if self.kind == "equal" else torch.relu(_lane(self.margin, context) - distance)
        if isinstance(self.sign, tuple):
            difference = difference * _lane(self.sign, context)
        elif self.sign < 0:
            difference = -difference
        if not self.truth:
            return torch.relu(difference if self.margin == 0.0 else difference + _lane(self.margin, context))
        if isinstance(self.strict, tuple):
            strict = _lane(self.strict, context) > 0
            return torch.where(strict, difference < -context.tol, difference <= context.tol)
        return difference < -context.tol if self.strict else difference <= context.tol


def _lane(value: Any, context: Context) -> Any:
    return context.constants[value[0]] if isinstance(value, tuple) else value


@dataclasses.dataclass(frozen=True)
class BooleanValue(Instruction):
    """The value of a Boolean literal.

    Args:
        mode: ``"probability"`` for ``1 - p``, ``"log"`` for ``-log p``, ``"degree"`` for ``p``, ``"truth"`` for a bool.
        operand: probabilities, or logits where ``logits``.
        sign: 1 for ``b`` and -1 for ``~b``; a constant's number if lanes disagree.
        offset: the same, 0 for ``b`` and 1 for ``~b``, so that ``offset + sign * p`` is the literal's probability.
    """

    mode: str
    operand: int
    logits: bool
    sign: float | tuple[int]
    offset: float | tuple[int]

    def run(self, registers: Registers, context: Context) -> Tensor:
        value = registers[self.operand]
        if self.mode == "truth":
            return self._truth(torch.sigmoid(value) if self.logits else value, context)
        sign, offset = _lane(self.sign, context), _lane(self.offset, context)
        if self.logits:
            if self.mode == "log":
                return -torch.nn.functional.logsigmoid(value * sign)
            probability = torch.sigmoid(value * sign)
        else:
            probability = value if self.sign == 1.0 else offset + sign * value
        if self.mode == "log":
            return numerics.negative_log(probability)
        return 1 - probability if self.mode == "probability" else probability

    def _truth(self, probability: Tensor, context: Context) -> Tensor:
        # A negated literal holds exactly where the plain one does not, also at a tie.
        holds = 2 * probability - 1 > context.lead
        if isinstance(self.sign, tuple):
            return holds ^ (context.constants[self.sign[0]] < 0)
        return holds if self.sign > 0 else ~holds


@dataclasses.dataclass(frozen=True)
class ClassValue(Instruction):
    """The value of the atom "the class is this one", from the probability (or its logarithm) of that class."""

    mode: str
    operand: int
    logarithm: bool

    def run(self, registers: Registers, context: Context) -> Tensor:
        value = registers[self.operand]
        if self.mode == "log":
            return torch.relu(-value) if self.logarithm else numerics.negative_log(value)
        return 1 - value if self.mode == "probability" else value


@dataclasses.dataclass(frozen=True)
class ClassSetValue(Instruction):
    """The value of "the class is one of these", or of its negation.

    Args:
        mode: ``"log"`` for ``-log`` of the summed probability, ``"degree"`` for the sum, ``"truth"`` for a bool.
        operand: all classes' probabilities (or logarithms) along the last dimension, with its expanding index.
        members: a constant, 1 for the classes that make the literal true and 0 for the others.
        negated: the literal is a negation (``members`` are the classes outside of the set).
        logarithm: the operand holds logarithms.
    """

    mode: str
    operand: Operand
    members: int
    negated: bool
    logarithm: bool

    def run(self, registers: Registers, context: Context) -> Tensor:
        value = fetch(registers, self.operand)
        members = context.constants[self.members]
        if self.mode == "log" and self.logarithm:
            outside = torch.where(members > 0, 0.0, -torch.inf).to(value.dtype)
            return torch.relu(-torch.logsumexp(value + outside, dim=-1))
        if self.mode != "truth":
            total = (value * members).sum(-1)
            return numerics.negative_log(total) if self.mode == "log" else total
        inside = value.masked_fill(members == 0, -torch.inf).amax(-1)
        outside = value.masked_fill(members > 0, -torch.inf).amax(-1)
        # "f != k" is the complement of "f == k", so that the two never hold together or fail together.
        return ~(outside - inside > context.lead) if self.negated else inside - outside > context.lead
