"""Where dual variables live: one row for each training sample, or one row shared by all.

A table checks which samples a batch is of (:meth:`DualTable.check_index`), gives their rows to a step
(:meth:`DualTable.fetch`), turns the moves of a batch into new rows (:meth:`DualTable.advance`, which changes nothing), and writes
them (:meth:`DualTable.commit`). It is a plain tensor on purpose, not a buffer: buffers are
broadcast by DDP, cast by ``.half()`` and averaged with the weights. It follows its owner to another device and keeps its dtype.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dualogic.duals.memory import Memory, copy_rows, lazy_zeros
from dualogic.duals.rounding import to_storage
from dualogic.errors import SampleIndexError, StateError
from dualogic.kernels import fused
from dualogic.numerics import is_followed, is_mapped, wide

SHORT_BATCH = 512
"""Up to here Python finds duplicates sooner than five operations on a tensor do."""

Apply = Callable[[Tensor, Tensor], Tensor]
"""Rows and moves to new rows, row by row."""


@dataclasses.dataclass
class Update:
    """New rows that are not written yet."""

    rows: Tensor  # what to write
    index: Tensor | None  # where; `None` for a shared row
    local: Tensor  # the new rows of the batch at hand, in its order, for its loss
    selected: Tensor | None = None  # which of `rows` the update is about; `None` for all. The others are what they were.


class DualTable:
    """A ``(samples, width)`` tensor of stored dual variables, all zeros at first (equal weights)."""

    shared = False
    choice: str | None = "device"  # what makes another like it; `None` for a file, which has the width that it has
    collective = False  # whether fetch and advance need all processes of a group

    def __init__(self, samples: int, width: int, dtype: torch.dtype) -> None:
        self.samples = samples
        self.values = self._allocate(samples, width, dtype)

    def _allocate(self, samples: int, width: int, dtype: torch.dtype) -> Tensor:
        return lazy_zeros(samples, width, dtype)

    @property
    def width(self) -> int:
        """Dual variables per sample."""
        return self.values.shape[1]

    @property
    def device(self) -> torch.device:
        """Where steps take place."""
        return self.values.device

    def missing_index(self, batch: int) -> str:
        """What to tell someone who trains without saying which samples a batch is of."""
        return (
            f"training with num_samples={self.samples} needs the samples' indices: logic(index, ...), where index holds {batch} "
            f"positions in the data set. If your loader gives none, wrap its data set, dl.data.WithIndex(dataset), or map ids "
            f"with dl.data.IdMap. Use num_samples=None for duals shared by all samples, or call .eval() to use the optimal ones"
        )

    def check_index(self, index: Any, batch: int, at_once: bool, where: Any = None) -> Tensor:
        """What the user gave, ``(batch,)`` integers, as :meth:`fetch` takes it.

        Its range is checked ``at_once``, which reads the tensor, or on the device by :meth:`fetch_checked`. Samples that do not
        count, by ``where`` ``(batch,)``, may have any index, such as -1.
        """
        found = as_index(index, self.device, batch, None if where is None else self.samples, where)
        if at_once:
            check_range(found, self.samples)
        return found

    def prefetch(self, index: Tensor) -> None:
        """Start bringing the rows of a later batch to the device; does nothing if they are there."""

    def fetch(self, index: Tensor) -> Tensor:
        """The rows of some samples, ``(batch, width)``."""
        return self.values.index_select(0, index)

    def fetch_checked(self, index: Tensor, flags: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """On an accelerator: rows, the index made safe, and which entries are in range (``None`` if :meth:`check_index` has seen
        to it); ``flags[0]`` is set if one is not.
        """
        if fused.usable(self.values) and not self.collective:  # whose rows are not all here
            return fused.fetch_rows(self.values, index, flags)
        good = (index >= 0) & (index < self.samples)
        if not is_mapped():
            flags[0] |= ~good.all()
        index = index.clamp(0, self.samples - 1)
        return self.fetch(index), index, good

    def advance(
        self, index: Tensor, rows: Tensor, moves: Tensor, apply: Apply, counted: Tensor | None, selected: Tensor | None = None
    ) -> Update:
        """The rows after a step; a sample that occurs several times moves by the mean of its moves.

        ``moves`` are ``(batch, width)``, and 0 for samples that must not move; ``apply`` makes new rows of them. The step is
        about ``selected`` samples; of these the ones ``counted`` may move, or which of their numbers, ``(batch, width)``.
        ``None`` is for all. The others keep their rows to the bit, and are no occurrences in the mean.
        """
        moves, touched = average_moves(index, moves, selected if counted is None else counted)
        new = apply(rows, moves)
        new = new if touched is None else torch.where(wide(touched), new, rows)
        return Update(new, index, new)

    def commit(self, update: Update, step: Tensor) -> None:
        """Write new rows after ``step`` updates, by which rounding draws; where an index occurs twice, its rows are equal."""
        assert update.index is not None
        self.values.index_copy_(0, update.index, to_storage(update.rows, self.values.dtype, step, update.index))

    def to_(self, device: torch.device) -> None:
        """Move to another device; from the device meta, where rows have no values, with equal weights."""
        shape = len(self.values), self.width
        with torch.device(device):
            self.values = self._allocate(*shape, self.values.dtype) if self.values.is_meta else self.values.to(device)

    def reset_(self) -> None:
        """Equal weights everywhere."""
        self.values.zero_()

    def extend_(self, samples: int) -> None:
        """Grow to more samples; the rows that are there keep their values, the new ones have equal weights."""
        if self.shared:
            raise StateError(
                f"extend({samples}) has nothing to grow: one row serves all samples (num_samples=None), however many there are"
            )
        with self.values.device:
            values = self._allocate(samples, self.width, self.values.dtype)
        copy_rows(self.values, values)
        self.samples, self.values = samples, values

    def changing(self) -> list[Tensor]:
        """The tensors on the device that :meth:`commit` changes in place."""
        return [self.values]

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint holds, by name: the tensors themselves, not copies."""
        return {"table": self.values}

    def memory(self) -> Memory:
        """Bytes per sample and in total."""
        per_sample = 0 if self.shared else self.width * self.values.element_size()
        dtype = str(self.values.dtype).removeprefix("torch.")
        return Memory(per_sample, self.samples * self.width * self.values.element_size(), f"{dtype} {self.place}")

    @property
    def spoilt(self) -> str:
        """What to say of a row that is not finite, and what to do about it."""
        row = "the row that all samples share" if self.shared else "the sample's row in the table"
        return f"{row} is not finite; load a checkpoint from before it was spoilt, or start again with logic.reset_()"

    @property
    def owner(self) -> str:
        """Whose the dual variables are, in words."""
        return "shared by all samples" if self.shared else f"for each of {self.samples} samples"

    @property
    def place(self) -> str:
        """Where the rows are, in words."""
        return f"on {self.values.device}"


