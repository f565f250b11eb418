"""A table in a memory-mapped file: larger than memory, and still there after the run."""

from __future__ import annotations

import dataclasses
import mmap
import os
import uuid
from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor

from dualogic.duals.factory import Mapped
from dualogic.duals.host import HostTable
from dualogic.duals.table_file import HEADER, Header, Owner, grow, open_pages


class MappedTable(HostTable):
    """A ``(samples, width)`` tensor in a file, served as by :class:`~dualogic.duals.host.HostTable`.

    A file of another owner's is refused. One with an ``identity`` must be there already; without, it is made if it is not.
    """

    def __init__(
        self,
        samples: int,
        width: int,
        dtype: torch.dtype,
        options: Mapped,
        owner: Owner | None = None,
        identity: str | None = None,
    ) -> None:
        self.options = options
        # Whoever opens it later may stand in another folder.
        self.path = None if options.path is None else os.path.abspath(options.path)
        self.owner_of_rows = owner or Owner()
        self._known = identity
        super().__init__(samples, width, dtype)

    def _allocate(self, samples: int, width: int, dtype: torch.dtype) -> Tensor:
        identity = self._known or uuid.uuid4().hex
        wanted = Header(samples, width, str(dtype).removeprefix("torch."), self.owner_of_rows, identity)
        self._pages, self._header = open_pages(self.path, wanted, self._known is not None)
        if hasattr(mmap, "MADV_RANDOM"):
            self._pages.madvise(mmap.MADV_RANDOM)
        if wanted.size == HEADER:
            return torch.zeros(samples, width, dtype=dtype, device="cpu")
        return torch.frombuffer(self._pages, dtype=dtype, offset=HEADER, count=samples * width).view(samples, width)

    def extend_(self, samples: int) -> None:
        """Grow the file in its place; a temporary one is copied, because it cannot be opened again."""
        if self.path is None:
            super().extend_(samples)
            return
        self.settle()
        self._pages.flush()
        self._known = grow(self.path, self._header, samples).identity
        self.values = self._allocate(samples, self.width, self.values.dtype)
        self.samples = samples

    @property
    def place(self) -> str:
        return f"in {'a temporary file' if self.options.path is None else self.options.path}, for {self.device}"

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint holds; also writes the rows to the file."""
        found = super().state()
        self._pages.flush()
        return found if self.options.in_checkpoint else {}

    @property
    def left_out(self) -> str | None:
        return None if self.options.in_checkpoint else self._header.identity

    def loading(self, saved: Collection[str]) -> dict[str, Tensor]:
        # A checkpoint that does hold the table is welcome all the same.
        own = super().loading(saved)
        return {"table": self.values} if "table" in saved else own

    def __reduce__(self) -> tuple[Any, ...]:
        # In another process it is the same file; a temporary one cannot be opened again, so its rows travel.
        if self.path is None:
            return _in_memory, (self.__getstate__(),)
        self.settle()
        self._pages.flush()
        options = dataclasses.replace(self.options, path=self.path)
        known = (options, self.owner_of_rows, self._header.identity)
        return MappedTable, (self.samples, self.width, self.values.dtype, *known), {"device": self.device}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.to_(state["device"])

    def __deepcopy__(self, memo: dict[int, Any]) -> HostTable:
        # Two tables must not write to one file: a copy is held in memory.
        state = self.__getstate__()
        return _in_memory({**state, "values": state["values"].clone()})


def _in_memory(state: dict[str, Any]) -> HostTable:
    table = HostTable.__new__(HostTable)
    table.__setstate__(state)
    return table
