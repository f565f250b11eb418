"""Syntax tree to formula: each kind of tree is built by the function that Python's operator would call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dualogic.errors import DualogicError, FormulaTypeError, ParseError, suggest
from dualogic.formula.connective import Formula
from dualogic.formula.join import And, Iff, Implies, Not, Or
from dualogic.formula.node import Node
from dualogic.formula.number import NumberExpression
from dualogic.formula.symbol import ClassExpression, MaskExpression
from dualogic.formula.term import Term
from dualogic.text.comparison import Undeclared, link
from dualogic.text.names import FUNCTIONS, ClassSet, Function, Group, describe_value
from dualogic.text.source import Source, calculate, listed, read_number, read_string

if TYPE_CHECKING:
    from lark import Token, Tree

METHODS: list[tuple[type, tuple[str, ...]]] = [
    (Term, ("sum", "max", "min")),
    (Formula, ("all", "any")),
    (ClassExpression, ("isin", "probabilities")),
]
_MISTAKES = (DualogicError, ArithmeticError, TypeError, ValueError)


class Reader:
    """Builds what a syntax tree stands for, with the names that it may use; ``source`` is what an error shows."""

    def __init__(self, source: Source, names: dict[str, Any]) -> None:
        self.source = source
        self.names = names

    def read(self, tree: Tree[Token]) -> Any:
        """The formula, term, class, mask, number or list that a tree stands for; errors show its place.

        The grammar says what the parts of each kind of tree are; the method of that name gets them as its arguments.
        """
        try:
            return getattr(self, f"_{tree.data}")(*tree.children)
        except ParseError:
            raise
        except _MISTAKES as error:
            raise self.source.error(tree, str(error)) from error

    def read_formula(self, tree: Tree[Token], where: str) -> Formula:
        """As :meth:`read`, refusing anything but a formula."""
        return self._checked_formula(tree, self.read(tree), where)

    def _checked_formula(self, tree: Tree[Token], value: Any, where: str) -> Formula:
        if isinstance(value, Formula):
            return value
        remedies: list[tuple[Any, str]] = [
            (ClassExpression, "compare it with a class, as in 'f == 3'"),
            ((ClassSet, Group), "say what is in it, as in 'f in {1, 2}'"),
            (MaskExpression, "a mask says what exists: pass it as where= to .all() or .any(), or declare a bool"),
            ((Term, NumberExpression, int, float), "compare it with something, as in 'x <= 1'"),
        ]
        remedy = [text for kind, text in remedies if isinstance(value, kind)][:1]
        raise self.source.error(tree, f"expected a formula {where}; this is {describe_value(value)}", *remedy)

    # Names, numbers and lists

    def _name(self, token: Token) -> Any:
        if str(token) not in self.names:
            raise self.unknown(token)
        return self.names[str(token)]

    def unknown(self, token: Token, extra: tuple[str, ...] = ()) -> ParseError:
        """An error about a name that stands for nothing; ``extra`` are class names that would fit."""
        known = [*self.names, *extra]
        reason = f"{str(token)!r} is not declared{' and no class here' if extra else ''}{suggest(token, known)}"
        if str(token) in FUNCTIONS:
            reason = f"{str(token)!r} is a function; its arguments stand in parentheses behind it"
        none = "no names are declared; a file declares them above, as in 'bool x', and dl.parse takes them as symbols="
        notes = [f"known names: {listed(sorted(self.names))}" if self.names else none]
        owner = next((name for name, value in self.names.items() if str(token) in (getattr(value, "classes", None) or ())), None)
        if owner and not extra:
            notes.append(f"{str(token)!r} is a class of {owner}: write '{owner} is {token}', or '{owner} in {{...}}' for several")
        return self.source.error(token, reason, *notes, *([f"classes: {listed(extra)}"] if extra else []))

    def _number(self, token: Token) -> int | float:
        return read_number(str(token))

    def _string(self, token: Token) -> str:
        return read_string(str(token))

    def _none(self) -> None:
        return None

    def _list(self, *parts: Any) -> list[Any]:
        return [self.read(part) for part in parts if part is not None]

    def _tuple(self, *parts: Any) -> tuple[Any, ...]:
        return tuple(self._list(*parts))

    def _members(self, *members: Any) -> ClassSet:
        return ClassSet(tuple(member.children[0] for member in members))

    # Connectives

    def _junction(self, sign: str, join: Callable[..., Formula], *parts: Any) -> Any:
        values = [self.read(part) for part in parts]
        if isinstance(values[0], MaskExpression):
            return functools.reduce(lambda left, right: left & right if join is And else left | right, values)
        return join(*(self._checked_formula(part, value, f"beside {sign!r}") for part, value in zip(parts, values)))

    _conjunction = functools.partialmethod(_junction, "and", And)
    _ampersands = functools.partialmethod(_junction, "&", And)
    _disjunction = functools.partialmethod(_junction, "or", Or)
    _bars = functools.partialmethod(_junction, "|", Or)

    def _complement(self, *parts: Any) -> Any:
        value = self.read(parts[-1])
        if isinstance(value, MaskExpression):
            return ~value
        return Not(self._checked_formula(parts[-1], value, "behind 'not' or '~'"))

    def _implication(self, *parts: Any) -> Formula:
        return functools.reduce(Implies, [self.read_formula(part, "on either side of an implication") for part in parts])

    _shifts = _implication

    def _given(self, *parts: Any) -> Formula:
        consequent, antecedent = (self.read_formula(part, "beside 'given'") for part in parts)
        return Implies(antecedent, consequent, evidence=True)

    def _equivalence(self, *parts: Any) -> Formula:
        left, right = (self.read_formula(part, "on either side of 'iff'") for part in parts)
        return Iff(left, right)

    def _comparison(self, *parts: Any) -> Formula:
        sides = [(part, self._side(part)) for part in parts[0::2]]
        signs = [" ".join(map(str, part.children)) for part in parts[1::2]]
        links = [link(self, sign, left, right) for sign, left, right in zip(signs, sides, sides[1:])]
        return links[0] if len(links) == 1 else And(*links)

    def _side(self, tree: Any) -> Any:
        """One side of a comparison, where a name that is not declared may be that of a class."""
        if tree.data == "name" and str(tree.children[0]) not in self.names:
            return Undeclared(tree.children[0])
        return self.read(tree)

    # Terms

    def _sum(self, first: Any, *rest: Any) -> Any:
        value = self._operand(first)
        for sign, part in zip(rest[0::2], rest[1::2]):
            other = self._operand(part)
            if not (isinstance(value, list) or isinstance(other, list)) or isinstance(value, Node) or isinstance(other, Node):
                value = calculate(str(sign), value, other)
                continue
            # Python would join plain lists end to end and repeat them.
            raise FormulaTypeError(f"a list and a number or a list have no '{sign}'; one side needs a symbol")
        return value

    _product = _sum

    def _operand(self, tree: Any) -> Any:
        value = self.read(tree)
        if isinstance(value, (Term, NumberExpression, int, float, list)):
            return value
        raise self.source.error(tree, f"expected a term or a number; this is {describe_value(value)}")

    def _negative(self, *parts: Any) -> Any:
        return -self._operand(parts[-1])

    def _positive(self, *parts: Any) -> Any:
        return +self._operand(parts[-1])

    def _indexed(self, operand: Any, *items: Any) -> Any:
        value = self.read(operand)
        if not isinstance(value, (Term, Formula, ClassExpression, MaskExpression)):
            remedy = ["name it first: constant m = [...]"] if isinstance(value, list) else []
            raise self.source.error(operand, f"{describe_value(value)} has no axes to index", *remedy)
        return value[tuple(map(self.read, items))]

    def _slice(self, *parts: Any) -> slice:
        return slice(*(None if part is None else self.read(part) for part in parts))

    def _ellipsis(self) -> Any:
        return ...

    # Calls

    def _attribute(self, operand: Any, name: Token) -> Any:
        value = self._owner(operand, name)
        if name != "probabilities":
            raise self.source.error(name, f"'.{name}' needs parentheses behind it: .{name}()")
        return value.probabilities

    def _method(self, operand: Any, name: Token, given: Any) -> Any:
        value = self._owner(operand, name)
        if name == "probabilities":
            raise self.source.error(name, "'.probabilities' has no parentheses behind it")
        positional, keywords = self._arguments(given)
        if name == "isin" and len(positional) == 1 and isinstance(positional[0], (ClassSet, Group, list)):
            return link(self, "in", (operand, value), (given.children[0], positional[0]))
        return getattr(value, name)(*positional, **keywords)

    def _owner(self, operand: Any, token: Token) -> Any:
        """What stands before the dot, which has what stands behind it."""
        value = self.read(operand)
        known = next((names for kind, names in METHODS if isinstance(value, kind)), ())
        if token not in known:
            offer = f"it has {', '.join(f'.{name}' for name in known)}" if known else "it has none"
            reason = f"{describe_value(value)} has no '.{token}'{suggest(token, known)}"
            raise self.source.error(token, reason, offer)
        return value

    def _call(self, token: Token, given: Any) -> Any:
        name = str(token)
        function = FUNCTIONS.get(name, self.names.get(name))
        if function is None:
            known = [*FUNCTIONS, *(other for other, value in self.names.items() if isinstance(value, Function))]
            counts = name.lower().replace("_", "") == "atleast"
            reason = f"there is no function {name!r}{'' if counts else suggest(name, known)}"
            behind = any(name in methods for _, methods in METHODS)
            remedy = [f"write it behind what it is about: (...).{name}(...); compare numbers one by one"] if behind else []
            if counts:
                remedy = ["at least 2 of a, b and c means that at most 1 of them is false: AtMost(1, ~a, ~b, ~c)"]
            raise self.source.error(token, reason, *remedy, f"known functions: {', '.join(sorted(known))}")
        if name not in FUNCTIONS and not isinstance(function, Function):
            raise self.source.error(token, f"{name!r} is {describe_value(function)}, not a function; index it with [...]")
        positional, keywords = self._arguments(given)
        return function(*positional, **keywords)

    def _arguments(self, tree: Any) -> tuple[list[Any], dict[str, Any]]:
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for part in tree.children:
            if part is None:
                continue
            if part.data != "keyword":
                if keywords:
                    raise self.source.error(part, "an argument without a name cannot follow one with a name")
                positional.append(self.read(part))
                continue
            token, value = part.children
            if str(token) in keywords:
                raise self.source.error(token, f"the argument {str(token)!r} is given twice")
            keywords[str(token)] = self.read(value)
        return positional, keywords
