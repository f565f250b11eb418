"""Triton kernels for a whole step of one rule of two levels, such as an ``all`` over an ``or``: the paper's canonical form.

The first kernel fetches the rows of the batch, combines the costs and finds the moves; the second averages the moves of
repeated samples, writes the new rows, and gives the loss and its derivative with respect to every atom's cost; the third sets
``delta``. All else that a step needs is the atoms' costs and one multiplication in the backward pass. The eager path in
``methods.mixture`` is the reference and the fallback.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from dualogic import numerics
from dualogic.compile.plan import Plan
from dualogic.compile.tree import Branch, JunctionBranch, Leaf, Level, QuantifierBranch
from dualogic.errors import StateError
from dualogic.kernels import fused
from dualogic.kernels.fused import jit, loss_of, scale_after

try:
    import triton
    import triton.language as tl
except ImportError:  # the CPU build of torch has no triton
    triton = None

LARGEST = 4096
"""More atoms than this do not fit one program of a kernel; such rules are bound by memory, not by the number of operations."""


@dataclasses.dataclass(frozen=True)
class TwoLevels:
    """A rule of ``clauses`` groups of ``atoms`` atoms.

    Attributes:
        inner: the branch that joins the atoms of a clause.
        clauses: operands of the outer connective.
        atoms: operands of each inner one.
        outer_sign: 1 if the outer connective ascends (``and``), -1 if it descends (``or``).
        inner_sign: the same for the inner ones.
    """

    inner: JunctionBranch | QuantifierBranch
    clauses: int
    atoms: int
    outer_sign: float
    inner_sign: float

    def costs(self, values: Any) -> Tensor:
        """The atoms' costs, ``(batch, atoms, clauses)``."""
        seen: list[Tensor] = []

        def look(level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
            seen.append(values)
            return values[:, 0]

        self.inner.fold(values, look)
        return seen[0].reshape(seen[0].shape[0], self.atoms, self.clauses)


def find_two_levels(plan: Plan) -> TwoLevels | None:
    """The shape of a plan that the kernels can take, or ``None``."""
    if len(plan.names) != 1 or plan.masked or len(plan.levels) != 2:
        return None
    outer = plan.roots[0][0]
    inner = _only_operand(outer)
    if not isinstance(inner, (JunctionBranch, QuantifierBranch)) or not isinstance(outer, (JunctionBranch, QuantifierBranch)):
        return None
    if any(level.uniform or level.shared or level.ragged or level.rests or level.operation == ">>" for level in plan.levels):
        return None
    below = inner.groups if isinstance(inner, JunctionBranch) else (inner.operand,)
    clauses, atoms = outer.level.operands, inner.level.operands
    fits = outer.level.width == clauses and inner.level.width == clauses * atoms and clauses * atoms <= LARGEST
    if not fits or not all(isinstance(branch, Leaf) for branch in below):
        return None
    signs = [1.0 if branch.level.operation == "&" else -1.0 for branch in (outer, inner)]
    return TwoLevels(inner, clauses, atoms, signs[0], signs[1])


def _only_operand(branch: Branch) -> Branch | None:
    if isinstance(branch, QuantifierBranch):
        return branch.operand
    return branch.groups[0] if isinstance(branch, JunctionBranch) and len(branch.groups) == 1 else None


@dataclasses.dataclass(frozen=True)
class Stored:
    """What a step changes in place: table ``(samples, width)``, ``delta`` ``(1,)``, the count of steps, the guard's flags."""

    table: Tensor
    delta: Tensor
    steps: Tensor
    flags: Tensor


@dataclasses.dataclass(frozen=True)
class Pace:
    """How weights move.

    Attributes:
        step: the dual step size.
        exponentiated: not multiplied by the weight that moves, as a softmax step is.
        local: not multiplied by the weight above; a softmax step by ``min(w k / 2, 1)`` instead of the weight ``w``.
        share: of the weights, divided equally among the operands after a step.
        slow: what the step of ``and`` is to that of ``or``.
        leads: the operations whose weights the loss has times what leads, renormalised; see
            :class:`~dualogic.methods.mixture.Mixture`.
    """

    step: float
    exponentiated: bool
    local: bool
    share: float = 0.0
    slow: float = 1.0
    leads: str = ""

    def step_of(self, sign: float) -> float:
        """The signed step of a connective that ascends (1) or descends (-1)."""
        return self.step * self.slow if sign > 0 else -self.step

    def lead_of(self, sign: float) -> int:
        """Which operand of such a connective leads: the dearest (1), the nearest (-1) or none (0)."""
        operation, found = ("&", 1) if sign > 0 else ("|", -1)
        return found if operation in self.leads else 0


def two_level_step(
    shape: TwoLevels,
    costs: Tensor,
    index: Tensor,
    stored: Stored,
    pace: Pace,
    bounds: tuple[float, float],
    scale: str,
    limit: float,
) -> tuple[Tensor, Tensor]:
    """One training step: losses and costs ``(batch, 1)``; moves the duals and ``delta``.

    Args:
        shape: of the rule.
        costs: of the atoms, ``(batch, atoms, clauses)``; the losses are differentiable with respect to them, once.
        index: the samples ``(batch,)``.
        stored: what is changed.
        pace: of the weights.
        bounds: of ``delta``.
        scale: the rule of ``delta``, as in :func:`dualogic.kernels.fused.next_delta`.
        limit: a cost must be below this to count as finite.
    """
    losses: Tensor
    mu: Tensor
    losses, mu, counted = _TwoLevelStep.apply(costs, index, stored, shape, pace, limit)  # type: ignore[no-untyped-call]
    batch = costs.shape[0]
    _state[(1,)](
        mu, counted, stored.delta, stored.steps, batch, *bounds, limit,
        RULE=scale, TINY=torch.finfo(mu.dtype).tiny, BATCH=triton.next_power_of_2(batch),
    )  # fmt: skip
    return losses, mu


class _TwoLevelStep(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, costs: Tensor, index: Tensor, stored: Stored, shape: TwoLevels, pace: Pace, limit: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        batch, width = costs.shape[0], stored.table.shape[1]
        costs = costs.contiguous()
        rows, moves = torch.empty(2, batch, width, device=costs.device, dtype=costs.dtype).unbind()
        losses, mu = torch.empty(2, batch, 1, device=costs.device, dtype=costs.dtype).unbind()
        clean, counted = torch.empty_like(index), torch.empty(batch, device=costs.device, dtype=torch.int8)
        gradient = torch.empty_like(costs)
        constants = {
            "OUTER_LEAD": pace.lead_of(shape.outer_sign),
            "INNER_LEAD": pace.lead_of(shape.inner_sign),
            "TINY": torch.finfo(costs.dtype).tiny,
            "ATOMS": triton.next_power_of_2(shape.atoms),
            "CLAUSES": triton.next_power_of_2(shape.clauses),
        }
        _find_moves[(batch,)](
            stored.table, index, costs, stored.delta, rows, moves, clean, counted, stored.flags.view(torch.int8),
            stored.table.shape[0], shape.clauses, shape.atoms, pace.step_of(shape.outer_sign), pace.step_of(shape.inner_sign),
            limit, numerics.largest_move(stored.table.dtype), pace.share / (1.0 - pace.share),
            EXPONENTIATED=pace.exponentiated, LOCAL=pace.local, SHARING=pace.share > 0, **constants,
        )  # fmt: skip
        _take_step[(batch,)](
            stored.table, clean, counted, costs, stored.delta, rows, moves, losses, mu, gradient,
            batch, shape.clauses, shape.atoms, BATCH=triton.next_power_of_2(batch), **constants,
        )  # fmt: skip
        ctx.save_for_backward(gradient)
        ctx.mark_non_differentiable(mu, counted)
        return losses, mu, counted

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        if torch.is_grad_enabled():
            raise StateError(
                "a step fused into kernels can be differentiated once only; for second derivatives (create_graph=True) use "
                'LogicLoss(..., update="manual"), which takes the eager path'
            )
        (gradient,) = ctx.saved_tensors
        return gradients[0].unsqueeze(2) * gradient, None, None, None, None, None


def can_take(table: Tensor, costs: Tensor) -> bool:
    """Whether the kernels can take this step's tensors."""
    return fused.usable(table) and costs.dtype == table.dtype == torch.float32 and costs.shape[0] <= fused.MAX_BATCH


@jit
def _weigh(outer, inner, outer_mask, inner_mask):  # type: ignore[no-untyped-def]
    inner = tl.where(outer_mask[None, :], inner, 0.0)
    inner = tl.exp(inner - tl.max(inner, 0)[None, :])
    inner = tl.where(inner_mask, inner, 0.0)
    total = tl.where(outer_mask, tl.sum(inner, 0), 1.0)
    inner = inner / total[None, :]
    outer = tl.exp(outer - tl.max(outer, 0))
    outer = outer / tl.sum(outer, 0)
    return outer, inner


@jit
def _decide(costs, mask, LEAD: tl.constexpr):  # type: ignore[no-untyped-def]
    """The cost along the first axis that leads."""
    found = tl.max(tl.where(mask, costs, 0.0), 0)
    if LEAD < 0:
        found = tl.min(tl.where(mask, costs, float("inf")), 0)
    return found


@jit
def _prefer(weights, costs, decisive, LEAD: tl.constexpr):  # type: ignore[no-untyped-def]
    """Weights times nearness or dearness: the operand that leads keeps its own."""
    if LEAD < 0:
        ratio = tl.where(costs > decisive, decisive / costs, 1.0)
        ratio = ratio * ratio
    else:
        ratio = tl.where(costs < decisive, costs / decisive, 1.0)
    return weights * (ratio * ratio)


@jit
def _combine(  # type: ignore[no-untyped-def]
    outer, inner, costs, outer_mask, inner_mask, OUTER_LEAD: tl.constexpr, INNER_LEAD: tl.constexpr, TINY: tl.constexpr
):
    """The weights that the loss has, and what they give: of the outer connective, the inner ones, the clauses and the rule."""
    if INNER_LEAD != 0:
        inner = _prefer(inner, costs, _decide(costs, inner_mask, INNER_LEAD)[None, :], INNER_LEAD)
        inner = inner / tl.maximum(tl.sum(inner, 0), TINY)[None, :]
    clause = tl.sum(inner * costs, 0)
    if OUTER_LEAD != 0:
        outer = _prefer(outer, clause, _decide(clause, outer_mask, OUTER_LEAD), OUTER_LEAD)
        outer = outer / tl.maximum(tl.sum(outer, 0), TINY)
    return outer, inner, clause, tl.sum(outer * clause, 0)


@jit
def _count_past(outer, inner, outer_mask, inner_mask, most):  # type: ignore[no-untyped-def]
    outside = tl.sum((((outer < most) == 0) & outer_mask).to(tl.int32), 0)
    return outside + tl.sum(tl.sum((((inner < most) == 0) & inner_mask).to(tl.int32), 1), 0)


@jit
def _share(  # type: ignore[no-untyped-def]
    move_outer, move_inner, stored_outer, stored_inner, outer_mask, inner_mask, clauses, atoms, extra
):
    outer, inner = _weigh(stored_outer + move_outer, stored_inner + move_inner, outer_mask, inner_mask)
    outer = tl.where(outer_mask, tl.log(outer + extra / clauses), 0.0)
    inner = tl.where(inner_mask, tl.log(inner + extra / atoms), 0.0)
    move_outer = outer - tl.sum(outer, 0) / clauses - stored_outer
    move_inner = inner - (tl.sum(inner, 0) / atoms)[None, :] - stored_inner
    return move_outer, move_inner


@jit
def _find_moves(  # type: ignore[no-untyped-def]
    table, index, costs, delta, rows, moves, clean, counted, flags,
    samples, clauses, atoms, outer_step, inner_step, limit, most, extra,
    EXPONENTIATED: tl.constexpr, LOCAL: tl.constexpr, SHARING: tl.constexpr,
    OUTER_LEAD: tl.constexpr, INNER_LEAD: tl.constexpr, TINY: tl.constexpr, ATOMS: tl.constexpr, CLAUSES: tl.constexpr,
):  # fmt: skip
    sample = tl.program_id(0)
    width = clauses * (1 + atoms)
    asked = tl.load(index + sample)
    inside = (asked >= 0) & (asked < samples)
    position = tl.where(inside, asked, 0)
    o = tl.arange(0, CLAUSES)
    i = tl.arange(0, ATOMS)[:, None] * clauses + o[None, :]
    outer_mask = o < clauses
    inner_mask = (tl.arange(0, ATOMS)[:, None] < atoms) & outer_mask[None, :]
    outer = tl.load(table + position * width + o, mask=outer_mask, other=float("-inf"))
    inner = tl.load(table + position * width + clauses + i, mask=inner_mask, other=float("-inf"))
    own = sample.to(tl.int64) * width
    tl.store(rows + own + o, outer, mask=outer_mask)
    tl.store(rows + own + clauses + i, inner, mask=inner_mask)
    cost = tl.load(costs + sample.to(tl.int64) * atoms * clauses + i, mask=inner_mask, other=0.0)
    stored_outer, stored_inner = outer, inner
    outer, inner = _weigh(outer, inner, outer_mask, inner_mask)
    passed, _, clause, mu = _combine(outer, inner, cost, outer_mask, inner_mask, OUTER_LEAD, INNER_LEAD, TINY)
    _, slope = loss_of(mu, tl.load(delta))
    fine = mu < limit
    tl.store(clean + sample, position)
    if inside == 0:
        tl.store(flags, 1)
    # What moves is what is stored, so it is centred by what that gives, and not by what the loss has.
    whole, parts = mu, clause
    if OUTER_LEAD != 0:
        whole = tl.sum(outer * clause, 0)
    if INNER_LEAD != 0:
        parts = tl.sum(inner * cost, 0)
    move_outer = outer_step * slope * (clause - whole)
    move_inner = inner_step * slope * (cost - parts[None, :])
    if not LOCAL:
        move_inner = move_inner * passed[None, :]
    if not EXPONENTIATED:
        if LOCAL:
            move_outer = move_outer * tl.minimum(outer * (0.5 * clauses), 1.0)
            move_inner = move_inner * tl.minimum(inner * (0.5 * atoms), 1.0)
        else:
            move_outer = move_outer * outer
            move_inner = move_inner * inner
    if SHARING:
        move_outer, move_inner = _share(
            move_outer, move_inner, stored_outer, stored_inner, outer_mask, inner_mask, clauses, atoms, extra
        )
    fine = fine & (_count_past(move_outer, move_inner, outer_mask, inner_mask, most) == 0)
    if fine == 0:
        tl.store(flags + 1, 1)
    counts = fine & inside
    tl.store(counted + sample, counts.to(tl.int8))
    tl.store(moves + own + o, tl.where(counts, move_outer, 0.0), mask=outer_mask)
    tl.store(moves + own + clauses + i, tl.where(counts, move_inner, 0.0), mask=inner_mask)


@jit
def _take_step(  # type: ignore[no-untyped-def]
    table, index, counted, costs, delta, rows, moves, losses, mus, gradient,
    batch, clauses, atoms, BATCH: tl.constexpr,
    OUTER_LEAD: tl.constexpr, INNER_LEAD: tl.constexpr, TINY: tl.constexpr, ATOMS: tl.constexpr, CLAUSES: tl.constexpr,
):  # fmt: skip
    sample = tl.program_id(0)
    width = clauses * (1 + atoms)
    position = tl.load(index + sample)
    others = tl.arange(0, BATCH)
    same = tl.load(index + others, mask=others < batch, other=-1) == position
    occurrences = tl.sum(same.to(tl.int32))
    # Bad indices were set to 0: they and costs that are not finite are no occurrences in the mean.
    number = tl.sum((same & (tl.load(counted + others, mask=others < batch, other=0) != 0)).to(tl.int32))
    o = tl.arange(0, CLAUSES)
    i = tl.arange(0, ATOMS)[:, None] * clauses + o[None, :]
    outer_mask = o < clauses
    inner_mask = (tl.arange(0, ATOMS)[:, None] < atoms) & outer_mask[None, :]
    own = sample.to(tl.int64) * width
    move_outer = tl.load(moves + own + o, mask=outer_mask, other=0.0)
    move_inner = tl.load(moves + own + clauses + i, mask=inner_mask, other=0.0)
    if occurrences > 1:
        move_outer = tl.zeros_like(move_outer)
        move_inner = tl.zeros_like(move_inner)
        for other in range(batch):
            if tl.load(index + other) == position:
                theirs = tl.cast(other, tl.int64) * width
                move_outer += tl.load(moves + theirs + o, mask=outer_mask, other=0.0)
                move_inner += tl.load(moves + theirs + clauses + i, mask=inner_mask, other=0.0)
        move_outer = move_outer / tl.maximum(number, 1)
        move_inner = move_inner / tl.maximum(number, 1)
    outer = tl.load(rows + own + o, mask=outer_mask, other=float("-inf")) + move_outer
    inner = tl.load(rows + own + clauses + i, mask=inner_mask, other=float("-inf")) + move_inner
    tl.store(table + position * width + o, outer, mask=outer_mask)
    tl.store(table + position * width + clauses + i, inner, mask=inner_mask)
    cells = sample.to(tl.int64) * atoms * clauses + i
    cost = tl.load(costs + cells, mask=inner_mask, other=0.0)
    outer, inner = _weigh(outer, inner, outer_mask, inner_mask)
    outer, inner, _, mu = _combine(outer, inner, cost, outer_mask, inner_mask, OUTER_LEAD, INNER_LEAD, TINY)
    loss, slope = loss_of(mu, tl.load(delta))
    tl.store(losses + sample, loss)
    tl.store(mus + sample, mu)
    tl.store(gradient + cells, slope * outer[None, :] * inner, mask=inner_mask)


@jit
def _state(  # type: ignore[no-untyped-def]
    mus, counted, delta, steps, batch, floor, ceiling, limit, RULE: tl.constexpr, TINY: tl.constexpr, BATCH: tl.constexpr
):
    samples = tl.arange(0, BATCH)
    counts = (tl.load(counted + samples, mask=samples < batch, other=0) != 0) & (samples < batch)
    cost = tl.load(mus + samples, mask=counts, other=0.0)
    counts = counts & (cost < limit)
    cost = tl.where(counts, cost, 0.0)
    tl.store(delta, scale_after(cost, tl.sum(counts.to(tl.int32)), tl.load(delta), floor, ceiling, RULE, TINY))
    tl.store(steps, tl.load(steps) + 1)
