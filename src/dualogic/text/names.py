"""What the names in a text stand for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dualogic.errors import FormulaTypeError, SymbolError
from dualogic.formula.atom import Boolean, eq, ge, gt, le, lt, ne
from dualogic.formula.connective import Formula
from dualogic.formula.evidence import evidence
from dualogic.formula.function import PRINTED_FUNCTIONS, Application, apply
from dualogic.formula.inspect import has_name
from dualogic.formula.join import And, AtMost, ExactlyOne, Iff, Implies, Not, Or, Xor, level
from dualogic.formula.node import Node, walk
from dualogic.formula.number import NumberExpression, NumberTable
from dualogic.formula.shape import Axis
from dualogic.formula.symbol import ClassExpression, MaskExpression, Variable
from dualogic.formula.term import Constant, Term, as_term, constant

FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (abs, And, AtMost, ExactlyOne, Iff, Implies, Not, Or, Xor, eq, evidence, ge, gt, le, level, lt, ne)
}
"""The functions that every text may call."""


@dataclasses.dataclass(frozen=True)
class Group:
    """Several classes under one name, by name or index."""

    name: str
    members: tuple[str | int, ...]

    def __iter__(self) -> Iterator[str | int]:
        return iter(self.members)


@dataclasses.dataclass(frozen=True)
class ClassSet:
    """``{bus, "pick-up", 3}``: the tokens of classes of what stands before ``in``, or of groups of them."""

    tokens: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Function:
    """A user's function, as in ``dl.apply``; with the terms it is known to give, whose axes were declared by hand."""

    name: str
    function: Callable[..., Any]
    known: tuple[Application, ...] = ()

    def __call__(self, *terms: Any) -> Any:
        """The term ``name(*terms)``, or the table of classes."""
        if not any(isinstance(term, NumberExpression) for term in terms):
            operands = [id(as_term(term)) for term in terms]
            for application in self.known:
                if [id(operand) for operand in application.operands] == operands:
                    return application
        return apply(self.function, *terms, name=self.name)


def describe_value(value: Any) -> str:
    """What kind of thing a name stands for, or a part of a text is."""
    kinds: list[tuple[Any, str]] = [
        (Variable, "a variable"),
        (Constant, "a constant"),
        (Term, "a term"),
        (ClassExpression, "a class"),
        (NumberExpression, "a number made of classes"),
        (MaskExpression, "a mask"),
        (Boolean, "a truth value"),
        (Formula, "a formula"),
        (Axis, "an axis"),
        (Group, "a group of classes"),
        (ClassSet, "a set of classes"),
        (Function, "a function"),
        ((int, float), "a number"),
        (str, "a text in quotes"),
        (list, "a list"),
        (tuple, "a tuple"),
    ]
    return next((text for kind, text in kinds if isinstance(value, kind)), type(value).__name__)


def collect_names(symbols: Any) -> dict[str, Any]:
    """Names and what they stand for, from what a user gives as ``symbols``; see :func:`~dualogic.text.rule_set.parse`."""
    if symbols is None:
        return {}
    declared = getattr(symbols, "names", None)
    if isinstance(declared, Mapping):
        return dict(declared)
    if isinstance(symbols, Mapping):
        return {name: _named_value(name, value) for name, value in symbols.items()}
    names: dict[str, Any] = {}
    for value in _parts(symbols):
        name, meaning = _own_name(value)
        known = names.get(name, meaning)
        if isinstance(known, Function) and isinstance(meaning, Function) and known.function is meaning.function:
            meaning = Function(name, known.function, (*known.known, *meaning.known))
        elif known is not meaning:
            raise SymbolError(f"the name {name!r} stands for two things among the symbols; rename one or give a mapping")
        names[name] = meaning
    return names


def _parts(symbols: Any) -> Iterable[Any]:
    if isinstance(symbols, Node):
        return list(filter(has_name, walk(symbols)))
    if isinstance(symbols, Iterable):
        return symbols
    raise FormulaTypeError(f"symbols must be a mapping from names, a sequence of symbols or a formula; got {symbols!r}")


def _own_name(value: Any) -> tuple[str, Any]:
    if isinstance(value, Application):
        return value.name, Function(value.name, value.function, (value,))
    if isinstance(value, NumberTable):
        return value.name, Function(value.name, value.function)
    if isinstance(value, (Axis, Group, Function)) or (isinstance(value, Node) and has_name(value)):
        return str(value.name), value  # type: ignore[union-attr]
    name = getattr(value, "__name__", "<lambda>")
    if callable(value) and name != "<lambda>":
        return name, _named_value(name, value)
    raise FormulaTypeError(f"{value!r} among the symbols has no name of its own; give a mapping from names instead")


def _named_value(name: Any, value: Any) -> Any:
    if not isinstance(name, str):
        raise FormulaTypeError(f"symbols must be a mapping from names; it has the key {name!r}")
    if isinstance(value, (Node, Axis, Group, Function)) or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value
    if callable(value):
        if name in PRINTED_FUNCTIONS:
            raise SymbolError(f"a function cannot be called {name!r} in a rule, which has a meaning already")
        return Function(name, value)
    return constant(name, value)
