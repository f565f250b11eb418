"""Triton kernels for the parts of a step that are many small operations on a GPU.

Each has an eager counterpart that is its reference and its fallback: ``losses.truncated_normal`` for the loss and its slope,
``duals.table`` for rows, ``losses.delta`` for the scale. Under ``torch.compile`` the eager form is used; the compiler fuses it.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
    from triton.language.extra import libdevice
except ImportError:  # the CPU build of torch has no triton
    triton = None

MAX_BATCH = 8192
_BLOCK = 1024


def usable(tensor: Tensor) -> bool:
    """Whether a fused kernel can take this tensor."""
    return triton is not None and tensor.is_cuda and tensor.numel() > 0 and not torch.compiler.is_compiling()


def fetch_rows(table: Tensor, index: Tensor, flags: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of a table, with bad indices flagged and read as row 0.

    Args:
        table: ``(samples, width)``.
        index: ``(batch,)`` int64.
        flags: ``flags[0]`` is set where an index is out of range.

    Returns:
        The rows ``(batch, width)`` in at least float32, the index with bad entries set to 0, and which entries are good.
    """
    batch, width = index.shape[0], table.shape[1]
    rows = torch.empty(batch, width, device=table.device, dtype=torch.promote_types(table.dtype, torch.float32))
    clean, good = torch.empty_like(index), torch.empty(batch, dtype=torch.bool, device=table.device)
    grid = (batch, triton.cdiv(width, _BLOCK))
    _fetch[grid](table, index, rows, clean, good.view(torch.int8), flags.view(torch.int8), table.shape[0], width, BLOCK=_BLOCK)
    return rows, clean, good


def advance_rows(
    index: Tensor,
    good: Tensor,
    costs: Tensor,
    rows: Tensor,
    moves: Tensor,
    flags: Tensor,
    limit: float = math.inf,
    most: float = math.inf,
) -> tuple[Tensor, Tensor]:
    """Rows plus their moves, averaged over the occurrences of a sample that count: in range, with finite costs.

    Args:
        index: ``(batch,)``.
        good: which entries of the index are in range.
        costs: ``(batch, rules)``.
        rows: ``(batch, width)``.
        moves: ``(batch, width)``.
        flags: ``flags[1 + rule]`` is set where a cost is not finite.
        limit: a cost must be below this to count as finite.
        most: a move must be below this to be made.

    Returns:
        The new rows, and which samples count.
    """
    batch, width = rows.shape
    rules = costs.shape[1]
    new, counted = torch.empty_like(rows), torch.empty(batch, dtype=torch.bool, device=rows.device)
    block = min(_BLOCK, triton.next_power_of_2(width))
    _advance[(batch, triton.cdiv(width, block))](
        index,
        good.view(torch.int8),
        costs.contiguous(),
        rows,
        moves.contiguous(),
        new,
        counted.view(torch.int8),
        flags.view(torch.int8),
        batch,
        width,
        rules,
        limit,
        most,
        BATCH=triton.next_power_of_2(batch),
        RULES=triton.next_power_of_2(rules),
        BLOCK=block,
    )
    return new, counted


