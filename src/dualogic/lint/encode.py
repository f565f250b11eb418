"""Formulas as propositions over the solver's variables, with negations pushed down to the atoms.

Whether a formula must hold or must fail is encoded apart (``positive``), because a class atom and its negation are not
complements where probabilities tie; see :meth:`~dualogic.lint.world.World.has_class`.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import z3

from dualogic.circuits.grounding import fit, positions
from dualogic.formula.atom import COMPARE, NEGATED, BooleanExpression, ClassEqual, ClassIn, Comparison
from dualogic.formula.connective import Cardinality, Complement, Equivalence, Formula, Implication, Junction, Level, Quantifier
from dualogic.formula.evidence import Evidence
from dualogic.formula.node import children, walk
from dualogic.formula.number import look_up
from dualogic.formula.relation import ClassRelation
from dualogic.formula.symbol import MaskComplement, MaskExpression, MaskJunction
from dualogic.formula.term import ARITHMETIC
from dualogic.lint.terms import TermEncoder, choose, locate
from dualogic.lint.world import Entry, World

LARGEST_TABLE = 10_000
"""How many combinations of values a product or a table of classes may have; a larger one can be any number."""


class Encoder:
    """Writes formulas out, each node once for each position of its axes and each sign."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.terms = TermEncoder(world)
        self.done: dict[tuple[int, Entry, bool], Any] = {}
        self.dropped: Formula | None = None

    def formula(self, node: Formula, position: Entry = (), positive: bool = True) -> Any:
        """That the formula holds (or fails) at a position of its axes."""
        if node is self.dropped:
            return z3.BoolVal(True)
        key = (id(node), position, positive)
        if key not in self.done:
            self.done[key] = self._formula(node, position, positive)
        return self.done[key]

    def without(self, formula: Formula, dropped: Formula) -> Any:
        """That ``formula`` holds, with nothing asked of one part of it."""
        above = {id(dropped)}
        for node in walk(formula):
            if any(id(child) in above for child in children(node)):
                above.add(id(node))
        kept = self.done
        self.done = {key: value for key, value in kept.items() if key[0] not in above}
        self.dropped = dropped
        try:
            return self.formula(formula)
        finally:
            self.done, self.dropped = kept, None

    def below(self, node: Any, position: Entry, positive: bool = True) -> Any:
        """As :meth:`formula`, for a part that is broadcast to ``position``."""
        return self.formula(node, fit(position, node.shape), positive)

    def mask(self, node: MaskExpression, position: Entry) -> Any:
        """Whether a mask leaves a position in."""
        position = fit(position, node.shape)
        if isinstance(node, MaskComplement):
            return z3.Not(self.mask(node.operand, position))
        if isinstance(node, MaskJunction):
            sides = [self.mask(side, position) for side in (node.left, node.right)]
            return z3.And(sides) if node.operation == "&" else z3.Or(sides)
        operand = getattr(node, "operand", None)
        if isinstance(operand, (MaskComplement, MaskJunction)):
            found = locate(node.items, position, operand.shape, self.world)  # type: ignore[attr-defined]
            return choose(found, lambda entry: self.mask(operand, entry))
        return self.terms.entry(node, position, self.world.truth)

    def conditions(self, node: Quantifier, position: Entry) -> list[Any]:
        """Under which conditions a quantifier looks at a position of its operand."""
        found = self.terms.existence(node.operand.shape, node.dims, position)
        return found if node.where is None else [*found, self.mask(node.where, position)]

    def _formula(self, node: Formula, position: Entry, positive: bool) -> Any:
        if isinstance(node, Comparison):
            return self.compare(node, position, positive)
        if isinstance(node, ClassIn):
            return self.terms.entry(
                node.operand, position, lambda name, entry: self.world.has_class(name, entry, node.classes, positive)
            )
        if isinstance(node, BooleanExpression):
            value = self.terms.entry(node, position, self.world.truth)
            return value if positive else z3.Not(value)
        if isinstance(node, ClassEqual):
            return self._same_class(node, position, positive)
        if isinstance(node, ClassRelation):
            return self._relation(node, position, positive)
        if isinstance(node, Complement):
            return self.below(node.operand, position, not positive)
        if isinstance(node, (Evidence, Level)):
            return self.below(node.operand, position, positive)
        if isinstance(node, Junction):
            parts = [self.below(operand, position, positive) for operand in node.operands]
            return z3.And(parts) if (node.operation == "&") == positive else z3.Or(parts)
        if isinstance(node, Implication):
            parts = [self.below(node.antecedent, position, not positive), self.below(node.consequent, position, positive)]
            return z3.Or(parts) if positive else z3.And(parts)
        if isinstance(node, Equivalence):
            first, second = ([self.below(side, position, sign) for sign in (True, False)] for side in (node.left, node.right))
            if positive == node.negated:
                first.reverse()
            return z3.And(z3.Or(first[1], second[0]), z3.Or(first[0], second[1]))
        if isinstance(node, Cardinality):
            return self._count(node, position, positive)
        assert isinstance(node, Quantifier)
        return self._quantifier(node, position, positive)

    def compare(self, node: Comparison, position: Entry, positive: bool) -> Any:
        """That a comparison holds, or fails."""
        return COMPARE[node.operation if positive else NEGATED[node.operation]](*self.sides(node, position))

    def sides(self, node: Comparison, position: Entry) -> list[Any]:
        """Both terms of a comparison."""
        return [self.terms.term(side, fit(position, side.shape)) for side in (node.left, node.right)]

    def _same_class(self, node: ClassEqual, position: Entry, positive: bool) -> Any:
        def has(side: Any, label: int) -> Any:
            place = fit(position, side.shape)
            return self.terms.entry(side, place, lambda name, entry: self.world.has_class(name, entry, (label,), positive))

        pairs = [[has(side, label) for side in (node.left, node.right)] for label in range(node.left.symbol.size)]
        return z3.Or([z3.And(pair) for pair in pairs]) if positive else z3.And([z3.Or(pair) for pair in pairs])

    def _relation(self, node: ClassRelation, position: Entry, positive: bool) -> Any:
        values = [self.terms.entry(leaf, fit(position, leaf.shape), self.world.class_number) for leaf in node.leaves]
        made: list[Any] = []
        for kind, *rest in node.steps:
            if kind in ("class", "number"):
                made.append(values[rest[0]] if kind == "class" else z3.IntVal(rest[0]))
            elif kind in ("+", "-"):
                made.append(made[rest[0]] + made[rest[1]] if kind == "+" else made[rest[0]] - made[rest[1]])
            else:
                made.append(self._table(node, made, len(made)))
        holds = COMPARE[node.operation](*(made[side] for side in node.sides))
        if not positive:
            return z3.Not(holds)
        leads = [self.terms.entry(leaf, fit(position, leaf.shape), self.world.leads) for leaf in node.leaves]
        return z3.And(holds, *leads)

    def _table(self, node: ClassRelation, made: list[Any], place: int) -> Any:
        """A step that is no sum, value by value: a new number with what each combination of its parts makes of it."""
        result = self.world.fresh(z3.Int, "table")
        kind, *rest = node.steps[place]
        operands = rest[1:] if kind == "table" else rest
        parts = list(dict.fromkeys(operands))
        if math.prod(len(node.ranges[part]) for part in parts) > LARGEST_TABLE:
            self.world.opaque.add(id(node))
            return result
        rows = torch.cartesian_prod(*(torch.tensor(node.ranges[part]) for part in parts)).reshape(-1, len(parts))
        columns = [rows[:, parts.index(part)] for part in operands]
        values = look_up(*rest[0], *columns) if kind == "table" else ARITHMETIC[kind](*columns)
        for row, value in zip(rows.tolist(), values.tolist()):
            known = [made[part] == number for part, number in zip(parts, row)]
            self.world.axioms.append(z3.Implies(z3.And(known), result == value))
        return result

    def _count(self, node: Cardinality, position: Entry, positive: bool) -> Any:
        holding = [self.below(operand, position, True) for operand in node.operands]
        failing = [self.below(operand, position, False) for operand in node.operands]
        if positive:
            few = z3.AtLeast(*failing, len(failing) - node.bound)
            return z3.And(z3.Or(holding), few) if node.exact else few
        many = z3.AtLeast(*holding, node.bound + 1)
        return z3.Or(z3.And(failing), many) if node.exact else many

    def _quantifier(self, node: Quantifier, position: Entry, positive: bool) -> Any:
        universal = (node.operation == "all") == positive
        parts = []
        for inner in positions(node.operand.shape, node.dims, position):
            body, conditions = self.formula(node.operand, inner, positive), self.conditions(node, inner)
            if conditions:
                body = z3.Implies(z3.And(conditions), body) if universal else z3.And(*conditions, body)
            parts.append(body)
        return z3.And(parts) if universal else z3.Or(parts)

    def nothing_empty(self, formulas: list[Formula]) -> list[Any]:
        """That every ``where=`` leaves something in."""
        found = []
        for node in walk(*formulas):
            if isinstance(node, Quantifier) and node.where is not None:
                shape = node.operand.shape
                places = positions(shape, tuple(range(len(shape))), ())
                found.append(z3.Or([z3.And(self.conditions(node, inner)) for inner in places]))
        return found
