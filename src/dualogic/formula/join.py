"""The functions that join formulas: ``And``, ``Or``, ``Not`` and their kin, which the operators ``& | ~ >>`` call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from dualogic.errors import FormulaTypeError, OptionError, SizeError
from dualogic.formula.connective import Cardinality, Complement, Equivalence, Formula, Implication, Junction, Level, as_formula
from dualogic.formula.evidence import evidence as take_as_evidence
from dualogic.formula.node import Node
from dualogic.formula.shape import as_int, format_shape

MOST_OPERANDS = 250_000  # of one connective; many more than can be trained


def _operands(values: tuple[Any, ...], where: str) -> list[Formula]:
    """What a connective was given, one by one or as one list."""
    listed = len(values) == 1 and not isinstance(values[0], Node) and isinstance(values[0], Iterable)
    if listed:
        values = tuple(values[0].values() if isinstance(values[0], Mapping) else values[0])
    if not values:
        raise FormulaTypeError(f"{where} needs at least one formula")
    operands = [as_formula(value, where) for value in values]
    if listed and len(operands) == 1 and operands[0].shape:
        raise FormulaTypeError(
            f"{where} of a list with one formula, {operands[0].brief()}, which has the axes {format_shape(operands[0].shape)}: "
            f"give the formula without the list to mean its entries, or leave {where} out to mean every entry by itself"
        )
    return operands


def _several(values: tuple[Any, ...], where: str) -> list[Formula]:
    """The formulas that are counted: those given, or the entries of the one that is given."""
    operands = _operands(values, where)
    if len(operands) > 1 or not operands[0].shape:
        return operands
    from dualogic.formula.reindex import reindex

    (array,) = operands
    if len(array.shape) > 1 or not isinstance(array.shape[0], int):
        several = len(array.shape) > 1
        reason = "it is not clear along which" if several else "its length is not known before tensors are bound"
        remedy = (
            f"give the entries one by one, as in {where}(t[:, 0], t[:, 1])"
            if several
            else "for at most one write (~(t[:, None] & t[None, :])).all(where=pair) with pair = dl.mask('pair', n, n), bound to "
            "True where both entries exist and the first comes before the second; for at least one write t.any(where=...)"
        )
        axes = format_shape(array.shape)
        raise FormulaTypeError(
            f"{where} counts the entries of one axis, and {array.brief()} has the axes {axes}: {reason}; {remedy}"
        )
    return [reindex(array, (("at", place),)) for place in range(array.shape[0])]


def _junction(operation: str, values: tuple[Any, ...], where: str) -> Formula:
    operands = _operands(values, where)
    if len(operands) == 2:
        chain, last = operands
        grows = isinstance(chain, Junction) and chain.operation == operation and chain.shape == last.shape
        if grows and not (isinstance(last, Junction) and last.operation == operation):
            return cast("Junction", chain).grow(last)
    parts = [each.operands if isinstance(each, Junction) and each.operation == operation else (each,) for each in operands]
    count = sum(map(len, parts))
    if count > MOST_OPERANDS:
        raise SizeError(
            f"{where} would join {count:,} formulas in one connective, at most {MOST_OPERANDS:,}: a chain of one operator is one "
            f"connective, and one that is joined with itself doubles; name each formula once"
        )
    flat = [formula for part in parts for formula in part]
    if len(operands) == 1 and operands[0].shape:
        return operands[0].all() if operation == "&" else operands[0].any()
    return flat[0] if len(flat) == 1 else Junction(operation, tuple(flat))


def And(*formulas: Any) -> Formula:
    """All of the formulas hold; ``a & b & c`` is the same. Of one formula with axes, all entries: ``And(t)`` is ``t.all()``.

    Also of a list of formulas, or of a mapping of names to them, such as the rules of a loss.

    Example:
        >>> import dualogic as dl
        >>> x = dl.var("x")
        >>> dl.And(x >= 0, x <= 1)
        (x >= 0) & (x <= 1)
    """
    return _junction("&", formulas, "And (&)")


def Or(*formulas: Any) -> Formula:
    """At least one of the formulas holds; ``a | b | c`` is the same. Of one formula with axes, at least one entry."""
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


def Iff(left: Any, right: Any = None, *more: Any) -> Formula:
    """Both hold or neither does: ``Iff(a, b)`` is ``(a >> b) & (b >> a)``. Also of one formula with two entries."""
    return Equivalence(*_pair(left, right, more, "Iff"), False)


def Xor(left: Any, right: Any = None, *more: Any) -> Formula:
    """Exactly one of two holds: the negation of :func:`Iff`."""
    return Equivalence(*_pair(left, right, more, "Xor"), True)


def _pair(left: Any, right: Any, more: tuple[Any, ...], where: str) -> tuple[Formula, Formula]:
    found = _several((left,) if right is None else (left, right, *more), where)
    if len(found) != 2:
        raise FormulaTypeError(f"{where} joins two formulas; got {len(found)}. For one of several write ExactlyOne(a, b, c)")
    return found[0], found[1]


def ExactlyOne(*formulas: Any) -> Formula:
    """One of the formulas holds and no other; of one formula with an axis, one of its entries.

    Example:
        >>> import dualogic as dl
        >>> a, b, c = (dl.boolean(name) for name in "abc")
        >>> dl.ExactlyOne(a, b, c), dl.ExactlyOne(dl.boolean("t", 3))
        (ExactlyOne(a, b, c), ExactlyOne(t[0], t[1], t[2]))
    """
    operands = _several(formulas, "ExactlyOne")
    return operands[0] if len(operands) == 1 else Cardinality(1, True, tuple(operands))


def AtMost(*arguments: Any, k: int | None = None) -> Formula:
    """At most ``k`` of the formulas hold: ``AtMost(k, a, b, c)``, ``AtMost(k, [a, b, c])`` or ``AtMost(a, b, c, k=k)``.

    Of one formula with an axis, at most ``k`` of its entries hold.

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
    operands = _several(tuple(rest), "AtMost")
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
