"""VGG, residual and densely connected networks, for 32 x 32 pixels; :data:`NETWORKS` finds them by name."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from dualogic_paper.models.norm import BatchNormReLU

# Channels of the 3 x 3 convolutions of each stage; every stage ends with 2 x 2 max pooling (table 1, column D).
VGG16_STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


class VGG(nn.Module):
    """Stages of 3 x 3 convolutions, each with batch normalisation and ReLU, and 2 x 2 max pooling after each stage.

    Source: Simonyan and Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", ICLR 2015. At
    32 x 32 pixels, the five stages leave one pixel, and a single linear layer takes the place of the three.
    """

    def __init__(self, stages: tuple[tuple[int, ...], ...], classes: int, channels: int = 3) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for stage in stages:
            for width in stage:
                # Batch normalisation has a bias of its own.
                layers += [nn.Conv2d(channels, width, 3, padding=1, bias=False), BatchNormReLU(width)]
                channels = width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(channels, classes)
        for module in self.features:
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """Logits ``(batch, classes)`` of images ``(batch, channels, height, width)``."""
        logits: Tensor = self.head(self.pool(self.features(images)).flatten(1))
        return logits


def vgg16(classes: int = 10) -> VGG:
    """VGG16 with batch normalisation: 13 convolutions and one linear layer, 14.7 million parameters."""
    return VGG(VGG16_STAGES, classes)


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
        _convolution(channels, width, 1),
        BatchNormReLU(width),
        _convolution(width, width, 3, stride),
        BatchNormReLU(width),
        _convolution(width, 4 * width, 1),
    )
    return Residual(branch, channels, 4 * width, stride)


class ResNet(nn.Module):
    """Four stages of residual blocks with 64, 128, 256 and 512 channels (times 4 after a bottleneck).

    Source: He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", CVPR 2016, table 1. For 32 x 32 pixels the first
    layer is a 3 x 3 convolution with stride 1 and there is no max pooling, so that the stages see 32, 16, 8 and 4 pixels.
    """

    def __init__(self, blocks: tuple[int, ...], bottleneck: bool, classes: int, channels: int = 3) -> None:
        super().__init__()
        make, expansion = (_bottleneck, 4) if bottleneck else (_basic, 1)
        self.stem = nn.Sequential(_convolution(channels, 64, 3), BatchNormReLU(64))
        stages: list[nn.Module] = []
        channels = 64
        for stage, count in enumerate(blocks):
            width = 64 * 2**stage
            for block in range(count):
                stages.append(make(channels, width, 2 if stage and not block else 1))
                channels = expansion * width
        self.stages = nn.Sequential(*stages)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(channels, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """Logits ``(batch, classes)`` of images ``(batch, channels, height, width)``."""
        logits: Tensor = self.head(self.pool(self.stages(self.stem(images))).flatten(1))
        return logits


def resnet18(classes: int = 10) -> ResNet:
    """ResNet18: two basic blocks in each stage, 11.2 million parameters."""
    return ResNet((2, 2, 2, 2), bottleneck=False, classes=classes)


def resnet50(classes: int = 10) -> ResNet:
    """ResNet50: 3, 4, 6 and 3 bottleneck blocks, 23.5 million parameters."""
    return ResNet((3, 4, 6, 3), bottleneck=True, classes=classes)


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


NETWORKS: dict[str, Callable[[int], nn.Module]] = {
    "vgg16": vgg16,
    "resnet18": resnet18,
    "resnet50": resnet50,
    "densenet100": densenet100,
}
