"""A slow copy of a network, whose word a rule can take."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

DECAY = 0.999


class Teacher(nn.Module):
    """An exponential average of a network's parameters and of its norms' statistics, in evaluation mode.

    :class:`torch.optim.swa_utils.AveragedModel` does the same, but waits for the device at each update, which a recorded step
    cannot do.

    Args:
        network: to follow.
        fabric: that gives the copy the network's precision.

    Example:
        >>> from lightning.fabric import Fabric
        >>> network = nn.Linear(1, 1)
        >>> teacher = Teacher(network, Fabric(accelerator="cpu"))
        >>> before = teacher.copy.weight.item()
        >>> with torch.no_grad():
        ...     _ = network.weight.add_(1.0)
        >>> teacher.follow()
        >>> round(teacher.copy.weight.item() - before, 4)
        0.001
    """

    def __init__(self, network: nn.Module, fabric: Any) -> None:
        super().__init__()
        self.copy = fabric.setup_module(copy.deepcopy(network).requires_grad_(False)).eval()
        self._pairs = [[tensor for tensor in _state(module) if tensor.is_floating_point()] for module in (self.copy, network)]

    def forward(self, inputs: Tensor) -> Tensor:
        """What the copy says, without a gradient."""
        with torch.no_grad():
            said: Tensor = self.copy(inputs)
            return said

    def follow(self) -> None:
        """Move towards the network."""
        with torch.no_grad():
            torch._foreach_lerp_(*self._pairs, 1 - DECAY)

    def train(self, mode: bool = True) -> Teacher:
        """A teacher is always in evaluation mode."""
        return super().train(False)


def _state(module: nn.Module) -> list[Tensor]:
    return [*module.parameters(), *module.buffers()]
