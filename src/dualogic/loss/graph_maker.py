"""What records a CUDA graph, and cleans up after a recording that broke off: all that recorded calls ask of CUDA."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

MOST_BYTES = 2**28
"""A graph keeps its memory from everybody else. A rule that needs more than this is not bound by launches."""


class Outputs(NamedTuple):
    """What a recorded call leaves behind, in tensors that the next replay overwrites."""

    loss: Tensor  # a scalar
    scale: Tensor  # the gradient of the loss that `gradients` are for, a scalar
    gradients: list[Tensor]  # with respect to some of the tensors
    taught: tuple[int, ...]  # which ones
    last: dict[str, Tensor]  # costs and losses for `statistics()`
    selected: Tensor | None  # which samples those are about


Body = Callable[[], Outputs]


class GraphMaker:
    """All that is asked of CUDA, for one device."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._side: Any = None
        self._pools: dict[int, Any] = {}

    @staticmethod
    def suits(device: torch.device) -> bool:
        """Whether this kind of device can record."""
        return device.type == "cuda"

    def place(self) -> int | None:
        """The stream that a call would run on; ``None`` if somebody records it already, or works on another device.

        Two streams never share a graph, whose buffers they would overwrite under each other's feet.
        """
        if torch.cuda.current_device() != self.device.index or torch.cuda.is_current_stream_capturing():
            return None
        return int(torch._C._cuda_getCurrentRawStream(self.device.index))

    def rehearse(self, body: Body) -> Outputs:
        """Run it once, for real, on the stream that recordings take place on."""
        here, side = torch.cuda.current_stream(), self._aside()
        side.wait_stream(here)
        with torch.cuda.stream(side):
            found = body()
        here.wait_stream(side)
        for tensor in (found.loss, found.scale, *found.gradients, *found.last.values()):
            tensor.record_stream(here)
        return found

    def record(self, body: Body) -> Body:
        """The same as one launch; runs nothing."""
        here, graph = torch.cuda.current_stream(), torch.cuda.CUDAGraph()
        pool = self._pools.get(here.cuda_stream) or torch.cuda.graph_pool_handle()
        try:
            # Other threads, such as those that pin memory for a data loader, must not break a recording.
            with torch.cuda.graph(graph, pool=pool, stream=self._aside(), capture_error_mode="thread_local"):
                before = torch.cuda.memory_reserved(self.device)
                found = body()
                size = torch.cuda.memory_reserved(self.device) - before
        except BaseException:
            self._recover(here, pool)
            raise
        if size > MOST_BYTES:
            raise MemoryError(f"the graph would keep {size} bytes")
        self._pools[here.cuda_stream] = pool

        def replay() -> Outputs:
            graph.replay()
            return found

        return replay

    def _aside(self) -> Any:
        if self._side is None:
            self._side = torch.cuda.Stream(self.device)
        return self._side

    def _recover(self, here: Any, pool: Any) -> None:
        """After a recording that broke off: everything as it was before."""
        self._pools.pop(here.cuda_stream, None)
        try:
            # torch leaves these open: the allocator still fills the pool, and the random generator takes no ordinary draws until
            # a recording has ended well.
            with contextlib.suppress(RuntimeError, AttributeError):
                torch._C._cuda_endAllocateToPool(self.device.index, pool)
            with contextlib.suppress(RuntimeError):
                side = torch.cuda.Stream(self.device)
                with torch.cuda.graph(torch.cuda.CUDAGraph(), stream=side, capture_error_mode="thread_local"):
                    torch.zeros(1, device=self.device)
        finally:
            torch.cuda.set_stream(here)
            self._side = None
