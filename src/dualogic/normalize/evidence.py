"""Changes of the literals of a normal form, such as evidence markers that are brought down to them."""

from __future__ import annotations

from collections.abc import Callable

from dualogic.formula.connective import Formula, Junction, Level, Premise, Quantifier, Resting
from dualogic.formula.evidence import Evidence


def mark_literals(formula: Formula, share: float) -> Formula:
    """Mark every literal of a negation normal form as evidence; what a marker there lets pass is multiplied by ``1 - share``.

    The chain rule makes this the same as one marker around the whole: each path to a literal passes one marker either way.

    Example:
        >>> import dualogic as dl
        >>> a, b = dl.boolean("a"), dl.boolean("b")
        >>> mark_literals(~a | dl.evidence(b, 0.5), 0.5)
        evidence(~a, 0.5) | evidence(b, 0.75)
    """

    def mark(node: Formula) -> Formula:
        if isinstance(node, Evidence):
            return Evidence(node.operand, 1.0 - (1.0 - node.share) * (1.0 - share))
        return Evidence(node, share)

    return map_literals(formula, mark) if share else formula


def map_literals(formula: Formula, change: Callable[[Formula], Formula]) -> Formula:
    """A formula in negation normal form with ``change`` of each literal, marked or not, in its place."""
    done: dict[int, Formula] = {}

    def again(node: Formula) -> Formula:
        if id(node) not in done:
            if isinstance(node, Junction):
                done[id(node)] = Junction(node.operation, tuple([again(operand) for operand in node.operands]))
            elif isinstance(node, Quantifier):
                done[id(node)] = Quantifier(node.operation, again(node.operand), node.dims, node.where, node.tied)
            elif isinstance(node, (Level, Premise)):
                done[id(node)] = type(node)(again(node.operand))
            elif isinstance(node, Resting):
                given = again(node.antecedent)
                given = Premise(given) if isinstance(given, Junction) else given
                done[id(node)] = Resting(given, again(node.consequent), node.share)
            else:
                done[id(node)] = change(node)
        return done[id(node)]

    return again(formula)
