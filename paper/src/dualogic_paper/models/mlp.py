"""Fully connected networks."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn


def mlp(inputs: int, hidden: Sequence[int], outputs: int, first_output: float = 0.0) -> nn.Sequential:
    """Linear layers with ReLU after each, the last one too: what is predicted is never negative.

    A ``first_output`` other than 0 is what the last layer's biases are before training. An output that is 0 for every sample has
    no gradient, and a bias near what is to be predicted keeps it from starting so.
    """
    layers: list[nn.Module] = [nn.Flatten()]
    for before, after in zip((inputs, *hidden), (*hidden, outputs)):
        layers += [nn.Linear(before, after), nn.ReLU()]
    if first_output:
        nn.init.constant_(layers[-2].bias, first_output)  # type: ignore[arg-type]
    return nn.Sequential(*layers)
