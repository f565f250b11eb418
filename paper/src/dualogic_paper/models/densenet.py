"""Densely connected networks for 32 x 32 pixels."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dualogic_paper.models.norm import BatchNormReLU


def _layer(channels: int, width: int, size: int) -> list[nn.Module]:
    convolution = nn.Conv2d(channels, width, size, padding=size // 2, bias=False)
    return [BatchNormReLU(channels), convolution]


class Dense(nn.Module):
    """A bottleneck layer whose ``growth`` new channels, made from four times as many, are appended to its input."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(*_layer(channels, 4 * growth, 1), *_layer(4 * growth, growth, 3))

    def forward(self, images: Tensor) -> Tensor:
        """``(batch, channels, height, width)`` to ``(batch, channels + growth, height, width)``."""
        return torch.cat([images, self.branch(images)], 1)


class DenseNet(nn.Module):
    """DenseNet-BC: three blocks of bottleneck layers; between them, channels and pixels are halved.

    Source: Huang, Liu, van der Maaten, Weinberger, "Densely Connected Convolutional Networks", CVPR 2017, section 3 and its
    CIFAR experiments. A depth of ``6 n + 4`` gives blocks of ``n`` bottleneck layers, each with ``growth`` new channels.
    """

    def __init__(self, depth: int, growth: int, classes: int, channels: int = 3) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(channels, 2 * growth, 3, padding=1, bias=False)]
        channels = 2 * growth
        for block in range(3):
            if block:
                layers += [*_layer(channels, channels // 2, 1), nn.AvgPool2d(2)]
                channels //= 2
            for _ in range((depth - 4) // 6):
                layers.append(Dense(channels, growth))
                channels += growth
        self.features = nn.Sequential(*layers, BatchNormReLU(channels))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(channels, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)

    def forward(self, images: Tensor) -> Tensor:
        """Logits ``(batch, classes)`` of images ``(batch, channels, height, width)``."""
        logits: Tensor = self.head(self.pool(self.features(images)).flatten(1))
        return logits


def densenet100(classes: int = 10) -> DenseNet:
    """DenseNet-BC-100 with growth rate 12: 0.77 million parameters."""
    return DenseNet(100, 12, classes)
