"""Questions about formulas: which symbols they contain."""

from __future__ import annotations

from collections.abc import Iterable

from dualogic.errors import SymbolError
from dualogic.formula.atom import Boolean
from dualogic.formula.node import Node
from dualogic.formula.shape import Axis, Ragged
from dualogic.formula.symbol import Categorical, Mask, Variable

SYMBOLS = (Variable, Categorical, Boolean, Mask)


def collect_symbols(nodes: Iterable[Node]) -> dict[str, Node]:
    """The symbols among ``nodes`` by name; two different ones of the same name are refused."""
    symbols: dict[str, Node] = {}
    axes: dict[str, Axis] = {}
    for node in nodes:
        if not isinstance(node, SYMBOLS):
            continue
        known = symbols.setdefault(node.name, node)
        if known is not node:
            raise SymbolError(
                f"the name {node.name!r} is declared twice with different meanings: {describe(known)} and {describe(node)}; "
                f"rename one"
            )
        for size in node.shape:
            if isinstance(size, Ragged) and axes.setdefault(size.axis.name, size.axis) != size.axis:
                raise SymbolError(f"the axis {size.axis.name!r} is declared twice with different maximal lengths")
    return symbols


def describe(symbol: Node) -> str:
    """A declaration as the user would write it."""
    if isinstance(symbol, Categorical):
        options = f", shape={symbol.sizes}" if symbol.sizes else ""
        return f"categorical({symbol.name!r}, {symbol.size}{options}, input={symbol.input!r})"
    kind = {Variable: "var", Boolean: "boolean", Mask: "mask"}[type(symbol)]  # type: ignore[index]
    sizes = "".join(f", {size!r}" for size in symbol.sizes)  # type: ignore[attr-defined]
    options = f", input={symbol.input!r}" if isinstance(symbol, Boolean) else ""
    return f"{kind}({symbol.name!r}{sizes}{options})"  # type: ignore[attr-defined]
