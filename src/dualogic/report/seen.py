"""What a recorder remembers between two epochs, at little cost; and which samples are the same."""

from __future__ import annotations

import ctypes
import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from dualogic.errors import BindingError
from dualogic.loss.beliefs import rows_of_all

SAMPLES = 512  # of the training, that are looked at after an epoch: those of the latest batches, and one batch at least ...
BYTES = 16 << 20  # ... that take no more memory than this together


class Mean:
    """The mean of numbers, or of scalars on some device, which nothing waits for before it is read."""

    def __init__(self) -> None:
        self._count = 0
        self._total: Tensor | float = 0.0

    def add(self, value: Tensor | float) -> None:
        """One more; summed in a new tensor, because ``loss += ...`` in the next line may change this one."""
        if isinstance(value, Tensor):
            if value.numel() != 1:
                raise BindingError(f"a loss to record is one number; got a tensor of shape {tuple(value.shape)}")
            value = value.detach().to(torch.promote_types(value.dtype, torch.float32))
        self._total, self._count = self._total + value, self._count + 1

    def read(self) -> float:
        """The mean so far."""
        return float(self._total) / max(self._count, 1)


class Seen:
    """The latest batches that a loss was trained on."""

    def __init__(self) -> None:
        self._batches: deque[tuple[int, int, Any, Any, dict[str, Tensor]]] = deque()
        self._samples = self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._batches)

    def add(self, index: Any, where: Any, tensors: Mapping[str, Any]) -> None:
        """Remember a batch, and forget the oldest ones if they are too many; nothing is copied or computed."""
        kept = {name: value.detach() if isinstance(value, Tensor) else torch.as_tensor(value) for name, value in tensors.items()}
        rows, size = 0, 0
        for tensor in kept.values():
            rows, size = tensor.shape[0], size + tensor.numel() * tensor.element_size()
        self._batches.append((rows, size, index, where, kept))
        self._samples += rows
        self._bytes += size
        while len(self._batches) > 1 and (self._samples > SAMPLES or self._bytes > BYTES):
            self._forget()

    def take(self) -> Iterator[tuple[Tensor | None, dict[str, Tensor]]]:
        """The index and the tensors of each, :data:`SAMPLES` samples at most of each; they are then forgotten."""
        while self._batches:
            _, _, index, where, tensors = self._forget()
            device = next(iter(tensors.values())).device
            chosen = rows_of_all(where, device)
            index = None if index is None else torch.as_tensor(index, device=device)[chosen][:SAMPLES]
            yield index, {name: tensor[chosen][:SAMPLES] for name, tensor in tensors.items()}

    def _forget(self) -> tuple[int, int, Any, Any, dict[str, Tensor]]:
        oldest = self._batches.popleft()
        self._samples -= oldest[0]
        self._bytes -= oldest[1]
        return oldest


def pick(values: Any, what: str, count: int) -> Callable[[int], Any] | None:
    """A function from a position to one of some values, which may be a function already."""
    if values is None or callable(values):
        return values  # type: ignore[no-any-return]
    if len(values) != count:
        raise BindingError(f"{what} must be one for each of {count} samples; got {len(values)}")
    return lambda position: values[position]


def fingerprint(count: int, tol: float, lead: float, *known: Any) -> str:
    """The same for the same samples, as far as they are known by their labels and pictures."""
    digest = hashlib.sha256(str((count, float(tol), float(lead))).encode())
    for values in known:
        _feed(digest, values)
    return digest.hexdigest()[:16]


def _feed(digest: Any, values: Any) -> None:
    if isinstance(values, Mapping):
        for name in sorted(values):
            digest.update(str(name).encode())
            _feed(digest, values[name])
    elif isinstance(values, Tensor):
        tensor = values.detach().cpu().contiguous()
        digest.update(str((tensor.dtype, tuple(tensor.shape))).encode())
        digest.update(ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size()))
    elif isinstance(values, (list, tuple)):
        for value in values:
            _feed(digest, value)
    elif values is not None and not callable(values):
        digest.update(repr(values).encode())
