"""Terms as expressions of the solver's real arithmetic."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import z3

from dualogic.circuits.grounding import fit, positions
from dualogic.formula import term
from dualogic.formula.function import Application
from dualogic.formula.shape import Item, Ragged, Shape
from dualogic.formula.symbol import Probabilities, Variable
from dualogic.formula.term import ARITHMETIC, Arithmetic, Constant, Index, MatrixProduct, Number, Reduction, Term
from dualogic.lint.world import Entry, World, constant, exact

LARGEST_POWER = 8
Alternatives = list[tuple[Any, Entry]]
"""Conditions and entries; the first whose condition holds is meant, and the last has none."""


class TermEncoder:
    """Writes terms out entry by entry."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.done: dict[tuple[int, Entry], Any] = {}

    def term(self, node: Term, position: Entry) -> Any:
        """The value of a term at a position of its axes."""
        # A sum written as a Python loop is a tree as deep as it is long: its inner sums are encoded first, not recursively.
        pending: list[tuple[Term, Entry]] = []
        while (id(node), position) not in self.done:
            pending.append((node, position))
            if not isinstance(node, Arithmetic):
                break
            position = fit(position, node.left.shape)
            node = node.left
        for node, position in reversed(pending):
            self.done[id(node), position] = self._term(node, position)
        return self.done[id(node), position]

    def _term(self, node: Term, position: Entry) -> Any:
        if isinstance(node, Number):
            return constant(exact(node.value))
        if isinstance(node, Constant):
            rows = node.rows()
            for place in position:
                rows = rows[place]
            return constant(exact(rows))
        if isinstance(node, Variable):
            return self.world.number(node.name, position)
        if isinstance(node, Probabilities):
            *places, label = position
            return self.entry(node.operand, tuple(places), lambda name, entry: self.world.probability(name, entry, label))
        if isinstance(node, term.Negation):
            return -self.term(node.operand, position)
        if isinstance(node, term.Absolute):
            value = self.term(node.operand, position)
            return z3.If(value >= 0, value, -value)
        if isinstance(node, Index):
            found = locate(node.items, position, node.operand.shape, self.world)
            return choose(found, lambda entry: self.term(node.operand, entry))
        if isinstance(node, MatrixProduct):
            return self._product(node, position)
        if isinstance(node, Reduction):
            return self._reduction(node, position)
        if isinstance(node, Arithmetic):
            return self._arithmetic(node, position)
        assert isinstance(node, Application)
        return self._free(node)

    def entry(self, node: Any, position: Entry, read: Callable[[str, Entry], Any]) -> Any:
        """What ``read`` gives for the symbol below an indexed class, Boolean or mask."""
        if not hasattr(node, "items"):
            return read(node.name, position)
        found = locate(node.items, position, node.operand.shape, self.world)
        return choose(found, lambda entry: self.entry(node.operand, entry, read))

    def _arithmetic(self, node: Arithmetic, position: Entry) -> Any:
        left, right = (self.term(side, fit(position, side.shape)) for side in (node.left, node.right))
        if node.operation != "**":
            return ARITHMETIC[node.operation](left, right)
        power = right.as_fraction() if z3.is_rational_value(right) else None
        if power is None or power.denominator != 1 or not 0 <= power <= LARGEST_POWER:
            return self._free(node)
        return functools.reduce(lambda product, _: product * left, range(int(power)), z3.RealVal(1))

    def _free(self, node: Term) -> Any:
        self.world.opaque.add(id(node))
        return self.world.fresh(z3.Real, "opaque")

    def _product(self, node: MatrixProduct, position: Entry) -> Any:
        kept, column = (position, None) if len(node.right.shape) == 1 else (position[:-1], position[-1])
        weights = [exact(row if column is None else row[column]) for row in node.right.rows()]
        parts = [
            self.term(node.left, (*kept, place)) * constant(weight) if weight != 1 else self.term(node.left, (*kept, place))
            for place, weight in enumerate(weights)
            if weight
        ]
        return z3.Sum(parts) if parts else z3.RealVal(0)

    def _reduction(self, node: Reduction, position: Entry) -> Any:
        parts = [
            (self.existence(node.operand.shape, node.dims, inner), self.term(node.operand, inner))
            for inner in positions(node.operand.shape, node.dims, position)
        ]
        if node.operation == "sum":
            return z3.Sum([value if not exists else z3.If(z3.And(exists), value, 0) for exists, value in parts])
        extreme = self.world.fresh(z3.Real, node.operation)
        for exists, value in parts:
            bound = value <= extreme if node.operation == "max" else value >= extreme
            self.world.axioms.append(z3.Implies(z3.And(exists), bound) if exists else bound)
        self.world.axioms.append(z3.Or([z3.And(*exists, value == extreme) for exists, value in parts]))
        return extreme

    def existence(self, shape: Shape, dims: tuple[int, ...], position: Entry) -> list[Any]:
        """Conditions under which a position of ragged axes exists."""
        return [
            self.world.exists(size.axis.name, position[dim] + size.trim)
            for dim, size in enumerate(shape)
            if dim in dims and isinstance(size, Ragged)
        ]


def locate(items: tuple[Item, ...], position: Entry, shape: Shape, world: World) -> Alternatives:
    """The entries of an operand that ``operand[items]`` means at a position; several where it counts from a ragged end."""
    places = iter(position)
    sizes = iter(shape)
    found: Alternatives = [(None, ())]
    for kind, *arguments in items:
        if kind == "new":
            next(places)
            continue
        size = next(sizes)
        if kind == "range":
            start, _, step = arguments
            place = (start or 0) + next(places) * (step or 1)
        else:
            place = arguments[0] if kind == "at" else arguments[0][next(places)]
        if place >= 0:
            found = [(condition, (*entry, place)) for condition, entry in found]
        else:
            found = _from_the_end(found, -place, size, world)
    return found


def _from_the_end(found: Alternatives, back: int, size: Any, world: World) -> Alternatives:
    # With length L the entry is L - back: the largest one for which the axis is long enough.
    extended: Alternatives = []
    for condition, entry in found:
        for place in range(size.max - back, -1, -1):
            long_enough = world.exists(size.axis.name, place + back - 1 + size.trim) if place else None
            both = [part for part in (condition, long_enough) if part is not None]
            extended.append((z3.And(both) if both else None, (*entry, place)))
    return extended


def choose(found: Alternatives, build: Callable[[Entry], Any]) -> Any:
    """The value at the first entry whose condition holds."""
    value = build(found[-1][1])
    for condition, entry in reversed(found[:-1]):
        value = z3.If(condition, build(entry), value)
    return value
