"""A table in host memory, of which only the batch's rows visit the device.

Reading takes three steps: rows are gathered into pinned memory by a thread, copied on a side stream, and waited for by the
device alone. Writing takes them back: the new rows are copied to the host on the side stream, and put in their places once
they have arrived. Until then, whoever reads one of these rows gets it from the copy that is still on the device, so that a row
always has its newest value, however early it was prefetched.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor

from dualogic.duals.rounding import to_storage
from dualogic.duals.table import DualTable, Update, as_index, check_range

MOST_AHEAD = 8
MOST_ON_THE_WAY = 8
CPU = torch.device("cpu")


@dataclasses.dataclass(eq=False)
class Read:
    """Rows on their way to the device."""

    index: Tensor  # which, on the host
    seen: int  # the number of the first write that the gathered rows may lack
    result: Callable[[], tuple[Tensor, Any]]  # gives the rows on the device and the event of their copy


@dataclasses.dataclass(eq=False)
class Write:
    """Rows on their way to the host."""

    number: int  # counts writes
    index: Tensor  # which, on the host
    rows: Tensor  # on the device, as stored
    staged: Tensor | None  # on the host, valid once `arrived`; `None` once they are in their places
    arrived: Any  # the event of the copy; `None` if it was made at once

    def forward_to(self, index: Tensor, rows: Tensor) -> Tensor:
        """``rows`` of the samples ``index``, with those that this write changed replaced."""
        ordered, order = self.index.sort()
        place = torch.searchsorted(ordered, index).clamp_max_(ordered.shape[0] - 1)
        hit = (ordered[place] == index).nonzero().flatten()
        if not hit.shape[0]:
            return rows
        source = order[place[hit]].to(rows.device, non_blocking=True)
        return rows.index_copy(0, hit.to(rows.device, non_blocking=True), self.rows.index_select(0, source))


class Link:
    """The way between host memory and the device where steps take place.

    On CUDA, copies run on a stream of their own, through pinned memory, and an event tells when one is done. Elsewhere they are
    made at once; on a CPU there is nothing to copy.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def stage(self, values: Tensor, index: Tensor) -> Tensor:
        """Rows of a host tensor, gathered into memory that a copy can start from."""
        shape, pinned = (index.shape[0], values.shape[1]), self.stream is not None
        staged = torch.empty(shape, dtype=values.dtype, device="cpu", pin_memory=pinned)
        return torch.index_select(values, 0, index, out=staged)

    def send(self, staged: Tensor) -> tuple[Tensor, Any]:
        """Start a copy to the device; returns the tensor there and an event."""
        if self.stream is None:
            return staged.to(self.device), None
        with torch.cuda.stream(self.stream):
            rows = staged.to(self.device, non_blocking=True)
            event = torch.cuda.Event()
            event.record(self.stream)
        return rows, event

    def receive(self, rows: Tensor, event: Any) -> Tensor:
        """Make the device's current work wait for a copy; the host goes on."""
        if self.stream is not None:
            current = torch.cuda.current_stream(self.device)
            current.wait_event(event)
            rows.record_stream(current)
        return rows

    def bring_back(self, rows: Tensor) -> tuple[Tensor, Any]:
        """Start a copy to host memory; returns the tensor there and an event."""
        if self.stream is None:
            return rows.cpu(), None
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.stream):
            staged = torch.empty(rows.shape, dtype=rows.dtype, device="cpu", pin_memory=True)
            staged.copy_(rows, non_blocking=True)
            rows.record_stream(self.stream)
            event = torch.cuda.Event()
            event.record(self.stream)
        return staged, event


