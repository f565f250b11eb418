"""What the solver knows about the symbols of a rule set, how it is asked, and how its models read in the user's terms."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import z3

from dualogic.compile.binding import required_lengths
from dualogic.formula.atom import Boolean
from dualogic.formula.connective import Formula
from dualogic.formula.inspect import collect_symbols
from dualogic.formula.node import walk
from dualogic.formula.shape import Ragged, max_shape
from dualogic.formula.symbol import Categorical, Mask, Probabilities, Variable

Entry = tuple[int, ...]  # a position within the axes of a symbol, at their largest sizes
Range = tuple[Any, Any]


def exact(value: float) -> Fraction:
    """The number as it was written: 0.1 is a tenth, not the double nearest to it."""
    return Fraction(repr(float(value)))


def constant(value: Fraction) -> Any:
    """A number for the solver."""
    return z3.Q(value.numerator, value.denominator)


class World:
    """Solver variables for the entries of symbols, made when first asked for, with what is known about them.

    A class is one of its classes. Where a rule also reads the class probabilities as numbers, they lie in [0, 1], sum to 1,
    and the class is a most probable one. Which symbols of the rules are read as numbers decides what must be modelled.
    """

    def __init__(self, formulas: Iterable[Formula], ranges: Mapping[str, Range]) -> None:
        nodes = walk(*formulas)
        self.symbols = collect_symbols(nodes)
        self.ranges = ranges
        self.axioms: list[Any] = []  # what always holds; grows as variables are made
        self.opaque: set[int] = set()  # the ids of the terms that became free variables
        self._numeric = {node.operand.symbol.name for node in nodes if isinstance(node, Probabilities)}
        self._required = {name: length for name, (length, _) in required_lengths(nodes).items()}
        self.axes = {
            size.axis.name: size.axis.max for symbol in self.symbols.values() for size in symbol.shape if isinstance(size, Ragged)
        }
        self._made: dict[Any, Any] = {}
        self._count = itertools.count()

    def fresh(self, sort: Any, label: str) -> Any:
        """A new variable."""
        return sort(f"{label}!{next(self._count)}")

    def number(self, name: str, entry: Entry) -> Any:
        """A variable's entry."""
        if (key := ("number", name, entry)) not in self._made:
            value = self._made[key] = self.fresh(z3.Real, name)
            low, high = self.ranges.get(name, (None, None))
            self.axioms += [value >= constant(exact(low))] if low is not None else []
            self.axioms += [value <= constant(exact(high))] if high is not None else []
        return self._made[key]

    def truth(self, name: str, entry: Entry) -> Any:
        """The truth value of an entry of a Boolean or a mask."""
        if (key := ("truth", name, entry)) not in self._made:
            self._made[key] = self.fresh(z3.Bool, name)
        return self._made[key]

    def exists(self, axis: str, place: int) -> Any:
        """Whether a ragged axis has more than ``place`` entries."""
        if place < self._required.get(axis, 1):
            return z3.BoolVal(True)
        if (key := ("exists", axis, place)) not in self._made:
            self._made[key] = self.fresh(z3.Bool, axis)
            self.axioms.append(z3.Implies(self._made[key], self.exists(axis, place - 1)))
        return self._made[key]

    def full_length(self) -> list[Any]:
        """That every ragged axis has its largest length."""
        return [self.exists(axis, longest - 1) for axis, longest in self.axes.items()]

    def probability(self, name: str, entry: Entry, label: int) -> Any:
        """The probability of a class."""
        return self._probabilities(name, entry)[0][label]

    def _probabilities(self, name: str, entry: Entry) -> tuple[list[Any], Any]:
        if (key := ("probabilities", name, entry)) not in self._made:
            symbol = self.symbols[name]
            assert isinstance(symbol, Categorical)
            values = [self.fresh(z3.Real, name) for _ in range(symbol.size)]
            largest = self.fresh(z3.Real, name)
            self.axioms += [value >= 0 for value in values]
            self.axioms += [value <= largest for value in values]
            self.axioms += [z3.Sum(values) == 1, z3.Or([value == largest for value in values])]
            self._made[key] = (values, largest)
        return self._made[key]  # type: ignore[no-any-return]

    def classes(self, name: str, entry: Entry) -> list[Any]:
        """For each class whether it is the one."""
        if (key := ("classes", name, entry)) not in self._made:
            symbol = self.symbols[name]
            assert isinstance(symbol, Categorical)
            chosen = [self.fresh(z3.Bool, name) for _ in range(symbol.size)]
            self.axioms += [z3.Or(chosen), z3.AtMost(*chosen, 1)]
            if name in self._numeric:
                values, largest = self._probabilities(name, entry)
                self.axioms += [z3.Implies(choice, value == largest) for choice, value in zip(chosen, values)]
            self._made[key] = chosen
        return self._made[key]  # type: ignore[no-any-return]

    def has_class(self, name: str, entry: Entry, labels: tuple[int, ...], positive: bool) -> Any:
        """Whether the class is one of ``labels``, or is not.

        A class that ties with another is not "the" class, as in ``satisfied``; yet every entry has some class, so that
        "neither 0 nor 1" cannot hold of two classes.
        """
        chosen = self.classes(name, entry)
        inside = z3.Or([chosen[label] for label in labels])
        if not positive:
            return z3.Not(inside)
        if name not in self._numeric:
            return inside
        values, largest = self._probabilities(name, entry)
        return z3.And(inside, *[value < largest for label, value in enumerate(values) if label not in labels])

    def class_number(self, name: str, entry: Entry) -> Any:
        """The class as the number that is its index."""
        return z3.Sum([z3.If(chosen, label, 0) for label, chosen in enumerate(self.classes(name, entry))])

    def leads(self, name: str, entry: Entry) -> Any:
        """Whether one class is more probable than every other."""
        if name not in self._numeric:
            return z3.BoolVal(True)
        labels = range(len(self.classes(name, entry)))
        return z3.Or([self.has_class(name, entry, (label,), True) for label in labels])

    def witness(self, model: Any) -> dict[str, Any]:
        """A model in the user's symbols."""
        lengths = {
            axis: sum(z3.is_true(model.eval(self.exists(axis, place), model_completion=True)) for place in range(longest))
            for axis, longest in self.axes.items()
        }
        return {name: self._read(name, symbol, lengths, model) for name, symbol in self.symbols.items()}

    def _read(self, name: str, symbol: Any, lengths: dict[str, int], model: Any, entry: Entry = ()) -> Any:
        if len(entry) < len(symbol.shape):
            size = symbol.shape[len(entry)]
            count = size if isinstance(size, int) else lengths[size.axis.name] - size.trim
            return [self._read(name, symbol, lengths, model, (*entry, place)) for place in range(count)]

        def value(expression: Any) -> Any:
            return model.eval(expression, model_completion=True)

        # What no rule asked for has no variable, and can be anything.
        if isinstance(symbol, (Boolean, Mask)):
            return z3.is_true(value(self._made.get(("truth", name, entry), z3.BoolVal(False))))
        if isinstance(symbol, Variable):
            if ("number", name, entry) in self._made:
                return as_float(value(self._made["number", name, entry]))
            low, high = self.ranges.get(name, (None, None))
            return min(max(0.0, -math.inf if low is None else float(low)), math.inf if high is None else float(high))
        labels = symbol.classes or range(symbol.size)
        if ("probabilities", name, entry) in self._made:
            numbers = [as_float(value(each)) for each in self._made["probabilities", name, entry][0]]
            return {label: number for label, number in zip(labels, numbers) if number}
        chosen = self._made.get(("classes", name, entry), [z3.BoolVal(True)])
        return next(label for label, choice in zip(labels, chosen) if z3.is_true(value(choice)))

    def made(self, name: str) -> list[Entry]:
        """The positions of a symbol whose numbers were asked for."""
        return [key[2] for key in self._made if key[0] in ("number", "probabilities") and key[1] == name]

    def entries(self, name: str) -> list[Entry]:
        """All positions within a symbol's axes."""
        return list(itertools.product(*map(range, max_shape(self.symbols[name].shape))))


