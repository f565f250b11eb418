"""A table in a memory-mapped file: larger than memory, and still there after the run."""

from __future__ import annotations

import json
import mmap
import os
import tempfile
from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor

from dualogic.duals.host import HostTable
from dualogic.duals.options import Mapped
from dualogic.errors import StateError

HEADER = 4096
TITLE = "dualogic table 1"


class MappedTable(HostTable):
    """A ``(samples, width)`` tensor in a file, served as by :class:`~dualogic.duals.host.HostTable`.

    The file has a page of header, which says what is in it, and then the rows.

    Args:
        samples: the number of rows.
        width: dual variables per sample.
        dtype: of the storage.
        options: the file.

    Example:
        >>> import tempfile, torch
        >>> from dualogic.duals.table import Update
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     options = Mapped(f"{folder}/duals.table")
        ...     first = MappedTable(5, 2, torch.float32, options)
        ...     first.commit(Update(torch.ones(1, 2), torch.tensor([3]), torch.ones(1, 2)), torch.tensor(0))
        ...     MappedTable(5, 2, torch.float32, options).fetch(torch.tensor([3, 1]))
        tensor([[1., 1.],
                [0., 0.]])
    """

    def __init__(self, samples: int, width: int, dtype: torch.dtype, options: Mapped) -> None:
        self.options = options
        super().__init__(samples, width, dtype)

    def _allocate(self, samples: int, width: int, dtype: torch.dtype) -> Tensor:
        size, header = _size(samples, width, dtype), _describe(samples, width, dtype)
        with self._open() as file:
            if os.fstat(file.fileno()).st_size == 0:
                file.write(_header(samples, width, dtype))
                file.truncate(size)
            else:
                self._check(file.read(HEADER), os.fstat(file.fileno()).st_size, header, size)
            file.flush()
            # The mapping keeps the file open.
            self._pages = mmap.mmap(file.fileno(), size)
        if hasattr(mmap, "MADV_RANDOM"):
            self._pages.madvise(mmap.MADV_RANDOM)
        if size == HEADER:
            return torch.zeros(samples, width, dtype=dtype, device="cpu")
        return torch.frombuffer(self._pages, dtype=dtype, offset=HEADER).view(samples, width)

    def _open(self) -> Any:
        if self.options.path is None:
            return tempfile.TemporaryFile(prefix="dualogic-")
        # Neither "r+b" (the file may be missing) nor "w+b" (it may hold rows) nor "a+b" (which writes at the end only).
        return os.fdopen(os.open(self.options.path, os.O_RDWR | os.O_CREAT, 0o644), "r+b")

    def _check(self, start: bytes, found_size: int, header: dict[str, Any], size: int) -> None:
        try:
            found = json.loads(start)
        except ValueError:
            found = {}
        if not isinstance(found, dict) or found.get("title") != TITLE:
            raise StateError(f"{self.options.path} is not a table of dualogic; give the path of one, or of a file to be made")
        if found != header or found_size < size:  # a longer one is what an interrupted extend_ leaves
            raise StateError(
                f"{self.options.path} holds {found['samples']} samples x {found['width']} dual variables in {found['dtype']} "
                f"({found_size} bytes), but this loss needs {header['samples']} x {header['width']} in {header['dtype']} ({size} "
                f"bytes); give another path, or delete the file to start again"
            )

    def extend_(self, samples: int) -> None:
        """Grow the file in its place; a temporary one is copied, because it cannot be opened again."""
        if self.options.path is None:
            super().extend_(samples)
            return
        self.settle()
        self._pages.flush()
        width, dtype = self.width, self.values.dtype
        # The longer file says that it is the shorter one until all of it is there: a crash in between loses nothing.
        with self._open() as file:
            file.truncate(_size(samples, width, dtype))
            file.flush()
            os.fsync(file.fileno())
            file.write(_header(samples, width, dtype))
        self.values = self._allocate(samples, width, dtype)
        self.samples = samples

    @property
    def place(self) -> str:
        return f"in {'a temporary file' if self.options.path is None else self.options.path}, for {self.device}"

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint holds; also writes the rows to the file."""
        found = super().state()
        self._pages.flush()
        return found if self.options.in_checkpoint else {}

    def loading(self, saved: Collection[str]) -> dict[str, Tensor]:
        # A checkpoint that does hold the table is welcome all the same.
        own = super().loading(saved)
        return {"table": self.values} if "table" in saved else own

    def __reduce__(self) -> tuple[Any, ...]:
        # In another process it is the same file; a temporary one cannot be opened again, so its rows travel.
        if self.options.path is None:
            return _in_memory, (self.__getstate__(),)
        self.settle()
        self._pages.flush()
        return _reopen, (self.samples, self.width, self.values.dtype, self.options, self.device)

    def __deepcopy__(self, memo: dict[int, Any]) -> HostTable:
        # Two tables must not write to one file: a copy is held in memory.
        state = self.__getstate__()
        return _in_memory({**state, "values": state["values"].clone()})


def _describe(samples: int, width: int, dtype: torch.dtype) -> dict[str, Any]:
    return {"title": TITLE, "samples": samples, "width": width, "dtype": str(dtype).removeprefix("torch.")}


def _header(samples: int, width: int, dtype: torch.dtype) -> bytes:
    return json.dumps(_describe(samples, width, dtype)).encode().ljust(HEADER)


def _size(samples: int, width: int, dtype: torch.dtype) -> int:
    return HEADER + samples * width * dtype.itemsize


def _reopen(samples: int, width: int, dtype: torch.dtype, options: Mapped, device: torch.device) -> MappedTable:
    table = MappedTable(samples, width, dtype, options)
    table.to_(device)
    return table


def _in_memory(state: dict[str, Any]) -> HostTable:
    table = HostTable.__new__(HostTable)
    table.__setstate__(state)
    return table
