"""Atoms: comparisons of terms, classes, and truth values."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

from dualogic.errors import FormulaTypeError, OptionError, SymbolError
from dualogic.formula.connective import Complement, Formula
from dualogic.formula.node import walk
from dualogic.formula.number import NumberExpression
from dualogic.formula.shape import Item, Shape, check_name, declare_shape, shorten
from dualogic.formula.symbol import ClassExpression, Variable, check_input
from dualogic.formula.term import Constant, Number, Term, as_term

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}
"""What the signs mean between numbers, tensors and expressions of a solver."""
MIRRORED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<", "==": "==", "!=": "!="}
NEGATED = {"<=": ">", "<": ">=", ">=": "<", ">": "<=", "==": "!=", "!=": "=="}
STRICT = frozenset({"<", ">", "!="})


class Comparison(Formula):
    """``left operation right`` between real-valued terms (Eq. 1 of the paper).

    ``v <= c`` costs ``max(v - c, 0)``, ``v < c`` costs ``max(v - c + margin, 0)``, ``v == c`` costs ``|v - c|`` and
    ``v != c`` costs ``max(margin - |v - c|, 0)``.
    """

    operation: str
    left: Term
    right: Term
    margin: float
    _instead: ClassVar[str] = (
        "(a <= x) & (x <= b) for the chained comparison a <= x <= b, and dl.apply(torch.maximum, x, y) for max(x, y)"
    )


class ClassIn(Formula):
    """``operand == k`` (one class) or ``operand.isin(classes)``."""

    operand: ClassExpression
    classes: tuple[int, ...]
    _instead: ClassVar[str] = "and f.isin([...]) for f in [...]"


class ClassEqual(Formula):
    """``left == right`` between two categoricals: for some class, both have it."""

    left: ClassExpression
    right: ClassExpression


class BooleanExpression(Formula):
    """A truth value with a probability: a Boolean symbol, or an indexed one."""

    @property
    def symbol(self) -> Boolean:
        """The Boolean below any indexing."""
        return self if isinstance(self, Boolean) else cast("BooleanIndex", self).operand.symbol

    def __getitem__(self, key: Any) -> Formula:
        return self._index(BooleanIndex, key)  # type: ignore[no-any-return]


class Boolean(BooleanExpression):
    """A symbol that is itself a formula; made by :func:`boolean`."""

    name: str
    sizes: Shape
    input: str


class BooleanIndex(BooleanExpression):
    """``operand[items]`` of a Boolean with axes."""

    operand: BooleanExpression
    items: tuple[Item, ...]


def boolean(name: str, *shape: Any, input: str = "probs") -> Boolean:
    """Declare a truth value, bound to its probability ``(batch, *shape)`` (or to a logit); it is itself a formula.

    Example:
        >>> import dualogic as dl, torch
        >>> wet, rain = dl.boolean("wet"), dl.boolean("rain")
        >>> rule = rain >> wet
        >>> rule.satisfied(rain=torch.tensor([0.9, 0.1]), wet=torch.tensor([0.2, 0.2]))
        tensor([False,  True])
    """
    check_input(input, name)
    return Boolean(check_name(name, "Boolean"), declare_shape(shape, name), input)


def compare(operation: str, left: Any, right: Any, margin: float = 0.0) -> Formula:
    """Build a comparison; a lone constant moves to the right, as Python's reflected operators do."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Formula):
            return one._no_comparison(other)
    if isinstance(left, NumberExpression) or isinstance(right, NumberExpression):
        if margin:
            raise OptionError(f"{left} {operation} {right} compares classes, which take no margin; got margin={margin!r}")
        from dualogic.formula.relation import relate

        return relate(operation, left, right)
    first, second = as_term(left), as_term(right)
    if isinstance(first, (Number, Constant)):
        first, second, operation = second, first, MIRRORED[operation]
    if not any(isinstance(node, (Variable, ClassExpression)) for node in walk(first, second)):
        raise FormulaTypeError(f"{first} {operation} {second} compares constants only; one side needs a symbol")
    number = float(margin) if isinstance(margin, numbers.Real) and not isinstance(margin, bool) else math.nan
    if not (math.isfinite(number) and number >= 0):
        raise OptionError(f"a margin must be a finite number of at least 0; got {margin!r} in {first} {operation} {second}")
    return Comparison(operation, first, second, number)


