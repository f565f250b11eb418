"""Straight-through estimators on the conjunctive normal form."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from dualogic import numerics
from dualogic.arguments import check_choice, check_finite
from dualogic.compile.binding import Bound
from dualogic.compile.tree import Level
from dualogic.constants import Constants
from dualogic.errors import OptionError
from dualogic.formula.connective import Formula, Junction, Quantifier
from dualogic.methods.base import Method, State
from dualogic.methods.truth import RELAXATIONS, DegreeProgram


@dataclasses.dataclass(frozen=True)
class STE(Method):
    """Clauses on rounded predictions, with gradients that pass straight through the rounding.

    Each literal's probability is rounded to a bit ``b`` (``b_p(x) = 1`` where ``x >= 0.5``) whose derivative is taken to be 1.
    For the ``m`` clauses of the rule's CNF, ``unsat_i = prod over literals (1 - b)`` and ``keep_i = sum over literals
    (1[b = 1] (1 - b) + 1[b = 0] b)``, which is 0 in value and pulls each bit to where it is; the loss is ``(1/m) sum_i
    (1[unsat_i = 1] unsat_i + 1[unsat_i = 0] keep_i)``. So its value is the fraction of violated clauses. In a violated
    clause every literal is pushed towards true alike; in one that is met, every literal is held where it is. The deduction
    term of the source needs given facts, which a rule has not, and is left out. A comparison's bit is 1 where it holds; its
    gradient is that of the relaxed truth.

    What is believed (``believe=`` of the loss) plays no part: there are no weights that it could decide.

    Source: Yang, Lee, Park, "Injecting logical constraints into neural networks via straight-through estimators", ICML 2022.

    Args:
        keep: the weight of the second term; 0 leaves met clauses alone.
        max_clauses: the largest CNF to train on.
        relaxation: ``"exponential"`` or ``"linear"``, for comparisons; see :class:`~dualogic.methods.truth.TruthMethod`.
        scale: likewise.

    Example:
        >>> import dualogic as dl, torch
        >>> a, b, c = (dl.boolean(name) for name in "abc")
        >>> logic = dl.LogicLoss((a | b) & c, method="ste")
        >>> p = torch.tensor([0.25], requires_grad=True)
        >>> loss = logic(a=p, b=torch.tensor([0.25]), c=torch.tensor([0.75]))
        >>> loss  # the first of two clauses is violated
        tensor(0.5000, grad_fn=<MeanBackward0>)
        >>> torch.autograd.grad(loss, p)
        (tensor([-0.5000]),)
    """

    name: ClassVar[str] = "ste"

    keep: float = 1.0
    max_clauses: int = 10_000
    relaxation: str = "exponential"
    scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("relaxation", self.relaxation, tuple(RELAXATIONS))
        check_finite("scale", self.scale, above=True)
        if not 0 <= self.keep < torch.inf:
            raise OptionError(f"keep must be at least 0 and finite; got {self.keep!r}")

    def program(self, rules: Mapping[str, Formula]) -> STEProgram:
        return STEProgram(rules, self)


class STEProgram(DegreeProgram):
    """See :class:`STE`."""

    def __init__(self, rules: Mapping[str, Formula], method: STE) -> None:
        normal = {name: formula.to_cnf(method.max_clauses) for name, formula in rules.items()}
        super().__init__(normal, method.relaxation, method.scale)
        self.method = method
        self._constants: Constants[Tensor] = Constants()
        self._lone = [not _is_conjunction(formula) for formula in normal.values()]

    def evaluate(self, bound: Bound) -> Any:
        """The terms, with each atom's register at ``1 - b``."""
        registers = super().evaluate(bound)
        for leaf in self.plan.leaves:
            number = leaf.operand[0]
            registers[number] = 1.0 - round_through(registers[number], 1.0 if leaf.kind == "comparison" else 0.5)
        return registers

    def losses(self, rows: Tensor | None, state: State, values: Any) -> tuple[Tensor, Tensor]:
        seen: dict[int, Tensor] = {}
        violated = self.plan.fold(values, Violated(seen))
        lone = self._constant("lone", self._lone, violated.device)
        violated = torch.where(lone & (violated.detach() == 0), 0.0, violated)
        # Without masks every sample has the same number of clauses.
        ones = torch.ones_like if self.plan.masked else lambda value: value.new_ones((1, *value.shape[1:]))
        count = self.plan.fold(self._replaced(values, ones), count_clauses).clamp_min(1.0)
        costs = violated / count
        if not self.method.keep:
            return costs, costs
        kept = self.plan.fold(self._replaced(values, hold), Kept(seen, self._constant))
        kept = torch.where(lone & (violated.detach() != 0), 0.0, kept)
        return costs + self.method.keep * kept / count, costs

    def _constant(self, key: Any, flags: list[bool], device: torch.device) -> Tensor:
        """Flags on a device, moved there once."""
        return self._constants.get((key, device), lambda: torch.tensor(flags, device=device))

    def _replaced(self, values: Any, function: Callable[[Tensor], Tensor]) -> Any:
        registers = list(values)
        for leaf in self.plan.leaves:
            registers[leaf.operand[0]] = function(values[leaf.operand[0]])
        return registers


