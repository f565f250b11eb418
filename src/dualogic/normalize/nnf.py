"""Negation normal form: ``&``, ``|``, quantifiers and literals.

Every connective of the original formula keeps its own level: where pushing a negation or unfolding an implication puts a
chain directly inside one of the same kind, a :class:`~dualogic.formula.connective.Level` keeps them apart, because merging
them would change the initial weights.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from dualogic.errors import SizeError
from dualogic.formula import connective
from dualogic.formula.atom import NEGATED, Boolean, BooleanIndex, ClassEqual, ClassIn, Comparison
from dualogic.formula.connective import Cardinality, Complement, Equivalence, Formula, Implication, Junction, Level, Quantifier
from dualogic.formula.evidence import Evidence
from dualogic.formula.inspect import SYMBOLS
from dualogic.formula.node import children, walk
from dualogic.formula.relation import ClassRelation
from dualogic.formula.symbol import Mask
from dualogic.normalize.exchanged import is_exchanged
from dualogic.normalize.literals import map_literals, mark_literals
from dualogic.normalize.unlabelled import Asking, Unlabelled

MOST_LEVELS = 120  # levels of connectives: a pass takes three to five of Python's thousand frames for each
_FLIPPED = {"&": "|", "|": "&", "all": "any", "any": "all"}


def to_nnf(
    formula: Formula,
    evidence: float | None = 0.0,
    resting: bool = False,
    unlabelled: Unlabelled = (),
    given: Collection[str] = (),
) -> Formula:
    """Push negations and evidence markers down to the atoms; unfold ``>>``, ``Iff``, ``Xor``, ``ExactlyOne`` and ``AtMost``.

    The result has the same cost, satisfaction, gradients and levels; its size is linear in that of the formula, except below
    ``Iff`` and ``Xor`` (which need both polarities of their operands) and cardinality constraints.

    Args:
        formula: any formula.
        evidence: the share of evidence of every antecedent that is not marked itself. Only an implication that is to hold has
            one: to make ``~(a >> b)`` hold, ``a`` has to hold too, and is left alone. ``None``, for implications that rest,
            leaves it to be found out.
        resting: keep implications that are to hold, and both directions of an ``Iff``, as
            :class:`~dualogic.formula.connective.Resting`, which has another cost.
        unlabelled: what no label shows. An antecedent that is not marked itself is evidence if its consequent asks for it, see
            :class:`~dualogic.normalize.unlabelled.Asking`; so is a side of a resting ``Iff``, if the other side alone does.
        given: the names of symbols that no rule can change. A resting implication whose consequent is made of these alone asks
            for its antecedent to be false where the consequent is, and is turned round: ``~b >> ~a`` in the place of ``a >> b``.
            Beside a comparison in an antecedent, a class or a Boolean that is given is marked as a premise of its own.
    """
    check_depth(formula)
    return _Pass(evidence, resting, Asking(unlabelled), given).convert(formula, True)


def check_depth(formula: Formula) -> None:
    """Refuse a formula that is nested more deeply than :data:`MOST_LEVELS`."""
    depths: dict[int, int] = {}
    for node in walk(formula):
        below = max((depths[id(child)] for child in children(node)), default=0)
        depths[id(node)] = below + isinstance(node, Formula)
    if (depth := depths[id(formula)]) > MOST_LEVELS:
        raise SizeError(
            f"a formula can be nested {MOST_LEVELS} deep, and this one is {depth:,} deep: {formula.brief()}. Write a chain of "
            f"one connective without levels, as in a & b & c, or state its parts as rules of their own"
        )


def is_literal(formula: Formula) -> bool:
    """Whether the formula is an atom or a negated one, perhaps marked as evidence."""
    formula = formula.operand if isinstance(formula, Evidence) else formula
    atom = formula.operand if isinstance(formula, Complement) else formula
    return isinstance(atom, (Comparison, ClassIn, ClassRelation, Boolean, BooleanIndex))


def join(operation: str, operands: Sequence[Formula]) -> Formula:
    """A chain whose operands stay levels of their own."""
    if len(operands) == 1:
        return operands[0]
    kept = [
        Level(operand) if isinstance(operand, Junction) and operand.operation == operation else operand for operand in operands
    ]
    return Junction(operation, tuple(kept))


def find_alternatives(formula: Formula) -> list[Formula]:
    """Each *or* that has to hold where a formula in normal form does, and of which no operand denies something."""
    found: list[Formula] = []
    stack = [formula]
    while stack:
        node = stack.pop()
        if isinstance(node, Level):
            stack.append(node.operand)
        elif isinstance(node, (Junction, Quantifier)):
            operands = node.operands if isinstance(node, Junction) else (node.operand,)
            if node.operation in ("&", "all"):
                stack.extend(operands)
            elif not any(isinstance(strip_levels(operand), Complement) for operand in operands):
                found.append(node)
    return found


def strip_levels(formula: Formula) -> Formula:
    """The formula below any :class:`Level` markers."""
    while isinstance(formula, Level):
        formula = formula.operand
    return formula


def may_turn(formulas: Iterable[Formula], given: Collection[str]) -> bool:
    """Whether some implication may be read otherwise by what is given; see :func:`to_nnf`."""
    nodes = walk(*formulas) if given else ()
    sides = [(node.antecedent, node.consequent) for node in nodes if isinstance(node, Implication)]
    both = [(node.left, node.right) for node in nodes if isinstance(node, Equivalence)]
    sides += [*both, *((right, left) for left, right in both)]
    return any(_is_given(side, given) for pair in sides for side in pair) or any(_has_fact(side, given) for side, _ in sides)


def _has_fact(antecedent: Formula, given: Collection[str]) -> bool:
    """Whether something that is given may stand beside a comparison there."""
    compares = any(isinstance(node, Comparison) for node in walk(antecedent))
    return compares and not {*given}.isdisjoint(antecedent.symbols)


def _is_given(formula: Formula, given: Collection[str]) -> bool:
    symbols = (node for node in walk(formula) if isinstance(node, SYMBOLS) and not isinstance(node, Mask))
    return bool(given) and all(node.name in given for node in symbols)


@dataclasses.dataclass
class _Pass:
    evidence: float | None
    resting: bool
    asks: Asking
    given: Collection[str]
    # With each node itself: some are made on the way, and the next one could have the number of one that is gone.
    done: dict[tuple[int, bool], tuple[Formula, Formula]] = dataclasses.field(default_factory=dict)

    def convert(self, node: Formula, positive: bool) -> Formula:
        if (key := (id(node), positive)) not in self.done:
            if type(node) not in _CONVERSIONS:
                raise TypeError(f"to_nnf has no conversion for a node of type {type(node).__name__}: {node.brief()}")
            self.done[key] = node, _CONVERSIONS[type(node)](self, node, positive)
        return self.done[key][1]

    def comparison(self, node: Comparison, positive: bool) -> Formula:
        return node if positive else Comparison(NEGATED[node.operation], node.left, node.right, 0.0)

    def class_equal(self, node: ClassEqual, positive: bool) -> Formula:
        pairs = [
            Junction("&", (ClassIn(node.left, (label,)), ClassIn(node.right, (label,)))) for label in range(node.left.symbol.size)
        ]
        return self.convert(Junction("|", tuple(pairs)), positive)

    def junction(self, node: Junction, positive: bool) -> Formula:
        operation = node.operation if positive else _FLIPPED[node.operation]
        return join(operation, [self.convert(operand, positive) for operand in node.operands])

    def implication(self, node: Implication, positive: bool) -> Formula:
        given, consequent = node.antecedent, self.convert(node.consequent, positive)
        share = 1.0 if positive and self.asks(consequent) else self.evidence
        if positive and self.resting:
            if isinstance(given, Evidence):
                share, given = given.share, given.operand
            return self._rest(given, node.consequent, share, is_exchanged(given, node.consequent))
        antecedent = self.convert(given, not positive)
        if positive and not isinstance(given, Evidence):
            antecedent = mark_literals(antecedent, share or 0.0)
        return join("|" if positive else "&", [antecedent, consequent])

    def _rest(self, antecedent: Formula, consequent: Formula, share: float | None, mutual: bool = False) -> Formula:
        turned = share != 1.0 and _is_given(consequent, self.given) and not _is_given(antecedent, self.given)
        if turned:
            antecedent, consequent, share = consequent, antecedent, 1.0
        fact = turned or _is_given(antecedent, self.given)
        believed, asked = self.convert(antecedent, not turned), self.convert(consequent, not turned)
        literal = believed.operand if isinstance(believed, Evidence) else believed
        if isinstance(literal, Comparison) or not is_literal(literal):
            compares = self.given and any(isinstance(node, Comparison) for node in walk(believed))
            believed = connective.Premise(map_literals(believed, self._mark_given) if compares else believed)
        firm = fact and bool(find_alternatives(asked))
        return connective.Resting(believed, asked, share, turned, firm, mutual and share != 1.0)

    def _mark_given(self, literal: Formula) -> Formula:
        """Beside a comparison, what is given is a fact as well: a premise of its own."""
        number = isinstance(literal.operand if isinstance(literal, Evidence) else literal, Comparison)
        return connective.Premise(literal) if _is_given(literal, self.given) and not number else literal

    def equivalence(self, node: Equivalence, positive: bool) -> Formula:
        outer, inner = ("&", "|") if positive != node.negated else ("|", "&")
        if self.resting and positive != node.negated:
            # Neither side is the evidence of the other, unless labels show one of them alone.
            left_side, right_side = self.convert(node.left, True), self.convert(node.right, True)
            lean = self.asks(right_side) - self.asks(left_side)
            found = self.evidence is None and not lean
            shares = (None, None) if found else (float(lean == 1), float(lean == -1))
            ways = (node.left, node.right), (node.right, node.left)
            parts = [self._rest(*sides, share, not lean) for sides, share in zip(ways, shares)]
            return join(outer, parts)
        # (~a | b) & (~b | a) when it must hold, (a & ~b) | (b & ~a) when it must not.
        left, right = inner == "&", inner == "|"
        sides = [(node.left, node.right), (node.right, node.left)]
        parts = [join(inner, [self.convert(first, left), self.convert(second, right)]) for first, second in sides]
        return join(outer, parts)

    def cardinality(self, node: Cardinality, positive: bool) -> Formula:
        outer, inner = ("&", "|") if positive else ("|", "&")
        refuted: list[Any] = [self.convert(operand, not positive) for operand in node.operands]
        parts = [join(inner, subset) for subset in itertools.combinations(refuted, node.bound + 1)]
        if node.exact:
            parts.insert(0, join(inner, [self.convert(operand, positive) for operand in node.operands]))
        return join(outer, parts)

    def quantifier(self, node: Quantifier, positive: bool) -> Formula:
        operation = node.operation if positive else _FLIPPED[node.operation]
        return Quantifier(operation, self.convert(node.operand, positive), node.dims, node.where, node.tied)


_LITERALS = (Boolean, BooleanIndex, ClassIn, ClassRelation)
_CONVERSIONS: dict[type[Formula], Callable[[_Pass, Any, bool], Formula]] = {
    **dict.fromkeys(_LITERALS, lambda _, node, positive: node if positive else Complement(node)),
    Comparison: _Pass.comparison,
    ClassEqual: _Pass.class_equal,
    Junction: _Pass.junction,
    Complement: lambda step, node, positive: step.convert(node.operand, not positive),
    Level: lambda step, node, positive: step.convert(node.operand, positive),
    Implication: _Pass.implication,
    Evidence: lambda step, node, positive: mark_literals(step.convert(node.operand, positive), node.share),
    Equivalence: _Pass.equivalence,
    Cardinality: _Pass.cardinality,
    Quantifier: _Pass.quantifier,
}
