"""VGG, residual and densely connected networks, for 32 x 32 pixels; :data:`NETWORKS` finds them by name."""

from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

# Channels of the 3 x 3 convolutions of each stage of VGG16 (table 1, column D).
VGG16_STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


class BatchNormReLU(nn.BatchNorm2d):
    """``relu(batch_norm(images) + residual)``."""

    def forward(self, images: Tensor, residual: Tensor | None = None) -> Tensor:
        """Images and residual ``(batch, channels, height, width)``."""
        normal = super().forward(images)
        return functional.relu(normal if residual is None else normal + residual)


class Network(nn.Module):
    """Features of images, their mean over pixels, and a linear layer; ``mode`` is that of the convolutions' first weights."""

    def __init__(self, features: list[nn.Module], channels: int, classes: int, mode: Literal["fan_in", "fan_out"]) -> None:
        super().__init__()
        self.features = nn.Sequential(*features)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(channels, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode=mode, nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """Logits ``(batch, classes)`` of images ``(batch, channels, height, width)``."""
        logits: Tensor = self.head(self.pool(self.features(images)).flatten(1))
        return logits


def vgg16(classes: int) -> Network:
    """Stages of 3 x 3 convolutions, each with batch normalisation and ReLU, and 2 x 2 max pooling: 14.7 million parameters.

    Source: Simonyan and Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", ICLR 2015.
    """
    layers: list[nn.Module] = []
    channels = 3
    for stage in VGG16_STAGES:
        for width in stage:
            layers += [_convolution(channels, width, 3), BatchNormReLU(width)]
            channels = width
        layers.append(nn.MaxPool2d(2))
    return Network(layers, channels, classes, "fan_out")


class Residual(nn.Module):
    """A branch of ``width`` channels, normalised and added to its input, and ReLU; a 1 x 1 convolution where shapes differ."""

    def __init__(self, branch: nn.Module, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.branch = branch
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels != width:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))
        self.norm = BatchNormReLU(width)

    def forward(self, images: Tensor) -> Tensor:
        """``(batch, channels, height, width)`` to ``(batch, width, height / stride, width / stride)``."""
        result: Tensor = self.norm(self.branch(images), self.shortcut(images))
        return result


def _convolution(channels: int, width: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(channels, width, size, stride, padding=size // 2, bias=False)


def _basic(channels: int, width: int, stride: int) -> Residual:
    branch = nn.Sequential(_convolution(channels, width, 3, stride), BatchNormReLU(width), _convolution(width, width, 3))
    return Residual(branch, channels, width, stride)


def _bottleneck(channels: int, width: int, stride: int) -> Residual:
    # The stride is on the 3 x 3 convolution, as in all later implementations, and not on the first 1 x 1.
    branch = nn.Sequential(
        *(_convolution(channels, width, 1), BatchNormReLU(width), _convolution(width, width, 3, stride)),
        *(BatchNormReLU(width), _convolution(width, 4 * width, 1)),
    )
    return Residual(branch, channels, 4 * width, stride)


def resnet(blocks: tuple[int, ...], bottleneck: bool, classes: int) -> Network:
    """Four stages of residual blocks with 64, 128, 256 and 512 channels (times 4 after a bottleneck).

    Source: He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", CVPR 2016, table 1. For 32 x 32 pixels the first
    layer is a 3 x 3 convolution with stride 1 and there is no max pooling, so that the stages see 32, 16, 8 and 4 pixels.
    """
    make, expansion = (_bottleneck, 4) if bottleneck else (_basic, 1)
    layers: list[nn.Module] = [_convolution(3, 64, 3), BatchNormReLU(64)]
    channels = 64
    for stage, count in enumerate(blocks):
        width = 64 * 2**stage
        for block in range(count):
            layers.append(make(channels, width, 2 if stage and not block else 1))
            channels = expansion * width
    return Network(layers, channels, classes, "fan_out")


def _layer(channels: int, width: int, size: int) -> list[nn.Module]:
    return [BatchNormReLU(channels), _convolution(channels, width, size)]


class Dense(nn.Module):
    """A bottleneck layer whose ``growth`` new channels, made from four times as many, are appended to its input."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(*_layer(channels, 4 * growth, 1), *_layer(4 * growth, growth, 3))

    def forward(self, images: Tensor) -> Tensor:
        """``(batch, channels, height, width)`` to ``(batch, channels + growth, height, width)``."""
        return torch.cat([images, self.branch(images)], 1)


def densenet(depth: int, growth: int, classes: int) -> Network:
    """DenseNet-BC: three blocks of bottleneck layers; between them, channels and pixels are halved.

    Source: Huang, Liu, van der Maaten, Weinberger, "Densely Connected Convolutional Networks", CVPR 2017, CIFAR experiments.
    """
    layers: list[nn.Module] = [_convolution(3, 2 * growth, 3)]
    channels = 2 * growth
    for block in range(3):
        if block:
            layers += [*_layer(channels, channels // 2, 1), nn.AvgPool2d(2)]
            channels //= 2
        for _ in range((depth - 4) // 6):
            layers.append(Dense(channels, growth))
            channels += growth
    return Network([*layers, BatchNormReLU(channels)], channels, classes, "fan_in")


NETWORKS: dict[str, Callable[[int], Network]] = {
    "vgg16": vgg16,
    "resnet18": partial(resnet, (2, 2, 2, 2), False),
    "resnet50": partial(resnet, (3, 4, 6, 3), True),
    "densenet100": partial(densenet, 100, 12),
}
