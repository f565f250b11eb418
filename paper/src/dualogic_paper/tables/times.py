"""Run times: how long a step takes, as ``dualogic_paper/speed`` measured it with the device to itself, and the paper's table."""

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dualogic.errors import DataError
from dualogic_paper.arms import NO_RULE
from dualogic_paper.tables.naming import order_of, show_name
from dualogic_paper.tables.published import EPOCH_SECONDS, find_published
from dualogic_paper.tables.runs import Results
from dualogic_paper.tables.summary import Cell, Row, Table
from dualogic_paper.tasks import TASKS, Column

FOLDER = "benchmarks"
EAGER = "eager"
EAGER_NOTE = "eager: an ordinary training loop, as the paper's, in which the library records the rule alone as a CUDA graph."
EAGER_ROWS = {NO_RULE: "none", "dual": "published, recorded"}  # what ``speed/eager.py`` calls the steps of two methods


@dataclasses.dataclass(frozen=True)
class Timing:
    """A step of one method on one network."""

    ms: float  # median milliseconds
    count: int  # of timed steps
    ratio: float | None = None  # to steps without a rule, the median over blocks; if none was taken, that of the medians will do


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
    """The file ``benchmarks/TASK.json`` of a folder of results, if there is one, and eager steps from the files beside it."""
    file = folder / FOLDER / f"{task}.json"
    if not file.exists():
        return ()
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        variants = tuple(_read_variant(name, values) for name, values in content["variants"].items())
        steps = variants[0].steps if variants else 0
        eager = [_read_eager(json.loads(other.read_text("utf-8")), steps) for other in sorted(file.parent.glob("*.json"))]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{file} or one beside it is not what dualogic_paper/speed writes ({type(error).__name__}: {error}); delete it and "
            "measure again"
        ) from error
    return (*variants, *(variant for variant in eager if variant is not None))


def _read_eager(content: Mapping[str, Any], steps: int) -> Variant | None:
    """Steps without a CUDA graph, from what ``speed/run.py`` writes; ``None`` if the file has none."""
    figures = {name: figure for name, figure in content.get("figures", {}).items() if name.startswith("eager_")}
    found = {name: figure for name, figure in figures.items() if "detail" in figure}
    if not found:
        return None
    timings: dict[str, dict[str, Timing]] = {}
    for name, figure in found.items():
        rows = {method: figure["detail"][row] for method, row in EAGER_ROWS.items()}
        of_network = {key: Timing(float(row["ms"]), int(row["steps"]), float(row["ratio"])) for key, row in rows.items()}
        timings[name.removeprefix("eager_")] = of_network
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


def make_time_table(results: Results) -> Table | None:
    """Seconds of an epoch and their ratio to no rule, with the paper's seconds in brackets; ``None`` if nothing was measured."""
    if not results.times:
        return None
    task = TASKS[results.task]
    parts = [part for part in task.parts if any(part in variant.timings for variant in results.times)]
    columns: list[Column] = []
    for part in parts:
        columns += [
            Column(f"{part}_seconds", f"{task.parts[part]}: s / epoch", "neither", 2),
            Column(f"{part}_ratio", "/ none", "neither", 3),
        ]
    rows = [row for variant in results.times for row in _make_rows(results, variant, parts)]
    notes = _make_notes(results, parts)
    return Table(f"{results.task}-times", f"{task.title}: run time", tuple(columns), tuple(rows), notes, "steps timed")


def _make_rows(results: Results, variant: Variant, parts: Sequence[str]) -> list[Row]:
    first = variant is results.times[0]
    methods = {method for network in variant.timings.values() for method in network}
    rows = []
    for method in sorted(methods, key=lambda method: order_of(method, method)):
        cells: list[Cell] = []
        counts = set()
        for part in parts:
            network = variant.timings.get(part, {})
            timing = network.get(method)
            published = find_published(results.task, method, {TASKS[results.task].parts_by: part}).get(EPOCH_SECONDS)
            plain = network.get(NO_RULE)
            seconds = () if timing is None else (timing.ms * variant.steps / 1e3,)
            ratio = () if timing is None or plain is None else (timing.ratio or timing.ms / plain.ms,)
            # The paper's figures stand once, beside the way in which the runner works by default.
            cells.append(Cell(seconds, len(seconds), decimals=2, published=published if first else None))
            cells.append(Cell(ratio, len(ratio), decimals=3))
            counts |= {timing.count} if timing else set()
        way, steps = "" if first else f", {variant.name}", " to ".join(map(str, sorted({min(counts), max(counts)})))
        rows.append(Row(show_name(method, method) + way, method + way, method, steps, tuple(cells)))
    return rows


def _make_notes(results: Results, parts: Sequence[str]) -> tuple[str, ...]:
    names, variants = TASKS[results.task].parts, results.times
    notes = [
        f"An epoch is {variants[0].steps} steps of the median length of those timed, all methods in turn in one process; in "
        "brackets the paper's seconds (Table 6), on another machine."
    ]
    if any(variant.name == EAGER for variant in variants):
        notes.append(EAGER_NOTE)
    for variant in variants:
        notes += [f"{names[part]}, {variant.name}: {variant.bounds[part]}." for part in parts if part in variant.bounds]
    places = dict.fromkeys(f"{variant.name} on {variant.device} at commit {variant.commit}" for variant in variants)
    notes.append(f"Measured: {', '.join(places)}.")
    return tuple(notes)
