"""Batch norm and ReLU with few passes over memory.

On a GPU half of a training step's time goes into batch norms and ReLUs, which compute little and move every activation a dozen
times. Here a training step moves each of them eight times, or twelve with a residual: in two passes forward (sums, then the
result) and two backward, where the ReLU's sign is computed again unless a residual was added.
Anywhere else, and in evaluation, PyTorch's own operations are used; they are also the reference in the tests.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from dualogic import kernels

try:
    import triton
    import triton.language as tl
except ImportError:  # the CPU build of torch has no triton
    triton = None

ROWS, CHANNELS = 64, 64  # of the tile that a program works on at a time
PROGRAMS = 1056
"""That share the rows of one sum, together with those for other channels: eight for each multiprocessor of an H200."""
MOST_PARTS = 528  # of a sum; more take longer to be added up than they save


class BatchNormReLU(nn.BatchNorm2d):
    """``relu(batch_norm(images) + residual)``."""

    def forward(self, images: Tensor, residual: Tensor | None = None) -> Tensor:
        """Images and residual ``(batch, channels, height, width)``."""
        if not (self.training and usable(images)):
            normal = super().forward(images)
            return functional.relu(normal if residual is None else normal + residual)
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        numbers = (self.momentum, self.eps)
        result: Tensor = _BatchNormReLU.apply(  # type: ignore[no-untyped-call]
            images, self.weight, self.bias, residual, self.running_mean, self.running_var, numbers
        )
        return result


def usable(images: Tensor) -> bool:
    """Whether the kernels can take these images: on a GPU, with the channels last in memory."""
    return kernels.usable(images) and images.is_contiguous(memory_format=torch.channels_last)


class _BatchNormReLU(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        images: Tensor,
        weight: Tensor,
        bias: Tensor,
        residual: Tensor | None,
        running_mean: Tensor,
        running_variance: Tensor,
        numbers: tuple[float, float],
    ) -> Tensor:
        batch, channels, height, width = images.shape
        rows = batch * height * width
        if residual is not None:
            residual = residual.to(images.dtype).contiguous(memory_format=torch.channels_last)
        splits, sums = _make_sums(rows, channels, images.device)
        grid = (triton.cdiv(channels, CHANNELS), splits)
        sizes = {"ROWS": ROWS, "CHANNELS": CHANNELS}
        _batch_norm_sums[grid](images, sums, rows, channels, splits, **sizes)
        # Mean, inverse deviation, and the factor and summand that they and the parameters come to.
        saved = torch.empty(4, channels, dtype=torch.float32, device=images.device)
        _batch_norm_finish[(grid[0],)](
            sums, weight, bias, running_mean, running_variance, saved, rows, channels, splits, *numbers, **sizes
        )
        result = torch.empty_like(images)
        whole = (triton.cdiv(rows, ROWS), grid[0])
        _batch_norm_apply[whole](
            images, images if residual is None else residual, result, saved, rows, channels, residual is not None, **sizes
        )
        # Without a residual the sign of the result follows from the images.
        ctx.save_for_backward(images, None if residual is None else result, weight, saved)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        images, result, weight, saved = ctx.saved_tensors
        with_residual = result is not None
        result = result if with_residual else images
        batch, channels, height, width = images.shape
        rows = batch * height * width
        gradient = gradients[0].to(images.dtype).contiguous(memory_format=torch.channels_last)
        splits, sums = _make_sums(rows, channels, images.device)
        grid = (triton.cdiv(channels, CHANNELS), splits)
        sizes = {"ROWS": ROWS, "CHANNELS": CHANNELS}
        _batch_norm_backward_sums[grid](images, result, gradient, saved, sums, rows, channels, splits, with_residual, **sizes)
        slopes = torch.empty(2, channels, dtype=torch.float32, device=images.device)
        _batch_norm_backward_finish[(grid[0],)](sums, slopes, channels, splits, **sizes)
        below = torch.empty_like(images)
        passed = torch.empty_like(images) if with_residual else below
        whole = (triton.cdiv(rows, ROWS), grid[0])
        _batch_norm_backward_apply[whole](
            images, result, gradient, saved, slopes, below, passed, rows, channels, with_residual, **sizes
        )
        of_bias, of_weight = slopes.to(weight.dtype).unbind()
        return below, of_weight, of_bias, passed if with_residual else None, None, None, None


def _make_sums(rows: int, channels: int, device: torch.device) -> tuple[int, Tensor]:
    splits = max(1, min(PROGRAMS // triton.cdiv(channels, CHANNELS), triton.cdiv(rows, ROWS), MOST_PARTS))
    return splits, torch.empty(splits, 2, channels, dtype=torch.float32, device=device)


@kernels.jit
def _batch_norm_sums(images, sums, rows, channels, splits, ROWS: tl.constexpr, CHANNELS: tl.constexpr):  # type: ignore[no-untyped-def]
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    split = tl.program_id(1)
    inside = c < channels
    first = tl.zeros((ROWS, CHANNELS), tl.float32)
    second = tl.zeros((ROWS, CHANNELS), tl.float32)
    for start in range(split * ROWS, rows, splits * ROWS):
        r = start + tl.arange(0, ROWS)
        place = r.to(tl.int64)[:, None] * channels + c[None, :]
        value = tl.load(images + place, mask=(r < rows)[:, None] & inside[None, :], other=0.0).to(tl.float32)
        first += value
        second += value * value
    tl.store(sums + split * 2 * channels + c, tl.sum(first, 0), mask=inside)
    tl.store(sums + (split * 2 + 1) * channels + c, tl.sum(second, 0), mask=inside)


@kernels.jit
def _add_up(sums, channels, splits, c, inside, ROWS: tl.constexpr, CHANNELS: tl.constexpr):  # type: ignore[no-untyped-def]
    first = tl.zeros((ROWS, CHANNELS), tl.float32)
    second = tl.zeros((ROWS, CHANNELS), tl.float32)
    for start in range(0, splits, ROWS):
        split = start + tl.arange(0, ROWS)
        place = split[:, None] * 2 * channels + c[None, :]
        mask = (split < splits)[:, None] & inside[None, :]
        first += tl.load(sums + place, mask=mask, other=0.0)
        second += tl.load(sums + channels + place, mask=mask, other=0.0)
    return tl.sum(first, 0), tl.sum(second, 0)


@kernels.jit
def _batch_norm_finish(  # type: ignore[no-untyped-def]
    sums, weight, bias, running_mean, running_variance, saved, rows, channels, splits, momentum, eps,
    ROWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    inside = c < channels
    first, second = _add_up(sums, channels, splits, c, inside, ROWS, CHANNELS)
    mean = first / rows
    variance = tl.maximum(second / rows - mean * mean, 0.0)
    inverse = 1.0 / tl.sqrt(variance + eps)
    factor = tl.load(weight + c, mask=inside, other=0.0).to(tl.float32) * inverse
    summand = tl.load(bias + c, mask=inside, other=0.0).to(tl.float32) - mean * factor
    tl.store(saved + c, mean, mask=inside)
    tl.store(saved + channels + c, inverse, mask=inside)
    tl.store(saved + 2 * channels + c, factor, mask=inside)
    tl.store(saved + 3 * channels + c, summand, mask=inside)
    old_mean = tl.load(running_mean + c, mask=inside, other=0.0)
    old_variance = tl.load(running_variance + c, mask=inside, other=0.0)
    unbiased = variance * (rows / tl.maximum(rows - 1.0, 1.0))
    tl.store(running_mean + c, old_mean + momentum * (mean - old_mean), mask=inside)
    tl.store(running_variance + c, old_variance + momentum * (unbiased - old_variance), mask=inside)


@kernels.jit
def _batch_norm_apply(  # type: ignore[no-untyped-def]
    images, residual, result, saved, rows, channels,
    RESIDUAL: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    mask = (r < rows)[:, None] & (c < channels)[None, :]
    place = r.to(tl.int64)[:, None] * channels + c[None, :]
    factor = tl.load(saved + 2 * channels + c, mask=c < channels, other=0.0)
    summand = tl.load(saved + 3 * channels + c, mask=c < channels, other=0.0)
    value = tl.load(images + place, mask=mask, other=0.0).to(tl.float32) * factor[None, :] + summand[None, :]
    if RESIDUAL:
        value += tl.load(residual + place, mask=mask, other=0.0).to(tl.float32)
    tl.store(result + place, tl.maximum(value, 0.0).to(result.dtype.element_ty), mask=mask)


@kernels.jit
def _batch_norm_backward_sums(  # type: ignore[no-untyped-def]
    images, result, gradient, saved, sums, rows, channels, splits,
    RESIDUAL: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    split = tl.program_id(1)
    inside = c < channels
    mean = tl.load(saved + c, mask=inside, other=0.0)
    inverse = tl.load(saved + channels + c, mask=inside, other=0.0)
    factor = tl.load(saved + 2 * channels + c, mask=inside, other=0.0)
    summand = tl.load(saved + 3 * channels + c, mask=inside, other=0.0)
    first = tl.zeros((ROWS, CHANNELS), tl.float32)
    second = tl.zeros((ROWS, CHANNELS), tl.float32)
    for start in range(split * ROWS, rows, splits * ROWS):
        r = start + tl.arange(0, ROWS)
        place = r.to(tl.int64)[:, None] * channels + c[None, :]
        mask = (r < rows)[:, None] & inside[None, :]
        slope = tl.load(gradient + place, mask=mask, other=0.0).to(tl.float32)
        value = tl.load(images + place, mask=mask, other=0.0).to(tl.float32)
        if RESIDUAL:
            sign = tl.load(result + place, mask=mask, other=0.0).to(tl.float32)
        else:
            sign = value * factor[None, :] + summand[None, :]
        slope = tl.where(sign > 0.0, slope, 0.0)
        first += slope
        second += slope * (value - mean[None, :]) * inverse[None, :]
    tl.store(sums + split * 2 * channels + c, tl.sum(first, 0), mask=inside)
    tl.store(sums + (split * 2 + 1) * channels + c, tl.sum(second, 0), mask=inside)


@kernels.jit
def _batch_norm_backward_finish(sums, slopes, channels, splits, ROWS: tl.constexpr, CHANNELS: tl.constexpr):  # type: ignore[no-untyped-def]
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    inside = c < channels
    first, second = _add_up(sums, channels, splits, c, inside, ROWS, CHANNELS)
    tl.store(slopes + c, first, mask=inside)
    tl.store(slopes + channels + c, second, mask=inside)


@kernels.jit
def _batch_norm_backward_apply(  # type: ignore[no-untyped-def]
    images, result, gradient, saved, slopes, below, passed, rows, channels,
    RESIDUAL: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    inside = c < channels
    mask = (r < rows)[:, None] & inside[None, :]
    place = r.to(tl.int64)[:, None] * channels + c[None, :]
    mean = tl.load(saved + c, mask=inside, other=0.0)
    inverse = tl.load(saved + channels + c, mask=inside, other=0.0)
    factor = tl.load(saved + 2 * channels + c, mask=inside, other=0.0)
    first = tl.load(slopes + c, mask=inside, other=0.0) / rows
    second = tl.load(slopes + channels + c, mask=inside, other=0.0) / rows
    slope = tl.load(gradient + place, mask=mask, other=0.0).to(tl.float32)
    value = tl.load(images + place, mask=mask, other=0.0).to(tl.float32)
    if RESIDUAL:
        slope = tl.where(tl.load(result + place, mask=mask, other=0.0).to(tl.float32) > 0.0, slope, 0.0)
        tl.store(passed + place, slope.to(passed.dtype.element_ty), mask=mask)
    else:
        summand = tl.load(saved + 3 * channels + c, mask=inside, other=0.0)
        slope = tl.where(value * factor[None, :] + summand[None, :] > 0.0, slope, 0.0)
    normal = (value - mean[None, :]) * inverse[None, :]
    wanted = factor[None, :] * (slope - first[None, :] - normal * second[None, :])
    tl.store(below + place, wanted.to(below.dtype.element_ty), mask=mask)
