"""Syntax tree to formula: each kind of tree is built by the function that Python's operator would call."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from dualogic.errors import DualogicError, ParseError, suggest
from dualogic.formula.connective import Formula
from dualogic.formula.join import And, Iff, Implies, Not, Or
from dualogic.formula.node import Node
from dualogic.formula.number import NumberExpression
from dualogic.formula.symbol import ClassExpression, MaskExpression
from dualogic.formula.term import Term
from dualogic.text.comparison import ClassSet, Undeclared, link
from dualogic.text.literals import calculate, read_number, read_string
from dualogic.text.names import FUNCTIONS, Function, Group, describe_value
from dualogic.text.source import Source, listed

if TYPE_CHECKING:
    from lark import Token, Tree

METHODS: list[tuple[type, tuple[str, ...]]] = [
    (Term, ("sum", "max", "min")),
    (Formula, ("all", "any")),
    (ClassExpression, ("isin", "probabilities")),
]
_MISTAKES = (DualogicError, ArithmeticError, TypeError, ValueError)


class Reader:
    """Builds what a syntax tree stands for.

    Args:
        source: what an error shows.
        names: what the names stand for.
    """

    def __init__(self, source: Source, names: Mapping[str, Any]) -> None:
        self.source = source
        self.names = names

    def read(self, tree: Tree[Token]) -> Any:
        """The formula, term, class, mask, number or list that a tree stands for; errors show its place."""
        try:
            return getattr(self, f"_{tree.data}")(tree)
        except ParseError:
            raise
        except _MISTAKES as error:
            raise self.source.error(tree, str(error)) from error

    def read_formula(self, tree: Tree[Token], where: str) -> Formula:
        """As :meth:`read`, refusing anything but a formula."""
        value = self.read(tree)
        if not isinstance(value, Formula):
            raise self._unfit(tree, value, where)
        return value

    def _unfit(self, tree: Tree[Token], value: Any, where: str) -> ParseError:
        remedies: list[tuple[Any, str]] = [
            (ClassExpression, "compare it with a class, as in 'f == 3'"),
            (MaskExpression, "a mask says what exists: pass it as where= to .all() or .any(), or declare a bool"),
            ((Term, NumberExpression, int, float), "compare it with something, as in 'x <= 1'"),
        ]
        remedy = [text for kind, text in remedies if isinstance(value, kind)][:1]
        return self.source.error(tree, f"expected a formula {where}; this is {describe_value(value)}", *remedy)

    # Names, numbers and lists

    def _name(self, tree: Tree[Token]) -> Any:
        token = cast("Token", tree.children[0])
        if str(token) not in self.names:
            raise self.unknown(token)
        return self.names[str(token)]

    def unknown(self, token: Token, extra: tuple[str, ...] = ()) -> ParseError:
        """An error about a name that stands for nothing; ``extra`` are class names that would fit."""
        known = [*self.names, *extra]
        reason = f"{str(token)!r} is not declared{' and no class here' if extra else ''}{suggest(token, known)}"
        if str(token) in FUNCTIONS:
            reason = f"{str(token)!r} is a function; its arguments stand in parentheses behind it"
        notes = [f"known names: {listed(sorted(self.names))}" if self.names else "no names are declared; give them as symbols="]
        return self.source.error(token, reason, *notes, *([f"classes: {listed(extra)}"] if extra else []))

    def _number(self, tree: Tree[Token]) -> int | float:
        return read_number(str(tree.children[0]))

    def _string(self, tree: Tree[Token]) -> str:
        return read_string(str(tree.children[0]))

    def _none(self, tree: Tree[Token]) -> None:
        return None

    def _list(self, tree: Tree[Token]) -> list[Any]:
        return [self.read(cast("Tree[Token]", child)) for child in tree.children if child is not None]

    def _tuple(self, tree: Tree[Token]) -> tuple[Any, ...]:
        return tuple(self._list(tree))

    def _members(self, tree: Tree[Token]) -> ClassSet:
        tokens = [cast("Token", cast("Tree[Token]", member).children[0]) for member in tree.children]
        return ClassSet(tuple(tokens))

    # Connectives

    def _conjunction(self, tree: Tree[Token]) -> Any:
        return self._junction(tree, "and", And)

    def _ampersands(self, tree: Tree[Token]) -> Any:
        return self._junction(tree, "&", And)

    def _disjunction(self, tree: Tree[Token]) -> Any:
        return self._junction(tree, "or", Or)

    def _bars(self, tree: Tree[Token]) -> Any:
        return self._junction(tree, "|", Or)

    def _junction(self, tree: Tree[Token], sign: str, join: Any) -> Any:
        trees = cast("list[Tree[Token]]", tree.children)
        values = [self.read(child) for child in trees]
        if isinstance(values[0], MaskExpression):
            return functools.reduce(lambda left, right: left & right if join is And else left | right, values)
        for child, value in zip(trees, values):
            if not isinstance(value, Formula):
                raise self._unfit(child, value, f"beside {sign!r}")
        return join(*values)

    def _complement(self, tree: Tree[Token]) -> Any:
        child = cast("Tree[Token]", tree.children[-1])
        value = self.read(child)
        if isinstance(value, MaskExpression):
            return ~value
        if not isinstance(value, Formula):
            raise self._unfit(child, value, "behind 'not' or '~'")
        return Not(value)

    def _implication(self, tree: Tree[Token]) -> Formula:
        parts = [self.read_formula(cast("Tree[Token]", child), "on either side of an implication") for child in tree.children]
        return functools.reduce(Implies, parts)

    _shifts = _implication

    def _given(self, tree: Tree[Token]) -> Formula:
        consequent, antecedent = (self.read_formula(cast("Tree[Token]", child), "beside 'given'") for child in tree.children)
        return Implies(antecedent, consequent, evidence=True)

    def _equivalence(self, tree: Tree[Token]) -> Formula:
        left, right = (self.read_formula(cast("Tree[Token]", child), "on either side of 'iff'") for child in tree.children)
        return Iff(left, right)

    def _comparison(self, tree: Tree[Token]) -> Formula:
        trees = cast("list[Tree[Token]]", tree.children)
        values = [self._side(child) for child in trees[0::2]]
        signs = [" ".join(map(str, child.children)) for child in trees[1::2]]
        links = [
            link(self, sign, (trees[2 * place], values[place]), (trees[2 * place + 2], values[place + 1]))
            for place, sign in enumerate(signs)
        ]
        return links[0] if len(links) == 1 else And(*links)

    def _side(self, tree: Tree[Token]) -> Any:
        """One side of a comparison, where a name that is not declared may be that of a class."""
        if tree.data == "name" and str(tree.children[0]) not in self.names:
            return Undeclared(cast("Token", tree.children[0]))
        return self.read(tree)

    # Terms

    def _sum(self, tree: Tree[Token]) -> Any:
        first, *rest = cast("list[Any]", tree.children)
        value = self._operand(first)
        for sign, child in zip(rest[0::2], rest[1::2]):
            other = self._operand(child)
            if not (isinstance(value, list) or isinstance(other, list)) or isinstance(value, Node) or isinstance(other, Node):
                value = calculate(str(sign), value, other)
                continue
            # Python would join plain lists end to end and repeat them.
            raise self.source.error(tree, f"a list and a number or a list have no '{sign}'; one side needs a symbol")
        return value

    _product = _sum

    def _operand(self, tree: Tree[Token]) -> Any:
        value = self.read(tree)
        if isinstance(value, (Term, NumberExpression, int, float, list)):
            return value
        raise self.source.error(tree, f"expected a term or a number; this is {describe_value(value)}")

    def _negative(self, tree: Tree[Token]) -> Any:
        return -self._operand(cast("Tree[Token]", tree.children[-1]))

    def _positive(self, tree: Tree[Token]) -> Any:
        return +self._operand(cast("Tree[Token]", tree.children[-1]))

    def _indexed(self, tree: Tree[Token]) -> Any:
        operand, *items = cast("list[Tree[Token]]", tree.children)
        value = self.read(operand)
        if not isinstance(value, (Term, Formula, ClassExpression, MaskExpression)):
            remedy = ["name it first: constant m = [...]"] if isinstance(value, list) else []
            raise self.source.error(operand, f"{describe_value(value)} has no axes to index", *remedy)
        return value[tuple(map(self.read, items))]

    def _slice(self, tree: Tree[Token]) -> slice:
        return slice(*(None if child is None else self.read(cast("Tree[Token]", child)) for child in tree.children))

    def _ellipsis(self, tree: Tree[Token]) -> Any:
        return ...

    # Calls

    def _attribute(self, tree: Tree[Token]) -> Any:
        value, name = self._member(tree)
        if name != "probabilities":
            raise self.source.error(tree.children[1], f"'.{name}' needs parentheses behind it: .{name}()")
        return value.probabilities

    def _method(self, tree: Tree[Token]) -> Any:
        value, name = self._member(tree)
        if name == "probabilities":
            raise self.source.error(tree.children[1], "'.probabilities' has no parentheses behind it")
        positional, keywords = self._arguments(cast("Tree[Token]", tree.children[2]))
        if name == "isin" and len(positional) == 1 and isinstance(positional[0], (ClassSet, Group)):
            return link(self, "in", (tree, value), (cast("Tree[Token]", tree.children[2]), positional[0]))
        return getattr(value, name)(*positional, **keywords)

    def _member(self, tree: Tree[Token]) -> tuple[Any, str]:
        value, token = self.read(cast("Tree[Token]", tree.children[0])), cast("Token", tree.children[1])
        known = next((names for kind, names in METHODS if isinstance(value, kind)), ())
        if token not in known:
            offer = f"it has {', '.join(f'.{name}' for name in known)}" if known else "it has none"
            reason = f"{describe_value(value)} has no '.{token}'{suggest(token, known)}"
            raise self.source.error(token, reason, offer)
        return value, str(token)

    def _call(self, tree: Tree[Token]) -> Any:
        token = cast("Token", tree.children[0])
        name = str(token)
        function = FUNCTIONS.get(name, self.names.get(name))
        if function is None:
            known = [*FUNCTIONS, *(other for other, value in self.names.items() if isinstance(value, Function))]
            reason = f"there is no function {name!r}{suggest(name, known)}"
            behind = any(name in methods for _, methods in METHODS)
            remedy = [f"write it behind what it is about: (...).{name}(...)"] if behind else []
            raise self.source.error(token, reason, *remedy, f"known functions: {', '.join(sorted(known))}")
        if name not in FUNCTIONS and not isinstance(function, Function):
            raise self.source.error(token, f"{name!r} is {describe_value(function)}, not a function; index it with [...]")
        positional, keywords = self._arguments(cast("Tree[Token]", tree.children[1]))
        return function(*positional, **keywords)

    def _arguments(self, tree: Tree[Token]) -> tuple[list[Any], dict[str, Any]]:
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for child in cast("list[Tree[Token]]", tree.children):
            if child is None:
                continue
            if child.data != "keyword":
                if keywords:
                    raise self.source.error(child, "an argument without a name cannot follow one with a name")
                positional.append(self.read(child))
                continue
            token, value = cast("Token", child.children[0]), cast("Tree[Token]", child.children[1])
            if str(token) in keywords:
                raise self.source.error(token, f"the argument {str(token)!r} is given twice")
            keywords[str(token)] = self.read(value)
        return positional, keywords
