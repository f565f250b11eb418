"""The connectives of a rule that say how it is satisfied, with the paths that ``LogicLoss.weights`` gives them."""

from __future__ import annotations

import dataclasses
from typing import Any

from dualogic.arguments import shorten
from dualogic.formula.connective import Complement, Equivalence, Formula, Implication, Junction, Level, Quantifier
from dualogic.formula.evidence import Evidence
from dualogic.normalize.nnf import to_nnf

CHOICES = ("or", "implies")  # the kinds of connectives that can be satisfied in several ways


@dataclasses.dataclass(frozen=True)
class Connective:
    """One connective of a rule."""

    path: str  # the rule's name, followed by operand positions in its negation normal form
    kind: str  # "or", "implies" (whose operands are the negated antecedent and the consequent), "and", "all" or "any"
    text: str  # the connective as written
    operands: tuple[str, ...]  # the texts of its operands
    antecedent: Formula | None  # that of an implication
    counted: str  # "samples", or "entries" below a quantifier
    consequent: Formula | None = None  # that of an implication


def outline(name: str, formula: Formula) -> list[Connective]:
    """From the root of a rule through quantifiers and conjunctions down to the outermost choices, parents first.

    What lies inside of a branch, or inside of the clauses that a cardinality constraint stands for, is left out.
    """
    found: list[Connective] = []
    _descend(formula, True, name, "samples", found)
    return found


def _descend(node: Formula, positive: bool, path: str, counted: str, found: list[Connective]) -> None:
    node, positive = strip(node, positive)
    antecedent, consequent, below = None, None, True
    operands: list[tuple[Formula, bool]]
    if isinstance(node, Quantifier):
        kind = "all" if (node.operation == "all") == positive else "any"
        found.append(Connective(path, kind, to_text(node, positive), (to_text(node.operand, positive),), None, counted))
        _descend(node.operand, positive, f"{path}/0", "entries", found)
        return
    if isinstance(node, Junction):
        kind = "and" if (node.operation == "&") == positive else "or"
        operands = [(operand, positive) for operand in node.operands]
    elif isinstance(node, Implication):
        kind = "implies" if positive else "and"
        antecedent, consequent = (node.antecedent, node.consequent) if positive else (None, None)
        operands = [(node.antecedent, not positive), (node.consequent, positive)]
    elif isinstance(node, Equivalence):
        sides = [(node.left, node.right), (node.right, node.left)]
        if positive != node.negated:
            kind, operands = "and", [(Implication(first, second), True) for first, second in sides]
        else:
            kind, operands = "or", [(Junction("&", (first, Complement(second))), True) for first, second in sides]
    else:
        normal = to_nnf(node if positive else Complement(node))
        if not isinstance(normal, Junction):
            return
        below, kind = False, "and" if normal.operation == "&" else "or"
        operands = [(operand, True) for operand in normal.operands]
    texts = tuple(to_text(*operand) for operand in operands)
    found.append(Connective(path, kind, to_text(node, positive), texts, antecedent, counted, consequent))
    if kind == "and" and below:
        for position, (operand, sign) in enumerate(operands):
            _descend(operand, sign, f"{path}/{position}", counted, found)


def strip(node: Any, positive: bool) -> tuple[Formula, bool]:
    """Without negations, levels, evidence markers and chains of one, none of which has a path of its own."""
    while True:
        if isinstance(node, Complement):
            node, positive = node.operand, not positive
        elif isinstance(node, (Level, Evidence)):
            node = node.operand
        elif isinstance(node, Junction) and len(node.operands) == 1:
            node = node.operands[0]
        else:
            return node, positive


def to_text(node: Formula, positive: bool = True) -> str:
    """A formula, or its negation, for a reader: without markers around it, and cut off where it is long."""
    node, positive = strip(node, positive)
    return shorten(str(node if positive else to_nnf(Complement(node))))
