"""The operations that give atoms their values: costs, degrees of truth, or plain truth.

Atoms that are evidence and teach nothing are *held*: their operand is cut off first, so that their arithmetic records no graph.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from dualogic import numerics
from dualogic.compile.binding import Bound
from dualogic.compile.implication import IMPOSSIBLE
from dualogic.compile.instructions import Context, Instruction, Operand, Registers, fetch
from dualogic.compile.number import NEVER, RelationProgram, holds
from dualogic.constants import Constants
from dualogic.formula.relation import ClassRelation

HARDER = 8.0
"""How much harder than by its gradient a class is pulled, at most, that takes the place of another."""
SUREST = 1e-4
"""A class that is likelier than 1 less this is not raised any further in the place of another."""


@dataclasses.dataclass(frozen=True)
class Compare(Instruction):
    """The cost of a comparison (Eq. 1) from the difference of its sides, or whether it holds."""

    kind: str  # "order" for a difference that should be at most 0, "equal" or "unequal"
    operand: int  # the difference `left - right`
    sign: float | tuple[int]  # -1 for lanes that compare the other way round; a constant's number if lanes disagree
    margin: float | tuple[int]  # added to the difference; a constant's number (as `(number,)`) if lanes disagree
    strict: bool | tuple[int]  # for truth: which comparisons exclude equality; likewise
    truth: bool  # give a bool instead of a cost
    held: bool = False  # let no gradient pass

    def run(self, registers: Registers, context: Context) -> Tensor:
        difference = registers[self.operand].detach() if self.held else registers[self.operand]
        if self.kind != "order":
            distance = difference.abs()
            if self.truth:
                return distance <= context.tol if self.kind == "equal" else ~(distance <= context.tol)
            return distance if self.kind == "equal" else torch.relu(_lane(self.margin, context) - distance)
        if isinstance(self.sign, tuple):
            difference = difference * _lane(self.sign, context)
        elif self.sign < 0:
            difference = -difference
        if not self.truth:
            return torch.relu(difference if self.margin == 0.0 else difference + _lane(self.margin, context))
        # A strict comparison is the complement of a relaxed one, also where the difference is not a number.
        if isinstance(self.strict, tuple):
            strict: Tensor = _lane(self.strict, context) > 0
            return (torch.where(strict, -difference, difference) <= context.tol) ^ strict
        return ~(-difference <= context.tol) if self.strict else difference <= context.tol


def _fact(holds: Tensor, bound: Bound) -> Tensor:
    """More than any belief. Not by ``torch.where``: of two numbers it makes torch's default type, which may be too narrow."""
    return (1.0 - 2.0 * holds.to(bound.dtype)) * IMPOSSIBLE


@dataclasses.dataclass(frozen=True)
class Fact(Instruction):
    """What a comparison costs as an antecedent: nothing where it holds, more than any belief where it does not."""

    operand: int

    def run(self, registers: Registers, context: Context) -> Tensor:
        return (~registers[self.operand]).to(context.bound.dtype) * IMPOSSIBLE


@dataclasses.dataclass(frozen=True)
class GivenFact(Instruction):
    """The value of a given class or Boolean beside comparisons that may give way, see :mod:`dualogic.compile.threshold`."""

    operand: int  # its cost
    limit: float  # below this it is likelier than not

    def run(self, registers: Registers, context: Context) -> Tensor:
        return _fact(registers[self.operand].detach() < self.limit, context.bound)


@dataclasses.dataclass(frozen=True)
class Depth(Instruction):
    """The value of a comparison as an antecedent that may give way, see :mod:`dualogic.compile.threshold`.

    Args:
        operand: whether it holds.
        kind: see :class:`Compare`; what is equal is so by no distance, and stays a fact.
        difference: likewise.
        sign: likewise.
        symbols: the names of the symbols in each lane, or in all of them; none for evidence.
        shape: of one number for each lane, to be broadcast against the difference.
        flags: for each lane whether its numbers can give way, on each device.
    """

    operand: int
    kind: str
    difference: int
    sign: float | tuple[int]
    symbols: tuple[tuple[str, ...], ...]
    shape: tuple[int, ...]
    flags: Constants[Tensor] = dataclasses.field(default_factory=Constants, compare=False, repr=False)

    def run(self, registers: Registers, context: Context) -> Tensor:
        holds, difference, bound = registers[self.operand], registers[self.difference], context.bound
        fact = _fact(holds, bound)
        predicted = set(bound.predicted)
        movable = tuple([not predicted.isdisjoint(names) for names in self.symbols])
        if self.kind == "equal" or not any(movable):
            return fact
        signed = -difference.abs() if self.kind == "unequal" else difference * _lane(self.sign, context)
        # On the threshold itself it holds too, as little as a number can say.
        value = torch.where(holds, signed - torch.finfo(bound.dtype).tiny, IMPOSSIBLE)
        if all(movable):
            return value
        flags = self.flags.get((movable, bound.device), lambda: torch.tensor(movable, device=bound.device).view(self.shape))
        return torch.where(flags, value, fact)


