"""Copies between host memory and a device that nobody waits for."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Arrived:
    """The event of a copy that was made at once."""

    def query(self) -> bool:
        """Whether the copy is done."""
        return True

    def synchronize(self) -> None:
        """Wait for the copy."""


class Link:
    """The way between host memory and the device where steps take place.

    On CUDA, copies run on a stream of their own, through pinned memory. Elsewhere they are made at once; on a CPU there is
    nothing to copy.

    Example:
        >>> import torch
        >>> link = Link(torch.device("cpu"))
        >>> rows, event = link.send(link.stage(torch.ones(4, 2), torch.tensor([1, 3])))
        >>> link.receive(rows, event)
        tensor([[1., 1.],
                [1., 1.]])
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
            return staged.to(self.device), Arrived()
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
            return rows.cpu(), Arrived()
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.stream):
            staged = torch.empty(rows.shape, dtype=rows.dtype, device="cpu", pin_memory=True)
            staged.copy_(rows, non_blocking=True)
            rows.record_stream(self.stream)
            event = torch.cuda.Event()
            event.record(self.stream)
        return staged, event
