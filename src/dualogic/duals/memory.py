"""How much memory dual variables take, and tables that take none before they are used."""

from __future__ import annotations

import dataclasses
import mmap

import torch
from torch import Tensor

LAZY_FROM = 1 << 20


@dataclasses.dataclass(frozen=True)
class Memory:
    """What a table occupies.

    Attributes:
        per_sample: bytes for each training sample; 0 if all share.
        total: bytes when every row has been used.
        place: where they are.

    Example:
        >>> print(Memory(4000, 5_124_668_000, "bfloat16 on cpu"))
        4.00 kB per sample, 5.12 GB in total, bfloat16 on cpu
    """

    per_sample: int
    total: int
    place: str

    def __str__(self) -> str:
        each = f"{format_bytes(self.per_sample)} per sample, " if self.per_sample else ""
        return f"{each}{format_bytes(self.total)} in total, {self.place}"


def format_bytes(count: int) -> str:
    """Bytes in decimal units, as in ``5.12 GB``."""
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} B"


def copy_rows(source: Tensor, target: Tensor) -> None:
    """Copy rows to the beginning of a table that is all zeros, without touching memory for rows that are zeros too."""
    if source.device.type != "cpu" or source.numel() * source.element_size() < LAZY_FROM:
        target[: source.shape[0]].copy_(source)
        return
    rows = max(1, LAZY_FROM // (source.shape[1] * source.element_size()))
    for start in range(0, source.shape[0], rows):
        part = source[start : start + rows]
        used = (part != 0).any(1).nonzero().flatten()
        target.index_copy_(0, used + start, part.index_select(0, used))


def lazy_zeros(samples: int, width: int, dtype: torch.dtype) -> Tensor:
    """Zeros ``(samples, width)`` on the default device; on a CPU a large table takes no memory before a row is written.

    ``torch.zeros`` would write every page. Fresh pages of an anonymous mapping read as zeros and are only given out when they
    are written; huge pages are declined, because one row would then take 2 MB and the time to clear them.
    """
    size = samples * width * dtype.itemsize
    if size < LAZY_FROM or torch.empty(0).device.type != "cpu":
        return torch.zeros(samples, width, dtype=dtype)
    private = getattr(mmap, "MAP_PRIVATE", None)
    pages = mmap.mmap(-1, size) if private is None else mmap.mmap(-1, size, flags=private | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    return torch.frombuffer(pages, dtype=dtype).view(samples, width)
