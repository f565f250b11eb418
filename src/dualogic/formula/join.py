"""The functions that join formulas: ``And``, ``Or``, ``Not`` and their kin, which the operators ``& | ~ >>`` call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from dualogic.errors import FormulaTypeError, OptionError
from dualogic.formula.connective import (
    Cardinality,
    Complement,
    Equivalence,
    Formula,
    Implication,
    Junction,
    Level,
    as_formula,
)
from dualogic.formula.evidence import evidence as take_as_evidence
from dualogic.formula.node import Node
from dualogic.formula.shape import as_int


def _operands(values: tuple[Any, ...], where: str) -> list[Formula]:
    if len(values) == 1 and not isinstance(values[0], Node) and isinstance(values[0], Iterable):
        values = tuple(values[0])
    if not values:
        raise FormulaTypeError(f"{where} needs at least one formula")
    return [as_formula(value, where) for value in values]


def _junction(operation: str, values: tuple[Any, ...], where: str) -> Formula:
    operands = _operands(values, where)
    if len(operands) == 2:
        chain, last = operands
        grows = isinstance(chain, Junction) and chain.operation == operation and chain.shape == last.shape
        if grows and not (isinstance(last, Junction) and last.operation == operation):
            return cast("Junction", chain).grow(last)
    flat: list[Formula] = []
    for operand in operands:
        same = isinstance(operand, Junction) and operand.operation == operation
        flat.extend(operand.operands if same else (operand,))  # type: ignore[attr-defined]
    return flat[0] if len(flat) == 1 else Junction(operation, tuple(flat))


def And(*formulas: Any) -> Formula:
    """All of the formulas hold; ``a & b & c`` is the same.

    Example:
        >>> import dualogic as dl
        >>> x = dl.var("x")
        >>> dl.And(x >= 0, x <= 1)
        (x >= 0) & (x <= 1)
    """
    return _junction("&", formulas, "And (&)")


def Or(*formulas: Any) -> Formula:
    """At least one of the formulas holds; ``a | b | c`` is the same."""
    return _junction("|", formulas, "Or (|)")


def Not(formula: Any) -> Formula:
    """The formula does not hold; ``~a`` is the same."""
    return Complement(as_formula(formula, "Not (~)"))


def Implies(antecedent: Any, consequent: Any, evidence: bool | float | None = None) -> Formula:
    """If the antecedent holds, so does the consequent; ``a >> b`` is the same.

    Args:
        antecedent: a formula.
        consequent: a formula.
        evidence: whether the antecedent is evidence, which the rule does not teach: ``True``, ``False``, or the share of its
            gradient that is held back; see :func:`~dualogic.formula.evidence.evidence`. ``None`` leaves it to the method.

    Example:
        >>> import dualogic as dl
        >>> a, b = dl.boolean("a"), dl.boolean("b")
        >>> dl.Implies(a, b, evidence=True), dl.Implies(a, b, evidence=0.9), dl.Implies(a, b)
        (evidence(a) >> b, evidence(a, 0.9) >> b, a >> b)
    """
    where = "Implies (>>)"
    first = as_formula(antecedent, where)
    if evidence is not None:
        first = take_as_evidence(first, evidence)
    return Implication(first, as_formula(consequent, where))


def Iff(left: Any, right: Any) -> Formula:
    """Both hold or neither does: ``(left >> right) & (right >> left)``."""
    return Equivalence(as_formula(left, "Iff"), as_formula(right, "Iff"), False)


def Xor(left: Any, right: Any) -> Formula:
    """Exactly one of two holds: the negation of :func:`Iff`."""
    return Equivalence(as_formula(left, "Xor"), as_formula(right, "Xor"), True)


def ExactlyOne(*formulas: Any) -> Formula:
    """One of the formulas holds and no other.

    Example:
        >>> import dualogic as dl
        >>> a, b, c = (dl.boolean(name) for name in "abc")
        >>> dl.ExactlyOne(a, b, c)
        ExactlyOne(a, b, c)
    """
    operands = _operands(formulas, "ExactlyOne")
    return operands[0] if len(operands) == 1 else Cardinality(1, True, tuple(operands))


def AtMost(*arguments: Any, k: int | None = None) -> Formula:
    """At most ``k`` of the formulas hold: ``AtMost(k, a, b, c)``, ``AtMost(k, [a, b, c])`` or ``AtMost(a, b, c, k=k)``.

    Example:
        >>> import dualogic as dl
        >>> a, b, c = (dl.boolean(name) for name in "abc")
        >>> dl.AtMost(1, a, b, c)
        AtMost(1, a, b, c)
    """
    rest = list(arguments)
    if k is None:
        place = next((position for position, value in enumerate(rest) if as_int(value) is not None), None)
        if place is None:
            raise FormulaTypeError("AtMost needs a number first, as in AtMost(1, a, b, c)")
        k = rest.pop(place)
    bound = as_int(k)
    operands = _operands(tuple(rest), "AtMost")
    if bound is None or bound < 0:
        raise OptionError(f"AtMost needs a number of at least 0; got {k!r}")
    if bound >= len(operands):
        raise OptionError(f"at most {bound} of {len(operands)} formulas always hold: this rule says nothing; leave it out")
    return Cardinality(bound, False, tuple(operands))


def level(formula: Any) -> Formula:
    """Give a connective weights of its own inside a chain of the same connective.

    ``a | b | c`` is one connective whose weights start at 1/3 each; in ``level(a | b) | c`` they start at 1/2 for ``c``
    and at 1/2 for the pair.

    Example:
        >>> import dualogic as dl
        >>> a, b, c = (dl.boolean(name) for name in "abc")
        >>> dl.level(a | b) | c
        level(a | b) | c
    """
    return Level(as_formula(formula, "level"))
