"""Relations between classes, such as ``a + b == s``: what they say of given classes, and what computes their probability."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dualogic.constants import Constants
from dualogic.errors import ShapeError
from dualogic.formula.atom import COMPARE
from dualogic.formula.indexing import items_to_key
from dualogic.formula.number import look_up
from dualogic.formula.relation import ClassRelation, Step
from dualogic.formula.shape import Ragged, max_shape
from dualogic.formula.term import ARITHMETIC

NEVER = -1e30
"""The logarithm of what cannot be: finite, so that gradients are, and far below every other one."""


def check_independent(relation: ClassRelation) -> None:
    """Refuse a relation in which two different expressions are one and the same class at some position of its axes."""
    why = "so that it may be the same class as another one in the same relation; count from the start"
    for left, right in itertools.combinations(relation.leaves, 2):
        if left.symbol is right.symbol and bool((find_entries(left, why) == find_entries(right, why)).any()):
            raise ShapeError(
                f"{left} and {right} in {relation.brief()} are the same class at some positions of their axes and different ones "
                f"at others, so they are neither one class nor independent; write the positions out, as in d[0] + d[1]"
            )


def find_entries(node: Any, why: str) -> Tensor:
    """Which entry of its symbol an (indexed) expression is, at every position of its axes; ``why`` ends a refusal."""
    if not hasattr(node, "items"):
        sizes = max_shape(node.shape)
        return torch.arange(math.prod(sizes)).reshape(sizes)
    for item, size in zip((item for item in node.items if item[0] != "new"), node.operand.shape):
        places = item[1:2] if item[0] == "at" else item[1] if item[0] == "take" else ()
        if isinstance(size, Ragged) and any(place < 0 for place in places):
            raise ShapeError(f"{node} counts from the end of the ragged axis {size!r}, {why}")
    return find_entries(node.operand, why)[items_to_key(node.items)]


def evaluate(steps: Sequence[Step], leaves: Sequence[Any]) -> list[Any]:
    """The value of every step from those of the classes: integer tensors, broadcast against each other."""
    made: list[Any] = []
    for kind, *rest in steps:
        if kind == "class":
            made.append(leaves[rest[0]])
        elif kind == "number":
            made.append(torch.tensor(rest[0], device=leaves[0].device))
        elif kind == "table":
            made.append(look_up(*rest[0], *torch.broadcast_tensors(*(made[place] for place in rest[1:]))))
        else:
            made.append(ARITHMETIC[kind](made[rest[0]], made[rest[1]]))
    return made


def holds(relation: ClassRelation, leaves: Sequence[Tensor]) -> Tensor:
    """Whether the relation holds between classes, given as integer tensors."""
    made = evaluate(relation.steps, leaves)
    result: Tensor = COMPARE[relation.operation](*(made[side] for side in relation.sides))
    return result


@dataclasses.dataclass(frozen=True)
class Group:
    """Logarithms of sums of products: one product for each column of ``places``, ``width`` of them to a value."""

    operands: tuple[int, ...]  # slots with a distribution along the last dimension
    places: tuple[Tensor, ...]  # for each operand, which of its entries is a factor, `(values * width,)`
    padding: Tensor | None  # 0, and `NEVER` where a value has fewer products than others, `(values * width,)`; `None` if none has
    width: int  # how many products there are to a value

    def run(self, slots: list[Tensor], constants: tuple[Tensor, ...]) -> Tensor:
        total: Tensor = functools.reduce(
            operator.add, (slots[slot].index_select(-1, places) for slot, places in zip(self.operands, constants))
        )
        if self.width == 1:
            return total
        if self.padding is not None:
            total = total + constants[-1].to(total.dtype)
        split: Tensor = total.unflatten(-1, (-1, self.width))
        return split.logsumexp(-1)


@dataclasses.dataclass(frozen=True)
class Cumulate:
    """Logarithms of running sums."""

    operand: int

    def run(self, slots: list[Tensor], constants: tuple[Tensor, ...]) -> Tensor:
        return slots[self.operand].logcumsumexp(-1)


@dataclasses.dataclass(frozen=True)
class Join:
    """The logarithm of the sum of two probabilities."""

    left: int
    right: int

    def run(self, slots: list[Tensor], constants: tuple[Tensor, ...]) -> Tensor:
        return torch.logaddexp(slots[self.left], slots[self.right])


class RelationProgram:
    """The probability of a relation from the distributions of its classes: one slot for each of them, then one for each step."""

    def __init__(self, work: tuple[Group | Cumulate | Join, ...]) -> None:
        self.work = work
        self._on_device: Constants[list[tuple[Tensor, ...]]] = Constants()

    def __call__(self, logarithms: Sequence[Tensor]) -> Tensor:
        """The logarithm of the probability, ``NEVER`` or less for 0, from those of the classes, ``(..., classes)`` each."""
        slots = [logarithm.clamp_min(NEVER) for logarithm in logarithms]
        for step, moved in zip(self.work, self._constants(slots[0].device)):
            slots.append(step.run(slots, moved))
        return slots[-1].squeeze(-1)

    def fixed(self) -> list[Tensor]:
        """The tensors that it has made so far, and never changes."""
        return [tensor for group in self._on_device.all() for each in group for tensor in each]

    def _constants(self, device: torch.device) -> list[tuple[Tensor, ...]]:
        return self._on_device.get(device, lambda: [_moved(step, device) for step in self.work])


def _moved(step: Group | Cumulate | Join, device: torch.device) -> tuple[Tensor, ...]:
    if not isinstance(step, Group):
        return ()
    kept = step.places if step.padding is None else (*step.places, step.padding)
    return tuple(tensor.to(device) for tensor in kept)