class HostTable(DualTable):
    """A ``(samples, width)`` tensor in host memory that serves steps on a device.

    A step needs no synchronisation if its index is on the host, as a data loader gives it; an index on the device is read back
    first. The table itself is ordinary memory that is taken up row by row; what is pinned is a batch's rows on their way.
    ``torch.compile`` leaves these methods as they are, so its graph ends and begins anew around them.
    """

    choice: str | None = "host"

    def __init__(self, samples: int, width: int, dtype: torch.dtype) -> None:
        super().__init__(samples, width, dtype)
        self._connect(torch.empty(0).device)

    def _allocate(self, samples: int, width: int, dtype: torch.dtype) -> Tensor:
        with CPU:
            return super()._allocate(samples, width, dtype)

    def _connect(self, device: torch.device) -> None:
        self._link = Link(device)
        self._reads: list[Read] = []
        self._writes: list[Write] = []
        self._written = 0
        self._reader: ThreadPoolExecutor | None = None

    @property
    def device(self) -> torch.device:
        return self._link.device

    @property
    def place(self) -> str:
        return f"in host memory, for {self.device}"

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def check_index(self, index: Any, batch: int, at_once: bool, where: Any = None) -> Tensor:
        found = as_index(index, CPU, batch, None if where is None else self.samples, where)
        check_range(found, self.samples)
        return found

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def prefetch(self, index: Tensor) -> None:
        """Start bringing rows ``(batch,)`` to the device; :meth:`fetch` of the same index then waits for less.

        At most 8 batches are kept in advance; older ones are forgotten.
        """
        if self._reader is None:
            self._reader = ThreadPoolExecutor(1, "dualogic-prefetch")
        self._drain(MOST_ON_THE_WAY)
        index = index.clone()
        future = self._reader.submit(self._read, self._link, index)
        self._reads = [*self._reads[1 - MOST_AHEAD :], Read(index, self._first_missing(), future.result)]

    def _read(self, link: Link, index: Tensor) -> tuple[Tensor, Any]:
        with torch.inference_mode(False), torch.no_grad():
            return link.send(link.stage(self.values, index))

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def fetch(self, index: Tensor) -> Tensor:
        index = index.cpu()
        read = next((read for read in self._reads if torch.equal(read.index, index)), None)
        if read is None:
            self._drain(MOST_ON_THE_WAY)
            seen, result = self._first_missing(), self._read(self._link, index)
        else:
            self._reads.remove(read)
            seen, result = read.seen, read.result()
        rows = self._link.receive(*result)
        for write in self._writes:
            if write.number >= seen:
                rows = write.forward_to(index, rows)
        return rows

    def fetch_checked(self, index: Tensor, flags: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        # The index is on the host, so it has been checked.
        return self.fetch(index), index, None

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def commit(self, update: Update, step: Tensor) -> None:
        assert update.index is not None
        index = update.index.to(update.rows.device, non_blocking=True)
        rows = to_storage(update.rows, self.values.dtype, step, index)
        # The user may reuse the index's memory before the rows have arrived.
        staged, arrived = self._link.bring_back(rows)
        self._writes.append(Write(self._written, update.index.to(CPU, copy=True), rows, staged, arrived))
        self._written += 1
        self._drain(MOST_ON_THE_WAY)

    def _first_missing(self) -> int:
        return next((write.number for write in self._writes if write.staged is not None), self._written)

    def _drain(self, most: int) -> None:
        """Put rows that have arrived in their places, oldest first; wait until at most ``most`` writes are on their way."""
        waiting = [write for write in self._writes if write.staged is not None]
        for position, write in enumerate(waiting):
            if write.arrived is not None and not write.arrived.query():
                if len(waiting) - position <= most:
                    break
                write.arrived.synchronize()
            self.values.index_copy_(0, write.index, write.staged)  # type: ignore[arg-type]
            write.staged = None
        # A write is kept for reads that were started before it was in its place; reads that nobody asks for are given up.
        self._reads = [read for read in self._reads if read.seen > self._written - 2 * MOST_AHEAD]
        oldest = min((read.seen for read in self._reads), default=self._written)
        self._writes = [write for write in self._writes if write.staged is not None or write.number >= oldest]

    def settle(self) -> None:
        """Wait until every row is in its place; forget what was prefetched."""
        self._drain(0)
        for read in self._reads:
            read.result()
        self._reads, self._writes = [], []

    def changing(self) -> list[Tensor]:
        return []

    def state(self) -> dict[str, Tensor]:
        self.settle()
        return super().state()

    def to_(self, device: torch.device) -> None:
        self.settle()
        self._connect(device)

    def reset_(self) -> None:
        self.settle()
        super().reset_()

    def extend_(self, samples: int) -> None:
        self.settle()
        super().extend_(samples)

    def __getstate__(self) -> dict[str, Any]:
        self.settle()
        return {"samples": self.samples, "values": self.values, "device": self.device}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.samples, self.values = state["samples"], state["values"]
        self._connect(state["device"])
