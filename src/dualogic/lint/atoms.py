"""Ground comparisons in negation normal form: their costs, and linear terms read back from the solver's expressions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import z3

from dualogic.circuits.grounding import fit, positions
from dualogic.formula.atom import NEGATED, Comparison
from dualogic.formula.connective import Formula, Junction, Level, Quantifier
from dualogic.formula.evidence import Evidence
from dualogic.lint.encode import Encoder
from dualogic.lint.terms import TermEncoder
from dualogic.lint.world import Entry, World, constant, exact

Key = tuple[int, Entry, str]  # a ground atom: its comparison, its position and its sign


@dataclasses.dataclass(frozen=True)
class Atom:
    """A ground comparison in negation normal form: ``difference operation 0``, with its margin."""

    difference: Any
    operation: str
    margin: Fraction


class AtomEncoder(Encoder):
    """An encoder that hands every ground comparison to a function."""

    def __init__(self, world: World, read: Callable[[Atom], Any], terms: TermEncoder | None = None) -> None:
        super().__init__(world)
        self.read = read
        self.atoms: dict[Key, Atom] = {}
        self.terms = terms or self.terms

    def compare(self, node: Comparison, position: Entry, positive: bool) -> Any:
        left, right = self.sides(node, position)
        operation = node.operation if positive else NEGATED[node.operation]
        atom = Atom(left - right, operation, exact(node.margin) if positive else Fraction(0))
        self.atoms[id(node), position, operation] = atom
        return self.read(atom)


def relax(atom: Atom, amount: Any) -> Any:
    """That the atom's cost (Eq. 1) is at most ``amount``; for 0, without the margin, the closure of where it holds."""
    margin = constant(Fraction(0) if isinstance(amount, int) else atom.margin)
    if atom.operation in ("<", "<="):
        return atom.difference + margin <= amount
    if atom.operation in (">", ">="):
        return margin - atom.difference <= amount
    if atom.operation == "==":
        return within(atom.difference, amount)
    return z3.Or(atom.difference >= margin - amount, -atom.difference >= margin - amount)


def within(value: Any, amount: Any) -> Any:
    """That the absolute value is at most ``amount``."""
    return z3.And(value <= amount, -value <= amount)


def numbers_of(expressions: list[Any]) -> list[Any]:
    """The real variables of expressions."""
    found_numbers: dict[int, Any] = {}
    seen: set[int] = set()
    stack = list(expressions)
    while stack:
        expression = stack.pop()
        if expression.get_id() in seen:
            continue
        seen.add(expression.get_id())
        if z3.is_const(expression) and expression.decl().kind() == z3.Z3_OP_UNINTERPRETED and z3.is_real(expression):
            found_numbers[expression.get_id()] = expression
        stack.extend(expression.children())
    return list(found_numbers.values())


def conjuncts(node: Formula, position: Entry) -> Iterator[tuple[Formula, Entry]]:
    """The parts of a rule that must all hold, written out."""
    if isinstance(node, (Evidence, Level)):
        yield from conjuncts(node.operand, position)
    elif isinstance(node, Junction) and node.operation == "&":
        for operand in node.operands:
            yield from conjuncts(operand, fit(position, operand.shape))
    elif isinstance(node, Quantifier) and node.operation == "all":
        for inner in positions(node.operand.shape, node.dims, position):
            yield from conjuncts(node.operand, inner)
    else:
        yield node, position


def canonical(expression: Any) -> str:
    """The text of an expression with its numbers called by their order, so that parts of one shape read the same."""
    names = [z3.Real(f"number!{place}") for place, _ in enumerate(numbers_of([expression]))]
    return str(z3.substitute(expression, *zip(numbers_of([expression]), names)).sexpr())


@dataclasses.dataclass(frozen=True)
class Linear:
    """``sum of weight * variable + offset``; weights by the name of the variable, none of them 0."""

    weights: tuple[tuple[str, Fraction], ...]
    offset: Fraction

    def direction(self) -> tuple[tuple[tuple[str, Fraction], ...], bool]:
        """The weights with a positive first one, and whether signs were flipped for that."""
        if not self.weights or self.weights[0][1] > 0:
            return self.weights, False
        return tuple((name, -weight) for name, weight in self.weights), True


def to_linear(expression: Any) -> Linear | None:
    """A linear expression by its weights; ``None`` for any other."""
    simple = z3.simplify(expression, som=True)
    weights: dict[str, Fraction] = {}
    offset = Fraction(0)
    for part in simple.children() if z3.is_add(simple) else [simple]:
        factor, number = Fraction(1), part
        if z3.is_mul(part) and part.num_args() == 2 and z3.is_rational_value(part.arg(0)):
            factor, number = part.arg(0).as_fraction(), part.arg(1)
        if z3.is_rational_value(part):
            offset += part.as_fraction()
        elif z3.is_const(number):
            weights[str(number)] = weights.get(str(number), Fraction(0)) + factor
        else:
            return None
    return Linear(tuple(sorted((name, weight) for name, weight in weights.items() if weight)), offset)
