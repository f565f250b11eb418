"""A task whose runs differ in kind has tables and figures for each kind."""

from __future__ import annotations

import dataclasses

from dualogic_paper.runner.config import usual_values
from dualogic_paper.tables.naming import list_changes, strip_label
from dualogic_paper.tables.runs import Results
from dualogic_paper.tasks import TASKS


def divide(results: Results) -> tuple[Results, ...]:
    """The results of each part of a task, in the task's order, with labels that no longer name the part; all if it has none."""
    task = TASKS[results.task]
    key = task.parts_by
    if not key:
        return (results,)
    usual = str(usual_values(task)[key])
    present = [run.hyper[key] for run in results.runs]
    found = []
    for part in [part for part in (*task.parts, *sorted(set(present) - set(task.parts))) if part in present]:
        mark = f"{key}={part}"
        runs = [run for run, own in zip(results.runs, present) if own == part]
        named = tuple(dataclasses.replace(run, label=strip_label(run.label, [mark])) for run in runs)
        unfinished = [(label, seed) for label, seed in results.unfinished if _read(label, key, usual) == part]
        waiting = tuple((strip_label(label, [mark]), seed) for label, seed in unfinished)
        found.append(dataclasses.replace(results, runs=named, unfinished=waiting, part=part))
    return tuple(found)


def _read(label: str, key: str, usual: str) -> str:
    return next((change.partition("=")[2] for change in list_changes(label) if change.startswith(f"{key}=")), usual)
