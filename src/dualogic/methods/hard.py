"""Ablation: the optimal duals at every moment, by maximum and minimum."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from torch import Tensor

from dualogic.compile.extreme import fold_extremes
from dualogic.compile.plan import Plan
from dualogic.methods.distributional import DistributionalMethod


@dataclasses.dataclass(frozen=True)
class Hard(DistributionalMethod):
    """The paper's loss at the optimal duals: maximum over ``and``, minimum over ``or`` (Theorem 1).

    Only the operand that is best or worst right now gets a gradient, so an ``or`` settles for whatever is nearest: the
    shortcut, where there is one.

    With ``believe=`` of the loss, the operand that is best or worst among what is believed is taught, and ``delta`` follows the
    beliefs.

    Example:
        >>> import dualogic as dl, torch
        >>> loss = dl.LogicLoss((dl.var("x") <= 0) | (dl.var("y") <= 0), method="hard")
        >>> loss(x=torch.tensor([1.0]), y=torch.tensor([3.0]))  # the smaller cost is 1
        tensor(0.3272)
    """

    name: ClassVar[str] = "hard"

    def mix(self, plan: Plan, values: Any) -> Tensor:
        return fold_extremes(plan, values)
