"""Which nodes can be computed together.

Two nodes have the same signature if they differ only in constants, in the positions that they index, in the symbols (of
one kind and shape) that they read, and in the direction and margin of their comparisons. The compiler evaluates all nodes
of one signature as one tensor operation, with what differs gathered into a vector: that is how ten thousand separate
clauses become a handful of operations.
"""

from __future__ import annotations

from typing import Any

from dualogic.formula.atom import Boolean, BooleanIndex, ClassIn, Comparison
from dualogic.formula.connective import Complement, Formula, Level, Quantifier, Resting
from dualogic.formula.evidence import Evidence
from dualogic.formula.function import Application
from dualogic.formula.inspect import INDEXED
from dualogic.formula.node import Node, children, walk
from dualogic.formula.relation import ClassRelation
from dualogic.formula.symbol import Categorical, Mask, Variable
from dualogic.formula.term import Constant, MatrixProduct, Number, Reduction

COMPARISON_KIND = {"<=": "order", "<": "order", ">=": "order", ">": "order", "==": "equal", "!=": "unequal"}


class Signatures:
    """Small integers that stand for signatures, assigned as nodes come in."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._of: dict[int, int] = {}

    def add(self, *roots: Node) -> None:
        """Assign signatures to all nodes below ``roots``."""
        for node in walk(*roots):
            if id(node) not in self._of:
                key = (type(node).__name__, *self._describe(node))
                if isinstance(node, Level):
                    self._of[id(node)] = self._of[id(node.operand)]
                elif isinstance(node, Complement) and isinstance(node.operand, (Boolean, BooleanIndex)):
                    # The sign of a Boolean literal is one of the things gathered into a vector.
                    self._of[id(node)] = self._of[id(node.operand)]
                else:
                    self._of[id(node)] = self._numbers.setdefault(key, len(self._numbers))

    def __getitem__(self, node: Node) -> int:
        return self._of[id(node)]

    def _describe(self, node: Any) -> tuple[Any, ...]:
        below = tuple(self._of[id(child)] for child in children(node))
        if isinstance(node, Number):
            return ()
        if isinstance(node, (Constant, Variable, Mask)):
            return (node.sizes,)
        if isinstance(node, Boolean):
            return (node.sizes, node.input)
        if isinstance(node, Categorical):
            return (node.sizes, node.size, node.input)
        if isinstance(node, INDEXED):
            return (below, tuple(("at",) if item[0] == "at" else item for item in node.items))
        if isinstance(node, MatrixProduct):
            return (below[0], id(node.right))
        if isinstance(node, Reduction):
            return (below, node.operation, node.dims)
        if isinstance(node, Application):
            return (id(node),)
        if isinstance(node, Comparison):
            return (below, COMPARISON_KIND[node.operation])
        if isinstance(node, ClassIn):
            return (below, len(node.classes) > 1)
        if isinstance(node, ClassRelation):
            return (tuple(self._of[id(leaf)] for leaf in node.leaves), node.operation, node.steps, node.sides)
        if isinstance(node, Quantifier):
            return (below, node.operation, node.dims, node.where is None, node.tied)
        if isinstance(node, (Evidence, Resting)):
            return (below, node.share)
        return (below, getattr(node, "operation", None))


def strip_levels(formula: Formula) -> Formula:
    """The formula below any :class:`Level` markers."""
    while isinstance(formula, Level):
        formula = formula.operand
    return formula
