"""What no label shows, as a user says it; and whether a formula asks for it."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from dualogic.errors import OptionError, SymbolError, suggest
from dualogic.formula.atom import BooleanExpression, ClassIn, Comparison
from dualogic.formula.connective import Complement, Formula, Resting
from dualogic.formula.evidence import Evidence
from dualogic.formula.inspect import SYMBOLS
from dualogic.formula.node import Node, children, walk
from dualogic.formula.symbol import Categorical, Mask

Unlabelled = tuple[tuple[str, tuple[int, ...] | None], ...]
"""Names of symbols with the classes that no label shows; ``None`` for all of a symbol."""


def check_unlabelled(told: Any) -> dict[str, bool | tuple[Any, ...]]:
    """What a user says, copied: ``True`` or classes by the name of a symbol; what is empty says nothing and is left out."""
    if not isinstance(told, Mapping):
        raise OptionError(
            f"unlabelled maps names of symbols to the classes that no label shows, as in {{'f': [6]}}, or to True; got {told!r}"
        )
    found: dict[str, bool | tuple[Any, ...]] = {}
    for name, classes in told.items():
        classes = classes.tolist() if hasattr(classes, "tolist") else classes  # of an array or a tensor
        if not isinstance(classes, bool) and (isinstance(classes, str) or not isinstance(classes, Iterable)):
            raise OptionError(f"unlabelled[{name!r}] must be a list of classes, as in [6], or True for all; got {classes!r}")
        found[name] = classes if isinstance(classes, bool) else tuple(classes)
    return {name: classes for name, classes in found.items() if classes}


def find_unlabelled(told: Mapping[str, bool | tuple[Any, ...]], symbols: Mapping[str, Node]) -> Unlabelled:
    """The same, from :func:`check_unlabelled`, for the symbols of some rules, with classes as numbers."""
    known = {name: symbol for name, symbol in symbols.items() if not isinstance(symbol, Mask)}
    found: list[tuple[str, tuple[int, ...] | None]] = []
    for name, classes in told.items():
        if (symbol := known.get(name)) is None:
            raise SymbolError(
                f"unlabelled names {name!r}, but the rules are about {', '.join(map(repr, known))}{suggest(str(name), known)}"
            )
        if isinstance(classes, bool):
            found.append((name, None))
        elif isinstance(symbol, Categorical):
            found.append((name, tuple(sorted({_class_index(symbol, value) for value in classes}))))
        else:
            raise OptionError(f"{name!r} has no classes; say unlabelled={{{name!r}: True}} if no label shows it")
    return tuple(sorted(found, key=lambda entry: entry[0]))


def describe_unlabelled(unlabelled: Unlabelled) -> str:
    """In words, the same for what means the same."""
    return "; ".join(name if classes is None else f"{name}: {', '.join(map(str, classes))}" for name, classes in unlabelled)


def _class_index(symbol: Categorical, value: Any) -> int:
    try:
        return symbol.class_index(value)
    except SymbolError as error:
        raise SymbolError(f"unlabelled: {error}{suggest(str(value), symbol.classes or ())}") from None


class Asking:
    """Whether formulas ask for something that no label shows.

    A formula asks for the classes that it names without a negation, whether alone, in a set or among alternatives; a negation
    that leaves only such classes asks for them too. Of a symbol without any labels, every claim counts, and so does a comparison
    of the probabilities of a class expression some of whose classes have none. What is evidence is read, not asked for.
    """

    def __init__(self, unlabelled: Unlabelled) -> None:
        self.unlabelled = dict(unlabelled)
        self._found = functools.cache(self._find)

    def __call__(self, formula: Formula, positive: bool = True) -> bool:
        """Answer for a formula in negation normal form; for its negation if not ``positive``."""
        return bool(self.unlabelled) and self._found(formula, positive)

    def _find(self, node: Formula, positive: bool) -> bool:
        if isinstance(node, Evidence):
            return node.share != 1.0 and self(node.operand, positive)
        if isinstance(node, Complement):
            return self(node.operand, not positive)
        if isinstance(node, Resting):
            return (node.share != 1.0 and self(node.antecedent, not positive)) or self(node.consequent, positive)
        if isinstance(node, ClassIn):
            symbol = node.operand.symbol
            hidden = self.unlabelled.get(symbol.name, ())
            if hidden is None:
                return True
            return bool({*hidden} & {*node.classes}) if positive else {*range(symbol.size)} <= {*hidden, *node.classes}
        if isinstance(node, BooleanExpression):
            return node.symbol.name in self.unlabelled
        if isinstance(node, Comparison):
            return any(isinstance(part, SYMBOLS) and part.name in self.unlabelled for part in walk(node))
        return any(self(part, positive) for part in children(node) if isinstance(part, Formula))
