"""A task whose runs differ in kind has tables and figures for each kind."""

from __future__ import annotations

import dataclasses

from dualogic_paper.runner.config import usual_values
from dualogic_paper.tables.naming import strip_label
from dualogic_paper.tables.runs import Results
from dualogic_paper.tasks import TASKS


def divide(results: Results) -> tuple[Results, ...]:
    """The results of each part of a task, in the task's order, with labels that no longer name the part.

    Returns:
        The results as they are, alone, if the task has no parts.
    """
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
        unfinished = [
            (strip_label(label, [mark]), seed) for label, seed in results.unfinished if _part_of(label, key, usual) == part
        ]
        found.append(
            dataclasses.replace(
                results,
                runs=tuple(dataclasses.replace(run, label=strip_label(run.label, [mark])) for run in runs),
                unfinished=tuple(unfinished),
                part=part,
            )
        )
    return tuple(found)


def _part_of(label: str, key: str, usual: str) -> str:
    """The part that a label names.

    Example:
        >>> _part_of("dual[model=vgg16, step=0.5]", "model", "resnet50"), _part_of("dual", "model", "resnet50")
        ('vgg16', 'resnet50')
    """
    changes = label.partition("[")[2].removesuffix("]").split(", ")
    return next((change.partition("=")[2] for change in changes if change.startswith(f"{key}=")), usual)
