"""Whether a rule's cost can be below the distance to the nearest output that satisfies it (Theorem 2).

The distance is the Chebyshev one, measured in the terms that the rule compares: the least ``t`` such that some satisfying
output changes no term ``left - right`` by more than ``t``. The cost ``S`` at the optimal duals is at most ``t`` exactly where
the rule holds with every atom relaxed by ``t``, so a rule is loose where the relaxed rule holds and no satisfying output lies
within ``t``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Union

import torch
import z3

from dualogic.formula.atom import MIRRORED, BooleanExpression, ClassEqual, ClassIn
from dualogic.formula.connective import Formula, Quantifier
from dualogic.formula.node import walk
from dualogic.formula.relation import ClassRelation
from dualogic.formula.symbol import Categorical, Mask
from dualogic.lint.atoms import AtomEncoder, Key, canonical, conjuncts, numbers_of, relax, to_linear, within
from dualogic.lint.finding import Finding, found
from dualogic.lint.samples import Ranges, as_witness, draw_inputs
from dualogic.lint.world import World, as_float, constant, exact

Place = tuple[str, dict[str, Any], float, Union[float, None]]  # a verdict, an output, its cost and its distance
NO_ANSWER: Place = ("unknown", {}, 0.0, None)
CANDIDATES = 6
MOST_NUMBERS = 12
MOST_ATOMS = 40
MOST_PARTS = 8  # beyond these, the question for all outputs at once is not asked: it would hardly be answered


def check_looseness(name: str, formula: Formula, ranges: Ranges, timeout: float) -> list[Finding]:
    """Look for outputs whose cost is below their distance to the satisfying set.

    A rule is looked at only if all of its atoms are comparisons, for which a distance is defined.
    """
    search = _Search(formula, ranges, timeout)
    if not search.applies or search.is_tight():
        return []
    verdict, witness, cost, distance = search.try_inputs(draw_inputs(formula, ranges)) or search.try_all()
    if verdict == "unknown":
        question = "whether its cost can be below its distance from being satisfied"
        return [found("unknown", (name,), f"rule {name!r}: no answer to {question}")]
    far = f"where the distance is {distance:.4g}" if distance is not None else "which is farther away"
    message = f"rule {name!r} costs less than its distance from being satisfied: {cost:.4g} at the example, {far}"
    return [found("loose", (name,), message, witness)] if verdict == "sat" else []


class _Search:
    def __init__(self, formula: Formula, ranges: Ranges, timeout: float) -> None:
        self.formula = formula
        self.timeout = max(1, int(timeout * 1000))
        self.world = World([formula], ranges)
        self.applies = not any(
            isinstance(node, (BooleanExpression, ClassIn, ClassEqual, ClassRelation)) for node in walk(formula)
        )
        if not self.applies:
            return
        self.encoder = AtomEncoder(self.world, lambda _: z3.BoolVal(True))
        self.encoder.formula(formula)
        self.atoms = self.encoder.atoms
        self.linear = {key: to_linear(atom.difference) for key, atom in self.atoms.items()}
        masks = [name for name, symbol in self.world.symbols.items() if isinstance(symbol, Mask)]
        left_in = [self.world.truth(name, entry) for name in masks for entry in self.world.entries(name)]
        self.fixed = [*self.world.full_length(), *left_in]
        self.free = not any(numbers_of([axiom]) for axiom in self.world.axioms)
        self.independent = self._is_independent()

    def _is_independent(self) -> bool:
        """Whether every term can be changed without changing another one."""
        if not self.free or any(linear is None for linear in self.linear.values()):
            return False
        directions = sorted({linear.direction()[0] for linear in self.linear.values() if linear is not None})
        columns = {name: column for column, name in enumerate(sorted({name for row in directions for name, _ in row}))}
        if len(directions) > len(columns):
            return False
        matrix = torch.zeros(len(directions), len(columns), dtype=torch.float64)
        for row, direction in enumerate(directions):
            for name, weight in direction:
                matrix[row, columns[name]] = float(weight)
        return int(torch.linalg.matrix_rank(matrix)) == len(directions)

    def is_tight(self, keys: Iterable[Key] | None = None) -> bool:
        """Whether cost and distance are known to agree for a rule made of these atoms.

        They do if the terms can be changed independently of each other and each occurs with one polarity, or in one equation:
        then every term can be moved by ``t`` in the direction that helps. They do for a single comparison as well.
        """
        kept = [key for key in (keys or self.atoms) if self.atoms[key].operation != "!=" or self.atoms[key].margin]
        if len(kept) <= 1:
            return True
        if not self.independent:
            return False
        uses: dict[Any, set[Any]] = {}
        for key in kept:
            linear, operation = self.linear[key], self.atoms[key].operation
            assert linear is not None
            direction, flipped = linear.direction()
            use: Any = MIRRORED[operation] if flipped else operation
            use = use[0] if use in ("<", "<=", ">", ">=") else (use, -linear.offset if flipped else linear.offset)
            uses.setdefault(direction, set()).add(use)
        return all(len(group) == 1 and next(iter(group))[0] != "!=" for group in uses.values())

    def parts(self) -> list[tuple[list[Key], Any]]:
        """The rule as a conjunction of parts that have no term in common: their atoms, and the closure of where they hold."""
        masked = any(isinstance(node, Quantifier) and node.where is not None for node in walk(self.formula))
        if masked or not self.independent:
            return [(list(self.atoms), self._rule(0))]
        groups: list[tuple[set[Any], list[Key], list[Any]]] = []
        for node, position in conjuncts(self.formula, ()):
            encoder = AtomEncoder(self.world, lambda atom: relax(atom, 0), self.encoder.terms)
            holds = encoder.formula(node, position)
            directions = {linear.direction()[0] for key in encoder.atoms for linear in [self.linear[key]] if linear is not None}
            keys, parts = list(encoder.atoms), [holds]
            apart = [group for group in groups if not group[0] & directions]
            for group in groups:
                if group[0] & directions:
                    directions, keys, parts = directions | group[0], keys + group[1], parts + group[2]
            groups = [*apart, (directions, keys, parts)]
        return [(list(dict.fromkeys(keys)), z3.And(parts)) for _, keys, parts in groups]

    def _rule(self, relaxed_by: Any) -> Any:
        """That the rule holds with every atom relaxed; by 0 for the closure of the satisfying set."""
        return AtomEncoder(self.world, lambda atom: relax(atom, relaxed_by), self.encoder.terms).formula(self.formula)

    def _copy(self, holds: Any, keys: Iterable[Key]) -> tuple[list[Any], list[Any], list[Any]]:
        """Another output that satisfies ``holds``: its numbers, what holds of it, and how much each term changes."""
        numbers = numbers_of([holds, *self.world.axioms, *(self.atoms[key].difference for key in keys)])
        others = [z3.Real(f"other!{place}") for place in range(len(numbers))]
        pairs = list(zip(numbers, others))
        moved = z3.substitute(z3.And(holds, *self.world.axioms, True), *pairs).children()
        # One substitution for all terms: each call looks at every pair.
        differences = [self.atoms[key].difference for key in keys]
        copies = z3.substitute(z3.And(*(difference == 0 for difference in differences), True), *pairs).children()
        return others, moved, [copy.arg(0) - difference for copy, difference in zip(copies, differences)]

    def try_inputs(self, inputs: Mapping[str, Any]) -> Place | None:
        """The first of some inputs whose cost is below their distance."""
        bound = {
            name: inputs[name].log() if isinstance(symbol, Categorical) and symbol.input == "logits" else inputs[name]
            for name, symbol in self.formula.symbols.items()
        }
        costs = self.formula.cost("probability", **bound)
        _, moved, changes = self._copy(self._rule(0), self.atoms)
        places = [place for place in range(len(costs)) if 1e-6 < costs[place] < torch.inf][:CANDIDATES]
        for place in places:
            cost = costs[place].item()
            near = exact(cost * (1 + 1e-6) + 1e-9)
            here = [*self.fixed, *self.world.axioms, *self._fix(inputs, place), *moved]
            solver = z3.Solver()
            solver.set("timeout", self.timeout)
            solver.add(*here)
            if str(solver.check()) != "sat":
                continue
            solver.add(*(within(change, constant(near)) for change in changes))
            if str(solver.check()) == "unsat":
                return "sat", as_witness(self.formula, inputs, place), cost, self._distance(here, changes)
        return None

    def _fix(self, inputs: Mapping[str, Any], place: int) -> list[Any]:
        facts: list[Any] = []
        for name, symbol in self.world.symbols.items():
            if isinstance(symbol, Mask):
                continue
            for entry in self.world.made(name):
                value = inputs[name][place][entry]
                if not isinstance(symbol, Categorical):
                    facts.append(self.world.number(name, entry) == constant(exact(value.item())))
                    continue
                shares = [Fraction(number) for number in value.tolist()]
                total = sum(shares, Fraction(0))
                facts += [
                    self.world.probability(name, entry, label) == constant(share / total) for label, share in enumerate(shares)
                ]
        return facts

    def _distance(self, here: list[Any], changes: list[Any]) -> float | None:
        optimiser = z3.Optimize()
        optimiser.set("timeout", self.timeout)
        distance = z3.Real("distance!")
        optimiser.add(*here, *(within(change, distance) for change in changes))
        optimiser.minimize(distance)
        return as_float(optimiser.model().eval(distance)) if str(optimiser.check()) == "sat" else None

    def try_all(self) -> Place:
        """Ask for any output at all, part by part."""
        verdicts = set()
        asked: set[str] = set()
        for keys, holds in self.parts():
            if self.is_tight(keys):
                continue
            shape = canonical(z3.And(holds, *(self.atoms[key].difference == 0 for key in keys)))
            if shape in asked:
                continue
            asked.add(shape)
            found_at = self._try_part(keys, holds) if len(asked) <= MOST_PARTS else NO_ANSWER
            if found_at[0] == "sat":
                return found_at
            verdicts.add(found_at[0])
        return NO_ANSWER if "unknown" in verdicts else ("unsat", {}, 0.0, None)

    def _try_part(self, keys: list[Key], holds: Any) -> Place:
        differences = [self.atoms[key].difference for key in keys]
        if len(keys) > MOST_ATOMS or len(numbers_of(differences)) > MOST_NUMBERS or any(self.linear[key] is None for key in keys):
            return NO_ANSWER
        cost = z3.Real("cost!")
        others, moved, changes = self._copy(holds, keys)
        if not others:  # constants alone, such as x ** 0, which no output changes
            return "unsat", {}, 0.0, None
        nobody_near = z3.ForAll(others, z3.Not(z3.And(*moved, *(within(change, cost) for change in changes))))
        solver = z3.Tactic("qsat").solver()
        solver.set("timeout", self.timeout)
        solver.add(*self.fixed, *self.world.axioms, cost >= 0, self._rule(cost), nobody_near)
        verdict = str(solver.check())
        if verdict != "sat":
            return verdict, {}, 0.0, None
        model = solver.model()
        everything = [*self.world.axioms, *(atom.difference for atom in self.atoms.values())]
        fixed = [number == model.eval(number, model_completion=True) for number in numbers_of(everything)]
        _, moved, changes = self._copy(self._rule(0), self.atoms)
        distance = self._distance([*self.fixed, *fixed, *moved], changes)
        return verdict, self.world.witness(model), as_float(model.eval(cost)), distance
