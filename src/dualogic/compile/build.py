"""Turn formulas in negation normal form into a plan, computing nodes of one signature together."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

import torch

from dualogic.compile import atoms as ops
from dualogic.compile.convolution import program_of
from dualogic.compile.extreme import take_depth, take_extreme
from dualogic.compile.implication import EVERY
from dualogic.compile.instructions import Instruction, Operand
from dualogic.compile.number import check_independent
from dualogic.compile.signature import COMPARISON_KIND, adds_up
from dualogic.compile.terms import TermBuilder, Value
from dualogic.compile.tree import Branch, JunctionBranch, Leaf, Level, PremiseBranch, QuantifierBranch
from dualogic.formula.atom import STRICT, ClassIn, Comparison
from dualogic.formula.connective import Complement, Formula, Junction, Premise, Quantifier, Resting
from dualogic.formula.connective import Level as LevelNode
from dualogic.formula.evidence import Evidence
from dualogic.formula.node import walk
from dualogic.formula.relation import ClassRelation
from dualogic.formula.shape import WHOLE, Item, Ragged, max_shape, max_size
from dualogic.formula.symbol import ClassIndex
from dualogic.normalize.nnf import find_alternatives, is_literal, strip_levels


class Builder(TermBuilder):
    """Collects the instructions, constants and levels of one plan: connectives and atoms here, terms in the base class.

    ``mode`` says what atoms are worth: ``"probability"`` or ``"log"`` costs, ``"truth"``, or ``"degree"`` (costs for comparisons,
    probabilities for classes and Booleans). ``resting`` says whether what is believed well enough rests.
    """

    def __init__(self, mode: str, resting: bool) -> None:
        super().__init__(mode)
        self.resting = resting
        self.levels: list[Level] = []
        self.width = 0
        self.leaves: list[Leaf] = []
        self._in_premise = False
        self._ceding = False
        self._signed = False
        self._fact = False
        self._decided: set[int] = set()  # what must be decided, of all that is below the implication at hand

    def roots(self, rules: Mapping[str, Formula]) -> list[tuple[Branch, list[int]]]:
        """Compile the rules, those of one signature together; returns each group with the rules' positions."""
        formulas = [strip_levels(formula) for formula in rules.values()]
        self.signatures.add(*formulas)
        groups: dict[int, list[int]] = {}
        for position, formula in enumerate(formulas):
            groups.setdefault(self.signatures[formula], []).append(position)
        names, found = list(rules), []
        for places in groups.values():
            paths = [names[place] for place in places]
            found.append((self.formula([formulas[place] for place in places], (len(places),), paths, frozenset()), places))
        return found

    def formula(self, nodes: list[Formula], lanes: tuple[int, ...], paths: list[str], tied: frozenset[int]) -> Branch:
        """Compile formulas of one signature, one for each lane, in row-major order; ``paths`` says where each stands.

        Weights are shared along the ``tied`` axes, which are counted from the end.
        """
        below = {Junction: self._junction, Resting: self._junction, Premise: self._premise, Quantifier: self._quantifier}
        compile_nodes = below.get(type(nodes[0]))
        return self._leaf(nodes, lanes) if compile_nodes is None else compile_nodes(nodes, lanes, paths, tied)

    def _premise(self, nodes: list[Any], lanes: tuple[int, ...], paths: list[str], tied: frozenset[int]) -> Branch:
        outside, self._in_premise = self._in_premise, True
        fact, self._fact = self._fact, outside and self._signed  # what is given, beside comparisons that may give way
        try:
            operand = self.formula([strip_levels(node.operand) for node in nodes], lanes, paths, tied)
        finally:
            self._in_premise, self._fact = outside, fact
        return PremiseBranch(operand, take_depth if self._signed else take_extreme, operand.can_be_empty)

    def _junction(self, nodes: list[Any], lanes: tuple[int, ...], paths: list[str], tied: frozenset[int]) -> Branch:
        first: Junction | Resting = nodes[0]
        outside, signed, decided = self._ceding, self._signed, self._decided
        cedes = [outside] * len(_operands(first))
        if isinstance(first, Resting):
            self._decided = {id(node) for node in find_alternatives(first.consequent)} if first.firm else set()
            # An antecedent gives way that may be taught, by a consequent that is believed: numbers have no belief.
            numeric = any(isinstance(part, Comparison) for part in walk(first.consequent))
            cedes = [first.share != 1.0 and not first.mutual and not numeric, False]
        groups: dict[tuple[int, bool], list[int]] = {}
        for position, operand in enumerate(_operands(first)):
            groups.setdefault((self.signatures[operand], cedes[position]), []).append(position)
        places = [place for group in groups.values() for place in group]
        order = sorted(range(len(places)), key=places.__getitem__)
        axes = max_shape(first.shape)
        compares = yes_or_no = (False, False)
        share = 0.0 if isinstance(first, Junction) else first.share
        if isinstance(first, Resting):
            # What is evidence is a fact, and of what compares numbers there is nothing to find out.
            compares = share != 1.0 and _compares(first.antecedent), _compares(first.consequent)
            if not any(isinstance(node, Comparison) for node in walk(first)):
                yes_or_no = _is_yes_or_no(first.antecedent), _is_yes_or_no(first.consequent)
            share = 0.0 if compares[0] and share is None else share
        level = self._level(
            operation=first.operation if isinstance(first, Junction) else ">>",
            sizes=(len(places) if isinstance(first, Junction) else 1,),
            rest=(*lanes, *axes),
            lanes=len(lanes),
            shared=tuple(len(lanes) + len(axes) + dim for dim in sorted(tied) if -dim <= len(axes)),
            uniform=self._in_premise,
            ragged=any(isinstance(size, Ragged) for size in first.shape),
            order=tuple(order),
            paths=tuple(paths),
            formulas=tuple(nodes),
            share=share,
            logarithmic=self.mode == "log",
            compares=compares,
            yes_or_no=yes_or_no,
            turned=isinstance(first, Resting) and first.turned,
            mutual=isinstance(first, Resting) and first.mutual,
            rests=self._rests(first),
        )
        branches, ranks = [], []
        for (_, self._ceding), group in groups.items():
            below = [strip_levels(_operands(node)[place]) for place in group for node in nodes]
            names = [f"{path}/{1 - place if level.turned else place}" for place in group for path in paths]
            rank = len(below[0].shape)
            self._signed = compares[0] and group == [0] if isinstance(first, Resting) else signed
            branches.append(self.formula(below, (len(group), *lanes), names, frozenset(d for d in tied if -d <= rank)))
            ranks.append(rank)
        self._ceding, self._signed, self._decided = outside, signed, decided
        return JunctionBranch(
            level=level,
            groups=tuple(branches),
            counts=tuple(map(len, groups.values())),
            lanes=lanes,
            ranks=tuple(ranks),
            rank=len(first.shape),
            can_be_empty=any(branch.can_be_empty for branch in branches),
        )

    def _quantifier(self, nodes: list[Any], lanes: tuple[int, ...], paths: list[str], tied: frozenset[int]) -> Branch:
        first: Quantifier = nodes[0]
        shape = first.operand.shape
        rank = len(shape)
        kept = [dim for dim in range(rank) if dim not in first.dims]
        # Tied axes of this formula are counted from the end of what is kept; below, from the end of the operand's axes.
        outer = frozenset(kept[dim] - rank for dim in tied)
        below = outer | frozenset(dim - rank for dim in first.dims) if first.tied else outer
        rest = tuple(max_size(shape[dim]) for dim in kept)
        level = self._level(
            operation="&" if first.operation == "all" else "|",
            sizes=tuple(max_size(shape[dim]) for dim in first.dims),
            rest=(*lanes, *rest),
            lanes=len(lanes),
            shared=tuple(len(lanes) + len(rest) + dim for dim in sorted(tied)),
            uniform=first.tied or self._in_premise,
            ragged=any(isinstance(size, Ragged) for size in shape),
            order=(),
            paths=tuple(paths),
            formulas=tuple(nodes),
            logarithmic=self.mode == "log",
            rests=0 if first.tied else self._rests(first),
        )
        operand = self.formula([strip_levels(node.operand) for node in nodes], lanes, [f"{path}/0" for path in paths], below)
        mask = None if first.where is None else self._expand(self.term([node.where for node in nodes], lanes), lanes, rank)
        cut = any(isinstance(size, Ragged) and size.trim for size in map(shape.__getitem__, first.dims))
        empty = first.operation == "any" and (first.where is not None or cut)
        return QuantifierBranch(
            level=level,
            operand=operand,
            dims=tuple(1 + len(lanes) + dim for dim in first.dims),
            mask=mask,
            full_shape=(*lanes, *(size if isinstance(size, int) else -1 for size in shape)),
            can_be_empty=empty or operand.can_be_empty,
        )

    def _rests(self, node: Junction | Resting | Quantifier) -> int:
        chosen = not isinstance(node, Resting) and node.operation in ("|", "any") and self.resting and not self._in_premise
        if not chosen or any(isinstance(part, Comparison) for part in walk(node)):
            return 0
        if adds_up(node):
            return EVERY
        return 0 if id(node) in self._decided else 2

    def _level(self, **fields: Any) -> Level:
        rest = list(fields.pop("rest"))
        for position in fields["shared"]:
            rest[position] = 1
        level = Level(number=len(self.levels), offset=self.width, rest=tuple(rest), **fields)
        self.levels.append(level)
        self.width += level.width
        return level

    def _leaf(self, marked: list[Any], lanes: tuple[int, ...]) -> Leaf:
        share = marked[0].share if isinstance(marked[0], Evidence) else 0.0
        nodes = [node.operand for node in marked] if share else marked
        atom = nodes[0].operand if isinstance(nodes[0], Complement) else nodes[0]
        if isinstance(atom, Comparison):
            kind, value = "comparison", self._comparison(nodes, lanes, share == 1.0)
        elif isinstance(atom, ClassIn):
            kind, value = "class", self._class(nodes, lanes, share == 1.0)
        elif isinstance(atom, ClassRelation):
            kind, value = "class", self._relation(nodes, lanes, share == 1.0)
        else:
            kind, value = "boolean", self._boolean(nodes, lanes, share == 1.0)
        if self._fact:
            fact = ops.GivenFact(value.register, math.log(2.0) if self.mode == "log" else 0.5)
            value, share = Value(self._emit(fact), value.lanes, value.rank), 1.0
        # A comparison in an antecedent holds or does not. Beside beliefs it is read, and never taught.
        read = 1.0 if kind == "comparison" and self._in_premise and not self._signed else share
        leaf = Leaf(self._expand(value, lanes, len(nodes[0].shape)), kind, lanes, tuple(marked), read)
        self.leaves.append(leaf)
        return leaf

    def _comparison(self, nodes: list[Comparison], lanes: tuple[int, ...], held: bool) -> Value:
        rank = len(nodes[0].shape)
        signs = [-1.0 if node.operation in (">", ">=") else 1.0 for node in nodes]
        left, right = self._sides(nodes, lanes)
        kind = COMPARISON_KIND[nodes[0].operation]
        if kind == "order" and set(signs) == {-1.0}:
            left, right, signs = right, left, [1.0]
        if right.register < 0 and right.number == 0.0 and len(left.lanes) + left.rank > 0:
            difference = left
        else:
            difference = self._binary(operator.sub, left, right, rank)
        per_lane = [
            self._vary(signs, lanes, difference.rank) if kind == "order" else 1.0,
            self._vary([node.margin for node in nodes], lanes, difference.rank),
            self._vary([float(node.operation in STRICT) for node in nodes], lanes, difference.rank),
        ]
        if any(isinstance(value, tuple) for value in per_lane) and not difference.lanes:
            difference = self._spread(difference, lanes)
        sign, margin, strict = per_lane
        strict = strict if isinstance(strict, tuple) else strict > 0
        fact = self._in_premise
        register = self._emit(ops.Compare(kind, difference.register, sign, margin, strict, self.mode == "truth" or fact, held))
        if fact and self._signed:
            symbols = [() if held else tuple(node.symbols) for node in nodes[: None if difference.lanes else 1]]
            shape = (1, *difference.lanes, *(1,) * difference.rank)
            register = self._emit(ops.Depth(register, kind, difference.register, sign, tuple(symbols), shape))
        elif fact:
            register = self._emit(ops.Fact(register))
        return Value(register, difference.lanes, difference.rank)

    def _boolean(self, nodes: list[Any], lanes: tuple[int, ...], held: bool) -> Value:
        atoms: list[Any] = [node.operand if isinstance(node, Complement) else node for node in nodes]
        value = self.term(atoms, lanes)
        negated = [isinstance(node, Complement) for node in nodes]
        sign = self._vary([-1.0 if flag else 1.0 for flag in negated], lanes, value.rank)
        offset = self._vary([1.0 if flag else 0.0 for flag in negated], lanes, value.rank)
        if isinstance(sign, tuple) and not value.lanes:
            value = self._spread(value, lanes)
        logits = atoms[0].symbol.input == "logits"
        instruction = ops.BooleanValue(self.mode, value.register, logits, sign, offset, held)
        return Value(self._emit(instruction), value.lanes, value.rank)

    def _class(self, nodes: list[Any], lanes: tuple[int, ...], held: bool) -> Value:
        negated = isinstance(nodes[0], Complement)
        atoms: list[ClassIn] = [node.operand if negated else node for node in nodes]
        symbol = atoms[0].operand.symbol
        logarithm = self.mode == "log" and symbol.input == "logits"
        # An antecedent that gives way says which class takes its place, if there is a choice.
        outside = len(atoms[0].classes) if negated else symbol.size - len(atoms[0].classes)
        cedes = self._ceding and self.mode == "log" and not held and outside > 1
        if not negated and len(atoms[0].classes) == 1 and self.mode != "truth":
            value = self._access([_at_class(atom) for atom in atoms], lanes, probabilities=False)
            instruction: Instruction = ops.ClassValue(self.mode, value.register, logarithm, held or cedes)
            result_lanes, rank = value.lanes, value.rank
        else:
            operand, members, result_lanes, rank = self._members(atoms, negated, lanes)
            instruction = ops.ClassSetValue(self.mode, operand, members, negated, logarithm, held or cedes)
        found = Value(self._emit(instruction), result_lanes, rank)
        return self._cede(found, atoms, negated, lanes, logarithm) if cedes else found

    def _members(
        self, atoms: list[ClassIn], negated: bool, lanes: tuple[int, ...], values: tuple[float, float] = (1.0, 0.0)
    ) -> tuple[Operand, int, tuple[int, ...], int]:
        """All classes' values; a constant with one number for classes that make the atom true, one for others; lanes; rank."""
        value = self.term([atom.operand for atom in atoms], lanes)
        inside, outside, size = *values, atoms[0].operand.symbol.size
        chosen = [[inside if (label in atom.classes) != negated else outside for label in range(size)] for atom in atoms]
        rank = value.rank - 1
        if all(row == chosen[0] for row in chosen):
            return (value.register, None), self._constant(torch.tensor(chosen[0], dtype=torch.float64)), value.lanes, rank
        members = self._constant(torch.tensor(chosen, dtype=torch.float64).reshape(1, *lanes, *(1,) * rank, size))
        return self._expand(value, lanes, value.rank), members, lanes, rank

    def _cede(self, found: Value, atoms: list[ClassIn], negated: bool, lanes: tuple[int, ...], logarithm: bool) -> Value:
        operand, outside, result_lanes, rank = self._members(atoms, negated, lanes, (-math.inf, 0.0))
        cost = self._expand(found, result_lanes, rank) if result_lanes != found.lanes else (found.register, None)
        return Value(self._emit(ops.Ceding(cost, operand, outside, logarithm)), result_lanes, rank)

    def _relation(self, nodes: list[Any], lanes: tuple[int, ...], held: bool) -> Value:
        negated = isinstance(nodes[0], Complement)
        atoms: list[ClassRelation] = [node.operand if negated else node for node in nodes]
        for atom in atoms:
            check_independent(atom)
        first, rank = atoms[0], len(atoms[0].shape)
        values = [self.term([atom.leaves[place] for atom in atoms], lanes) for place in range(len(first.leaves))]
        shared = lanes if any(value.lanes for value in values) else ()
        operands = tuple(self._expand(value, shared, rank + 1) for value in values)
        if self.mode == "truth":
            return Value(self._emit(ops.RelationTruth(operands, first, negated)), shared, rank)
        logarithms = tuple(self.mode == "log" and leaf.symbol.input == "logits" for leaf in first.leaves)
        instruction = ops.RelationValue(self.mode, operands, program_of(first, negated), logarithms, held)
        return Value(self._emit(instruction), shared, rank)


def _compares(node: Formula) -> bool:
    """Whether a formula, in normal form, is made of comparisons alone."""
    if isinstance(node, Junction):
        return all(map(_compares, node.operands))
    if isinstance(node, Premise):
        return is_literal(node.operand) or _compares(node.operand)
    if isinstance(node, (LevelNode, Quantifier, Evidence)):
        return _compares(node.operand)
    return isinstance(node, Comparison)


def _is_yes_or_no(node: Formula) -> bool:
    """Whether a formula speaks of Booleans and of no classes."""
    return not any(isinstance(part, (ClassIn, ClassRelation)) for part in walk(node))


def _operands(node: Any) -> tuple[Formula, ...]:
    return (node.antecedent, node.consequent) if isinstance(node, Resting) else node.operands


def _at_class(atom: ClassIn) -> tuple[Any, tuple[Item, ...]]:
    """What to index, and how, to read the probability of the class of ``operand == k``."""
    operand, last = atom.operand, ("at", atom.classes[0])
    if isinstance(operand, ClassIndex):
        return operand.operand, (*operand.items, last)
    return operand, (*(WHOLE,) * len(operand.shape), last)
