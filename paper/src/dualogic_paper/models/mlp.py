"""Fully connected networks."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn


def mlp(inputs: int, hidden: Sequence[int], outputs: int, first_output: float = 0.0) -> nn.Sequential:
    """Linear layers with ReLU after each, the last one too: what is predicted is never negative.

    Args:
        inputs: numbers per sample; further axes of a sample are flattened first.
        hidden: the width of each hidden layer.
        outputs: numbers predicted.
        first_output: the last layer's biases before training; 0 leaves them as torch draws them. An output that is 0 for every
            sample has no gradient, and a bias near what is to be predicted keeps it from starting so.

    Example:
        >>> import torch
        >>> network = mlp(6, (8, 8), 3)
        >>> network(torch.ones(4, 2, 3)).shape, bool((network(torch.randn(4, 6)) >= 0).all())
        (torch.Size([4, 3]), True)
    """
    layers: list[nn.Module] = [nn.Flatten()]
    for before, after in zip((inputs, *hidden), (*hidden, outputs)):
        layers += [nn.Linear(before, after), nn.ReLU()]
    if first_output:
        nn.init.constant_(layers[-2].bias, first_output)  # type: ignore[arg-type]
    return nn.Sequential(*layers)
