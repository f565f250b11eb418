"""How the probability of a relation such as ``a + b == s`` is found: by convolution, in logarithms.

The classes are independent. Each side of the relation is brought to the form "a sum of independent parts", whose distribution
is a chain of convolutions; the two sides meet in one sum over the values at which the relation holds. Only parts that share a
class are enumerated together.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dualogic.compile.number import NEVER, Cumulate, Group, Join, RelationProgram, evaluate
from dualogic.constants import outside_inference
from dualogic.errors import SizeError, SymbolError
from dualogic.formula.atom import COMPARE, NEGATED
from dualogic.formula.number import PAIRS, look_up
from dualogic.formula.relation import ClassRelation, Step
from dualogic.formula.term import ARITHMETIC

CONSTANT = "holds for all classes or for none; leave it out"


def program_of(relation: ClassRelation, negated: bool) -> RelationProgram:
    """What computes the probability of a relation, or of its negation; shared by relations of one form.

    Raises:
        SymbolError: the relation holds for all classes or for none.
        SizeError: there are too many combinations of values.
    """
    sizes = tuple(leaf.symbol.size for leaf in relation.leaves)
    try:
        return _build(relation.steps, relation.sides, sizes, relation.operation)[negated]
    except (SizeError, SymbolError) as error:
        raise type(error)(f"{relation.brief()} {error}") from None


@functools.lru_cache(maxsize=1024)
def _build(
    steps: tuple[Step, ...], sides: tuple[int, int], sizes: tuple[int, ...], operation: str
) -> tuple[RelationProgram, RelationProgram]:
    def build(sign: str) -> RelationProgram:
        builder = Builder(steps, sizes)
        builder.decide(sign, *builder.sides(*sides))
        return RelationProgram(tuple(builder.work))

    with outside_inference(), torch.device("cpu"):
        return build(operation), build(NEGATED[operation])


class Distribution(NamedTuple):
    """Where the probabilities of values are found: ``values`` (different ones) in the order of the slot's last dimension."""

    values: Tensor
    slot: int


