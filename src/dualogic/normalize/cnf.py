"""Conjunctive normal form, with quantifiers.

``min`` and ``max`` distribute over each other, so the cost at the optimal duals is that of the nested formula; only the
size and the shape of the duals differ. dualogic trains nested formulas by default; the paper uses this form.
"""

from __future__ import annotations

import dataclasses
import itertools

from dualogic.errors import SizeError
from dualogic.formula.connective import Formula, Junction, Level, Quantifier
from dualogic.formula.reindex import NEW, reindex
from dualogic.formula.shape import WHOLE, Item, Ragged, Shape, Size, broadcast, max_size
from dualogic.formula.symbol import MaskExpression
from dualogic.normalize.nnf import to_nnf


@dataclasses.dataclass(frozen=True)
class _Clause:
    """A disjunction of literals that holds for every entry of some of its axes."""

    literals: tuple[Formula, ...]  # broadcast together to `shape`
    shape: Shape  # the axes of the clause
    universal: frozenset[int] = frozenset()  # which of them are quantified by `all`
    where: MaskExpression | None = None  # restricts that quantification; broadcast to `shape`

    def reindex(self, items: tuple[Item, ...], shape: Shape, universal: frozenset[int]) -> _Clause:
        literals = tuple(reindex(literal, items) for literal in self.literals)
        return _Clause(literals, shape, universal, None if self.where is None else reindex(self.where, items))


def to_cnf(formula: Formula, max_clauses: int = 10_000) -> Formula:
    """Distribute ``|`` over ``&``; refuse when more than ``max_clauses`` clauses would result."""
    clauses = _Distributor(formula, max_clauses).clauses(to_nnf(formula))
    return _chain("&", tuple(dict.fromkeys(map(_close, clauses))))


def _chain(operation: str, operands: tuple[Formula, ...]) -> Formula:
    return operands[0] if len(operands) == 1 else Junction(operation, operands)


def _close(clause: _Clause) -> Formula:
    """The clause as a formula."""
    body = _chain("|", clause.literals)
    # Axes that no literal has come first and have at least one entry, so quantifying over them changes nothing.
    missing = len(clause.shape) - len(body.shape)
    dims = tuple(dim - missing for dim in sorted(clause.universal) if dim >= missing)
    if clause.where is not None and (not dims or broadcast((body.shape, clause.where.shape), body) != body.shape):
        raise SizeError(
            f"{body.brief()} has no CNF below .all(where={clause.where}): whether it must hold depends on the mask alone, "
            f"which is no literal; take it out of the quantifier, or train the nested formula"
        )
    return Quantifier("all", body, dims, clause.where, False) if dims else body


