"""The cost of an implication that rests, and who moves to lower it.

With ``p = exp(-S(P))`` and ``q = exp(-S(Q))`` for the beliefs in antecedent and consequent, ``P >> Q`` costs

    KL(p || q) = p log(p / q) + (1 - p) log((1 - p) / (1 - q))   where q < p, and 0 where q >= p,

which is ``S(Q)``, the paper's cost, where ``P`` is certain. Its slope with respect to the logit of ``q`` is ``q - p``: it does
not vanish however small ``q`` is, and it is 0 where ``P`` is not believed. Where class costs are ``1 - p`` the excess of one cost
over the other, ``max(S(Q) - S(P), 0)``, takes its place.

The cost can be lowered from both sides. A weight ``w`` for each sample divides the gradient: ``w`` of it goes into ``Q``,
``1 - w`` into ``P``, less the share of ``P`` that is evidence.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from dualogic.numerics import is_transformed

IMPOSSIBLE = 1e9
"""What a comparison that does not hold costs as an antecedent: more than any belief."""
CLOSEST = 30.0
"""Log-odds beyond this are as good as certain."""
EVERY = 2**31 - 1
"""As many operands of an ``or`` as there are."""
HALF = 0.5
"""How much what is believed about a consequent counts against what is believed about its antecedent."""


def excess(antecedent: Tensor, consequent: Tensor, logarithmic: bool) -> Tensor:
    """What ``P >> Q`` costs, from ``S(P)`` and ``S(Q)`` of one shape; 0 exactly where ``Q`` is at least as believed as ``P``.

    Example:
        >>> import torch
        >>> believed = torch.tensor([0.9, 0.9, 0.1])
        >>> excess(-believed.log(), -torch.tensor([0.1, 0.9, 0.2]).log(), logarithmic=True)
        tensor([1.7578, 0.0000, 0.0000])
    """
    violated = (consequent > antecedent) & (antecedent < IMPOSSIBLE)
    # An operand that cannot hold costs infinity; where it is not asked for, no gradient may meet it.
    safe = torch.where(violated, consequent, antecedent)
    if not logarithmic:
        return torch.where(violated, safe - antecedent, 0.0)
    first, second = torch.expm1(-antecedent), torch.expm1(-safe)
    denied, other = (torch.log(side.neg().clamp_min(torch.finfo(side.dtype).tiny)) for side in (first, second))
    divergence = torch.addcmul((first + 1.0) * (safe - antecedent), first, denied - other, value=-1.0)
    return torch.where(violated, divergence.clamp_min(0.0), 0.0)


def unrest(costs: Tensor, mask: Tensor | None, logarithmic: bool, counted: int = 2) -> Tensor:
    """How much of its cost an ``or`` of beliefs keeps, ``(batch, 1, ...)``, from the costs of its operands, ``(batch, k, ...)``.

    It rests where the two most believed sum to 1, as ``P >> Q`` does where ``Q`` is at least as believed as ``P``: then
    ``(1 - p) + q`` is at least 1. With ``b`` for the most believed and ``t`` for that sum it keeps ``(1 - t) / (1 - b)``: all of
    its cost where nothing else is believed. Where the beliefs in all operands add up, see
    :func:`~dualogic.compile.signature.adds_up`, all are counted.

    Example:
        >>> import torch
        >>> unrest(-torch.tensor([[0.4, 0.0], [0.4, 0.3], [0.4, 0.6]]).log(), None, logarithmic=True)
        tensor([[1.0000],
                [0.5000],
                [0.0000]])
    """
    beliefs = torch.exp(-costs) if logarithmic else 1.0 - costs
    if mask is not None:
        beliefs = beliefs.masked_fill(~mask, 0.0)
    if beliefs.shape[1] < 2:
        return torch.ones_like(beliefs[:, :1]) if beliefs.shape[1] else beliefs.sum(1, keepdim=True) + 1.0
    highest = beliefs if beliefs.shape[1] <= counted else beliefs.topk(counted, dim=1).values
    left = 1.0 - highest.amax(1, keepdim=True)
    return (1.0 - highest.sum(1, keepdim=True)).clamp_min_(0.0).div_(left.clamp_min_(torch.finfo(costs.dtype).tiny))


def possible_sides(values: Tensor, mask: Tensor) -> Tensor:
    """The costs ``(batch, 2, ...)`` of both sides, finite where one cannot hold: an ``.any()`` of nothing costs infinity."""
    return torch.where(mask, values, IMPOSSIBLE)


def deny(antecedent: Tensor, share: Tensor | float, logarithmic: bool, believed: Tensor | None = None) -> Tensor:
    """What ``P >> Q`` costs where ``Q`` cannot hold: what denying ``P``, of the finite cost ``S(P)``, does; infinity where ``P``
    is certain. A share of the gradient is held back, and what is believed takes as much of the place of ``S(P)``.

    Example:
        >>> import torch
        >>> deny(-torch.tensor([0.5, 1.0]).log(), 0.0, logarithmic=True)
        tensor([0.6931,    inf])
    """
    fixed = antecedent.detach() if believed is None else believed
    moving = fixed + (1.0 - share) * (antecedent - fixed)
    doubted = moving > 0
    safe = torch.where(doubted, moving, 1.0)
    cost = _denial(safe) if logarithmic else (1.0 - safe).clamp_min(0.0)
    return torch.where(doubted, cost, torch.inf)


def _denial(cost: Tensor) -> Tensor:
    """``-log(1 - exp(-cost))``: what denying something costs, from what affirming it does; finite."""
    return -torch.log((-torch.expm1(-cost)).clamp_min(torch.finfo(cost.dtype).tiny))


class Beliefs(NamedTuple):
    """What is believed of antecedents and consequents, from their costs; all ``(batch, 2, ...)``."""

    believed: Tensor  # `p`
    doubts: Tensor  # `1 - p`
    logarithm: Tensor | None = None  # `log p`; only where costs are its negative, as the next two
    against: Tensor | None = None  # `1 - p`, above 0
    denied: Tensor | None = None  # its logarithm

    @classmethod
    def of(cls, values: Tensor, logarithmic: bool) -> Beliefs:
        """From costs; no gradient is meant to flow."""
        if not logarithmic:
            return cls(1.0 - values, values)
        logarithm = -values
        doubts = -torch.expm1(logarithm)
        against = doubts.clamp_min(torch.finfo(values.dtype).tiny)
        return cls(1.0 - doubts, doubts, logarithm, against, torch.log(against))

    def odds(self, values: Tensor) -> Tensor:
        """Their :func:`log_odds`."""
        if self.logarithm is None or self.denied is None:
            return log_odds(values, False)
        return (self.logarithm - self.denied).clamp_(-CLOSEST, CLOSEST)


def log_odds(cost: Tensor, logarithmic: bool) -> Tensor:
    """The log-odds of a belief from its cost, within +-:data:`CLOSEST`.

    Example:
        >>> import math, torch
        >>> log_odds(torch.tensor([math.log(2.0), 1e9]), logarithmic=True)
        tensor([  0., -30.])
    """
    if not logarithmic:
        cost = -torch.log((1.0 - cost).clamp(torch.finfo(cost.dtype).tiny, 1.0))
    return (_denial(cost) - cost).clamp(-CLOSEST, CLOSEST)


def join_odds(antecedent: Tensor, consequent: Tensor, share: Tensor | float) -> Tensor:
    """The log-odds of the weight on ``Q``: those of ``P``, and half of those of ``Q`` if it is known.

    Of that, as much as of ``P`` is no evidence: at a share of 1 what is believed about ``Q`` tells nothing.
    """
    if isinstance(share, float):
        return antecedent if share == 1.0 else torch.add(antecedent, consequent, alpha=HALF * (1.0 - share))
    return torch.addcmul(antecedent, 1.0 - share, consequent, value=HALF)


def rest(
    values: Tensor, beliefs: Beliefs, weight: Tensor | None, share: Tensor | float, sloped: bool = True
) -> tuple[Tensor, tuple[Tensor, Tensor] | None]:
    """:func:`excess`, and what it is taken to rise by with either side: its slopes, divided by a weight.

    Args:
        values: the costs of antecedents and consequents, ``(batch, 2, ...)``, without a gradient.
        beliefs: from these.
        weight: on ``Q``, ``(batch, ...)``; ``None`` for slopes that are not divided.
        share: how much of the slope of ``P`` is held back.
        sloped: whether slopes are wanted.
    """
    held = weight is not None and isinstance(share, float) and share == 1.0
    antecedent, consequent = values.unbind(1)
    gap = consequent - antecedent
    resting = antecedent >= consequent.clamp_max(IMPOSSIBLE)  # an operand that cannot hold costs infinity
    if beliefs.against is None or beliefs.denied is None:
        cost = gap.masked_fill(resting, 0.0)
        up, down = torch.ones_like(gap), torch.full_like(gap, -1.0)
    else:
        first, second = beliefs.doubts.unbind(1)
        without, other = beliefs.denied.unbind(1)
        believed, difference = beliefs.believed[:, 0], without - other
        cost = torch.addcmul(believed * gap, first, difference).clamp_min_(0.0).masked_fill_(resting, 0.0)
        if not sloped:
            return cost, None
        up = (second - first).div_(beliefs.against[:, 1])
        down = up if held else (difference - gap).mul_(believed)
    if weight is not None:
        up = up * weight
        down = torch.zeros_like(up) if held else down * (1.0 - weight)
        if isinstance(share, Tensor) or 0.0 < share < 1.0:
            down = down * (1.0 - share)
    return cost, (down if held else down.masked_fill_(resting, 0.0), up.masked_fill_(resting, 0.0))


def divide(antecedent: Tensor, consequent: Tensor, weight: Tensor, share: Tensor | float, logarithmic: bool) -> Tensor:
    """:func:`excess` of ``S(P)`` and ``S(Q)`` with a gradient that is divided: ``weight`` of it, within [0, 1], goes into ``Q``,
    the rest, less the share that is held back, into ``P``.

    Example:
        >>> import torch
        >>> p, q = torch.tensor([0.1], requires_grad=True), torch.tensor([2.0], requires_grad=True)
        >>> divide(p, q, torch.tensor([1.0]), 0.0, logarithmic=True).backward()
        >>> p.grad.item() == 0, q.grad
        (True, tensor([0.8899]))
    """
    if is_transformed():
        return _divide(antecedent, consequent, weight, share, logarithmic)
    if not (antecedent.requires_grad or consequent.requires_grad):
        return excess(antecedent, consequent, logarithmic)
    both = torch.stack([antecedent, consequent], 1)
    return _Divided.apply(both, weight, share, logarithmic)  # type: ignore[no-any-return, no-untyped-call]


def optimum(values: Tensor, logarithmic: bool) -> Tensor:
    """:func:`excess` of costs ``(batch, 2, ...)``, with its gradient in closed form."""
    if not values.requires_grad or is_transformed():
        return excess(values[:, 0], values[:, 1], logarithmic)
    return _Divided.apply(values, None, 0.0, logarithmic)  # type: ignore[no-any-return, no-untyped-call]


def divide_believed(
    taught: tuple[Tensor, Tensor], believed: tuple[Tensor, Tensor], weight: Tensor, share: Tensor | float, logarithmic: bool
) -> Tensor:
    """:func:`divide`, where each side is taught beside what is believed of the other: ``Q`` should be at least as believed as
    ``P`` is, and ``P`` no more than ``Q`` is. Both are pairs of the costs ``S(P)`` and ``S(Q)``.

    Example:
        >>> import torch
        >>> p, q = torch.tensor([3.0], requires_grad=True), torch.tensor([2.0], requires_grad=True)
        >>> believed = torch.tensor([0.1]), torch.tensor([1.0])  # P is believed, whatever the other view says
        >>> divide_believed((p, q), believed, torch.tensor([1.0]), 0.0, logarithmic=True).backward()
        >>> p.grad.item() == 0, q.grad
        (True, tensor([0.8899]))
    """
    up = divide(believed[0], taught[1], weight, share, logarithmic)
    down = divide(taught[0], believed[1], weight, share, logarithmic)
    value = up.detach() + (1.0 - weight) * (1.0 - share) * (down.detach() - up.detach())
    return value + (up - up.detach()) + (down - down.detach())


def _divide(antecedent: Tensor, consequent: Tensor, weight: Tensor, share: Tensor | float, logarithmic: bool) -> Tensor:
    up = excess(antecedent.detach(), consequent, logarithmic)
    down = excess(antecedent, consequent.detach(), logarithmic)
    return up.detach() + weight * (up - up.detach()) + (1.0 - weight) * (1.0 - share) * (down - down.detach())


class _Divided(torch.autograd.Function):
    """The same with its gradient in closed form: a third of the operations."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: Tensor | None, share: Tensor | float, logarithmic: bool) -> Tensor:
        # A number stays one: made into a tensor on a device it would wait for the copy, which no recorded graph may hold.
        kept = share if isinstance(share, Tensor) else None
        ctx.share, ctx.logarithmic = share if isinstance(share, float) else None, logarithmic
        cost, slopes = rest(values, Beliefs.of(values, logarithmic), weight, share)
        ctx.save_for_backward(values, weight, kept, torch.stack(slopes, 1))  # type: ignore[arg-type]
        return cost

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        values, weight, share, slopes = ctx.saved_tensors
        if torch.is_grad_enabled():
            # A second derivative is wanted: give a first one that can be differentiated.
            antecedent, consequent = values.unbind(1)
            if weight is None:
                result = excess(antecedent, consequent, ctx.logarithmic)
            else:
                held = share if ctx.share is None else ctx.share
                result = _divide(antecedent, consequent, weight, held, ctx.logarithmic)
            return torch.autograd.grad(result, values, gradients[0], create_graph=True)[0], None, None, None
        return gradients[0].unsqueeze(1) * slopes, None, None, None
