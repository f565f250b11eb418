"""Constants that are made on a device once and then stay there: the one place where such tensors are kept.

What keeps them, a plan or a circuit, outlives the call that needed them first and is shared by every loss with equal rules. A
constant born under ``torch.inference_mode`` could not be trained with later, so they are made outside of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import torch

T = TypeVar("T")


def outside_inference() -> contextlib.AbstractContextManager[Any]:
    """A context in which ordinary tensors are made, also by someone who calls in inference mode."""
    if torch.compiler.is_compiling() or not torch.is_inference_mode_enabled():
        return contextlib.nullcontext()
    return torch.inference_mode(False)


class Constants(Generic[T]):
    """Tensors, or groups of them, by a key that names their device."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, T] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """What is kept under ``key``, made at the first call from numbers, or from tensors that are no inference tensors.

        The key has the device in it, and all else that the constant depends on.
        """
        if (found := self._kept.get(key)) is None:
            with outside_inference():
                found = make()
            self._kept[key] = found
        return found

    def all(self) -> list[T]:
        """Everything that is kept."""
        return list(self._kept.values())
