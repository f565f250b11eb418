"""Recognise positions that can be read without gathering."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def find_pattern(
    positions: Tensor,
) -> tuple[tuple[int, int, tuple[int, ...], tuple[int, ...]] | None, tuple[int, int, int] | None]:
    """Recognise positions that can be read without gathering: a permuted block, or a progression."""
    flat = positions.flatten().tolist()
    shape = tuple(positions.shape)
    start = flat[0]
    if min(flat) != start or len(flat) == 1:
        return (None, None) if len(flat) > 1 or start < 0 else (None, (start, start + 1, 1))
    strides = [0 if size == 1 else int(positions.movedim(dim, 0)[1].flatten()[0]) - start for dim, size in enumerate(shape)]
    expected = torch.full(shape, start)
    for dim, (size, stride) in enumerate(zip(shape, strides)):
        view = [1] * len(shape)
        view[dim] = size
        expected = expected + (torch.arange(size) * stride).reshape(view)
    if not torch.equal(expected, positions):
        return None, None
    real = [dim for dim, size in enumerate(shape) if size > 1]
    ordered = sorted(real, key=lambda dim: -strides[dim])
    block = 1
    for dim in reversed(ordered):
        if strides[dim] != block:
            break
        block *= shape[dim]
    else:
        sizes = tuple(shape[dim] for dim in ordered)
        return (start, math.prod(sizes), sizes, tuple(1 + ordered.index(dim) for dim in real)), None
    if len(real) == 1 and strides[real[0]] > 0:
        step = strides[real[0]]
        return None, (start, start + (len(flat) - 1) * step + 1, step)
    return None, None
