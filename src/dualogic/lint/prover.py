"""Questions to the solver: assumptions with names, a time limit, and minimal reasons."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import z3

from dualogic.lint.world import World


@dataclasses.dataclass(frozen=True)
class Answer:
    """``verdict`` is ``"sat"`` (with a model), ``"unsat"`` (with the assumptions that exclude each other) or ``"unknown"``."""

    verdict: str
    model: Any = None
    core: tuple[Any, ...] = ()


class Prover:
    """One solver that keeps what it learned between questions, each of which may take ``timeout`` seconds."""

    def __init__(self, world: World, timeout: float) -> None:
        self.world = world
        self.solver = z3.Solver()
        self.solver.set("timeout", max(1, int(timeout * 1000)))
        self._added = 0
        self._names = 0

    def name(self, proposition: Any) -> Any:
        """An assumption that stands for a proposition."""
        literal = z3.Bool(f"assume!{self._names}")
        self._names += 1
        self.solver.add(z3.Implies(literal, proposition))
        return literal

    def ask(self, assumptions: Iterable[Any], *propositions: Any) -> Answer:
        """Whether all of it can hold together."""
        self.solver.add(*self.world.axioms[self._added :])
        self._added = len(self.world.axioms)
        self.solver.push()
        try:
            self.solver.add(*propositions)
            verdict = str(self.solver.check(*assumptions))
            model = self.solver.model() if verdict == "sat" else None
            core = tuple(self.solver.unsat_core()) if verdict == "unsat" else ()
            return Answer(verdict, model, core)
        finally:
            self.solver.pop()

    def minimise(self, core: Sequence[Any], fixed: Sequence[Any], *propositions: Any) -> list[Any]:
        """Drop assumptions from an unsatisfiable set, first ones first, until none can be spared."""
        kept = list(core)
        for literal in list(kept):
            rest = [other for other in kept if other is not literal]
            if self.ask([*fixed, *rest], *propositions).verdict == "unsat":
                kept = rest
        return kept