def _lane(value: Any, context: Context) -> Any:
    return context.constants[value[0]] if isinstance(value, tuple) else value


@dataclasses.dataclass(frozen=True)
class BooleanValue(Instruction):
    """The value of a Boolean literal."""

    mode: str  # "probability" for `1 - p`, "log" for `-log p`, "degree" for `p`, "truth" for a bool
    operand: int  # probabilities, or logits where `logits`
    logits: bool
    sign: float | tuple[int]  # 1 for `b` and -1 for `~b`; a constant's number if lanes disagree
    offset: float | tuple[int]  # the same, 0 for `b` and 1 for `~b`, so that `offset + sign * p` is the literal's probability
    held: bool = False  # let no gradient pass

    def run(self, registers: Registers, context: Context) -> Tensor:
        value = registers[self.operand].detach() if self.held else registers[self.operand]
        if self.mode == "truth":
            return self._truth(torch.sigmoid(value) if self.logits else value, context)
        sign, offset = _lane(self.sign, context), _lane(self.offset, context)
        if self.logits:
            if self.mode == "log":
                # -log sigmoid(x), in one operation; past the threshold it is -x to the last digit of a float64.
                denied = value if self.sign == -1.0 else -value if self.sign == 1.0 else value * -sign
                return torch.nn.functional.softplus(denied, threshold=40.0)
            probability = torch.sigmoid(value * sign)
        else:
            probability = value if self.sign == 1.0 else 1.0 - value if self.sign == -1.0 else offset + sign * value
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
    held: bool = False

    def run(self, registers: Registers, context: Context) -> Tensor:
        value = registers[self.operand].detach() if self.held else registers[self.operand]
        if self.mode == "log":
            # Not `-value`, which is -0 where the class is certain.
            return 0.0 - value if self.logarithm else numerics.negative_log(value)
        return 1 - value if self.mode == "probability" else value


@dataclasses.dataclass(frozen=True)
class ClassSetValue(Instruction):
    """The value of "the class is one of these", or of its negation."""

    mode: str  # "log" for `-log` of the summed probability, "degree" for the sum, "truth" for a bool
    operand: Operand  # all classes' probabilities (or logarithms) along the last dimension, with its expanding index
    members: int  # a constant, 1 for the classes that make the literal true and 0 for the others
    negated: bool  # the literal is a negation (`members` are the classes outside of the set)
    logarithm: bool  # the operand holds logarithms
    held: bool = False  # let no gradient pass

    def run(self, registers: Registers, context: Context) -> Tensor:
        value = fetch(registers, self.operand).detach() if self.held else fetch(registers, self.operand)
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


