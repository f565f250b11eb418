"""Comparisons, where a bare word may be the name of a class."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from dualogic.errors import suggest
from dualogic.formula.atom import Boolean, class_equals, class_in, compare
from dualogic.formula.connective import Formula
from dualogic.formula.join import Not
from dualogic.formula.number import NumberExpression
from dualogic.formula.symbol import Categorical, ClassExpression, MaskExpression
from dualogic.formula.term import Term
from dualogic.text.names import ClassSet, Group, describe_value
from dualogic.text.source import listed, read_string

if TYPE_CHECKING:
    from lark import Token, Tree

    from dualogic.text.expression import Reader

    Side = tuple[Tree[Token], Any]


@dataclasses.dataclass(frozen=True)
class Undeclared:
    """A name that stands for nothing by itself; perhaps for a class of what it is compared with."""

    token: Token


def link(reader: Reader, sign: str, left: Side, right: Side) -> Formula:
    """``left sign right``, one link of a chain of comparisons."""
    if sign in ("in", "not in"):
        formula = _among(reader, left, right)
        return Not(formula) if sign == "not in" else formula
    sides = ((left, right), (right, left))
    for side, other in sides:
        _refuse(reader, side, other, sign)
    operation = {"is": "==", "is not": "!="}.get(sign, sign)
    if operation not in ("==", "!="):
        named = (_class_label(reader, side, other[1]) if isinstance(side[1], Undeclared) else side[1] for side, other in sides)
        return compare(operation, *named)
    first = _class_label(reader, left, right[1])
    second = _class_label(reader, right, left[1])
    if not isinstance(first, NumberExpression) and isinstance(second, ClassExpression):
        first, second = second, first
    if isinstance(first, ClassExpression):
        equal = class_equals(first, second)
        return equal if operation == "==" else Not(equal)
    if operation != sign:
        raise reader.source.error(left[0], f"'{sign}' compares a class; for numbers write '{operation}'")
    return compare(operation, first, second)


def _refuse(reader: Reader, side: Side, other: Side, sign: str) -> None:
    tree, value = side
    classes = getattr(getattr(other[1], "symbol", None), "classes", None) or ()
    if tree.data == "name" and str(tree.children[0]) in classes and isinstance(value, (Group, Formula, Term, MaskExpression)):
        reason = f"{tree.children[0]!s} is {describe_value(value)} and a class of {other[1]}"
        raise reader.source.error(tree, reason, f'put the class in quotes: "{tree.children[0]}"')
    if isinstance(value, (Group, ClassSet)):
        what = f"the group {value.name!r}" if isinstance(value, Group) else "a set of classes"
        raise reader.source.error(tree, f"{what} cannot be compared by '{sign}'", "write 'in' or 'not in'")
    if isinstance(value, Formula):
        remedy = "to say that two formulas are both true or both false, write 'iff'"
        if isinstance(value, Boolean):
            remedy = f"'{value}' alone says that it is true, and 'not {value}' that it is false; {remedy}"
        chained = "a comparison of a comparison is written as a chain without parentheses: 0 <= x <= 1"
        raise reader.source.error(tree, f"{describe_value(value)} cannot be compared by '{sign}'", remedy, chained)
    if isinstance(value, str) and not isinstance(other[1], ClassExpression):
        raise reader.source.error(tree, "a text in quotes names a class, but the other side is not a class")


def _class_label(reader: Reader, side: Side, other: Any) -> Any:
    """The value of a side; a class of ``other`` by its index, if that is what it names."""
    tree, value = side
    if not isinstance(other, ClassExpression):
        if isinstance(value, Undeclared):
            raise reader.unknown(value.token)
        return value
    if isinstance(value, Undeclared):
        classes = other.symbol.classes or ()
        if str(value.token) not in classes:
            raise reader.unknown(value.token, classes)
        return classes.index(str(value.token))
    return _class_index(reader, tree, value, other) if isinstance(value, (str, int, float)) else value


def _class_index(reader: Reader, where: Tree[Token] | Token, value: str | float, operand: ClassExpression) -> int:
    symbol = operand.symbol
    number = symbol.classes and getattr(where, "data", None) == "number"
    value = as_label(symbol, member_value(where.children[0]) if number else value)  # type: ignore[union-attr, arg-type]
    if isinstance(value, str) and symbol.classes is not None and value not in symbol.classes:
        reason = f"{symbol.name!r} has no class {value!r}{suggest(value, symbol.classes)}"
        raise reader.source.error(where, reason, f"classes: {listed(symbol.classes)}")
    try:
        return symbol.class_index(value)
    except (TypeError, ValueError) as error:
        raise reader.source.error(where, str(error)) from error


def _among(reader: Reader, left: Side, right: Side) -> Formula:
    (tree, operand), (where, classes) = left, right
    for side in (left, right):
        if isinstance(side[1], Undeclared):
            raise reader.unknown(side[1].token)
    if not isinstance(operand, ClassExpression):
        raise reader.source.error(tree, f"'in' asks about a class; this is {describe_value(operand)}", "a range is 0 <= x <= 1")
    if isinstance(classes, ClassSet):
        members = [(token, member) for token in classes.tokens for member in find_members(reader, token, [operand.symbol])]
        indices = [_class_index(reader, token, member, operand) for token, member in members]
    elif isinstance(classes, (Group, list, tuple)):
        parts = where.children if where.data in ("list", "tuple") else [where] * len(tuple(classes))
        indices = [_class_index(reader, part, value, operand) for part, value in zip(parts, classes)]
    else:
        reason = f"expected classes behind 'in', as in {{cat, dog}} or the name of a group; this is {describe_value(classes)}"
        raise reader.source.error(where, reason)
    return class_in(operand, indices)


def find_members(reader: Reader, token: Token, symbols: list[Categorical]) -> tuple[str | int, ...]:
    """What a word in ``{...}`` stands for: a class, or those of a group, unless a symbol has a class of that name too."""
    group = reader.names.get(str(token)) if token.type == "NAME" else None
    if not isinstance(group, Group):
        return (member_value(token),)
    if any(has_class(symbol, str(token)) for symbol in symbols):
        raise reader.source.error(token, f"{str(token)!r} is a group and a class; put the class in quotes, or rename the group")
    return group.members


def has_class(symbol: Categorical, value: Any) -> bool:
    """Whether a symbol has a class of this name or index."""
    value = as_label(symbol, value)
    if isinstance(value, str):
        return symbol.classes is not None and value in symbol.classes
    return isinstance(value, int) and 0 <= value < symbol.size


def as_label(symbol: Categorical, value: Any) -> Any:
    """A class as it is written; where classes are called by numbers, a number is a name, and not a position among them."""
    named = any(label.lstrip("-").replace(".", "", 1).isdecimal() for label in symbol.classes or ())
    return str(value) if named and isinstance(value, int) else value


def member_value(token: Token) -> str | int:
    """What a word, a quoted text or a number in ``{...}`` says; ``01`` and ``1.5`` are names, and no positions."""
    text = str(token)
    if token.type == "STRING":
        return read_string(text)
    return int(text) if token.type == "NUMBER" and text.isdecimal() and text == str(int(text)) else text
