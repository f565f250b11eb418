"""Knowledge compilation: propositions over numbered variables to a sentential decision diagram, by ``pysdd``."""

from __future__ import annotations

from typing import Any

from dualogic.circuits.grounding import Proposition
from dualogic.errors import SizeError, needs

VTREES = ("balanced", "right", "left")
MAX_DEPTH = 128  # how deep a vtree may be: pysdd recurses on the C stack, which 8 MB exhaust at 200 to 300 levels


class Compiler:
    """A manager over ``count`` variables that turns propositions into decision diagrams, of at most ``max_nodes`` nodes.

    The variables are split by a ``"balanced"``, ``"right"`` or ``"left"`` vtree; a balanced one gives shallow circuits.
    """

    def __init__(self, count: int, vtree: str = "balanced", max_nodes: int = 1_000_000) -> None:
        with needs("sdd", "the methods 'semantic' and 'problog' count models with pysdd"):
            from pysdd.sdd import SddManager, Vtree
        if vtree != "balanced" and count > MAX_DEPTH:
            raise SizeError(
                f"a {vtree}-linear vtree of {count} variables is too deep for pysdd (at most {MAX_DEPTH}); use vtree='balanced'"
            )
        self.vtree = Vtree(var_count=count, vtree_type=vtree)
        self.manager = SddManager.from_vtree(self.vtree)
        self.max_nodes = max_nodes
        self._done: dict[int, Any] = {}

    def compile(self, proposition: Proposition) -> Any:
        """The SDD of a proposition whose atoms are ``("variable", number)``, numbered from 1."""
        if id(proposition) not in self._done:
            self._done[id(proposition)] = self._compile(proposition)
        return self._done[id(proposition)]

    def _compile(self, proposition: Proposition) -> Any:
        kind = proposition[0]
        if kind == "variable":
            return self.manager.literal(proposition[1])
        if kind == "not":
            return self.manager.negate(self.compile(proposition[1]))
        operands = [self.compile(operand) for operand in proposition[-1]]
        if kind == "count":
            counts = self._counts(operands, proposition[1])
            return counts[proposition[1]] if proposition[2] else self._merge(counts, self.manager.disjoin)
        return self._merge(operands, self.manager.conjoin if kind == "and" else self.manager.disjoin)

    def _merge(self, operands: list[Any], apply: Any) -> Any:
        """Join neighbours first, so that intermediate diagrams stay local to a part of the variables."""
        while len(operands) > 1:
            pairs = zip(operands[::2], operands[1::2])
            odd = operands[-1:] if len(operands) % 2 else []
            operands = [self._apply(apply, left, right) for left, right in pairs] + odd
        return operands[0]

    def _counts(self, operands: list[Any], bound: int) -> list[Any]:
        """Diagrams that say that exactly 0, 1, ..., ``bound`` of the operands hold, by halves."""
        manager = self.manager
        if len(operands) == 1:
            return [manager.negate(operands[0]), operands[0], *(manager.false() for _ in range(bound - 1))][: bound + 1]
        half = len(operands) // 2
        left, right = self._counts(operands[:half], bound), self._counts(operands[half:], bound)
        return [
            self._merge([self._apply(manager.conjoin, left[i], right[total - i]) for i in range(total + 1)], manager.disjoin)
            for total in range(bound + 1)
        ]

    def _apply(self, apply: Any, left: Any, right: Any) -> Any:
        result = apply(left, right)
        if self.manager.count() > self.max_nodes:
            raise SizeError(
                f"the rule's decision diagram has more than max_nodes={self.max_nodes:,} nodes; try another vtree, or "
                f"use a method that works on whole tensors, such as 'dual'"
            )
        return result
