"""The loss of weighted rules with its gradient in closed form: one node of autograd's from the atoms to the loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dualogic.compile.instructions import Registers, Settled, fetch
from dualogic.compile.plan import Plan
from dualogic.compile.tree import Branch, JunctionBranch, Leaf, QuantifierBranch
from dualogic.losses.truncated_normal import loss_and_slope, truncated_normal_loss
from dualogic.methods.lean import Leaning
from dualogic.methods.mixture import Mixture


def has_closed_form(plan: Plan) -> bool:
    """Whether :func:`closed_losses` knows all connectives: nothing is masked, can be empty, or is joined in an antecedent."""
    return not plan.masked and all(_is_known(branch) for branch, _ in plan.roots)


def _is_known(branch: Branch) -> bool:
    if isinstance(branch, JunctionBranch):
        return not branch.can_be_empty and all(map(_is_known, branch.groups))
    if isinstance(branch, QuantifierBranch):
        return not branch.can_be_empty and _is_known(branch.operand)
    return isinstance(branch, Leaf)


def closed_losses(
    plan: Plan, mixture: Mixture, delta: Tensor, values: Registers | Settled, taught: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """Losses and costs ``(batch, rules)``; a gradient flows through the losses alone.

    Args:
        plan: the compiled rules, of which :func:`has_closed_form` is true.
        mixture: with the weights; it remembers what it folds, and slopes.
        delta: the rules' scales, which nobody else changes.
        values: of the atoms.
        taught: the registers of atoms that a gradient may reach.
    """
    found: tuple[Tensor, Tensor] = _Closed.apply(  # type: ignore[no-untyped-call]
        plan, mixture, delta, values, taught, *(values[number] for number in taught)
    )
    return found


class _Closed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, plan: Plan, mixture: Mixture, delta: Tensor, values: Any, taught: tuple[int, ...], *atoms: Tensor
    ) -> tuple[Tensor, Tensor]:
        costs = plan.fold(values, mixture)
        losses, slope = loss_and_slope(costs, delta)
        ctx.held = plan, mixture, delta, values, taught, slope
        ctx.save_for_backward(*atoms)
        ctx.mark_non_differentiable(costs)
        ctx.set_materialize_grads(False)
        return losses, costs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        plan, mixture, delta, values, taught, slope = ctx.held
        if gradients[0] is None:
            return (None,) * (5 + len(taught))
        wanted = ctx.needs_input_grad[5:]
        if torch.is_grad_enabled():
            registers = dict(enumerate(values.taught if isinstance(values, Settled) else values))
            registers.update(zip(taught, ctx.saved_tensors))
            return (
                *(None,) * 5,
                *differentiable_slopes(plan, mixture.again(), delta, registers, ctx.saved_tensors, wanted, gradients[0]),
            )
        slopes = find_slopes(plan, mixture, values, gradients[0] * slope)
        return (*(None,) * 5, *(slopes.get(number) if needed else None for number, needed in zip(taught, wanted)))


def differentiable_slopes(
    plan: Plan, mixture: Mixture, delta: Tensor, registers: Any, atoms: Sequence[Tensor], wanted: Sequence[bool], gradient: Tensor
) -> list[Tensor | None]:
    """Where a second derivative is wanted: a first one that can be differentiated."""
    losses = truncated_normal_loss(plan.fold(registers, mixture), delta)
    moving = [atom for atom, needed in zip(atoms, wanted) if needed]
    found = iter(torch.autograd.grad(losses, moving, gradient, create_graph=True, allow_unused=True))
    return [next(found) if needed else None for needed in wanted]


def find_slopes(plan: Plan, mixture: Mixture, values: Any, slope: Tensor) -> dict[int, Tensor]:
    """What the loss rises by with each atom, by register, from that with the rules' costs ``(batch, rules)``."""
    slopes: dict[int, Tensor] = {}
    for branch, places in plan.roots:
        whole = len(places) == slope.shape[1]
        part = slope if whole else slope.index_select(1, plan.positions(tuple(places), slope.device))
        _reach(branch, part, mixture, values, slopes)
    return slopes


def _reach(branch: Branch, slope: Tensor, mixture: Mixture, values: Any, slopes: dict[int, Tensor]) -> None:
    """Bring the slope of the loss at a branch, ``(batch, *lanes, *axes)`` or broadcast from it, to the atoms below."""
    if isinstance(branch, Leaf):
        if branch.share == 1.0:
            return
        number = branch.operand[0]
        slope = slope.sum_to_size(fetch(values, branch.operand).shape)
        slope = slope if branch.operand[1] is None else slope.view(values[number].shape)
        slope = slope * (1.0 - branch.share) if branch.share else slope
        slopes[number] = slopes[number] + slope if number in slopes else slope
        return
    assert isinstance(branch, (JunctionBranch, QuantifierBranch))
    seen = mixture.joined[branch.level.number]  # type: ignore[index]
    slopes_below = seen.slopes if isinstance(seen, Leaning) else seen.passed
    below = slope.sum_to_size(seen.result.shape).unsqueeze(1) * slopes_below  # type: ignore[operator]
    below = below if below.shape == seen.values.shape else below.expand(seen.values.shape)
    if isinstance(branch, QuantifierBranch):
        front = tuple(range(1, 1 + len(branch.dims)))
        below = below.unflatten(1, seen.extent) if len(front) > 1 else below
        _reach(branch.operand, below if branch.dims == front else below.movedim(front, branch.dims), mixture, values, slopes)
        return
    start, axes = 0, 2 + len(branch.lanes)
    for group, count, rank in zip(branch.groups, branch.counts, branch.ranks):
        part = below if len(branch.groups) == 1 else below.narrow(1, start, count)
        for _ in range(branch.rank - rank):
            part = part.sum(axes)
        _reach(group, part, mixture, values, slopes)
        start += count
