"""Which nodes can be computed together.

Two nodes have the same signature if they differ only in constants, in the positions that they index, in the symbols (of
one kind and shape) that they read, and in the direction and margin of their comparisons. The compiler evaluates all nodes
of one signature as one tensor operation, with what differs gathered into a vector: that is how ten thousand separate
clauses become a handful of operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualogic.formula.atom import Boolean, BooleanIndex, ClassIn, Comparison
from dualogic.formula.connective import Complement, Formula, Junction, Level, Quantifier, Resting
from dualogic.formula.evidence import Evidence
from dualogic.formula.function import Application
from dualogic.formula.inspect import INDEXED
from dualogic.formula.node import Node, children, walk
from dualogic.formula.relation import ClassRelation
from dualogic.formula.symbol import Categorical, Mask, Variable
from dualogic.formula.term import Constant, MatrixProduct, Reduction
from dualogic.normalize.nnf import find_alternatives, strip_levels


def adds_up(node: Formula) -> bool:
    """Whether the beliefs in all operands of an ``or`` add up, and not those in two: where each denies something, as in "not all
    three", and where more than two name different classes of one symbol, as those of ``f == g`` do.
    """
    if isinstance(node, Quantifier):
        return node.operation == "any" and isinstance(strip_levels(node.operand), Complement)
    if not isinstance(node, Junction) or node.operation != "|" or len(node.operands) <= 2:
        return False
    operands = [strip_levels(operand) for operand in node.operands]
    if all(isinstance(operand, Complement) for operand in operands):
        return True
    named: list[dict[Any, tuple[int, ...]]] = []
    for operand in operands:
        parts = operand.operands if isinstance(operand, Junction) and operand.operation == "&" else (operand,)
        named.append({part.operand: part.classes for part in parts if isinstance(part, ClassIn)})
    for symbol in named[0]:
        classes = [label for found in named for label in found.get(symbol, ())]
        if all(symbol in found for found in named) and len({*classes}) == len(classes):
            return True
    return False


COMPARISON_KIND = {"<=": "order", "<": "order", ">=": "order", ">": "order", "==": "equal", "!=": "unequal"}
_DETAILS: dict[type, Callable[[Any], Any]] = {
    **dict.fromkeys((Constant, Variable, Mask), lambda node: node.sizes),
    Boolean: lambda node: (node.sizes, node.input),
    Categorical: lambda node: (node.sizes, node.size, node.input),
    **dict.fromkeys(INDEXED, lambda node: tuple(("at",) if item[0] == "at" else item for item in node.items)),
    MatrixProduct: lambda node: id(node.right),
    Reduction: lambda node: (node.operation, node.dims),
    Application: id,
    Comparison: lambda node: COMPARISON_KIND[node.operation],
    ClassIn: lambda node: len(node.classes) > 1,
    ClassRelation: lambda node: (node.operation, node.steps, node.sides),
    Quantifier: lambda node: (node.operation, node.dims, node.where is None, node.tied, adds_up(node)),
    Evidence: lambda node: node.share,
    Junction: lambda node: (node.operation, adds_up(node)),
    Resting: lambda node: (node.share, node.turned, node.firm, node.mutual),
}
"""What must be the same of two nodes beside what is below them, by their type; of any other type the operation, if it has one."""


class Signatures:
    """Small integers that stand for signatures, assigned as nodes come in."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._of: dict[int, int] = {}

    def add(self, *roots: Node) -> None:
        """Assign signatures to all nodes below ``roots``."""
        nodes = list(walk(*roots))
        firm = [node.consequent for node in nodes if isinstance(node, Resting) and node.firm]
        decided = {id(alternative) for consequent in firm for alternative in find_alternatives(consequent)}
        for node in nodes:
            if id(node) not in self._of:
                below = tuple(self._of[id(child)] for child in children(node))
                describe = _DETAILS.get(type(node))
                detail = getattr(node, "operation", None) if describe is None else describe(node)
                key = (type(node), below, detail, id(node) in decided)
                if isinstance(node, Level):
                    self._of[id(node)] = self._of[id(node.operand)]
                elif isinstance(node, Complement) and isinstance(node.operand, (Boolean, BooleanIndex)):
                    # The sign of a Boolean literal is one of the things gathered into a vector.
                    self._of[id(node)] = self._of[id(node.operand)]
                else:
                    self._of[id(node)] = self._numbers.setdefault(key, len(self._numbers))

    def __getitem__(self, node: Node) -> int:
        return self._of[id(node)]
