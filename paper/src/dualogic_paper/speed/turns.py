"""Steps of several kinds timed in turn, so that a machine that slows down slows all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch


def time_in_turn(steps: Mapping[str, Callable[[int], None]], rounds: int, block: int, device: str) -> dict[str, list[float]]:
    """Milliseconds of a step by name, one figure for each block; blocks take turns, the order turning round each time."""
    found: dict[str, list[Any]] = {name: [] for name in steps}
    for turn in range(rounds):
        for name in list(steps)[:: -1 if turn % 2 else 1]:
            clock = _now(device)
            for number in range(block):
                steps[name](turn * block + number)
            found[name].append((clock, _now(device)))
    if device == "cuda":
        torch.cuda.synchronize()
        return {name: [start.elapsed_time(end) / block for start, end in pairs] for name, pairs in found.items()}
    return {name: [1e3 * (end - start) / block for start, end in pairs] for name, pairs in found.items()}


def _now(device: str) -> Any:
    if device == "cpu":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def summarise(blocks: Sequence[float], block: int) -> dict[str, Any]:
    """Median over blocks, and their spread."""
    return {"ms": statistics.median(blocks), "lowest": min(blocks), "highest": max(blocks), "steps": len(blocks) * block}
