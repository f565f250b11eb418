"""Write class sets the paper's way: "one of these" is an ``or`` over single classes."""

from __future__ import annotations

from dualogic.formula.atom import ClassIn
from dualogic.formula.connective import Complement, Formula, Junction
from dualogic.formula.evidence import Evidence
from dualogic.normalize.evidence import map_literals, mark_literals


def unfold_class_sets(formula: Formula) -> Formula:
    """Replace ``f != k`` and ``f.isin(...)``, in negation normal form, by an ``or`` over the classes that remain, at its own
    level.

    Example:
        >>> import dualogic as dl
        >>> unfold_class_sets(dl.categorical("f", 4) != 1)
        (f == 0) | (f == 2) | (f == 3)
    """
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
