"""A slow copy of a network, whose word a rule can take."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from dualogic_paper.models.norm import resting_norms

DECAY = 0.999


class Teacher(nn.Module):
    """An exponential average of a network's parameters; its norms go by the statistics of each batch.

    Averaged running statistics are not those of the averaged network, which would be unsure of nearly everything with them.
    :class:`torch.optim.swa_utils.AveragedModel` does the same, but waits for the device at each update, which a recorded step
    cannot do.
    """

    def __init__(self, network: nn.Module, fabric: Any) -> None:
        super().__init__()
        self.copy = fabric.setup_module(copy.deepcopy(network).requires_grad_(False)).train()
        self._mine: list[Tensor] = list(self.copy.parameters())
        self._theirs: list[Tensor] = list(network.parameters())

    def forward(self, inputs: Tensor) -> Tensor:
        """What the copy says, without a gradient."""
        with torch.no_grad(), resting_norms(self.copy):
            said: Tensor = self.copy(inputs)
            return said

    def follow(self) -> None:
        """Move towards the network."""
        with torch.no_grad():
            torch._foreach_lerp_(self._mine, self._theirs, 1 - DECAY)
