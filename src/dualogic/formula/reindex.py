"""Index a whole formula by pushing new axes and fixed positions down into its terms."""

from __future__ import annotations

import functools
from typing import Any

from dualogic.formula.atom import BooleanExpression
from dualogic.formula.connective import Formula, Quantifier
from dualogic.formula.indexing import items_to_key
from dualogic.formula.node import Node
from dualogic.formula.relation import ClassRelation
from dualogic.formula.shape import WHOLE, Item, Shape

NEW: Item = ("new",)


def reindex(formula: Formula, items: tuple[Item, ...]) -> Formula:
    """``formula[items]``: ``WHOLE``, ``NEW`` or ``("at", position)`` for each axis in order, of all or of more to their left."""
    items = _fitting(formula.shape, items)
    if all(item == WHOLE for item in items):
        return formula
    if isinstance(formula, BooleanExpression):
        return select(formula, items)  # type: ignore[no-any-return]
    if isinstance(formula, Quantifier):
        return _reindex_quantifier(formula, items)
    if isinstance(formula, ClassRelation):
        return ClassRelation(formula.operation, *formula.rebuild([select(leaf, items) for leaf in formula.leaves]))
    change = functools.partial(_reindex_part, items=items)
    return type(formula)(*formula.map_fields(Node, change))


def _reindex_part(part: Node, items: tuple[Item, ...]) -> Any:
    return reindex(part, items) if isinstance(part, Formula) else select(part, items)


def _fitting(shape: Shape, items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The items that apply to a part of this shape, which is broadcast against the whole from the right."""
    kept: list[Item] = []
    left = len(shape)
    for item in reversed(items):
        if not left:
            break
        left -= item != NEW
        # A broadcast axis has only one entry, which serves every position.
        kept.append(("at", 0) if item[0] == "at" and shape[left] == 1 else item)
    return tuple(reversed(kept))


def select(node: Any, items: tuple[Item, ...]) -> Any:
    """``node[items]`` for a term, a mask, a class or a Boolean."""
    fitting = _fitting(node.shape, items)
    return node if all(item == WHOLE for item in fitting) else node[items_to_key(fitting)]


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
    where = None if formula.where is None else select(formula.where, tuple(inner))
    return Quantifier(formula.operation, reindex(formula.operand, tuple(inner)), tuple(dims), where, formula.tied)
