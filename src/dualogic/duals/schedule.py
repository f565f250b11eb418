"""The size of a dual step over training, computed on the device from the number of updates so far."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Schedule = Callable[[Tensor], Tensor]


def warm_up(updates: int) -> Schedule:
    """Rise linearly from 0 to 1 over the first ``updates`` updates.

    Example:
        >>> import torch
        >>> warm_up(10)(torch.tensor([0, 4, 20]))
        tensor([0.1000, 0.5000, 1.0000])
    """
    return lambda done: ((done + 1.0) / updates).clamp(max=1.0)


def cosine(updates: int) -> Schedule:
    """Fall from 1 to 0 along a half cosine over ``updates`` updates."""
    return lambda done: 0.5 * (1.0 + torch.cos(math.pi * (done / updates).clamp(max=1.0)))


def inverse_square_root(updates: int) -> Schedule:
    """``1 / sqrt(1 + done / updates)``: the decay under which averaged ascent converges (Theorem 3)."""
    return lambda done: (1.0 + done / updates).rsqrt()
