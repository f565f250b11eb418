"""What a monitor sees in one look, and what it remembers: the start, the recent past, and the extremes of an implication."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

Sums = dict[Hashable, Tensor]

DECAY = 0.9  # what remains of the weight of a look at the next one; so the recent past is about ten looks
START = 5  # the first looks, which are the reference
LATE = 20
"""Looks over which a late pull is averaged (it comes from few samples, those that resist), and a rule can stop improving."""
HISTORY = 1000  # looks that are kept in `Monitor.history`


class Look:
    """Sums over the batch of one training call; from a CUDA device they travel to the host in the background."""

    def __init__(self, step: int, sums: Sums, latest: Sums) -> None:
        def send(value: Tensor) -> Tensor:  # to the host, where it may arrive later
            return torch.empty_like(value, device="cpu", pin_memory=value.is_cuda).copy_(value, non_blocking=True)

        self.step, self._event = step, None
        self.sums, self.latest = ({key: send(value) for key, value in side.items()} for side in (sums, latest))
        if any(tensor.is_cuda for tensor in sums.values()):
            self._event = torch.cuda.Event()
            self._event.record()

    def arrived(self) -> bool:
        """Whether the numbers can be read without waiting."""
        return self._event is None or bool(self._event.query())

    def arrive(self) -> Look:
        """Wait for the numbers."""
        if self._event is not None:
            self._event.synchronize()
        return self


class Window:
    """Sums over looks, by key; rates are made from sums, so that batches of different sizes and rare events count rightly."""

    def __init__(self) -> None:
        self.looks = 0  # how many there were
        self.start: Sums = {}  # the sums of the first `START` looks
        self.recent: Sums = {}  # the sums of all looks, each weighted by `DECAY` to the power of its age
        self.counts: dict[Hashable, int] = {}  # how many looks had each key
        self.latest: Sums = {}  # of values that are no sums, such as `delta`: the latest
        self.peaks: dict[str, tuple[float, Sums]] = {}  # for each implication, `recent` when its antecedent was most often true
        # For each implication, `recent` when its consequent held least often where no rule asks for it.
        self.troughs: dict[str, tuple[float, Sums]] = {}
        # For each implication, the pull per sample away from its antecedent at the latest `LATE` looks.
        self.pulls: dict[str, tuple[float, ...]] = {}
        # For each rule or implication, how often it was broken at the latest `LATE` looks.
        self.broken: dict[str, tuple[float, ...]] = {}
        self.whole: Sums = {}  # of the pulls on each implication's consequent: the sums of all looks
        self.lowest: float | None = None  # of the task's loss: the smallest running mean

    def add(self, sums: Mapping[Hashable, Tensor], latest: Mapping[Hashable, Tensor]) -> None:
        """Take a look into account; all tensors are on the host."""
        self.looks += 1
        self.latest = dict(latest)
        self.recent = {key: DECAY * value for key, value in self.recent.items()}
        for key, value in sums.items():
            self.counts[key] = self.counts.get(key, 0) + 1
            self.recent[key] = self.recent[key] + value if key in self.recent else value
            # A key that is not there at each look, because rules take turns, has its own first looks.
            if self.counts[key] <= START:
                self.start[key] = self.start[key] + value if key in self.start else value
            if isinstance(key, tuple) and key[0] == "pull":
                self.pulls[key[1]] = (*self.pulls.get(key[1], ())[1 - LATE :], float(value[0] / value[2]))
            if isinstance(key, tuple) and key[0] == "wide":
                self.whole[key] = self.whole[key] + value if key in self.whole else value
        task = self.ratio("task", 1, 0)
        if task is not None and self.looks >= START:
            self.lowest = task if self.lowest is None else min(task, self.lowest)

    def ratio(self, key: Hashable, part: int, whole: int, start: bool = False) -> float | None:
        """One sum divided by another; ``None`` if there is nothing to divide."""
        sums = (self.start if start else self.recent).get(key)
        if sums is None or not sums[whole] > 0:
            return None
        return float(sums[part] / sums[whole])

    def keep_extremes(self, path: str, peak: float, trough: float | None, keys: Iterable[Hashable]) -> None:
        """Remember the recent sums under ``keys`` if one rate of ``path`` was never higher, or the other never lower."""
        sums = {key: self.recent[key] for key in keys if key in self.recent}
        if self.looks >= START and peak > self.peaks.get(path, (0.0, {}))[0]:
            self.peaks[path] = (peak, sums)
        if trough is not None and trough < self.troughs.get(path, (2.0, {}))[0]:
            self.troughs[path] = (trough, sums)

    def keep_broken(self, path: str, rate: float) -> float:
        """Remember how often ``path`` is broken now; gives how often it was :data:`LATE` looks ago, or at first."""
        self.broken[path] = (*self.broken.get(path, ())[1 - LATE :], rate)
        return self.broken[path][0]

    def state_dict(self) -> dict[str, Any]:
        """All of it, as plain values and tensors."""
        return {name: dict(value) if isinstance(value, dict) else value for name, value in vars(self).items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state_dict` gave."""
        # All of it is read before any of it is taken over.
        for name, value in {name: state[name] for name in vars(self)}.items():
            setattr(self, name, dict(value) if isinstance(value, Mapping) else value)
