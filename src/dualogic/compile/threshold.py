"""An implication whose antecedent compares numbers: what it costs, and who moves to lower it.

Such an antecedent holds or does not. Where it holds the implication costs ``S(Q)``, and elsewhere nothing, however far from the
threshold the numbers lie. But that says who moves. With ``d`` for how far the numbers would have to go for the antecedent to hold
no longer,

    w = d^4 / (d^4 + S(Q)^4)

of the gradient goes into ``Q``, and ``1 - w`` into the numbers, as in an ``or`` whose nearest operand counts most: a number that
has only just passed the threshold gives way to a consequent that is far off, and one far beyond it asks for the consequent.
Numbers without a gradient are given, and no rule can change them. The antecedent is then a *fact*, and ``w`` is 1.

The antecedent's value is ``-d`` where it holds, or minus :data:`~dualogic.compile.implication.IMPOSSIBLE` for a fact; and plus
that where it does not. So the largest of several is that of their conjunction, and the smallest that of their disjunction.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dualogic.compile.implication import CLOSEST, IMPOSSIBLE

STEEPNESS = 4


def find_odds(values: Tensor) -> Tensor:
    """The log-odds of ``w``, within +-:data:`~dualogic.compile.implication.CLOSEST`.

    Args:
        values: of antecedents, and the costs of consequents, ``(batch, 2, ...)``.

    Example:
        >>> find_odds(torch.tensor([[-2.0, 1.0], [-1.0, 1.0], [-1e9, 1.0]]))
        tensor([ 2.7726,  0.0000, 30.0000])
    """
    tiny = torch.finfo(values.dtype).tiny
    depth, cost = (-values[:, 0]).clamp_min(tiny), values[:, 1].clamp_min(tiny)
    return (STEEPNESS * (depth.log() - cost.log())).clamp(-CLOSEST, CLOSEST)


def divide_threshold(
    antecedent: Tensor, consequent: Tensor, weight: Tensor, share: Tensor | float, believed: Tensor | None = None
) -> Tensor:
    """What the implication costs, with a gradient that is divided.

    Args:
        antecedent: its value.
        consequent: the cost ``S(Q)``.
        weight: ``w``, without a gradient.
        share: how much of the gradient into the numbers is held back.
        believed: what is believed of the antecedent, without a gradient; the value itself by default.

    Example:
        >>> v, q = torch.tensor([-1.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
        >>> cost = divide_threshold(v, q, torch.tensor([0.25]), 0.0)
        >>> cost.backward()
        >>> cost.item(), v.grad, q.grad
        (3.0, tensor([-0.7500]), tensor([0.2500]))
    """
    believed = antecedent.detach() if believed is None else believed
    given, asked = believed <= -0.5 * IMPOSSIBLE, (believed < 0) & (consequent > 0)
    weight = torch.where(given, 1.0, weight)
    safe = torch.where(asked, consequent, 0.0)
    depth = torch.where(given, 0.0, antecedent.clamp_max(0.0))
    fixed = safe.detach()
    moving = torch.addcmul(weight * (safe - fixed), (1.0 - weight) * (1.0 - share), depth - depth.detach(), value=-1.0)
    return torch.where(asked, fixed + moving, 0.0)


def best_threshold(values: Tensor) -> Tensor:
    """The cost from values ``(batch, 2, ...)``, with all of its gradient where less has to move."""
    antecedent, consequent = values.unbind(1)
    return divide_threshold(antecedent, consequent, (consequent <= -antecedent).to(values.dtype), 0.0)


def deny_threshold(antecedent: Tensor) -> Tensor:
    """What it costs where the consequent cannot hold: ``d``, and infinity where the antecedent is a fact.

    Example:
        >>> deny_threshold(torch.tensor([-1e9, -2.0, 1e9]))
        tensor([inf, 2., 0.])
    """
    return torch.where(antecedent <= -0.5 * IMPOSSIBLE, torch.inf, (-antecedent).clamp_min(0.0))
