"""Questions about formulas: which names they contain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dualogic.errors import SymbolError
from dualogic.formula.atom import Boolean, BooleanIndex
from dualogic.formula.function import PRINTED_FUNCTIONS, Application
from dualogic.formula.node import Node
from dualogic.formula.number import NumberTable
from dualogic.formula.shape import Axis, Ragged, shorten
from dualogic.formula.symbol import Categorical, ClassIndex, Mask, MaskIndex, Variable
from dualogic.formula.term import Constant, Index

SYMBOLS = (Variable, Categorical, Boolean, Mask)
INDEXED = (Index, ClassIndex, BooleanIndex, MaskIndex)


def has_name(node: Any) -> bool:
    """Whether a node has a name of its own: a symbol, a named constant or a user's function."""
    return getattr(node, "name", None) is not None and not (isinstance(node, NumberTable) and node.name in PRINTED_FUNCTIONS)


def collect_symbols(nodes: Iterable[Node]) -> dict[str, Node]:
    """The symbols among ``nodes`` by name; two different ones of the same name are refused."""
    symbols: dict[str, Node] = {}
    names: dict[str, Any] = {}
    axes: dict[str, Axis] = {}
    for node in filter(has_name, nodes):
        meaning: Any = node.function if isinstance(node, (Application, NumberTable)) else node
        name: str = node.name  # type: ignore[attr-defined]
        known = names.setdefault(name, meaning)
        if known is not meaning and (isinstance(known, Node) or isinstance(meaning, Node) or known != meaning):
            raise SymbolError(
                f"the name {name!r} is declared twice with different meanings: {describe(known)} and {describe(meaning)}; "
                f"rename one"
            )
        if not isinstance(node, SYMBOLS):
            continue
        symbols[name] = node
        for size in node.shape:
            if isinstance(size, Ragged) and axes.setdefault(size.axis.name, size.axis) != size.axis:
                raise SymbolError(f"the axis {size.axis.name!r} is declared twice with different maximal lengths")
    return symbols


def describe(symbol: Any) -> str:
    """A declaration as the user would write it."""
    if not isinstance(symbol, Node):
        return f"the function {symbol!r}"
    if isinstance(symbol, Constant):
        return f"constant({symbol.name!r}, {shorten(str(symbol.rows()), 60)})"
    if isinstance(symbol, Categorical):
        options = f", shape={symbol.sizes}" if symbol.sizes else ""
        options += f", classes={shorten(str(list(symbol.classes)), 60)}" if symbol.classes else ""
        return f"categorical({symbol.name!r}, {symbol.size}{options}, input={symbol.input!r})"
    kind = {Variable: "var", Boolean: "boolean", Mask: "mask"}[type(symbol)]
    sizes = "".join(f", {size!r}" for size in symbol.sizes)  # type: ignore[attr-defined]
    options = f", input={symbol.input!r}" if isinstance(symbol, Boolean) else ""
    return f"{kind}({symbol.name!r}{sizes}{options})"  # type: ignore[attr-defined]
