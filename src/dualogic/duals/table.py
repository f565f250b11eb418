"""Where dual variables live: one row for each training sample, or one row shared by all."""

from __future__ import annotations

import torch
from torch import Tensor


class DualTable:
    """A ``(samples, width)`` tensor of stored dual variables, all zeros at first (equal weights).

    It is a plain tensor on purpose, not a buffer: buffers are broadcast by DDP, cast by ``.half()`` and averaged with the
    weights. It follows its owner to another device and keeps its dtype.

    Args:
        samples: the number of rows; ``None`` for one row shared by all samples.
        width: dual variables per sample.
        dtype: of the storage.
    """

    def __init__(self, samples: int | None, width: int, dtype: torch.dtype) -> None:
        self.samples = samples
        self.values = torch.zeros(1 if samples is None else samples, width, dtype=dtype)

    @property
    def shared(self) -> bool:
        """Whether all samples use the same row."""
        return self.samples is None

    @property
    def width(self) -> int:
        """Dual variables per sample."""
        return self.values.shape[1]

    def rows(self, index: Tensor | None) -> Tensor:
        """The rows of some samples ``(batch, width)``, or the shared row ``(1, width)``."""
        return self.values if index is None or self.shared else self.values.index_select(0, index)

    def write_(self, index: Tensor | None, rows: Tensor) -> None:
        """Replace rows; where an index occurs twice, both rows must be equal."""
        rows = rows.to(self.values.dtype)
        if index is None or self.shared:
            self.values.copy_(rows)
        else:
            self.values.index_copy_(0, index, rows)

    def to_(self, device: torch.device) -> None:
        """Move to another device."""
        self.values = self.values.to(device)

    def reset_(self) -> None:
        """Equal weights everywhere."""
        self.values.zero_()


def average_duplicates(index: Tensor, moves: Tensor) -> Tensor:
    """Give every occurrence of a sample in a batch the mean of the moves of all its occurrences.

    Args:
        index: ``(batch,)``.
        moves: ``(batch, width)``.

    Example:
        >>> import torch
        >>> average_duplicates(torch.tensor([4, 2, 4]), torch.tensor([[1.0], [5.0], [3.0]]))
        tensor([[2.],
                [5.],
                [2.]])
    """
    ordered, order = index.sort()
    fresh = torch.ones_like(ordered, dtype=torch.bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    if index.device.type == "cpu" and not torch.compiler.is_compiling() and bool(fresh.all()):
        return moves
    group = torch.empty_like(order)
    group[order] = fresh.cumsum(0) - 1
    count = torch.zeros_like(group).index_add_(0, group, torch.ones_like(group))
    total = torch.zeros_like(moves).index_add_(0, group, moves)
    return (total / count.clamp_min(1).unsqueeze(1)).index_select(0, group)
