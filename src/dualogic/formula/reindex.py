"""Index a whole formula by pushing new axes and fixed positions down into its terms."""

from __future__ import annotations

from typing import Any

from dualogic.formula.atom import BooleanExpression
from dualogic.formula.connective import Formula, Quantifier
from dualogic.formula.indexing import items_to_key
from dualogic.formula.node import Node, map_fields
from dualogic.formula.relation import ClassRelation
from dualogic.formula.shape import WHOLE, Item, Shape

NEW: Item = ("new",)


def reindex(node: Any, items: tuple[Item, ...]) -> Any:
    """``node[items]`` for a formula, or a term, class or mask in it: ``WHOLE``, ``NEW`` or ``("at", position)`` for each axis.

    Of more items than a part has axes the last ones count, as it is broadcast against the whole from the right.
    """
    items = _fitting(node.shape, items)
    if all(item == WHOLE for item in items):
        return node
    if isinstance(node, BooleanExpression) or not isinstance(node, Formula):
        return node[items_to_key(items)]
    if isinstance(node, Quantifier):
        return _reindex_quantifier(node, items)
    if isinstance(node, ClassRelation):
        return ClassRelation(node.operation, *node.rebuild([reindex(leaf, items) for leaf in node.leaves]))
    return type(node)(*map_fields(node.fields(), Node, lambda part: reindex(part, items)))


def _fitting(shape: Shape, items: tuple[Item, ...]) -> tuple[Item, ...]:
    kept: list[Item] = []
    left = len(shape)
    for item in reversed(items):
        if not left:
            break
        left -= item != NEW
        # A broadcast axis has only one entry, which serves every position.
        kept.append(("at", 0) if item[0] == "at" and shape[left] == 1 else item)
    return tuple(reversed(kept))


def _reindex_quantifier(formula: Quantifier, items: tuple[Item, ...]) -> Formula:
    rank = len(formula.operand.shape)
    remaining = iter(items)
    inner: list[Item] = []
    dims: list[int] = []
    produced = 0
    for position in range(rank):
        if position in formula.dims:
            dims.append(produced)
            inner.append(WHOLE)
            produced += 1
            continue
        for item in remaining:
            inner.append(item)
            produced += item[0] != "at"
            if item != NEW:
                break
    inner += remaining  # new axes after the last one
    where = None if formula.where is None else reindex(formula.where, tuple(inner))
    return Quantifier(formula.operation, reindex(formula.operand, tuple(inner)), tuple(dims), where, formula.tied)
