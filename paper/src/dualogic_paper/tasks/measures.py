"""What tasks measure with: outputs of many samples, shares in percent, and how a rule is met."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

CHUNK = 2048  # samples in one forward pass of an evaluation
MOST_SAMPLES = 2000  # samples that a diagnosis looks at; see :func:`spread`


def spread(count: int) -> Tensor:
    """Evenly spaced positions below ``count``, at most :data:`MOST_SAMPLES`."""
    return torch.arange(0, count, max(1, -(-count // MOST_SAMPLES)))


def resize(images: Tensor) -> Tensor:
    """Bytes ``(n, 1, h, w)`` to bytes ``(n, 1, 32, 32)``, for which LeNet-5 was made."""
    parts = (functional.interpolate(part.float(), (32, 32), mode="bilinear") for part in images.split(CHUNK))
    return torch.cat([part.round().byte() for part in parts])


def draw_outputs(*shape: int, width: float, generator: torch.Generator) -> Tensor:
    """Normal numbers in float64, with a gradient."""
    return (width * torch.randn(*shape, generator=generator, dtype=torch.float64)).requires_grad_()


def percent(holds: Tensor) -> float:
    """The share of true entries, in percent."""
    return 100 * holds.double().mean().item()


@torch.no_grad()
def in_chunks(network: nn.Module, inputs: Tensor, prepare: Any = None) -> Tensor:
    """The network's outputs ``(n, ...)`` for many samples ``(n, ...)``, prepared and computed a chunk at a time, in float32."""
    return torch.cat([network(chunk if prepare is None else prepare(chunk)).float() for chunk in inputs.split(CHUNK)])


def compare_branches(
    holds: Mapping[str, Tensor], weights: Mapping[str, Tensor], groups: Mapping[str, Tensor]
) -> dict[str, float]:
    """The share of samples where each branch of a rule holds and the mean weight on it, for each group that is not empty.

    >>> import torch
    >>> holds, weights = torch.tensor([True, False]), torch.tensor([0.75, 0.5])
    >>> compare_branches({"q": holds}, {"q": weights}, {"sixes": holds, "none": holds < 0})
    {'q_holds_sixes': 100.0, 'q_weight_sixes': 0.75}
    """
    found: dict[str, float] = {}
    for group, members in groups.items():
        for key, value in holds.items() if bool(members.any()) else ():
            found[f"{key}_holds_{group}"] = percent(value[members])
            if key in weights:
                found[f"{key}_weight_{group}"] = weights[key][members].mean().item()
    return found


def describe_reading(shares: Tensor, names: Sequence[str]) -> str:
    """The two names of the largest shares."""
    largest, numbers = shares.topk(2)
    return "read as " + ", ".join(f"{names[number]} {share:.0%}" for share, number in zip(largest.tolist(), numbers.tolist()))
