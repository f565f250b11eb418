"""The networks have the published sizes, take any layout of memory, and learn."""

import pytest
import torch

from dualogic_paper.models.convolutional import NETWORKS

# Convolutions and batch norms by the papers' tables, plus the linear layer: (without the head, width of the head).
SIZES = {
    "vgg16": (14_718_912, 512),
    "resnet18": (11_168_832, 512),
    "resnet50": (23_500_352, 2048),
    "densenet100": (765_732, 342),
}


@pytest.mark.parametrize("classes", [10, 100])
@pytest.mark.parametrize("name", NETWORKS)
def test_sizes(name, classes):
    with torch.device("meta"):
        network = NETWORKS[name](classes)
    body, width = SIZES[name]
    assert sum(parameter.numel() for parameter in network.parameters()) == body + (width + 1) * classes


@pytest.mark.parametrize("name", NETWORKS)
def test_layouts_of_memory_agree(name):
    torch.manual_seed(0)
    network = NETWORKS[name](100).eval()
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        plain = network(images)
        last = network.to(memory_format=torch.channels_last)(images.contiguous(memory_format=torch.channels_last))
    assert plain.shape == (2, 100)
    assert plain.std() > 1e-3
    torch.testing.assert_close(plain, last, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_parameter_receives_a_gradient(name):
    torch.manual_seed(0)
    network = NETWORKS[name](10)
    torch.nn.functional.cross_entropy(network(torch.randn(4, 3, 32, 32)), torch.tensor([1, 2, 3, 4])).backward()
    for parameter in network.parameters():
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad).all()
    assert network.head.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("name", NETWORKS)
def test_features_end_with_the_published_pixels(name):
    network = NETWORKS[name](10).eval()
    width, pixels = {"vgg16": (512, 1), "resnet18": (512, 4), "resnet50": (2048, 4), "densenet100": (342, 8)}[name]
    with torch.no_grad():
        assert network.features(torch.zeros(1, 3, 32, 32)).shape == (1, width, pixels, pixels)
