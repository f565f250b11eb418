"""Where a rule's gradient goes: how much a step along it lowers the cost of each side of an implication."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping, Sequence

import torch
from torch import Tensor

from dualogic.compile.binding import Bound
from dualogic.compile.plan import Plan
from dualogic.diagnosis.observation import Observed, observe_costs
from dualogic.diagnosis.outline import CHOICES, Connective
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
    leaves = {
        name: value.detach().requires_grad_(True) if name in taught else value.detach() for name, value in bound.tensors.items()
    }
    bound = dataclasses.replace(bound, tensors=leaves)
    wanted = frozenset(part.path for found in parts.values() for part in found)
    with torch.enable_grad():
        costs, levels = observe_costs(plan, bound, wanted)
        operands = {path: (level, lane) for level in levels.values() for lane, path in enumerate(level.level.paths)}
        choices = [part for found in parts.values() for part in found if part.kind in CHOICES and part.path in operands]
        sums: dict[Hashable, Tensor] = {
            ("nearest", part.path): _count_nearest(*operands[part.path]) for part in choices if part.kind == "or"
        }
        if view.rows is None:
            return sums
        losses = view.losses(**leaves)
        wrt = [leaves[name] for name in sorted(taught)]
        for number in numbers:
            name = plan.names[number]
            pull = _gradient(losses[:, number], wrt)
            best = _gradient(costs[:, number], wrt)
            sums["gradient", name] = torch.stack([_total(pull, bound), _total(best, bound)])
            for part in parts[name]:
                if part.consequent is not None and part.path in operands and not taught.isdisjoint(part.consequent.symbols):
                    level, lane = operands[part.path]
                    sides = [_gradient(_side(level, lane, side), wrt) for side in range(2)]
                    away, towards = (_along(pull, side, bound) for side in sides)
                    met = (elsewhere[part.path] & _rests(level, lane)).to(costs.dtype)
                    wide = _along_some(pull, sides[1], level, lane, 1, met, wrt, bound)
                    against = _along_some(pull, sides[0], level, lane, 0, _per_belief(level, lane), wrt, bound)
                    sums["wide", part.path] = torch.stack([wide, away + towards])
                    some = away + towards > 0
                    share = torch.where(some, away / torch.where(some, away + towards, 1.0), 0.0)
                    size = torch.full_like(away, bound.batch)
                    sums["pull", part.path] = torch.stack([away, towards, size, share, some.double(), against])
    return sums


Gradients = Sequence["Tensor | None"]


def _gradient(values: Tensor, wrt: list[Tensor]) -> Gradients:
    finite = torch.where(torch.isfinite(values), values, 0.0).sum()
    if not finite.requires_grad:
        return [None] * len(wrt)
    return torch.autograd.grad(finite, wrt, retain_graph=True, allow_unused=True)


def _side(level: Observed, lane: int, side: int) -> Tensor:
    return torch.where(level.exists[:, lane], level.holds[:, lane, :, side], 0.0)


def _per_belief(level: Observed, lane: int) -> Tensor:
    """By how much the logarithm of the antecedent's probability falls with the cost of denying it; ``(batch, units)``."""
    cost = level.holds[:, lane, :, 0].detach()
    probability = -torch.expm1(-cost)
    return torch.where(probability > 0, torch.exp(-cost) / probability, 0.0)


def _rests(level: Observed, lane: int) -> Tensor:
    """Where the consequent is at least as believed as the antecedent."""
    denied, consequent = level.holds[:, lane].detach().unbind(-1)
    # If -log(1 - p) is the cost of denying something of probability p, this is -log p.
    antecedent = -(-torch.expm1(-denied)).log()
    return consequent <= antecedent


def _total(gradients: Gradients, bound: Bound) -> Tensor:
    found = [each.abs().sum().double() for each in gradients if each is not None]
    return torch.stack(found).sum() if found else torch.zeros((), dtype=torch.float64, device=bound.device)


def _along_some(
    pull: Gradients, side: Gradients, level: Observed, lane: int, number: int, factor: Tensor, wrt: list[Tensor], bound: Bound
) -> Tensor:
    """The same with each unit of a side counted ``factor`` ``(batch, units)`` times."""
    if factor.shape[1] == 1:
        return _along(pull, side, bound, factor[:, 0])  # a sample is one unit, so its gradient need not be taken anew
    return _along(pull, _gradient(_side(level, lane, number) * factor, wrt), bound)


def _along(pull: Gradients, side: Gradients, bound: Bound, factor: Tensor | None = None) -> Tensor:
    """``sum over samples of max(<G, grad c>, 0)``, each taken ``factor`` times."""
    products = [first * second for first, second in zip(pull, side) if first is not None and second is not None]
    both = [each.reshape(len(each), -1).sum(1) for each in products]
    if not both:
        return torch.zeros((), dtype=torch.float64, device=bound.device)
    each_sample = torch.stack(both).sum(0).clamp_min(0.0)
    return (each_sample if factor is None else each_sample * factor).sum().double()


def _count_nearest(level: Observed, lane: int) -> Tensor:
    values, exists = level.holds[:, lane].detach(), level.exists[:, lane]
    least = values == values.amin(-1, keepdim=True)
    alone = least & (least.sum(-1, keepdim=True) == 1) & exists.unsqueeze(-1)
    return torch.cat([exists.sum().unsqueeze(0), alone.sum((0, 1))]).double()
