"""The cost of an implication whose antecedent compares numbers, and who moves to lower it.

Such an antecedent holds or does not. Its value ``v`` says how far it is from not holding: ``-d`` where it holds, and would no
longer hold if its numbers changed by ``d``. A number without a gradient is given, and no rule can change it: the antecedent is a
*fact*, and ``d`` is as good as infinite. Where it does not hold, ``v`` is above 0 and the implication costs nothing. Where it
does, it costs

    w S(Q) + (1 - w) d,    w = d^4 / (d^4 + S(Q)^4),

which is ``S(Q)`` for a fact. The nearer of the two counts most, as in an ``or``: a number that has only just passed the threshold
gives way to a consequent that is far off, and one that lies far beyond it asks for the consequent.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dualogic.compile.implication import CLOSEST, IMPOSSIBLE

STEEPNESS = 4


def is_given(antecedent: Tensor) -> Tensor:
    """Where a fact holds."""
    return antecedent <= -0.5 * IMPOSSIBLE


def find_odds(values: Tensor) -> Tensor:
    """The log-odds of ``w``, within +-:data:`CLOSEST`, from the values of antecedents and consequents, ``(batch, 2, ...)``.

    Example:
        >>> find_odds(torch.tensor([[-2.0, 1.0], [-1.0, 1.0], [-1e9, 1.0], [1e9, 1.0]]))
        tensor([  2.7726,   0.0000,  30.0000, -30.0000])
    """
    tiny = torch.finfo(values.dtype).tiny
    depth, cost = (-values[:, 0]).clamp_min(tiny), values[:, 1].clamp_min(tiny)
    return (STEEPNESS * (depth.log() - cost.log())).clamp(-CLOSEST, CLOSEST)


def divide_threshold(antecedent: Tensor, consequent: Tensor, weight: Tensor, share: Tensor | float, held: Tensor) -> Tensor:
    """What the implication costs, ``weight`` of its gradient into the consequent, the rest into the antecedent's numbers.

    Args:
        antecedent: its value ``v``.
        consequent: the cost ``S(Q)``.
        weight: ``w``, without a gradient.
        share: how much of the gradient into the numbers is held back.
        held: what is believed of the antecedent; the value itself, without a gradient, if that is nothing else.

    Example:
        >>> v, q = torch.tensor([-1.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
        >>> divide_threshold(v, q, torch.tensor([0.25]), 0.0, v.detach()).backward()
        >>> v.grad, q.grad
        (tensor([-0.7500]), tensor([0.2500]))
    """
    given = is_given(held)
    weight = torch.where(given, 1.0, weight)
    depth = torch.where(given, 0.0, (-antecedent).clamp_min(0.0))
    depth = depth.detach() + (1.0 - share) * (depth - depth.detach())
    asked = held < 0
    return torch.where(asked, weight * torch.where(asked, consequent, 0.0) + (1.0 - weight) * depth, 0.0)


def best_threshold(values: Tensor) -> Tensor:
    """What the implication costs at the optimal weight: the lower of the two."""
    antecedent, consequent = values.unbind(1)
    return torch.where(antecedent < 0, torch.minimum(-antecedent, consequent), 0.0)


def deny_threshold(antecedent: Tensor) -> Tensor:
    """What it costs where the consequent cannot hold: what leaving the antecedent does, and infinity where that is a fact."""
    depth = torch.where(is_given(antecedent), torch.inf, (-antecedent).clamp_min(0.0))
    return torch.where(antecedent < 0, depth, 0.0)
