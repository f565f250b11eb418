"""The paper's table of run times: seconds of an epoch with and without the rule, for each part of a task."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from dualogic_paper.arms import NO_RULE
from dualogic_paper.tables.naming import order_of, show_name
from dualogic_paper.tables.published import EPOCH_SECONDS, find_published
from dualogic_paper.tables.runs import Results
from dualogic_paper.tables.summary import Cell, Row, Table
from dualogic_paper.tables.times import EAGER, Timing, Variant
from dualogic_paper.tasks import TASKS, Column


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
            cells += _make_cells(timing, network.get(NO_RULE), variant.steps)
            if first:  # the paper's figures stand once, beside the way in which the runner works by default
                cells[-2] = dataclasses.replace(cells[-2], published=published)
            counts |= {timing.count} if timing else set()
        way, steps = "" if first else f", {variant.name}", " to ".join(map(str, sorted({min(counts), max(counts)})))
        rows.append(Row(show_name(method, method) + way, method + way, method, steps, tuple(cells)))
    return rows


def _make_cells(timing: Timing | None, plain: Timing | None, steps: int) -> tuple[Cell, Cell]:
    seconds = () if timing is None else (timing.ms * steps / 1e3,)
    ratio = () if timing is None or plain is None else (timing.ratio or timing.ms / plain.ms,)
    return Cell(seconds, len(seconds), decimals=2), Cell(ratio, len(ratio), decimals=3)


def _make_notes(results: Results, parts: Sequence[str]) -> tuple[str, ...]:
    names, variants = TASKS[results.task].parts, results.times
    notes = [
        f"An epoch is {variants[0].steps} steps of the median length of those timed, all methods in turn in one process; in "
        "brackets the paper's seconds (Table 6), on another machine."
    ]
    if any(variant.name == EAGER for variant in variants):
        notes.append(
            "eager: an ordinary training loop, as the paper's, in which the library records the rule alone as a CUDA graph."
        )
    notes += [
        f"{names[part]}, {variant.name}: {variant.bounds[part]}."
        for variant in variants
        for part in parts
        if part in variant.bounds
    ]
    places = dict.fromkeys(f"{variant.name} on {variant.device} at commit {variant.commit}" for variant in variants)
    notes.append(f"Measured: {', '.join(places)}.")
    return tuple(notes)
