"""The states of all random number generators, as plain values that a checkpoint can hold."""

from __future__ import annotations

import random
import sys
from typing import Any

import torch


def get_random_state() -> dict[str, Any]:
    """The states of torch (CPU, and CUDA where it is in use), Python and, where it is loaded, numpy."""
    found: dict[str, Any] = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found["cuda"] = torch.cuda.get_rng_state_all()
    if "numpy" in sys.modules:
        name, key, *rest = sys.modules["numpy"].random.get_state()
        found["numpy"] = (name, key.tolist(), *rest)
    return found


def set_random_state(state: dict[str, Any]) -> None:
    """Put generators back to where :func:`get_random_state` found them.

    Example:
        >>> import torch
        >>> state = get_random_state()
        >>> first = torch.rand(2)
        >>> set_random_state(state)
        >>> torch.equal(torch.rand(2), first)
        True
    """
    torch.set_rng_state(state["torch"].cpu())
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all([value.cpu() for value in state["cuda"]])
    if "numpy" in state and "numpy" in sys.modules:
        sys.modules["numpy"].random.set_state(tuple(state["numpy"]))
