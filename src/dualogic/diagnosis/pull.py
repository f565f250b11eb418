"""Where a rule's gradient goes: how much a step along it lowers the cost of each side of an implication."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping, Sequence

import torch
from torch import Tensor

from dualogic.compile.binding import Bound
from dualogic.compile.plan import Plan
from dualogic.diagnosis.observation import Observed, observe_costs
from dualogic.diagnosis.outline import Connective
from dualogic.loss import View


def measure_pull(
    view: View,
    plan: Plan,
    parts: Mapping[str, Sequence[Connective]],
    numbers: Iterable[int],
    bound: Bound,
    taught: frozenset[str],
    elsewhere: Mapping[str, Tensor],
) -> dict[Hashable, Tensor]:
    """Sums over a batch that say what the rules at the positions ``numbers`` teach; nothing waits for the device.

    The loss of a rule has a gradient ``G`` with respect to the ``taught`` tensors. A step against it lowers the cost ``c`` of a
    branch, at the optimal duals below it, by ``<G, grad c>`` for each sample: the rule's *pull* on that branch. The network is
    not computed again: ``bound`` is what forward saw. The plan is in mode ``"log"``, so that a class that is far from true can
    still be pulled; ``elsewhere`` is, for each implication, where no rule asks for its consequent, ``(batch, units)``.

    Returns:
        By ``("nearest", path)``, for each ``or``: units, and for each operand those in which it costs least. By ``("gradient",
        rule)``: the sums of ``|G|`` and of the gradient of the cost at the optimal duals. By ``("pull", path)``, for each
        implication whose consequent can be taught: the pull away from the antecedent, the pull towards the consequent, the
        samples, the first's share of both, whether there was any (so that a mean of shares can be taken), and the pull on the
        logarithm of the antecedent's probability, which is as large for one that is hardly believed. By ``("wide",
        path)``: the pull towards the consequent where it is not asked for and is already at least as believed as the
        antecedent, so that the implication is met in every sense; and the pulls of both sides everywhere.
    """
    leaves = {name: value.detach().requires_grad_(name in taught) for name, value in bound.tensors.items()}
    wanted = frozenset(part.path for found in parts.values() for part in found)
    with torch.enable_grad():
        costs, operands = observe_costs(plan, dataclasses.replace(bound, tensors=leaves), wanted)
        choices = [part.path for found in parts.values() for part in found if part.kind == "or" and part.path in operands]
        sums: dict[Hashable, Tensor] = {("nearest", path): _count_nearest(operands[path]) for path in choices}
        wrt = [leaves[name] for name in sorted(taught)]
        if view.rows is None or not wrt:
            return sums
        losses, asked = view.losses_and_costs(leaves)
        costs = torch.where(asked.detach() > 0, costs, 0.0)  # where the rule rests there is no gradient to miss
        for number in numbers:
            name = plan.names[number]
            pull, best = (_gradient(values[:, number], wrt) for values in (losses, costs))
            sums["gradient", name] = torch.stack([_total(pull), _total(best)])
            for part in parts[name]:
                if part.consequent is None or part.path not in operands or taught.isdisjoint(part.consequent.symbols):
                    continue
                values = operands[part.path].holds
                sides = [torch.where(operands[part.path].exists, side, 0.0) for side in values.unbind(-1)]
                slopes = [_gradient(side, wrt) for side in sides]
                away, towards = (_along(pull, slope).sum() for slope in slopes)
                factors = (_per_belief(values), elsewhere[part.path] & _rests(values))
                against, wide = (
                    # A sample that is one unit has the gradient that was taken.
                    (_along(pull, slope) * factor[:, 0]).sum()
                    if factor.shape[1] == 1
                    else _along(pull, _gradient(side * factor, wrt)).sum()
                    for side, slope, factor in zip(sides, slopes, factors)
                )
                some = away + towards > 0
                share = torch.where(some, away / torch.where(some, away + towards, 1.0), 0.0)
                size = torch.full_like(away, bound.batch)
                sums["wide", part.path] = torch.stack([wide, away + towards])
                sums["pull", part.path] = torch.stack([away, towards, size, share, some.double(), against])
    return sums


def _gradient(values: Tensor, wrt: list[Tensor]) -> Sequence[Tensor]:
    finite = torch.where(torch.isfinite(values), values, 0.0).sum()
    if not finite.requires_grad:
        return [torch.zeros_like(leaf) for leaf in wrt]
    return torch.autograd.grad(finite, wrt, retain_graph=True, allow_unused=True, materialize_grads=True)


def _total(gradients: Sequence[Tensor]) -> Tensor:
    return torch.stack([each.abs().sum().double() for each in gradients]).sum()


def _along(pull: Sequence[Tensor], slope: Sequence[Tensor]) -> Tensor:
    """``max(<G, grad c>, 0)`` of each sample, ``(batch,)``."""
    products = [(first * second).reshape(len(first), -1).sum(1) for first, second in zip(pull, slope)]
    return torch.stack(products).sum(0).clamp_min(0.0).double()


def _per_belief(costs: Tensor) -> Tensor:
    """By how much the logarithm of the antecedent's probability falls with the cost of denying it; ``(batch, units)``."""
    cost = costs[..., 0].detach()
    probability = -torch.expm1(-cost)
    return torch.where(probability > 0, torch.exp(-cost) / probability, 0.0)


def _rests(costs: Tensor) -> Tensor:
    """Where the consequent is at least as believed as the antecedent."""
    denied, consequent = costs.detach().unbind(-1)
    # If -log(1 - p) is the cost of denying something of probability p, this is -log p.
    antecedent = -(-torch.expm1(-denied)).log()
    return consequent <= antecedent


def _count_nearest(operands: Observed) -> Tensor:
    costs = operands.holds.detach()
    least = costs == costs.amin(-1, keepdim=True)
    alone = least & (least.sum(-1, keepdim=True) == 1) & operands.exists.unsqueeze(-1)
    return torch.cat([operands.exists.sum().unsqueeze(0), alone.sum((0, 1))]).double()