def loss_and_slope(mu: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
    """The truncated-normal loss and its derivative with respect to ``mu``, in one pass."""
    mu = mu.contiguous()
    scale = delta.expand(mu.shape[-1:]).contiguous() if mu.dim() else delta.reshape(1)
    loss, slope = torch.empty_like(mu), torch.empty_like(mu)
    count = mu.numel()
    _loss_and_slope[(triton.cdiv(count, 256),)](mu, scale, loss, slope, count, scale.numel(), BLOCK=256)
    return loss, slope


def next_delta(
    costs: Tensor, finite: Tensor, delta: Tensor, floor: float, ceiling: float, rule: str, limit: float = math.inf
) -> Tensor:
    """The scale after a batch, by one of the rules of :mod:`dualogic.losses.delta`.

    Args:
        costs: ``(batch, rules)``.
        finite: which samples count, ``(batch,)``.
        delta: the scales so far, ``(rules,)``.
        floor: lower bound.
        ceiling: upper bound.
        rule: ``"mean"``, ``"square"`` or ``"violations"``. Where no sample counts the first two leave ``delta`` as it is.
        limit: a cost must be below this to count.
    """
    batch, rules = costs.shape
    new = torch.empty_like(delta)
    _delta[(rules,)](
        costs.contiguous(),
        finite.view(torch.int8),
        delta,
        new,
        batch,
        rules,
        floor,
        ceiling,
        limit,
        RULE=rule,
        TINY=torch.finfo(costs.dtype).tiny,
        BATCH=triton.next_power_of_2(batch),
    )
    return new


def jit(function: Any) -> Any:
    """Compile a kernel, where there is a compiler."""
    return function if triton is None else triton.jit(function)


@jit
def _fetch(table, index, rows, clean, good, flags, samples, width, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    sample, block = tl.program_id(0), tl.program_id(1)
    position = tl.load(index + sample)
    inside = (position >= 0) & (position < samples)
    position = tl.where(inside, position, 0)
    columns = block * BLOCK + tl.arange(0, BLOCK)
    mask = columns < width
    row = tl.load(table + position * width + columns, mask=mask)
    tl.store(rows + sample.to(tl.int64) * width + columns, row.to(rows.dtype.element_ty), mask=mask)
    if block == 0:
        tl.store(clean + sample, position)
        tl.store(good + sample, inside.to(tl.int8))
        if position != tl.load(index + sample):
            tl.store(flags, 1)


@jit
def _advance(  # type: ignore[no-untyped-def]
    index,
    good,
    costs,
    rows,
    moves,
    new,
    counted,
    flags,
    batch,
    width,
    rules,
    limit,
    most,
    BATCH: tl.constexpr,
    RULES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    sample, block = tl.program_id(0), tl.program_id(1)
    others = tl.arange(0, BATCH)
    own = tl.load(index + sample)
    occurrences = tl.sum((tl.load(index + others, mask=others < batch, other=-1) == own).to(tl.int32))
    columns = block * BLOCK + tl.arange(0, BLOCK)
    mask = columns < width
    numbers = tl.arange(0, RULES)
    mine = tl.load(costs + sample.to(tl.int64) * rules + numbers, mask=numbers < rules, other=0.0)
    bad = (mine < limit) == 0
    counts_here = (tl.sum(bad.to(tl.int32)) == 0) & (tl.load(good + sample) != 0)
    if block == 0:
        tl.store(counted + sample, counts_here.to(tl.int8))
        tl.store(flags + 1 + numbers, bad.to(tl.int8), mask=bad & (numbers < rules))
    total = tl.zeros((BLOCK,), dtype=new.dtype.element_ty)
    number = counts_here.to(tl.int32)
    if occurrences == 1:
        total += tl.load(moves + sample.to(tl.int64) * width + columns, mask=mask & counts_here, other=0.0)
    else:
        # Bad indices were set to 0: they and costs that are not finite are no occurrences in the mean.
        number = number * 0
        for other in range(batch):
            if tl.load(index + other) == own:
                theirs = tl.load(costs + other * rules + numbers, mask=numbers < rules, other=0.0)
                wrong = tl.sum(((theirs < limit) == 0).to(tl.int32))
                counts = (wrong == 0) & (tl.load(good + other) != 0)
                number += counts.to(tl.int32)
                total += tl.load(moves + tl.cast(other, tl.int64) * width + columns, mask=mask & counts, other=0.0)
    mean = total / tl.maximum(number, 1)
    fits = mean < most
    tl.store(flags + 1 + tl.zeros((BLOCK,), dtype=tl.int32), 1, mask=mask & (fits == 0))
    row = tl.load(rows + sample.to(tl.int64) * width + columns, mask=mask)
    tl.store(new + sample.to(tl.int64) * width + columns, row + tl.where(fits, mean, 0.0), mask=mask)


@jit
def loss_of(mu, delta):  # type: ignore[no-untyped-def]
    """The truncated-normal loss of costs and its derivative; for kernels."""
    ratio = mu / delta
    tail = -0.5 * libdevice.erfc(ratio * 0.7071067811865476)
    density = 0.3989422804014327 * tl.exp(-0.5 * ratio * ratio)
    loss = tl.log(delta) + 0.5 * ratio * ratio + libdevice.log1p(tail)
    return loss, (ratio + density / (1.0 + tail)) / delta


@jit
def _loss_and_slope(mu, delta, loss, slope, count, rules, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    scale = tl.load(delta + place % rules, mask=mask, other=1.0)
    found, rise = loss_of(tl.load(mu + place, mask=mask, other=0.0), scale)
    tl.store(loss + place, found, mask=mask)
    tl.store(slope + place, rise, mask=mask)


@jit
def scale_after(cost, count, old, floor, ceiling, RULE: tl.constexpr, TINY: tl.constexpr):  # type: ignore[no-untyped-def]
    """The scale that follows from a rule's costs, which are 0 where they do not count, and from how many do; for kernels."""
    if RULE == "violations":
        total = tl.sum(cost)
        root = total / tl.maximum(tl.sum(tl.sqrt(cost)), TINY)
        typical = root * root
        number = total / tl.maximum(typical, TINY)
        # 100 is RUNNING in losses.delta; a kernel sees no globals.
        new = old + (typical - old) * (number / (number + 100.0))
        new = tl.minimum(tl.maximum(new, floor), ceiling)
    else:
        if RULE == "square":
            cost = cost * cost
        new = tl.sqrt(tl.sum(cost) / tl.maximum(count, 1))
        new = tl.where(count > 0, tl.minimum(tl.maximum(new, floor), ceiling), old)
    return new


@jit
def _delta(  # type: ignore[no-untyped-def]
    costs, finite, delta, new, batch, rules, floor, ceiling, limit, RULE: tl.constexpr, TINY: tl.constexpr, BATCH: tl.constexpr
):
    rule = tl.program_id(0)
    samples = tl.arange(0, BATCH)
    counts = (tl.load(finite + samples, mask=samples < batch, other=0) != 0) & (samples < batch)
    cost = tl.load(costs + samples * rules + rule, mask=counts, other=0.0)
    counts = counts & (cost < limit)
    cost = tl.where(counts, cost, 0.0)
    old = tl.load(delta + rule).to(cost.dtype)
    tl.store(new + rule, scale_after(cost, tl.sum(counts.to(tl.int32)), old, floor, ceiling, RULE, TINY))