def as_float(value: Any) -> float:
    """A number of a model."""
    if z3.is_algebraic_value(value):
        value = value.approx(17)
    return float(Fraction(value.numerator_as_long(), value.denominator_as_long()))


@dataclasses.dataclass(frozen=True)
class Answer:
    """``verdict`` is ``"sat"`` (with a model), ``"unsat"`` (with the assumptions that exclude each other) or ``"unknown"``."""

    verdict: str
    model: Any = None
    core: tuple[Any, ...] = ()


class Prover:
    """One solver that keeps what it learned between questions, each of which may take ``timeout`` seconds."""

    def __init__(self, world: World, timeout: float) -> None:
        self.world = world
        self.solver = z3.Solver()
        self.solver.set("timeout", max(1, int(timeout * 1000)))
        self._added = self._names = 0

    def name(self, proposition: Any) -> Any:
        """An assumption that stands for a proposition."""
        literal = z3.Bool(f"assume!{self._names}")
        self._names += 1
        self.solver.add(z3.Implies(literal, proposition))
        return literal

    def ask(self, assumptions: Iterable[Any], *propositions: Any) -> Answer:
        """Whether all of it can hold together."""
        self.solver.add(*self.world.axioms[self._added :])
        self._added = len(self.world.axioms)
        self.solver.push()
        try:
            self.solver.add(*propositions)
            verdict = str(self.solver.check(*assumptions))
            model = self.solver.model() if verdict == "sat" else None
            return Answer(verdict, model, tuple(self.solver.unsat_core()) if verdict == "unsat" else ())
        finally:
            self.solver.pop()

    def minimise(self, core: Sequence[Any], fixed: Sequence[Any], *propositions: Any) -> list[Any]:
        """Drop assumptions from an unsatisfiable set, first ones first, until none can be spared."""
        kept = list(core)
        for literal in list(kept):
            rest = [other for other in kept if other is not literal]
            if self.ask([*fixed, *rest], *propositions).verdict == "unsat":
                kept = rest
        return kept
