"""The loss of weighted rules with its gradient in closed form: one node of autograd's from the atoms to the loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from dualogic.compile.instructions import Registers, Settled, fetch
from dualogic.compile.plan import Plan
from dualogic.compile.tree import Branch, JunctionBranch, Leaf, QuantifierBranch
from dualogic.losses.truncated_normal import loss_and_slope, truncated_normal_loss
from dualogic.methods.lean import Leaning
from dualogic.methods.mixture import Mixture

Slopes = Callable[..., "Sequence[Tensor | None]"]


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
    """Losses and costs ``(batch, rules)``; a gradient flows through the losses alone, into the atoms that are ``taught``.

    The plan is one of which :func:`has_closed_form` is true; the mixture remembers what it folds, and slopes.
    """
    found: list[Tensor] = []

    def compute() -> tuple[Tensor, Slopes]:
        losses, costs, slopes = lose(plan, mixture, delta, values, taught)
        found.append(costs)
        return losses, slopes

    def repeat(atoms: Sequence[Tensor]) -> Tensor:
        registers = list(values.taught if isinstance(values, Settled) else values)
        for number, atom in zip(taught, atoms):
            registers[number] = atom
        return truncated_normal_loss(plan.fold(registers, mixture.again()), delta)

    losses: Tensor = Closed.apply(compute, repeat, *(values[number] for number in taught))  # type: ignore[no-untyped-call]
    return losses, found[0]


def lose(plan: Plan, mixture: Mixture, delta: Tensor, values: Any, taught: tuple[int, ...]) -> tuple[Tensor, Tensor, Slopes]:
    """Losses, costs, and what brings the gradient of the losses to atoms (or to all but evidence); see :func:`closed_losses`."""
    costs = plan.fold(values, mixture)
    losses, slope = loss_and_slope(costs, delta)

    def slopes(gradient: Tensor, held: bool = True) -> list[Tensor | None]:
        found: dict[int, Tensor] = {}
        below = gradient * slope
        for branch, places in plan.roots:
            whole = len(places) == below.shape[1]
            part = below if whole else below.index_select(1, plan.positions(tuple(places), below.device))
            _reach(branch, part, mixture, values, found, held)
        return [found.get(number) for number in taught]

    return losses, costs, slopes


class Closed(torch.autograd.Function):
    """Losses from atoms by functions of one's own: ``compute`` gives them and what brings their gradient to the atoms, ``repeat``
    gives them again, from atoms that they can be differentiated by.
    """

    @staticmethod
    def forward(
        ctx: Any, compute: Callable[[], tuple[Tensor, Slopes]], repeat: Callable[[Sequence[Tensor]], Tensor], *atoms: Tensor
    ) -> Tensor:
        losses, ctx.slopes = compute()
        ctx.repeat = repeat
        ctx.save_for_backward(*atoms)
        return losses

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        if not torch.is_grad_enabled():
            return (None, None, *ctx.slopes(gradients[0]))
        # A second derivative is wanted: give a first one that can be differentiated.
        atoms, wanted = ctx.saved_tensors, ctx.needs_input_grad[2:]
        moving = [atom for atom, needed in zip(atoms, wanted) if needed]
        found = torch.autograd.grad(ctx.repeat(atoms), moving, gradients[0], create_graph=True, allow_unused=True)
        slopes = iter(found)
        return (None, None, *(next(slopes) if needed else None for needed in wanted))


def _reach(branch: Branch, slope: Tensor, mixture: Mixture, values: Any, slopes: dict[int, Tensor], held: bool) -> None:
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
    slope = slope.sum_to_size(seen.result.shape)
    if isinstance(seen, Leaning):
        assert isinstance(branch, JunctionBranch)
        assert seen.slopes is not None
        sides = [slope * side for side in seen.slopes]
        parts = [side.unsqueeze(1) for side in sides] if len(branch.groups) == 2 else [torch.stack(sides, 1)]
    else:
        below = slope.unsqueeze(1) * seen.passed
        below = below if below.shape == seen.values.shape else below.expand(seen.values.shape)
        if isinstance(branch, QuantifierBranch):
            front = tuple(range(1, 1 + len(branch.dims)))
            below = below.unflatten(1, seen.extent) if len(front) > 1 else below
            below = below if branch.dims == front else below.movedim(front, branch.dims)
            _reach(branch.operand, below, mixture, values, slopes, held)
            return
        parts = [below] if len(branch.groups) == 1 else list(below.split(branch.counts, 1))
    axes, share = 2 + len(branch.lanes), mixture.stand(branch.level).share
    for place, (group, part, rank) in enumerate(zip(branch.groups, parts, branch.ranks)):
        first = place == 0 and branch.counts[0] == 1
        for _ in range(branch.rank - rank):
            part = part.sum(axes)
        if held or not first or isinstance(share, Tensor) or share != 1.0:
            _reach(group, part, mixture, values, slopes, held)
