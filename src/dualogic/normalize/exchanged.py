"""Rules that say the same of one thing and of another, as that who is related to somebody is so the other way round."""

from __future__ import annotations

from typing import Any

from dualogic.formula.atom import ClassIn
from dualogic.formula.connective import Formula
from dualogic.formula.inspect import INDEXED, SYMBOLS
from dualogic.formula.node import Node, children, map_fields, walk


def is_exchanged(antecedent: Formula, consequent: Formula) -> bool:
    """Whether two formulas say the same of outputs of one kind.

    That is the same entry or class of two symbols that are declared alike, or one symbol at other places along an axis.

    Of two Booleans by themselves nothing tells: ``rain >> wet`` looks as ``xy >> yx`` does.

    Example:
        >>> import dualogic as dl
        >>> xy, yx, on = dl.boolean("xy", 3), dl.boolean("yx", 3), dl.boolean("on", 4)
        >>> is_exchanged(xy[2], yx[2]), is_exchanged(on[:-1], on[1:])
        (True, True)
        >>> is_exchanged(xy[0], yx[2]), is_exchanged(xy, yx), is_exchanged(on[0], on[1])
        (False, False, False)
    """
    numbers: dict[Any, int] = {}
    if antecedent is consequent or _outline(antecedent, numbers) != _outline(consequent, numbers):
        return False
    told = any(isinstance(node, ClassIn) or (isinstance(node, INDEXED) and _places(node)) for node in walk(antecedent))
    return told or antecedent.symbols == consequent.symbols


def _outline(formula: Formula, numbers: dict[Any, int]) -> int:
    """A number for what a formula says, whatever the names of its symbols, and the ranges that it reads of their axes."""
    found: dict[int, int] = {}
    for node in walk(formula):
        below = tuple(found[id(child)] for child in children(node))
        indexed = isinstance(node, INDEXED)
        said = _places(node) if indexed else map_fields(node.fields(), Node, lambda child: None)
        if isinstance(node, SYMBOLS):
            said = tuple(value for name, value in zip(node._names, said) if name != "name")
        found[id(node)] = below[0] if indexed and not said else numbers.setdefault((type(node), said, below), len(numbers))
    return found[id(formula)]


def _places(node: Any) -> tuple[Any, ...]:
    return tuple(item for item in node.items if item[0] == "at")