@dataclasses.dataclass(frozen=True)
class Ceding(Instruction):
    """The same cost of "the class is one of these", where a gradient that lowers the belief raises the likeliest other class.

    The belief ``a`` that is given up could go to any other class. Its own gradient divides it among all of them as they are
    believed, and so says nothing about which. Here all of it goes to the likeliest one, whose probability is ``m``. With
    ``r = (1 - a) / (1 - m)`` that class is pulled as hard as the gradient pulls at a single class of the atom. Where other
    classes are believed too, it is pulled as hard as if they were not, ``m / a``, but at most :data:`HARDER` times as hard:
    the slope of the cost by ``log m`` is ``min(HARDER r, max(m / a, r))``. Where there is one other class, it is the cost's own.
    """

    cost: Operand  # the cost `-log a`, without a gradient
    operand: Operand  # all classes' probabilities (or logarithms) along the last dimension, with its expanding index
    outside: int  # a constant, minus infinity for the classes of the atom and 0 for the others, of which there are two at least
    logarithm: bool  # the operand holds logarithms

    def run(self, registers: Registers, context: Context) -> Tensor:
        cost, value = fetch(registers, self.cost), fetch(registers, self.operand)
        if not value.requires_grad and not numerics.is_transformed():
            return cost
        outside = context.constants[self.outside]
        if outside.dim() > 1:  # classes of their own for each lane
            value = value.expand(torch.broadcast_shapes(value.shape, outside.shape))
        if not numerics.is_transformed():
            return _Ceded.apply(cost, value, outside, self.logarithm)  # type: ignore[no-any-return, no-untyped-call]
        place, slope = _cede(cost, value.detach(), outside, self.logarithm)
        likeliest = value.gather(-1, place)
        return cost + (slope * (likeliest - likeliest.detach())).squeeze(-1)


def _cede(cost: Tensor, value: Tensor, outside: Tensor, logarithm: bool) -> tuple[Tensor, Tensor]:
    """The place of the likeliest class outside of a set, and the slope of the set's cost by its value; ``(..., 1)`` each."""
    most, place = (value + outside).max(-1, keepdim=True)
    likeliest = most if logarithm else most.clamp_min(SUREST).log()
    cost = cost.unsqueeze(-1)
    own = torch.expm1(-cost) / torch.expm1(likeliest).clamp_max(-SUREST)
    slope = torch.clamp((likeliest + cost).exp(), own, HARDER * own)
    return place, slope if logarithm else slope / most.clamp_min(SUREST)


class _Ceded(torch.autograd.Function):
    """The cost as it is, with the gradient of :class:`Ceding`; what that needs is computed where a gradient arrives."""

    @staticmethod
    def forward(ctx: Any, cost: Tensor, value: Tensor, outside: Tensor, logarithm: bool) -> Tensor:
        ctx.logarithm = logarithm
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(cost, value, outside)
        return cost.view_as(cost)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[None, Tensor | None, None, None]:
        if gradients[0] is None:
            return None, None, None, None
        cost, value, outside = ctx.saved_tensors
        place, slope = _cede(cost, value.detach(), outside, ctx.logarithm)
        return None, torch.zeros_like(value).scatter(-1, place, gradients[0].unsqueeze(-1) * slope), None, None


@dataclasses.dataclass(frozen=True)
class RelationValue(Instruction):
    """The value of a relation between classes, or of its negation."""

    mode: str  # "log" for `-log P`, "probability" for `1 - P`, "degree" for `P`
    operands: tuple[Operand, ...]  # each class's probabilities (or logarithms) along the last dimension
    program: RelationProgram  # what computes the logarithm of `P`
    logarithms: tuple[bool, ...]  # for each operand whether it holds logarithms
    held: bool = False  # let no gradient pass

    def run(self, registers: Registers, context: Context) -> Tensor:
        values = [fetch(registers, operand) for operand in self.operands]
        values = [value.detach() for value in values] if self.held else values
        classes = [value if flag else -numerics.negative_log(value) for value, flag in zip(values, self.logarithms)]
        logarithm = self.program(classes)
        shape = torch.broadcast_shapes(*(value.shape[:-1] for value in values))
        logarithm = logarithm if logarithm.shape == shape else logarithm.expand(shape)  # an axis of a class that cancels out
        if self.mode == "log":
            return torch.where(logarithm > 0.5 * NEVER, torch.relu(-logarithm), torch.inf)
        logarithm = logarithm.clamp_max(0.0)
        return -torch.expm1(logarithm) if self.mode == "probability" else logarithm.exp()


@dataclasses.dataclass(frozen=True)
class RelationTruth(Instruction):
    """Whether a relation holds between the likeliest classes, each of which leads all others by more than ``lead``."""

    operands: tuple[Operand, ...]
    relation: ClassRelation
    negated: bool

    def run(self, registers: Registers, context: Context) -> Tensor:
        values = [fetch(registers, operand) for operand in self.operands]
        result = holds(self.relation, [value.argmax(-1) for value in values])
        for value in values:
            first, second = value.topk(2, dim=-1).values.unbind(-1)
            result = result & (first - second > context.lead)
        return ~result if self.negated else result
