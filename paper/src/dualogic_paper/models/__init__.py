"""The networks of the image experiments, in their forms for 32 x 32 pixels; :data:`NETWORKS` finds them by name."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from dualogic_paper.models.convolutional import VGG, DenseNet, ResNet, densenet100, resnet18, resnet50, vgg16

NETWORKS: dict[str, Callable[[int], nn.Module]] = {
    "vgg16": vgg16,
    "resnet18": resnet18,
    "resnet50": resnet50,
    "densenet100": densenet100,
}

__all__ = ["NETWORKS", "VGG", "DenseNet", "ResNet", "densenet100", "resnet18", "resnet50", "vgg16"]
