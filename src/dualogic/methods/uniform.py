"""Ablation: equal weights that never move."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from torch import Tensor

from dualogic.compile.plan import Plan
from dualogic.duals.rules import UPDATE_RULES
from dualogic.methods.distributional import DistributionalMethod
from dualogic.methods.mixture import Mixture


@dataclasses.dataclass(frozen=True)
class Uniform(DistributionalMethod):
    """The paper's loss with all duals fixed at equal weights: every connective is a mean.

    What learned duals are worth shows beside it. Where samples meet a rule in different ways, it cannot tell them apart.

    With ``believe=`` of the loss, ``delta`` follows what is believed; the weights stay equal.

    Example:
        >>> import dualogic as dl, torch
        >>> loss = dl.LogicLoss((dl.var("x") <= 0) | (dl.var("y") <= 0), method="uniform")
        >>> loss(x=torch.tensor([1.0]), y=torch.tensor([3.0]))  # the mean cost is 2
        tensor(1.9770)
    """

    name: ClassVar[str] = "uniform"

    def mix(self, plan: Plan, values: Any) -> Tensor:
        return plan.fold(values, Mixture(UPDATE_RULES["softmax"], None))
