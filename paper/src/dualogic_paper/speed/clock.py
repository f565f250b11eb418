"""Times of functions that take turns in one process, so that a machine that slows down slows all of them."""

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

BUSY = 1.2  # wall time over processor time, above which somebody else was at work


def take_turns(functions: Mapping[str, Callable[[int], object]], repeats: int) -> dict[str, Any]:
    """Medians in microseconds, of processor time and of wall time, of functions that are called in turn with 0, 1, 2, ...

    A function has ended when the device is done; the first sixth is left out. ``load`` is the system's before and after.
    """
    on_gpu = torch.cuda.is_available()
    spent: dict[str, list[float]] = {name: [] for name in functions}
    waited: dict[str, list[float]] = {name: [] for name in functions}
    load = [os.getloadavg()[0]]
    for number in range(repeats):
        for name, function in functions.items():
            wall, processor = time.perf_counter(), time.process_time()
            function(number)
            if on_gpu:
                torch.cuda.synchronize()
            spent[name].append(time.process_time() - processor)
            waited[name].append(time.perf_counter() - wall)
    load.append(os.getloadavg()[0])
    warm = max(repeats // 6, min(3, repeats // 2))
    waiting = sum(sum(times[warm:]) for times in waited.values()) > BUSY * sum(sum(times[warm:]) for times in spent.values())
    return {
        "us": {name: 1e6 * statistics.median(times[warm:]) for name, times in spent.items()},
        "us wall": {name: 1e6 * statistics.median(times[warm:]) for name, times in waited.items()},
        "load": [round(value, 2) for value in load],
        "busy": waiting or max(load) > (os.cpu_count() or 1),
    }


def median_seconds(functions: Sequence[Callable[[int], None]], repeats: int) -> list[float]:
    """Median seconds of each function, of wall time; see :func:`take_turns`."""
    found = take_turns({str(place): function for place, function in enumerate(functions)}, repeats)
    return [1e-6 * wall for wall in found["us wall"].values()]


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
