"""The numbers of one look on their way from a device to the host."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor

Sums = dict[Hashable, Tensor]


class Look:
    """Sums over a batch; on a CUDA device they travel in one copy, in the background.

    Args:
        step: the training call that was looked at.
        sums: float64, by key.
        latest: the same for values that are no sums.

    Example:
        >>> import torch
        >>> look = Look(7, {"rules": torch.ones(2, 3).double()}, {"delta": torch.ones(2).double()})
        >>> look.arrived(), look.arrive().sums["rules"].shape
        (True, torch.Size([2, 3]))
    """

    def __init__(self, step: int, sums: Sums, latest: Sums) -> None:
        self.step = step
        self._keys = [list(sums), list(latest)]
        tensors = [*sums.values(), *latest.values()]
        self._shapes = [tensor.shape for tensor in tensors]
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        self._arrived: Any = None
        self._flat = flat
        if flat.is_cuda:
            self._flat = torch.empty_like(flat, device="cpu", pin_memory=True)
            self._flat.copy_(flat, non_blocking=True)
            self._arrived = torch.cuda.Event()
            self._arrived.record()
        self.sums: Sums = {}
        self.latest: Sums = {}

    def arrived(self) -> bool:
        """Whether the numbers can be read without waiting."""
        return self._arrived is None or bool(self._arrived.query())

    def arrive(self) -> Look:
        """Wait for the numbers."""
        if self._arrived is not None:
            self._arrived.synchronize()
        parts = self._flat.cpu().split([shape.numel() for shape in self._shapes])
        whole = [part.reshape(shape) for part, shape in zip(parts, self._shapes)]
        keys = itertools.chain(*self._keys)
        found = dict(zip(keys, whole))
        self.sums, self.latest = ({key: found[key] for key in side} for side in self._keys)
        return self
