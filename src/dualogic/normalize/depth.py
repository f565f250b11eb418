"""How deep a formula may be for passes that follow it down by recursion."""

from __future__ import annotations

from typing import Final

from dualogic.errors import SizeError
from dualogic.formula.connective import Formula
from dualogic.formula.node import children, walk

MOST: Final = 120
"""Levels of connectives: a pass takes three to five of Python's thousand frames for each."""


def check_depth(formula: Formula) -> None:
    """Refuse a formula that is nested more deeply than :data:`MOST`."""
    depths: dict[int, int] = {}
    for node in walk(formula):
        below = max((depths[id(child)] for child in children(node)), default=0)
        depths[id(node)] = below + isinstance(node, Formula)
    if depths[id(formula)] > MOST:
        raise SizeError(
            f"a formula can be nested {MOST} deep, and this one is {depths[id(formula)]:,} deep: {formula.brief()}. Write a "
            f"chain of one connective without levels, as in a & b & c, or state its parts as rules of their own"
        )
