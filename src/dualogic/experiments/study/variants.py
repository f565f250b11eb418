"""Variants of :class:`~dualogic.methods.dual.Dual` for the study alone, for rules without masks: other ways to move the weights.

What they remember of a sample stands in its row of the table, behind its duals. Each is tried in
:mod:`dualogic.experiments.study.ascent`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from dualogic.experiments.study.digits import EPOCHS
from dualogic.experiments.study.options import EPOCH
from dualogic.formula.connective import Formula
from dualogic.formula.evidence import as_share
from dualogic.methods import Dual
from dualogic.methods.base import State
from dualogic.methods.dual import DualProgram
from dualogic.normalize.class_sets import unfold_class_sets
from dualogic.normalize.nnf import to_nnf

UPDATES = EPOCHS * EPOCH


class StudyProgram(DualProgram):
    """A program without the kernels that know the default's steps only."""

    def __init__(self, rules: Mapping[str, Formula], method: Dual) -> None:
        super().__init__(rules, method)
        self.two_levels = None


class RememberingProgram(StudyProgram):
    """Rows of duals, as many numbers to remember, and the number of visits: ``(batch, 2 * duals + 1)``."""

    def __init__(self, rules: Mapping[str, Formula], method: Dual) -> None:
        super().__init__(rules, method)
        self.duals = self.plan.width
        self.width = 2 * self.duals + 1

    def parts(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Duals ``(batch, duals)``, what is remembered ``(batch, duals)``, and visits ``(batch, 1)``."""
        duals, memory, visits = rows.split([self.duals, self.duals, 1], 1)
        return duals, memory, visits

    def used(self, rows: Tensor) -> Tensor:
        """The logits of the weights that the loss has, ``(batch, duals)``."""
        return self.parts(rows)[0]

    def mix(self, rows: Tensor | None, values: Any) -> Tensor:
        return super().mix(None if rows is None else self.used(rows), values)

    def weights(self, rows: Tensor) -> dict[str, Tensor]:
        return super().weights(self.used(rows))


@dataclasses.dataclass(frozen=True)
class Optimistic(Dual):
    """Steps of ``2 a - b``, for the default's step ``a`` and what it was at the sample's visit before, ``b``.

    The first visit has no ``b``, and moves by ``a``.
    """

    def program(self, rules: Mapping[str, Formula]) -> OptimisticProgram:
        return OptimisticProgram(rules, self)


class OptimisticProgram(RememberingProgram):
    """See :class:`Optimistic`; remembers ``b``."""

    def moves(self, rows: Tensor, state: State, values: Any) -> tuple[Tensor, Tensor]:
        duals, before, visits = self.parts(rows)
        costs, now = super().moves(duals, state, values)
        moves = torch.where(visits > 0, 2.0 * now - before, now)
        return costs, torch.cat([moves, now - before, torch.ones_like(visits)], 1)


@dataclasses.dataclass(frozen=True)
class Extragradient(Dual):
    """The default's step as it is at duals that have taken a trial step, on the same outputs of the network."""

    def program(self, rules: Mapping[str, Formula]) -> ExtragradientProgram:
        return ExtragradientProgram(rules, self)


class ExtragradientProgram(StudyProgram):
    """See :class:`Extragradient`."""

    def moves(self, rows: Tensor, state: State, values: Any) -> tuple[Tensor, Tensor]:
        costs, trial = super().moves(rows, state, values)
        return costs, super().moves(rows + trial, state, values)[1]


@dataclasses.dataclass(frozen=True)
class Averaged(Dual):
    """The loss has an average over visits of the weights; those that are averaged have the default's steps.

    Args:
        decay: of an exponential average that starts at equal weights; ``None`` for the mean of all visits.
    """

    decay: float | None = None

    def program(self, rules: Mapping[str, Formula]) -> AveragedProgram:
        return AveragedProgram(rules, self)


class AveragedProgram(RememberingProgram):
    """See :class:`Averaged`; remembers the average less equal weights, so that a new table holds equal ones."""

    method: Averaged

    def __init__(self, rules: Mapping[str, Formula], method: Dual) -> None:
        super().__init__(rules, method)
        self.equal = 1.0 / torch.cat([torch.full((level.width,), float(level.operands)) for level in self.plan.levels])

    def used(self, rows: Tensor) -> Tensor:
        return (self.parts(rows)[1] + self.equal).clamp_min(torch.finfo(rows.dtype).tiny).log()

    def moves(self, rows: Tensor, state: State, values: Any) -> tuple[Tensor, Tensor]:
        duals, average, visits = self.parts(rows)
        costs, moves = super().moves(duals, state, values)
        share = 1.0 / (visits + 1.0) if self.method.decay is None else 1.0 - self.method.decay
        moved = share * (each_weight(self, duals + moves) - self.equal - average)
        return costs, torch.cat([moves, moved, torch.ones_like(visits)], 1)


def each_weight(program: DualProgram, duals: Tensor) -> Tensor:
    """The weights of all connectives in the order of the duals, ``(batch, duals)``."""
    levels = program.plan.levels
    return torch.cat([program.rule.weights(level.columns(duals), None).flatten(1) for level in levels], 1)


@dataclasses.dataclass(frozen=True)
class Tempered(Dual):
    """``softmax(logits / T)`` for weights, with a ``T`` that falls by the same factor at each of a sample's visits.

    The step is along the gradient with respect to the logits, which has a factor ``1 / T``.

    Args:
        start: ``T`` before the first visit.
        end: ``T`` at the last of :data:`~dualogic.experiments.study.digits.EPOCHS` visits, and from there on.
    """

    start: float = 1.0
    end: float = 1.0

    def program(self, rules: Mapping[str, Formula]) -> TemperedProgram:
        return TemperedProgram(rules, self)


class TemperedProgram(RememberingProgram):
    """See :class:`Tempered`; remembers nothing but the number of visits."""

    method: Tempered

    def temperature(self, visits: Tensor) -> Tensor:
        """``T`` after so many visits, of the same shape."""
        return self.method.start * (self.method.end / self.method.start) ** (visits / EPOCHS).clamp_max(1.0)

    def used(self, rows: Tensor) -> Tensor:
        duals, _, visits = self.parts(rows)
        return duals / self.temperature(visits)

    def moves(self, rows: Tensor, state: State, values: Any) -> tuple[Tensor, Tensor]:
        duals, memory, visits = self.parts(rows)
        temperature = self.temperature(visits + 1.0)
        costs, moves = super().moves(duals / temperature, state, values)
        return costs, torch.cat([moves / temperature, torch.zeros_like(memory), torch.ones_like(visits)], 1)


@dataclasses.dataclass(frozen=True)
class Entropic(Dual):
    """Weights also ascend on their entropy, times a factor that falls linearly to 0 at the end of training.

    Args:
        entropy: the factor at first.
    """

    entropy: float = 0.0

    def program(self, rules: Mapping[str, Formula]) -> EntropicProgram:
        return EntropicProgram(rules, self)


class EntropicProgram(StudyProgram):
    """See :class:`Entropic`."""

    method: Entropic

    def moves(self, rows: Tensor, state: State, values: Any) -> tuple[Tensor, Tensor]:
        costs, moves = super().moves(rows, state, values)
        factor = self.method.entropy * (1.0 - state["steps"] / UPDATES).clamp_min(0.0)
        return costs, moves + self.method.step * factor * self._slope(rows)

    def _slope(self, rows: Tensor) -> Tensor:
        """The entropy's derivative with respect to each logit: ``-w (log w + H)``."""
        parts = []
        for level in self.plan.levels:
            weights = self.rule.weights(level.columns(rows), None)
            terms = torch.special.entr(weights)
            parts.append((terms - weights * terms.sum(1, keepdim=True)).flatten(1))
        return torch.cat(parts, 1)


@dataclasses.dataclass(frozen=True)
class Adaptive(Dual):
    """Each dual's step is divided by the root of the squares of its gradients so far: its first visit moves it by ``step``.

    Args:
        decay: of an exponential mean of the squares, corrected for its start at 0; ``None`` for their sum.
    """

    decay: float | None = None

    def program(self, rules: Mapping[str, Formula]) -> AdaptiveProgram:
        return AdaptiveProgram(rules, self)


class AdaptiveProgram(RememberingProgram):
    """See :class:`Adaptive`; remembers the sum or mean of the squares."""

    method: Adaptive

    def moves(self, rows: Tensor, state: State, values: Any) -> tuple[Tensor, Tensor]:
        duals, squares, visits = self.parts(rows)
        costs, moves = super().moves(duals, state, values)
        gradients, decay = moves / self.method.step, self.method.decay
        if decay is None:
            added = gradients.square()
            scale = squares + added
        else:
            added = (1.0 - decay) * (gradients.square() - squares)
            scale = (squares + added) / (1.0 - decay ** (visits + 1.0))
        return costs, torch.cat([moves / (scale.sqrt() + 1e-8), added, torch.ones_like(visits)], 1)


@dataclasses.dataclass(frozen=True)
class Normalised(Dual):
    """Steps do not depend on the scale of the costs.

    Args:
        by: ``"batch"``, the mean absolute move of a batch is ``step``; ``"cost"``, a sample's step is divided by its rule's cost,
            or by 0.01 if that is more.
    """

    by: str = "batch"

    def program(self, rules: Mapping[str, Formula]) -> NormalisedProgram:
        return NormalisedProgram(rules, self)


class NormalisedProgram(StudyProgram):
    """See :class:`Normalised`; for one rule."""

    method: Normalised

    def moves(self, rows: Tensor, state: State, values: Any) -> tuple[Tensor, Tensor]:
        costs, moves = super().moves(rows, state, values)
        scale = moves.abs().mean() / self.method.step if self.method.by == "batch" else costs.clamp_min(0.01)
        return costs, moves / scale.clamp_min(torch.finfo(moves.dtype).tiny)


@dataclasses.dataclass(frozen=True)
class Ordered(Dual):
    """Some connectives' weights stay equal for the first half of training.

    Args:
        late: which: ``"inner"``, all below the outermost; ``"outer"``; or ``""`` for none.
        unfold: write "not a 9" as an ``or`` over the other classes where costs are logarithmic too, so that there are two levels.
    """

    late: str = ""
    unfold: bool = False

    def program(self, rules: Mapping[str, Formula]) -> OrderedProgram:
        if self.unfold:
            share = as_share(self.evidence, "evidence")
            rules = {name: unfold_class_sets(to_nnf(formula, share)) for name, formula in rules.items()}
        return OrderedProgram(rules, self)


class OrderedProgram(StudyProgram):
    """See :class:`Ordered`."""

    method: Ordered

    def moves(self, rows: Tensor, state: State, values: Any) -> tuple[Tensor, Tensor]:
        costs, moves = super().moves(rows, state, values)
        outer = torch.arange(self.width) < self.plan.levels[0].width
        late = {"inner": ~outer, "outer": outer, "": torch.zeros_like(outer)}[self.method.late]
        return costs, moves.masked_fill(late & (state["steps"] < UPDATES // 2), 0.0)