def round_through(degree: Tensor, threshold: float) -> Tensor:
    """1 where ``degree >= threshold`` and 0 elsewhere, with the derivative of ``degree`` itself."""
    return (degree.detach() >= threshold).to(degree.dtype) + (degree - degree.detach())


def hold(miss: Tensor) -> Tensor:
    """``1[b = 1] (1 - b) + 1[b = 0] b`` from ``miss = 1 - b``: 0, with a gradient that keeps the bit where it is."""
    return torch.where(miss.detach() == 0, miss, 1.0 - miss)


class Violated:
    """Counts violated clauses: a product over each clause's ``1 - b``, then a sum over clauses; met ones pass no gradient.

    ``seen`` collects, for each ``and``, which of its operands to count; see :class:`Kept`.
    """

    def __init__(self, seen: dict[int, Tensor]) -> None:
        self.seen = seen

    def __call__(self, level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
        if level.operation == "|":
            return numerics.product(values if mask is None else values.masked_fill(~mask, 1.0))
        met = values.detach() == 0
        self.seen[level.number] = met
        # An inner "and" with no violated clause is 0 as well, and has dropped the gradients of its clauses already.
        return values.masked_fill(met if mask is None else met | ~mask, 0.0).sum(1)


class Kept:
    """Sums :func:`hold` over the literals of the clauses that are met, as :class:`Violated` has seen them."""

    def __init__(self, seen: dict[int, Tensor], constant: Callable[[Any, list[bool], torch.device], Tensor]) -> None:
        self.seen = seen
        self.constant = constant

    def __call__(self, level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
        if level.operation == "&":
            inner = self.constant(level.number, _inner_conjunctions(level), values.device)
            inner = inner.view(1, -1, *(1,) * (values.dim() - 2))
            # What stands below an inner "and" was chosen there, clause by clause.
            values = torch.where(inner | self.seen[level.number], values, 0.0)
        return (values if mask is None else values.masked_fill(~mask, 0.0)).sum(1)


def count_clauses(level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
    """How many clauses exist, from ones at the atoms."""
    if level.operation == "|":
        return torch.ones_like(values.sum(1))
    return (values if mask is None else values.masked_fill(~mask, 0.0)).sum(1)


def _is_conjunction(formula: Formula) -> bool:
    return (isinstance(formula, Junction) and formula.operation == "&") or (
        isinstance(formula, Quantifier) and formula.operation == "all"
    )


def _inner_conjunctions(level: Level) -> list[bool]:
    """Which operands of an ``and`` are themselves conjunctions of clauses; one entry for all of a quantifier's."""
    formula = level.formulas[0]
    if isinstance(formula, Quantifier):
        return [_is_conjunction(formula.operand)]
    flags = [False] * len(level.order)
    for slot, operand in zip(level.order, formula.operands):  # type: ignore[attr-defined]
        flags[slot] = _is_conjunction(operand)
    return flags
