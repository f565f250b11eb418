"""Changes of the literals of a normal form: evidence markers that are brought down to them, and class sets.

Class sets are written the paper's way: "one of these" is an ``or`` over single classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualogic.formula.atom import ClassIn
from dualogic.formula.connective import Complement, Formula, Junction, Level, Premise, Quantifier, Resting
from dualogic.formula.evidence import Evidence
from dualogic.formula.node import map_fields, walk


def mark_literals(formula: Formula, share: float) -> Formula:
    """Mark every literal of a negation normal form as evidence; what a marker there lets pass is multiplied by ``1 - share``.

    The chain rule makes this the same as one marker around the whole: each path to a literal passes one marker either way.
    """

    def mark(node: Formula) -> Formula:
        if isinstance(node, Evidence):
            return Evidence(node.operand, 1.0 - (1.0 - node.share) * (1.0 - share))
        return Evidence(node, share)

    return map_literals(formula, mark) if share else formula


def unfold_class_sets(formula: Formula) -> Formula:
    """Replace ``f != k`` and ``f.isin(...)`` of a negation normal form by an ``or`` over the classes that remain."""
    return map_literals(formula, _unfold)


def _unfold(literal: Formula) -> Formula:
    if isinstance(literal, Evidence):
        return mark_literals(_unfold(literal.operand), literal.share)
    negated = isinstance(literal, Complement)
    atom = literal.operand if isinstance(literal, Complement) else literal
    if not isinstance(atom, ClassIn):
        return literal
    labels = [label for label in range(atom.operand.symbol.size) if (label in atom.classes) != negated]
    singles = tuple(ClassIn(atom.operand, (label,)) for label in labels)
    return singles[0] if len(singles) == 1 else Junction("|", singles)


def map_literals(formula: Formula, change: Callable[[Formula], Formula]) -> Formula:
    """A formula in negation normal form with ``change`` of each literal, marked or not, in its place."""
    done: dict[int, Any] = {}
    for node in walk(formula):  # without recursion; what is below a literal is changed in vain
        if isinstance(node, (Junction, Quantifier, Level, Premise)):
            done[id(node)] = type(node)(*map_fields(node.fields(), Formula, lambda part: done[id(part)]))
        elif isinstance(node, Resting):
            given = done[id(node.antecedent)]
            given = Premise(given) if isinstance(given, Junction) else given
            done[id(node)] = Resting(given, done[id(node.consequent)], node.share, node.turned, node.firm, node.mutual)
        elif isinstance(node, Formula):
            done[id(node)] = change(node)
    return done[id(formula)]  # type: ignore[no-any-return]