class SharedRow(DualTable):
    """One row that serves all samples and moves by the mean over a batch."""

    shared = True

    def __init__(self, width: int, dtype: torch.dtype) -> None:
        super().__init__(1, width, dtype)

    def fetch(self, index: Any) -> Tensor:
        return self.values.clone()  # which a step changes in place, maybe before a backward pass

    def advance(
        self, index: Any, rows: Tensor, moves: Tensor, apply: Apply, counted: Tensor | None, selected: Tensor | None = None
    ) -> Update:
        count = moves.shape[0] if counted is None else counted.sum(0).clamp_min(1)
        new = apply(rows, moves.sum(0, keepdim=True) / count)
        return Update(new, None, new)

    def commit(self, update: Update, step: Tensor) -> None:
        self.values.copy_(to_storage(update.rows, self.values.dtype, step, None))


def as_index(index: Any, device: torch.device, batch: int, samples: int | None = None, where: Any = None) -> Tensor:
    """What a user gave as index, as ``(batch,)`` int64 on a device; where it does not count, within a table of ``samples``."""
    if isinstance(index, Tensor) and index.is_meta:
        raise SampleIndexError("index is on the meta device and has no values; give the samples' positions in the data set")
    try:
        index = torch.as_tensor(index, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise SampleIndexError(f"index must be a tensor of {batch} integers; got {index!r}") from error
    if index.dtype.is_floating_point or index.dtype.is_complex or index.dtype is torch.bool:
        raise SampleIndexError(f"index must hold integers; got {index.dtype}")
    if index.shape != (batch,):
        raise SampleIndexError(f"index must have shape ({batch},), one per sample of the batch; got {tuple(index.shape)}")
    found: Tensor = index.long()
    if samples is None:
        return found
    return torch.where(torch.as_tensor(where, device=device), found, found.clamp(0, samples - 1))


def check_range(index: Tensor, samples: int) -> None:
    """Refuse an index with an entry outside of the table; reads the tensor."""
    if not index.numel():
        return
    low, high = torch.aminmax(index)
    if low.item() < 0 or high.item() >= samples:
        wrong = index[(index < 0) | (index >= samples)][0].item()
        raise SampleIndexError(
            f"sample index {wrong} is out of range for num_samples={samples}; indices run from 0 to {samples - 1}. Nothing was "
            f"changed"
        )


def has_duplicates(index: Tensor) -> bool:
    """Whether some sample occurs twice; reads the tensor ``(batch,)``."""
    if len(index) <= SHORT_BATCH and not is_followed():  # where early versions of torch make no list
        return len(set(index.tolist())) < len(index)
    ordered = index.sort().values
    return bool((ordered[1:] == ordered[:-1]).any())


def average_moves(index: Tensor, moves: Tensor, selected: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
    """Give every occurrence of a sample in a batch the mean of the moves of all its occurrences, or of those that are selected.

    Also gives which entries are of a sample that is selected somewhere in the batch. ``index`` is ``(batch,)``, ``moves``
    ``(batch, width)`` and 0 where ``selected`` is false, and ``selected`` of either shape.
    """
    if index.device.type == "cpu" and not torch.compiler.is_compiling():
        if not has_duplicates(index):
            return moves, selected
        if moves.device.type == "cpu":
            # Data-dependent sizes cost nothing here, and spare a matrix of the batch against itself.
            _, place, count = index.unique(return_inverse=True, return_counts=True)
            total = moves.new_zeros(len(count), moves.shape[1]).index_add_(0, place, moves)
            if selected is None:
                return (total / count.unsqueeze(1)).index_select(0, place), None
            count = count.new_zeros(len(count), *selected.shape[1:]).index_add_(0, place, selected.long())
            return (total / wide(count.clamp_min(1))).index_select(0, place), (count > 0).index_select(0, place)
    index = index.to(moves.device, non_blocking=True)  # that of a table in host memory is there too
    same = index.unsqueeze(1) == index
    # The first occurrence of each sample collects the moves of all.
    first = same.to(torch.int8).argmax(1)
    total = torch.zeros_like(moves).index_add_(0, first, moves).index_select(0, first)
    if selected is None:
        return total / same.sum(1, keepdim=True), None
    number = selected.long()
    number = torch.zeros_like(number).index_add_(0, first, number).index_select(0, first)
    return total / wide(number.clamp_min(1)), number > 0
