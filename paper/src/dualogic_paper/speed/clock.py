"""Times of functions that take turns in one process, and whether the machine was busy meanwhile."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

BUSY = 1.2
"""Wall time over processor time, above which somebody else was at work; so was somebody if more ran than there are processors."""


def take_turns(functions: Mapping[str, Callable[[int], object]], repeats: int) -> dict[str, Any]:
    """Medians in microseconds, of processor time and of wall time, of functions that are called in turn with 0, 1, 2, ...

    The first sixth is left out. What counts is the processor's time: it does not see who else runs, though caches do.

    Returns:
        ``us`` and ``us wall`` by name; ``load``, the system's mean number of running processes before and after; ``busy``.
    """
    spent: dict[str, list[float]] = {name: [] for name in functions}
    waited: dict[str, list[float]] = {name: [] for name in functions}
    load = [os.getloadavg()[0]]
    for number in range(repeats):
        for name, function in functions.items():
            wall, processor = time.perf_counter(), time.process_time()
            function(number)
            spent[name].append(time.process_time() - processor)
            waited[name].append(time.perf_counter() - wall)
    load.append(os.getloadavg()[0])
    warm = repeats // 6
    waiting = sum(sum(times[warm:]) for times in waited.values()) > BUSY * sum(sum(times[warm:]) for times in spent.values())
    return {
        "us": {name: 1e6 * statistics.median(times[warm:]) for name, times in spent.items()},
        "us wall": {name: 1e6 * statistics.median(times[warm:]) for name, times in waited.items()},
        "load": [round(value, 2) for value in load],
        "busy": waiting or max(load) > (os.cpu_count() or 1),
    }