def lt(left: Any, right: Any, margin: float = 0.0) -> Formula:
    """``left < right``, costing ``max(left - right + margin, 0)``.

    Example:
        >>> import dualogic as dl
        >>> dl.lt(dl.var("x"), 1, margin=0.1)
        lt(x, 1, margin=0.1)
    """
    return compare("<", left, right, margin)


def gt(left: Any, right: Any, margin: float = 0.0) -> Formula:
    """``left > right``, costing ``max(right - left + margin, 0)``."""
    return compare(">", left, right, margin)


def ne(left: Any, right: Any, margin: float = 0.0) -> Formula:
    """``left != right``, costing ``max(margin - |left - right|, 0)``; classes take no margin."""
    if not margin and (isinstance(left, ClassExpression) or isinstance(right, ClassExpression)):
        return Complement(eq(left, right))
    return compare("!=", left, right, margin)


def le(left: Any, right: Any, margin: float = 0.0) -> Formula:
    """``left <= right``; a margin makes training aim at ``left <= right - margin`` and leaves ``satisfied`` as it is."""
    return compare("<=", left, right, margin)


def ge(left: Any, right: Any, margin: float = 0.0) -> Formula:
    """``left >= right``; a margin makes training aim at ``left >= right + margin`` and leaves ``satisfied`` as it is."""
    return compare(">=", left, right, margin)


def eq(left: Any, right: Any) -> Formula:
    """``left == right``, costing ``|left - right|``."""
    if isinstance(left, ClassExpression):
        return class_equals(left, right)
    if isinstance(right, ClassExpression) and not isinstance(left, NumberExpression):
        return class_equals(right, left)
    return compare("==", left, right)


def class_equals(operand: ClassExpression, other: Any) -> Formula:
    """``operand == other`` for a class index, a class name or another categorical."""
    if isinstance(other, ClassExpression):
        mine, theirs = operand.symbol, other.symbol
        if mine.size != theirs.size or mine.classes != theirs.classes:
            raise SymbolError(
                f"{operand} and {other} cannot be compared: they have different classes ({_describe(mine)} and "
                f"{_describe(theirs)})" + ("" if mine.classes or theirs.classes else f"; as numbers: {operand} + 0 == {other}")
            )
        return ClassEqual(operand, other)
    if isinstance(other, NumberExpression):
        return compare("==", operand, other)
    if isinstance(other, (Formula, Term)):
        raise FormulaTypeError(f"{operand} is a class; it cannot be compared with {other}")
    return ClassIn(operand, (operand.symbol.class_index(other),))


def _describe(symbol: Any) -> str:
    return shorten(", ".join(symbol.classes)) if symbol.classes else f"{symbol.size} unnamed classes"


def class_in(operand: ClassExpression, classes: Sequence[Any]) -> Formula:
    """``operand.isin(classes)``."""
    classes = classes.tolist() if hasattr(classes, "tolist") else classes  # of an array or a tensor
    if isinstance(classes, (str, int)) or not hasattr(classes, "__iter__"):
        raise FormulaTypeError(
            f"{operand}.isin needs a list of classes; got {classes!r}. For one class write {operand} == {classes!r}"
        )
    symbol = operand.symbol
    indices = tuple(sorted({symbol.class_index(value) for value in classes}))
    if not 0 < len(indices) < symbol.size:
        raise SymbolError(
            f"{operand}.isin(...) with {'no class never holds' if not indices else 'every class always holds'}: it says "
            f"nothing; leave it out"
        )
    return ClassIn(operand, indices)
