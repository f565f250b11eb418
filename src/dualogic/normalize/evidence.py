"""Evidence markers, brought down to the literals."""

from __future__ import annotations

from dualogic.formula.connective import Formula, Junction, Level, Premise, Quantifier, Resting
from dualogic.formula.evidence import Evidence


def mark_literals(formula: Formula, share: float) -> Formula:
    """Mark every literal as evidence; what a marker that is there already lets pass is multiplied by ``1 - share``.

    The chain rule makes this the same as one marker around the whole: each path to a literal passes one marker either way.

    Args:
        formula: in negation normal form.
        share: of the gradient that is held back.

    Example:
        >>> import dualogic as dl
        >>> a, b = dl.boolean("a"), dl.boolean("b")
        >>> mark_literals(~a | dl.evidence(b, 0.5), 0.5)
        evidence(~a, 0.5) | evidence(b, 0.75)
    """
    return _mark(formula, share, {}) if share else formula


def _mark(node: Formula, share: float, done: dict[int, Formula]) -> Formula:
    if id(node) in done:
        return done[id(node)]
    if isinstance(node, Junction):
        result: Formula = Junction(node.operation, tuple(_mark(operand, share, done) for operand in node.operands))
    elif isinstance(node, Quantifier):
        result = Quantifier(node.operation, _mark(node.operand, share, done), node.dims, node.where, node.tied)
    elif isinstance(node, Level):
        result = Level(_mark(node.operand, share, done))
    elif isinstance(node, Resting):
        result = Resting(_mark(node.antecedent, share, done), _mark(node.consequent, share, done), node.share)
    elif isinstance(node, Premise):
        result = Premise(_mark(node.operand, share, done))
    elif isinstance(node, Evidence):
        result = Evidence(node.operand, 1.0 - (1.0 - node.share) * (1.0 - share))
    else:
        result = Evidence(node, share)
    done[id(node)] = result
    return result
