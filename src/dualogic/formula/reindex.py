"""Index a whole formula by pushing new axes and fixed positions down into its terms."""

from __future__ import annotations

from typing import Any

from dualogic.formula.atom import ClassEqual, ClassIn, Comparison
from dualogic.formula.connective import Cardinality, Complement, Equivalence, Formula, Implication, Junction, Level, Quantifier
from dualogic.formula.evidence import Evidence
from dualogic.formula.indexing import items_to_key
from dualogic.formula.relation import ClassRelation
from dualogic.formula.shape import WHOLE, Item, Shape
from dualogic.formula.symbol import MaskExpression

NEW: Item = ("new",)


def reindex(formula: Formula, items: tuple[Item, ...]) -> Formula:
    """``formula[items]``: ``WHOLE``, ``NEW`` or ``("at", position)`` for each axis in order."""
    if all(item == WHOLE for item in items):
        return formula
    if isinstance(formula, (Junction, Complement, Level, Evidence, Implication, Equivalence, Cardinality)):
        return type(formula)(*(_reindex_field(getattr(formula, name), items) for name in formula._names))
    if isinstance(formula, Quantifier):
        return _reindex_quantifier(formula, items)
    if isinstance(formula, Comparison):
        left, right = (select(term, term.shape, items) for term in (formula.left, formula.right))
        return Comparison(formula.operation, left, right, formula.margin)
    if isinstance(formula, ClassEqual):
        return ClassEqual(*(select(side, side.shape, items) for side in (formula.left, formula.right)))
    if isinstance(formula, ClassIn):
        return ClassIn(select(formula.operand, formula.operand.shape, items), formula.classes)
    if isinstance(formula, ClassRelation):
        chosen = [select(leaf, leaf.shape, items) for leaf in formula.leaves]
        return ClassRelation(formula.operation, *formula.rebuild(chosen))
    indexed: Formula = select(formula, formula.shape, items)
    return indexed


def _reindex_field(value: Any, items: tuple[Item, ...]) -> Any:
    if isinstance(value, tuple):
        return tuple(_reindex_field(part, items) for part in value)
    return reindex(value, _fitting(value.shape, items)) if isinstance(value, Formula) else value


def _fitting(shape: Shape, items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The items that apply to a part of this shape, which is broadcast against the whole from the right."""
    kept: list[Item] = []
    left = len(shape)
    for item in reversed(items):
        if not left:
            break
        if item != NEW:
            left -= 1
            # A broadcast axis has only one entry, which serves every position.
            kept.append(("at", 0) if item[0] == "at" and shape[left] == 1 else item)
        else:
            kept.append(item)
    return tuple(reversed(kept))


def select(node: Any, shape: Shape, items: tuple[Item, ...]) -> Any:
    """``node[items]`` for a term, a mask, a class or a Boolean."""
    fitting = _fitting(shape, items)
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
    where: MaskExpression | None = formula.where
    if where is not None:
        where = select(where, where.shape, tuple(inner))
    return Quantifier(formula.operation, reindex(formula.operand, tuple(inner)), tuple(dims), where, formula.tied)
