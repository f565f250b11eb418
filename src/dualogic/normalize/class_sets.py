"""Write class sets the paper's way: "one of these" is an ``or`` over single classes."""

from __future__ import annotations

from dualogic.formula.atom import ClassIn
from dualogic.formula.connective import Complement, Formula, Junction, Level, Premise, Quantifier, Resting
from dualogic.formula.evidence import Evidence
from dualogic.normalize.evidence import mark_literals


def unfold_class_sets(formula: Formula) -> Formula:
    """Replace ``f != k`` and ``f.isin(...)`` by an ``or`` over the classes that remain, at a level of its own.

    Args:
        formula: in negation normal form.

    Example:
        >>> import dualogic as dl
        >>> unfold_class_sets(dl.categorical("f", 4) != 1)
        (f == 0) | (f == 2) | (f == 3)
    """
    return _unfold(formula, {})


def _unfold(node: Formula, done: dict[int, Formula]) -> Formula:
    if id(node) in done:
        return done[id(node)]
    result: Formula = node
    negated = isinstance(node, Complement)
    atom = node.operand if isinstance(node, Complement) else node
    if isinstance(atom, ClassIn):
        labels = [label for label in range(atom.operand.symbol.size) if (label in atom.classes) != negated]
        if negated or len(labels) > 1:
            singles = tuple(ClassIn(atom.operand, (label,)) for label in labels)
            result = singles[0] if len(singles) == 1 else Junction("|", singles)
    elif isinstance(node, Junction):
        result = Junction(node.operation, tuple(_unfold(operand, done) for operand in node.operands))
    elif isinstance(node, Quantifier):
        result = Quantifier(node.operation, _unfold(node.operand, done), node.dims, node.where, node.tied)
    elif isinstance(node, Level):
        result = Level(_unfold(node.operand, done))
    elif isinstance(node, Resting):
        antecedent = _unfold(node.antecedent, done)
        antecedent = Premise(antecedent) if isinstance(antecedent, Junction) else antecedent
        result = Resting(antecedent, _unfold(node.consequent, done), node.share)
    elif isinstance(node, Premise):
        result = Premise(_unfold(node.operand, done))
    elif isinstance(node, Evidence):
        result = mark_literals(_unfold(node.operand, done), node.share)
    done[id(node)] = result
    return result
