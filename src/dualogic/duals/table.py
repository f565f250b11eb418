"""Where dual variables live: one row for each training sample, or one row shared by all.

A table gives rows to a step (:meth:`DualTable.fetch`), turns the moves of a batch into new rows (:meth:`DualTable.advance`,
which changes nothing), and writes them (:meth:`DualTable.commit`). It is a plain tensor on purpose, not a buffer: buffers are
broadcast by DDP, cast by ``.half()`` and averaged with the weights. It follows its owner to another device and keeps its dtype.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dualogic import fused

Apply = Callable[[Tensor, Tensor], Tensor]
"""Rows and moves to new rows, row by row."""


@dataclasses.dataclass(frozen=True)
class Update:
    """New rows that are not written yet.

    Attributes:
        rows: what to write.
        index: where; ``None`` for a shared row.
        local: the new rows of the batch at hand, in its order, for its loss.
    """

    rows: Tensor
    index: Tensor | None
    local: Tensor


class DualTable:
    """A ``(samples, width)`` tensor of stored dual variables, all zeros at first (equal weights).

    Args:
        samples: the number of rows.
        width: dual variables per sample.
        dtype: of the storage.
    """

    shared = False

    def __init__(self, samples: int, width: int, dtype: torch.dtype) -> None:
        self.samples = samples
        self.values = torch.zeros(samples, width, dtype=dtype)

    @property
    def width(self) -> int:
        """Dual variables per sample."""
        return self.values.shape[1]

    @property
    def device(self) -> torch.device:
        """Where steps take place."""
        return self.values.device

    def fetch(self, index: Tensor) -> Tensor:
        """The rows of some samples, ``(batch, width)``."""
        return self.values.index_select(0, index)

    def fetch_checked(self, index: Tensor, flags: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """On an accelerator: rows, the index made safe, and which entries are in range; ``flags[0]`` is set if one is not."""
        if fused.usable(self.values):
            return fused.fetch_rows(self.values, index, flags)
        good = (index >= 0) & (index < self.samples)
        flags[0] |= ~good.all()
        index = index.clamp(0, self.samples - 1)
        return self.fetch(index), index, good

    def advance(self, index: Tensor, rows: Tensor, moves: Tensor, apply: Apply, counted: Tensor | None) -> Update:
        """The rows after a step; a sample that occurs several times moves by the mean of its moves.

        Args:
            index: ``(batch,)``.
            rows: as fetched.
            moves: ``(batch, width)``; 0 for samples that must not move.
            apply: makes new rows.
            counted: which samples of the batch may move; ``None`` for all.
        """
        new = apply(rows, average_duplicates(index, moves))
        return Update(new, index, new)

    def commit(self, update: Update) -> None:
        """Write new rows; where an index occurs twice, its rows are equal."""
        assert update.index is not None
        self.values.index_copy_(0, update.index, update.rows.to(self.values.dtype))

    def to_(self, device: torch.device) -> None:
        """Move to another device."""
        self.values = self.values.to(device)

    def reset_(self) -> None:
        """Equal weights everywhere."""
        self.values.zero_()


class SharedRow(DualTable):
    """One row that serves all samples and moves by the mean over a batch."""

    shared = True

    def __init__(self, width: int, dtype: torch.dtype) -> None:
        super().__init__(1, width, dtype)

    def fetch(self, index: Any) -> Tensor:
        return self.values

    def advance(self, index: Any, rows: Tensor, moves: Tensor, apply: Apply, counted: Tensor | None) -> Update:
        count = moves.shape[0] if counted is None else counted.sum().clamp_min(1)
        new = apply(rows, moves.sum(0, keepdim=True) / count)
        return Update(new, None, new)

    def commit(self, update: Update) -> None:
        self.values.copy_(update.rows)


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
    if index.device.type == "cpu" and not torch.compiler.is_compiling():
        ordered = index.sort().values
        if not bool((ordered[1:] == ordered[:-1]).any()):
            return moves
    same = index.unsqueeze(1) == index
    # The first occurrence of each sample collects the moves of all.
    first = same.to(torch.int8).argmax(1)
    total = torch.zeros_like(moves).index_add_(0, first, moves)
    return total.index_select(0, first) / same.sum(1, keepdim=True)
