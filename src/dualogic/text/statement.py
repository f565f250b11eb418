"""What the statements of a rule file declare."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dualogic.errors import suggest
from dualogic.formula.atom import boolean
from dualogic.formula.connective import Formula
from dualogic.formula.shape import Axis, as_int, axis, check_name, format_shape
from dualogic.formula.symbol import Categorical, categorical, mask, var
from dualogic.formula.term import constant
from dualogic.text.comparison import as_label, find_members, has_class, member_value
from dualogic.text.expression import Reader
from dualogic.text.names import ClassSet, Group, describe_value
from dualogic.text.source import Source, listed, read_number, read_string

if TYPE_CHECKING:
    from lark import Token


class Declarations(Reader):
    """Reads statements one after another; each may use the names declared above it, and those that were given."""

    def __init__(self, source: Source, given: dict[str, Any]) -> None:
        super().__init__(source, given)
        self.lines: dict[str, int] = {}
        self.ranges: dict[str, tuple[float, float]] = {}
        self.rules: dict[str, Formula] = {}
        self.rule_lines: dict[str, int] = {}

    def _declare(self, token: Token, value: Any) -> None:
        name = str(token)
        if name in self.names:
            line = self.lines.get(name)
            where = f"in line {line}" if line else "by the symbols given beside the file"
            raise self.source.error(token, f"{name!r} is declared already, {where}", "choose another name")
        self.names[name] = value
        self.lines[name] = token.line or 1

    def _declare_each(self, names: Any, what: str, make: Callable[[str], Any]) -> None:
        for token in names.children:
            self._declare(token, make(self._checked_name(token, what)))

    def _checked_name(self, token: Token, what: str) -> str:
        """The name, or an error under the name itself."""
        try:
            return check_name(str(token), what)
        except ValueError as error:
            raise self.source.error(token, str(error)) from error

    # Symbols

    def _axis(self, token: Any, size: Any) -> None:
        self._declare(token, axis(self._checked_name(token, "axis"), max=self._whole(size)))

    def _var(self, names: Any, sizes: Any, _: Any, bounds: Any) -> None:
        self._declare_each(names, "variable", lambda name: var(name, *self._sizes(sizes)))
        if bounds is not None:
            low, high = map(self._bound, bounds.children)
            if not low <= high:
                reason = f"the range from {low:g} to {high:g} is empty"
                raise self.source.error(bounds, reason, "the lower end comes first: [0, 1]")
            self.ranges |= dict.fromkeys(map(str, names.children), (low, high))

    def _bound(self, tree: Any) -> float:
        *sign, token = tree.children
        if token.type == "NAME" and str(token) != "inf":
            raise self.source.error(token, f"expected a number or inf as the end of a range; got {str(token)!r}")
        value = math.inf if token.type == "NAME" else float(read_number(str(token)))
        return -value if sign else value

    def _bool(self, names: Any, sizes: Any, kind: Any) -> None:
        self._declare_each(names, "bool", lambda name: boolean(name, *self._sizes(sizes), input=_input(kind)))

    def _mask(self, names: Any, sizes: Any) -> None:
        self._declare_each(names, "mask", lambda name: mask(name, *self._sizes(sizes)))

    def _class(self, names: Any, classes: Any, sizes: Any, kind: Any) -> None:
        labels = self._labels(classes) if classes.data == "members" else None
        count = len(labels) if labels else self._whole(classes)
        options: dict[str, Any] = {"classes": labels, "input": _input(kind)}
        self._declare_each(names, "class", lambda name: categorical(name, count, shape=self._sizes(sizes), **options))

    def _labels(self, members: Any) -> list[str]:
        seen: dict[str, Token] = {}
        for member in members.children:
            token = member.children[0]
            first = seen.setdefault(label := str(member_value(token)), token)
            if first is not token:
                raise self.source.error(token, f"{label!r} is listed twice (first in line {first.line})")
        return list(seen)

    def _sizes(self, tree: Any) -> tuple[Any, ...]:
        return () if tree is None else tuple(map(self._size, tree.children))

    def _size(self, tree: Any) -> Any:
        token = tree.children[0]
        value: Any = read_number(str(token)) if token.type == "NUMBER" else self._name(token)
        if isinstance(value, Axis) or ((as_int(value) or 0) > 0):
            return value
        what = str(token) if token.type == "NUMBER" else f"{str(token)!r}, which is {describe_value(value)}"
        raise self.source.error(token, f"a size is a whole number of at least 1 or the name of an axis; got {what}")

    def _whole(self, tree: Any) -> int:
        value = self._size(tree)
        if isinstance(value, Axis):
            raise self.source.error(tree, f"expected a whole number; {value.name!r} is an axis")
        return int(value)

    # Groups of classes

    def _group(self, token: Any, owner: Any, members: Any) -> None:
        self._labels(members)  # refuses one that is listed twice
        declared = [value for value in self.names.values() if isinstance(value, Categorical)]
        known = declared if owner is None else [self._categorical(owner)]
        found = dict.fromkeys(one for member in members.children for one in self._group_members(member.children[0], known))
        self._declare(token, Group(self._checked_name(token, "group"), tuple(found)))

    def _group_members(self, token: Token, known: list[Categorical]) -> tuple[str | int, ...]:
        found = find_members(self, token, known)
        value = member_value(token)
        if found != (value,) or any(has_class(symbol, value) for symbol in known):
            return found
        if not known:
            raise self.source.error(
                token, "a group lists classes, but no class is declared above", "declare it first: class f: {...}"
            )
        labels = [label for symbol in known for label in symbol.classes or map(str, range(symbol.size))]
        groups = [name for name, other in self.names.items() if isinstance(other, Group)]
        reason = (
            f"{str(value)!r} is no class of {' or '.join(symbol.name for symbol in known)}{suggest(str(value), labels + groups)}"
        )
        raise self.source.error(token, reason, f"classes: {listed(labels)}")

    def _membership(self, token: Any, owner: Any, members: Any) -> None:
        symbol = self._categorical(owner)
        columns = [self._column(member.children[0], symbol) for member in members.children]
        rows = [[float(place in column) for column in columns] for place in range(symbol.size)]
        self._declare(token, constant(self._checked_name(token, "membership"), rows))

    def _column(self, token: Token, symbol: Categorical) -> set[int]:
        group = self.names.get(str(token))
        if not isinstance(group, Group):
            groups = [name for name, other in self.names.items() if isinstance(other, Group)]
            reason = f"expected the name of a group; got {str(token)!r}{suggest(str(token), groups)}"
            raise self.source.error(token, reason, f"groups: {listed(groups)}" if groups else "declare it first: group g = {...}")
        foreign = [member for member in group if not has_class(symbol, member)]
        if foreign:
            raise self.source.error(token, f"the group {group.name!r} has {foreign[0]!r}, which is no class of {symbol.name!r}")
        return {symbol.class_index(as_label(symbol, member)) for member in group}

    def _categorical(self, token: Token) -> Categorical:
        value = self._name(token)
        if not isinstance(value, Categorical):
            raise self.source.error(token, f"expected the name of a class; {str(token)!r} is {describe_value(value)}")
        return value

    # Names for terms and formulas, and rules

    def _constant(self, token: Any, expression: Any) -> None:
        value = self.read(expression)
        if not isinstance(value, (int, float, list)):
            remedy = "a constant is a number or a list of numbers; use let to name anything else"
            raise self.source.error(expression, f"this is {describe_value(value)}", remedy)
        self._declare(token, constant(self._checked_name(token, "constant"), value))

    def _let(self, token: Any, expression: Any) -> None:
        value = self.read(expression)
        if isinstance(value, ClassSet):
            raise self.source.error(expression, "a set of classes is named by group", f"write: group {token} = {{...}}")
        self._checked_name(token, "term or formula")
        self._declare(token, value)

    def _rule(self, token: Any, expression: Any) -> None:
        name = read_string(str(token)) if token.type == "STRING" else str(token)
        if not name:
            raise self.source.error(token, "a rule needs a name")
        if name in self.rules:
            raise self.source.error(token, f"the rule {name!r} stands in line {self.rule_lines[name]} already")
        formula = self.read_formula(expression, f"in rule {name!r}")
        if formula.shape:
            raise self.source.error(
                expression,
                f"rule {name!r} still has axes {format_shape(formula.shape)}",
                "say with .all() or .any() whether every entry must hold or at least one: (...).all()",
            )
        self.rules[name] = formula
        self.rule_lines[name] = token.line or 1


def _input(token: Token | None) -> str:
    return "logits" if token is not None and str(token) == "logits" else "probs"
