"""Rules as the text of a rule file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from dualogic.errors import SymbolError
from dualogic.formula.atom import Boolean
from dualogic.formula.connective import Formula
from dualogic.formula.function import Application
from dualogic.formula.inspect import collect_symbols
from dualogic.formula.node import walk
from dualogic.formula.printing import format_number, format_rows, to_text
from dualogic.formula.shape import Axis, Ragged
from dualogic.formula.symbol import Categorical, Mask, Variable
from dualogic.formula.term import Constant
from dualogic.text.names import Group

Ranges = Mapping[str, tuple[float, float]]


def collect_declared(formulas: Iterable[Formula]) -> dict[str, Any]:
    """What a file has to declare before it can state formulas: their axes, symbols and named constants, by name."""
    nodes = walk(*formulas)
    symbols = collect_symbols(nodes)
    axes = {size.axis.name: size.axis for symbol in symbols.values() for size in symbol.shape if isinstance(size, Ragged)}
    constants = {node.name: node for node in nodes if isinstance(node, Constant) and node.name is not None}
    for name in axes.keys() & (symbols.keys() | constants.keys()):
        raise SymbolError(f"{name!r} names both an axis and something else, which a rule file cannot tell apart; rename one")
    return {**axes, **symbols, **constants}


def write_rules(rules: Mapping[str, Formula], names: Mapping[str, Any], ranges: Ranges) -> str:
    """The text of a rule file: it declares axes, symbols with their ranges, constants and groups, and states rules."""
    for name, formula in rules.items():
        for node in walk(formula):
            if isinstance(node, Application):
                raise SymbolError(
                    f"rule {name!r} calls the function {node.name!r}, which a rule file cannot hold: keep the rule in Python, or "
                    f"write the file by hand and give the function to dl.load_rules(path, symbols=[...])"
                )
    axes = [value for value in names.values() if isinstance(value, Axis)]
    rest = [value for value in names.values() if not isinstance(value, Axis)]
    declared = [line for value in (*axes, *rest) for line in _declaration(value, ranges)]
    stated = [f"rule {_word(name)}: {to_text(formula, None)}" for name, formula in rules.items()]
    return "\n".join([*declared, "", *stated, ""])


def _declaration(value: Any, ranges: Ranges) -> list[str]:
    if isinstance(value, Axis):
        return [f"axis {value.name}: max {value.max}"]
    if isinstance(value, Group):
        return [
            f"group {value.name} = {{{', '.join(_word(member) if isinstance(member, str) else str(member) for member in value)}}}"
        ]
    if isinstance(value, Constant) and value.name is not None:
        return [f"constant {value.name} = {format_rows(value.rows())}"]
    if isinstance(value, Variable):
        bounds = f" in [{', '.join(map(_bound, ranges[value.name]))}]" if value.name in ranges else ""
        return [f"var {value.name}{_sizes(value, ': ')}{bounds}"]
    if isinstance(value, Mask):
        return [f"mask {value.name}{_sizes(value, ': ')}"]
    source = " from logits" if isinstance(value, (Categorical, Boolean)) and value.input == "logits" else ""
    if isinstance(value, Categorical):
        classes = f"{{{', '.join(map(_word, value.classes))}}}" if value.classes else value.size
        return [f"class {value.name}: {classes}{_sizes(value, ' for each ')}{source}"]
    return [f"bool {value.name}{_sizes(value, ': ')}{source}"] if isinstance(value, Boolean) else []


def _sizes(symbol: Any, before: str) -> str:
    for size in symbol.shape:
        if isinstance(size, Ragged) and size.trim:
            raise SymbolError(f"{symbol.name!r} has an axis of length {size!r}, which a rule file cannot declare")
    return before + ", ".join(map(str, symbol.shape)) if symbol.shape else ""


def _word(text: str) -> str:
    return text if text.isascii() and text.isidentifier() else json.dumps(text, ensure_ascii=False)


def _bound(value: float) -> str:
    return format_number(float(value)) if math.isfinite(value) else "inf" if value > 0 else "-inf"
