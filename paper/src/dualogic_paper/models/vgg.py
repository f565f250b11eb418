"""VGG with batch normalisation and one linear layer, for 32 x 32 pixels."""

from __future__ import annotations

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
