"""LeNet-5, made for 32 x 32 pixels."""

from __future__ import annotations

from torch import nn


def lenet5(classes: int = 10, channels: int = 1, pixels: int = 32) -> nn.Sequential:
    """Two convolutions and three layers, from images ``(n, channels, pixels, pixels)`` to logits ``(n, classes)``.

    Source: LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition", 1998; with ReLU, max
    pooling and full connections, as it is built today.
    """
    side = ((pixels - 4) // 2 - 4) // 2
    return nn.Sequential(
        nn.Conv2d(channels, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * side * side, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, classes),
    )