class _Distributor:
    def __init__(self, formula: Formula, max_clauses: int) -> None:
        self.formula = formula
        self.max_clauses = max_clauses

    def clauses(self, node: Formula) -> list[_Clause]:
        if isinstance(node, Level):
            return self.clauses(node.operand)
        if isinstance(node, Junction) and node.operation == "&":
            clauses = [clause for operand in node.operands for clause in self._fit(operand, node.shape)]
            self._check(len(clauses))
            return clauses
        if isinstance(node, Junction):
            return self._disjoin([self._fit(operand, node.shape) for operand in node.operands])
        if isinstance(node, Quantifier):
            return self._all(node) if node.operation == "all" else self._any(node)
        return [_Clause((node,), node.shape)]

    def _fit(self, operand: Formula, shape: Shape) -> list[_Clause]:
        """The clauses of an operand, with the axes that it lacks put in front."""
        missing = len(shape) - len(operand.shape)
        ones = (1,) * missing
        return [
            dataclasses.replace(clause, shape=ones + clause.shape, universal=frozenset(dim + missing for dim in clause.universal))
            for clause in self.clauses(operand)
        ]

    def _disjoin(self, groups: list[list[_Clause]]) -> list[_Clause]:
        result = groups[0]
        for group in groups[1:]:
            self._check(len(result) * len(group))
            result = [_merge(first, second) for first, second in itertools.product(result, group)]
        return result

    def _all(self, node: Quantifier) -> list[_Clause]:
        result = []
        for clause in self.clauses(node.operand):
            free = _free(clause)
            bound = frozenset(free[dim] for dim in node.dims)
            for dim in node.dims:
                size = node.operand.shape[dim]
                if clause.shape[free[dim]] == 1 and isinstance(size, Ragged) and size.trim:
                    raise SizeError(
                        f"{node.brief()} has no CNF: a part of it does not have the axis {size!r}, which may be empty; "
                        f"take that part out of the quantifier, or train the nested formula"
                    )
            where = clause.where
            if node.where is not None:
                # The mask speaks of the operand's axes; the clause may have further universal ones among them.
                items = tuple(NEW if dim in clause.universal else WHOLE for dim in range(len(clause.shape)))
                mask = reindex(node.where, items)
                where = mask if where is None else where & mask
            result.append(dataclasses.replace(clause, universal=clause.universal | bound, where=where))
        return result

    def _any(self, node: Quantifier) -> list[_Clause]:
        clauses = self.clauses(node.operand)
        if len(clauses) == 1 and not clauses[0].universal:
            body = _chain("|", clauses[0].literals)
            return [_Clause((Quantifier("any", body, node.dims, node.where, node.tied),), node.shape)]
        sizes = [node.operand.shape[dim] for dim in node.dims]
        if node.where is not None or not all(isinstance(size, int) for size in sizes):
            raise SizeError(
                f"{node.brief()} has no CNF: it needs one clause for every choice of an entry, and the entries of a masked or "
                f"ragged axis are not known before tensors are bound; train the nested formula instead"
            )
        entries = []
        for positions in itertools.product(*(range(max_size(size)) for size in sizes)):
            chosen = dict(zip(node.dims, positions))
            items = tuple(("at", chosen[dim]) if dim in chosen else WHOLE for dim in range(len(node.operand.shape)))
            entries.append(self.clauses(reindex(node.operand, items)))
        return self._disjoin(entries)

    def _check(self, count: int) -> None:
        if count > self.max_clauses:
            raise SizeError(
                f"the CNF has more than {self.max_clauses} clauses (at least {count} at one step) for "
                f"{self.formula.brief()}; train the nested formula, which has the same cost at linear size, or raise "
                f"max_clauses"
            )


def _merge(first: _Clause, second: _Clause) -> _Clause:
    """``first | second``, with the universal axes of both side by side."""
    one, two = _gaps(first), _gaps(second)
    items_first: list[Item] = []
    items_second: list[Item] = []
    shape: list[Size] = []
    universal: set[int] = set()
    for place, (mine, theirs) in enumerate(zip(one, two)):
        for sizes, own, other in ((mine, items_first, items_second), (theirs, items_second, items_first)):
            for size in sizes:
                universal.add(len(shape))
                shape.append(size)
                own.append(WHOLE)
                other.append(NEW)
        if place < len(one) - 1:
            sizes_free = [clause.shape[_free(clause)[place]] for clause in (first, second)]
            shape.append(sizes_free[0] if sizes_free[0] != 1 else sizes_free[1])
            items_first.append(WHOLE)
            items_second.append(WHOLE)
    axes, bound = tuple(shape), frozenset(universal)
    left = first.reindex(tuple(items_first), axes, bound)
    right = second.reindex(tuple(items_second), axes, bound)
    wheres = [clause.where for clause in (left, right) if clause.where is not None]
    where = wheres[0] & wheres[1] if len(wheres) == 2 else wheres[0] if wheres else None
    return _Clause(tuple(dict.fromkeys((*left.literals, *right.literals))), axes, bound, where)


def _free(clause: _Clause) -> list[int]:
    return [dim for dim in range(len(clause.shape)) if dim not in clause.universal]


def _gaps(clause: _Clause) -> list[list[Size]]:
    """The universal sizes before the first free axis, between each two, and after the last."""
    gaps: list[list[Size]] = [[]]
    for dim, size in enumerate(clause.shape):
        if dim in clause.universal:
            gaps[-1].append(size)
        else:
            gaps.append([])
    return gaps
