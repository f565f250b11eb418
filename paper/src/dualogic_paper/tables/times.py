"""How long a training step takes, as ``dualogic_paper/speed/cifar100.py`` measured it with the device to itself."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dualogic.errors import DataError
from dualogic_paper.arms import NO_RULE

FOLDER = "benchmarks"
EAGER = "eager"
EAGER_ROWS = {NO_RULE: "none", "dual": "published, recorded"}
"""What ``speed/eager.py`` calls the steps of two methods."""


@dataclasses.dataclass(frozen=True)
class Timing:
    """A step of one method on one network."""

    ms: float  # median milliseconds
    count: int  # of timed steps
    # of its blocks of steps to those without a rule that ran beside them, the median; if none was taken, that of the two medians
    # will do
    ratio: float | None = None


@dataclasses.dataclass(frozen=True)
class Variant:
    """All steps that were measured in one way."""

    name: str  # the way, such as ``"captured"``
    device: str  # where
    commit: str  # of dualogic
    steps: int  # of an epoch
    timings: Mapping[str, Mapping[str, Timing]]  # by part of the task (its network), and by method
    bounds: Mapping[str, str]  # by part: in words, what bounds a step


def read_times(folder: Path, task: str) -> tuple[Variant, ...]:
    """The file ``benchmarks/TASK.json`` of a folder of results, if there is one, and eager steps from the files beside it.

    The first is how the runner works by default. Refuses files that are not whole, or of another form.
    """
    file = folder / FOLDER / f"{task}.json"
    if not file.exists():
        return ()
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        variants = tuple(_read_variant(name, values) for name, values in content["variants"].items())
        steps = variants[0].steps if variants else 0
        eager = [
            _read_eager(json.loads(other.read_text(encoding="utf-8")), steps) for other in sorted(file.parent.glob("*.json"))
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{file} or one beside it is not what dualogic_paper/speed writes ({type(error).__name__}: {error}); delete it and "
            "measure again"
        ) from error
    return (*variants, *(variant for variant in eager if variant is not None))


def _read_eager(content: Mapping[str, Any], steps: int) -> Variant | None:
    """Steps without a CUDA graph, from what ``speed/run.py`` writes; ``None`` if the file has none."""
    found = {
        name: figure for name, figure in content.get("figures", {}).items() if name.startswith("eager_") and "detail" in figure
    }
    if not found:
        return None
    timings = {
        name.removeprefix("eager_"): {
            method: Timing(float(found["ms"]), int(found["steps"]), float(found["ratio"]))
            for method, found in ((method, figure["detail"][row]) for method, row in EAGER_ROWS.items())
        }
        for name, figure in found.items()
    }
    commits = ", ".join(dict.fromkeys(str(figure["commit"]) for figure in found.values()))
    return Variant(EAGER, str(content["machine"]["name"]), commits, steps, timings, {})


def _read_variant(name: str, values: Mapping[str, Any]) -> Variant:
    timings = {
        part: {method: Timing(float(found["ms"]), int(found["steps"])) for method, found in network["times"].items()}
        for part, network in values["networks"].items()
    }
    if any(not math.isfinite(timing.ms) or timing.ms <= 0 for network in timings.values() for timing in network.values()):
        raise ValueError("a time is not a positive number")
    profiles = {part: network.get("profile", {}) for part, network in values["networks"].items()}  # one that failed has no bound
    bounds = {part: str(profile["bound"]) for part, profile in profiles.items() if "bound" in profile}
    machine = values["machine"]
    return Variant(name, str(machine["name"]), str(machine["commit"]), int(values["steps_per_epoch"]), timings, bounds)
