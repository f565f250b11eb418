"""Formulas that cost the same whatever is bound to them: nothing, or never nothing."""

from __future__ import annotations

import itertools
import math
from typing import Any

from dualogic.formula.atom import COMPARE, MIRRORED, Comparison
from dualogic.formula.connective import Cardinality, Complement, Formula, Implication, Junction, Level, Quantifier
from dualogic.formula.node import walk
from dualogic.formula.term import Number

MOST_NODES, MOST_CASES = 100, 512

Key = tuple[int, ...]


def constant_truth(formula: Formula) -> bool | None:
    """Whether comparisons alone make a small formula always true (``True``) or never (``False``); ``None`` if that is not seen.

    Every case is tried: for each term the numbers that it is compared with, those between and those beyond. Terms count as
    independent of each other, and so do a class or a truth value and its negation, because ``b | ~b`` costs something unless
    the network is sure of ``b``. So an answer is certain, and ``None`` is not; ``dl.lint`` has a solver and sees more.
    """
    nodes = walk(formula)
    kinds = set(map(type, nodes))
    if len(nodes) > MOST_NODES or Comparison not in kinds or Cardinality in kinds:  # whose normal form may be huge
        return None
    return _constant(formula.to_nnf())


def _constant(formula: Formula) -> bool | None:
    cases: dict[Key, set[Any]] = {}
    stack = [formula]
    while stack:
        part = stack.pop()
        stack.extend(_operands(part))
        if isinstance(part, Comparison):
            key, _, bound = _compared(part)
            cases.setdefault(key, set()).add(bound)
        elif not _operands(part):
            # Entries of an axis differ, so a quantifier is judged only where its operand is the same for all of them.
            fixed = _constant(part.operand) if isinstance(part, Quantifier) and part.where is None else None
            cases[id(part),] = {False, True} if fixed is None else {fixed}
    domains = {key: values if isinstance(next(iter(values)), bool) else _points(values) for key, values in cases.items()}
    if math.prod(map(len, domains.values())) > MOST_CASES:
        return None
    seen = {_holds(formula, dict(zip(domains, choice))) for choice in itertools.product(*domains.values())}
    return seen.pop() if len(seen) == 1 else None


def _operands(formula: Formula) -> tuple[Formula, ...]:
    if isinstance(formula, Level):
        return (formula.operand,)
    return formula.operands if isinstance(formula, Junction) else ()


def _compared(atom: Comparison) -> tuple[Key, str, float]:
    """The term, the sign and the number that an atom is about; two terms stand for their difference."""
    if isinstance(atom.right, Number):
        return (id(atom.left), 0), atom.operation, atom.right.value
    if id(atom.left) <= id(atom.right):
        return (id(atom.left), id(atom.right)), atom.operation, 0.0
    return (id(atom.right), id(atom.left)), MIRRORED[atom.operation], 0.0


def _points(bounds: set[float]) -> list[float]:
    ordered = sorted(bounds)
    between = [(low + high) / 2 for low, high in itertools.pairwise(ordered)]
    return [ordered[0] - 1, *ordered, *between, ordered[-1] + 1]


def _holds(formula: Formula, world: dict[Key, Any]) -> bool:
    if isinstance(formula, Comparison):
        key, sign, bound = _compared(formula)
        return bool(COMPARE[sign](world[key], bound))
    truths = [_holds(part, world) for part in _operands(formula)]
    if not truths:
        return bool(world[id(formula),])
    return any(truths) if isinstance(formula, Junction) and formula.operation == "|" else all(truths)


def costs_nothing(formula: Formula, wanted: bool = True) -> bool:
    """Whether a formula (or its negation) costs nothing whatever is bound, because of ``!=`` without a margin.

    ``v != c`` fails on a single point and costs ``max(margin - |v - c|, 0)``. Antecedents are left out: most methods read them.
    """
    if isinstance(formula, Comparison):
        return formula.operation == ("!=" if wanted else "==") and not formula.margin
    if isinstance(formula, Complement):
        return costs_nothing(formula.operand, not wanted)
    if isinstance(formula, (Level, Quantifier)):
        return costs_nothing(formula.operand, wanted)
    if isinstance(formula, Junction):
        decide = all if (formula.operation == "&") == wanted else any
        return decide(costs_nothing(operand, wanted) for operand in formula.operands)
    return isinstance(formula, Implication) and wanted and costs_nothing(formula.consequent)
