"""The demo's network."""

from __future__ import annotations

import torch
from torch import nn

from dualogic.demo.data import CLASSES


def make_network(seed: int) -> nn.Sequential:
    """A small convolutional network, from images ``(n, 1, 8, 8)`` to logits ``(n, 10)``; the global random state is left alone.

    Example:
        >>> import torch
        >>> make_network(seed=0)(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * 4 * 4, 64),
            nn.ReLU(),
            nn.Linear(64, CLASSES),
        )
