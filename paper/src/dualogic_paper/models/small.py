"""LeNet-5, made for 32 x 32 pixels, and fully connected networks."""

from collections.abc import Sequence

from torch import nn


def lenet5(classes: int = 10) -> nn.Sequential:
    """Two convolutions and three layers, from images ``(n, 1, 32, 32)`` to logits ``(n, classes)``.

    Source: LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition", 1998; built as today.
    """
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(16 * 5 * 5, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, classes)),
    )


def mlp(inputs: int, hidden: Sequence[int], outputs: int, first_output: float = 0.0) -> nn.Sequential:
    """Linear layers with ReLU after each, the last one too; ``first_output``, if not 0, is what the last biases start from."""
    layers: list[nn.Module] = [nn.Flatten()]
    for before, after in zip((inputs, *hidden), (*hidden, outputs)):
        layers += [nn.Linear(before, after), nn.ReLU()]
    if first_output:
        nn.init.constant_(layers[-2].bias, first_output)  # type: ignore[arg-type]
    return nn.Sequential(*layers)
