"""What the methods on degrees of truth in [0, 1] share: relaxed comparisons, and a loss from the truth of a rule."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from dualogic.arguments import check_choice, check_finite
from dualogic.compile.binding import Bound
from dualogic.compile.plan import compile_rules
from dualogic.compile.tree import Leaf, Level
from dualogic.formula.connective import Formula
from dualogic.methods.base import Method, Program, State
from dualogic.numerics import negative_log

LOSSES = ("linear", "log")


def exponential_truth(cost: Tensor, scale: float) -> Tensor:
    """``exp(-cost / scale)``: 1 exactly where the comparison holds, with a gradient everywhere else.

    Example:
        >>> exponential_truth(torch.tensor([0.0, 1.0]), 1.0)
        tensor([1.0000, 0.3679])
    """
    return torch.exp(cost / -scale)


def linear_truth(cost: Tensor, scale: float) -> Tensor:
    """``max(0, 1 - cost / scale)``: for ``s == 1`` with ``s`` in [0, 1] and scale 1 it is ``s`` itself; flat past ``scale``.

    Example:
        >>> linear_truth(torch.tensor([0.0, 0.25, 3.0]), 1.0)
        tensor([1.0000, 0.7500, 0.0000])
    """
    return torch.relu(1.0 - cost / scale)


RELAXATIONS: dict[str, Callable[[Tensor, float], Tensor]] = {"exponential": exponential_truth, "linear": linear_truth}


@dataclasses.dataclass(frozen=True)
class TruthMethod(Method):
    """Options of the methods that compute a rule's truth ``t`` in [0, 1].

    A class atom ``f == k`` is as true as its probability, a Boolean likewise. A comparison is as true as its cost is small
    (Eq. 1 of the paper): ``exp(-cost / scale)`` or ``max(0, 1 - cost / scale)``. Both are 1 exactly where the comparison
    holds; no published t-norm says what a comparison is worth, so this relaxation is a choice of dualogic's.

    What is believed (``believe=`` of the loss) plays no part: there are no weights that it could decide.

    Args:
        loss: ``"linear"`` for ``1 - t``, ``"log"`` for ``-log t``.
        relaxation: ``"exponential"`` or ``"linear"``, for comparisons.
        scale: the cost at which a comparison is true to the degree ``1/e`` (exponential) or 0 (linear).
    """

    loss: str = "linear"
    relaxation: str = "exponential"
    scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("loss", self.loss, LOSSES)
        check_choice("relaxation", self.relaxation, tuple(RELAXATIONS))
        check_finite("scale", self.scale, above=True)

    def combine(self, level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
        """Join degrees of truth ``(batch, k, *rest)``; an empty ``and`` is true and an empty ``or`` false."""
        raise NotImplementedError

    def program(self, rules: Mapping[str, Formula]) -> TruthProgram:
        return TruthProgram(rules, self)


class DegreeProgram(Program):
    """A program on degrees of truth; comparisons are relaxed once, after all terms are computed."""

    def __init__(self, rules: Mapping[str, Formula], relaxation: str, scale: float) -> None:
        self.plan = compile_rules(rules.items(), "degree")
        self.relax = RELAXATIONS[relaxation]
        self.scale = scale
        self.comparisons = [leaf for leaf in self.plan.leaves if leaf.kind == "comparison"]

    def evaluate(self, bound: Bound) -> Any:
        registers = self.plan.evaluate(bound)
        for leaf in self.comparisons:
            # A comparison's register is read by its leaf alone.
            registers[leaf.operand[0]] = self.relax_comparison(leaf, registers[leaf.operand[0]])
        return registers

    def relax_comparison(self, leaf: Leaf, cost: Tensor) -> Tensor:
        """The truth of a comparison from its cost, elementwise."""
        return self.relax(cost, self.scale)


class TruthProgram(DegreeProgram):
    """See :class:`TruthMethod`."""

    def __init__(self, rules: Mapping[str, Formula], method: TruthMethod) -> None:
        super().__init__(rules, method.relaxation, method.scale)
        self.method = method

    def losses(self, rows: Tensor | None, state: State, values: Any) -> tuple[Tensor, Tensor]:
        truth = self.plan.fold(values, self.method.combine)
        costs = 1.0 - truth
        return (costs if self.method.loss == "linear" else negative_log(truth)), costs