class Builder:
    """Takes a relation apart and collects what is to be computed."""

    def __init__(self, steps: tuple[Step, ...], sizes: tuple[int, ...]) -> None:
        self.steps = steps
        self.sizes = sizes
        self.work: list[Group | Cumulate | Join] = []
        self.classes = self._find_classes()

    def _find_classes(self) -> list[frozenset[int]]:
        """Which classes each step depends on."""
        found: list[frozenset[int]] = []
        for kind, *rest in self.steps:
            below = [found[place] for place in (rest[1:] if kind == "table" else rest)] if kind not in ("class", "number") else []
            found.append(frozenset({rest[0]}) if kind == "class" else frozenset().union(*below))
        return found

    def _emit(self, step: Group | Cumulate | Join) -> int:
        self.work.append(step)
        return len(self.sizes) + len(self.work) - 1

    def sides(self, left: int, right: int) -> tuple[Distribution | int, Distribution | int]:
        """The distributions of two sums, such that the relation is one between them; a number where nothing is left."""
        parts, constant = self.parts([(left, 1), (right, -1)])
        ours: list[Distribution] = []
        theirs: list[Distribution] = []
        for part in parts:
            positive = next(iter(part.values())) > 0
            found = self._part(part if positive else {place: -factor for place, factor in part.items()})
            (ours if positive else theirs).append(found)
        if not ours and not theirs:
            raise SymbolError(CONSTANT)
        if not ours:
            return constant, functools.reduce(self._add, theirs)
        first = functools.reduce(self._add, ours)
        if not theirs:
            return first, -constant
        return Distribution(first.values + constant, first.slot), functools.reduce(self._add, theirs)

    def parts(self, wanted: list[tuple[int, int]]) -> tuple[list[dict[int, int]], int]:
        """A weighted sum of steps as a number and parts that share no class; each part a weighted sum of steps, none a sum."""
        factors = [0] * len(self.steps)
        for place, factor in wanted:
            factors[place] += factor
        summands: dict[int, int] = {}
        constant = 0
        for place in reversed(range(len(self.steps))):
            factor, (kind, *rest) = factors[place], self.steps[place]
            if not factor:
                continue
            if kind == "number":
                constant += factor * rest[0]
            elif kind in ("+", "-"):
                factors[rest[0]] += factor
                factors[rest[1]] += factor if kind == "+" else -factor
            elif kind == "*" and any(self.steps[side][0] == "number" for side in rest):
                number, other = sorted(rest, key=lambda side: self.steps[side][0] != "number")
                factors[other] += factor * self.steps[number][1]
            else:
                summands[place] = factor
        parts: list[dict[int, int]] = []
        for place in sorted(summands):
            part = {place: summands[place]}
            for other in [part for part in parts if self._among(part) & self.classes[place]]:
                parts.remove(other)
                part = {**other, **part}
            parts.append(part)
        return parts, constant

    def _among(self, places: Any) -> frozenset[int]:
        return frozenset().union(*(self.classes[place] for place in places))

    def _part(self, part: dict[int, int]) -> Distribution:
        """The distribution of a weighted sum of steps that depend on each other."""
        (place, factor), *others = part.items()
        if others:
            return self._enumerate(part)
        found = self._step(place)
        return Distribution(found.values * factor, found.slot)

    def _step(self, place: int) -> Distribution:
        kind, *rest = self.steps[place]
        if kind == "class":
            return Distribution(torch.arange(self.sizes[rest[0]]), rest[0])
        below = rest[1:] if kind == "table" else rest
        if sum(len(self.classes[side]) for side in below) > len(self.classes[place]):
            return self._enumerate({place: 1})
        operands = [self._sum(side) for side in below]
        random = [operand for operand in operands if isinstance(operand, Distribution)]
        if not random:
            return self._enumerate({place: 1})  # of classes that cancel out
        grid = iter(self._grid([operand.values for operand in random]))
        columns = [next(grid) if isinstance(operand, Distribution) else torch.tensor(operand) for operand in operands]
        columns = list(torch.broadcast_tensors(*columns))
        values = look_up(*rest[0], *columns) if kind == "table" else ARITHMETIC[kind](*columns)
        return self._group(values, random)

    def _sum(self, place: int) -> Distribution | int:
        """The distribution of any step."""
        parts, constant = self.parts([(place, 1)])
        if not parts:
            return constant
        found = functools.reduce(self._add, map(self._part, parts))
        return Distribution(found.values + constant, found.slot)

    def _add(self, left: Distribution, right: Distribution) -> Distribution:
        one, two = self._grid([left.values, right.values])
        return self._group(one + two, [left, right])

    def _enumerate(self, part: dict[int, int]) -> Distribution:
        """The distribution of a weighted sum of steps, over all combinations of the classes that they depend on."""
        leaves, values, _ = self.table(part)
        return self._group(values, [Distribution(torch.arange(self.sizes[leaf]), leaf) for leaf in leaves])

    def table(self, part: dict[int, int]) -> tuple[list[int], Tensor, list[Tensor]]:
        """The classes of a part, its value for every combination of theirs, and the combinations."""
        leaves = sorted(self._among(part))
        columns = self._grid([torch.arange(self.sizes[leaf]) for leaf in leaves])
        grid = dict(zip(leaves, columns))
        made = evaluate(self.steps, [grid.get(leaf, torch.zeros(1, dtype=torch.long)) for leaf in range(len(self.sizes))])
        return leaves, sum((factor * made[place] for place, factor in part.items()), torch.zeros_like(columns[0])), columns

    def _grid(self, values: list[Tensor]) -> list[Tensor]:
        """All combinations, as one column for each list of values."""
        if (count := math.prod(map(len, values))) > PAIRS:
            raise SizeError(
                f"needs a sum over {count:,} combinations of values, more than {PAIRS:,}; state it in smaller parts, as in a sum "
                f"digit by digit with a carry that is a class of its own"
            )
        return [column.flatten() for column in torch.meshgrid(*values, indexing="ij")]

    def _group(self, values: Tensor, operands: list[Distribution]) -> Distribution:
        """The distribution of a function of independent operands, given for all combinations of their values."""
        found, which = values.unique(return_inverse=True)
        places = self._grid([torch.arange(len(operand.values)) for operand in operands])
        return Distribution(found, self._products(which, len(found), [operand.slot for operand in operands], places))

    def _products(self, which: Tensor, count: int, slots: list[int], places: list[Tensor]) -> int:
        """Sum products, each of which belongs to one of ``count`` values."""
        order = which.argsort(stable=True)
        counts = which.bincount(minlength=count)
        width = int(counts.max())
        ranks = torch.arange(len(order)) - (counts.cumsum(0) - counts).repeat_interleave(counts)
        columns = which[order] * width + ranks
        padded = [torch.zeros(count * width, dtype=torch.long).index_copy(0, columns, place[order]) for place in places]
        padding = torch.full((count * width,), NEVER, dtype=torch.float64).index_fill(0, columns, 0.0)
        return self._emit(Group(tuple(slots), tuple(padded), padding if len(order) < len(padding) else None, width))

    def decide(self, operation: str, left: Distribution | int, right: Distribution | int) -> None:
        """The probability that the relation holds, into the last slot."""
        if operation == "!=":
            both = [slot for sign in ("<", ">") if (slot := self._decide(sign, left, right)) is not None]
            if len(both) == 2:
                self._emit(Join(*both))
            elif not both:
                raise SymbolError(CONSTANT)
        elif self._decide(operation, left, right) is None:
            raise SymbolError(CONSTANT)

    def _decide(self, operation: str, left: Distribution | int, right: Distribution | int) -> int | None:
        """The slot with the probability; ``None`` if it is 0 whatever the classes."""
        if operation in (">", ">="):
            return self._decide(operation.replace(">", "<"), right, left)
        if isinstance(left, int) or isinstance(right, int):
            return self._against_number(operation, left, right)
        ordered, order = left.values.sort()
        below = torch.searchsorted(ordered, right.values, right=operation == "<=")
        if operation == "==":
            found = below.clamp_max(len(ordered) - 1)
            same = (ordered[found] == right.values).nonzero().flatten()
            return self._total([left.slot, right.slot], [order[found[same]], same])
        reached = (below > 0).nonzero().flatten()
        if not len(reached):
            return None
        slot = left.slot
        if not torch.equal(order, torch.arange(len(order))):
            slot = self._emit(Group((slot,), (order,), None, 1))
        return self._total([self._emit(Cumulate(slot)), right.slot], [below[reached] - 1, reached])

    def _against_number(self, operation: str, left: Any, right: Any) -> int | None:
        found = left if isinstance(left, Distribution) else right
        sides = [side.values if isinstance(side, Distribution) else torch.tensor(side) for side in (left, right)]
        return self._total([found.slot], [COMPARE[operation](*sides).nonzero().flatten()])

    def _total(self, slots: list[int], places: list[Tensor]) -> int | None:
        if not len(places[0]):
            return None
        return self._products(torch.zeros(len(places[0]), dtype=torch.long), 1, slots, places)
