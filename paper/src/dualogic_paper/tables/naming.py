"""What rows and columns are called, in which order rows come, and which of them have tables and figures of their own."""

import dataclasses
from collections.abc import Sequence

from dualogic_paper import arms
from dualogic_paper.runner.config import usual_values
from dualogic_paper.tables.runs import FORMER, NOT_TOLD, Results, Run
from dualogic_paper.tasks import TASKS, Column

PAPER_NAMES = {
    "none": "Baseline (none)",
    "supervised": "Fully supervised",
    "fixmatch": "FixMatch on superclasses (fixmatch)",
    "semantic": "SL (semantic)",
    "problog": "DPL (problog)",
    "pd1": "PD1",
    "pd2": "PD2",
    "dl2": "DL2",
    "dual-paper": "Ours, as printed (dual-paper)",
    "dual": "Ours (dual)",
}


def group_runs(results: Results) -> list[tuple[str, list[Run]]]:
    """The runs of each label, in the order of tables; what was changed for all of them is left out of the labels."""
    shared = shared_changes(results)
    groups: dict[str, list[Run]] = {}
    for run in results.runs:
        groups.setdefault(strip_label(run.label, shared), []).append(run)
    return sorted(groups.items(), key=lambda group: order_of(group[1][0].method, group[0]))


def shared_changes(results: Results) -> list[str]:
    """What all runs set otherwise than by default, if several methods were run; a note says it once instead of each row."""
    labels = [list_changes(run.label) for run in results.runs]
    if len({run.method for run in results.runs}) == 1:
        return []
    return [change for change in labels[0] if all(change in label for label in labels)]


def strip_label(label: str, shared: Sequence[str]) -> str:
    """A label without some of its changes.

    >>> strip_label("dual[epochs=5, step=0.5]", ["epochs=5"])
    'dual[step=0.5]'
    """
    left = [change for change in list_changes(label) if change not in shared]
    name = label.partition("[")[0]
    return f"{name}[{', '.join(left)}]" if left else name


def order_of(method: str, label: str) -> tuple[int, bool, str]:
    """Sorts rows: arms in their order, of each the one without options first."""
    known = arms.names(controls=True)
    return (known.index(method) if method in known else len(known), label != method, label.rstrip("]"))


def show_name(method: str, label: str) -> str:
    """How a row is called: as in the paper, with the options that were set.

    >>> show_name("semantic", "semantic"), show_name("dual", "dual[step=0.5]")
    ('SL (semantic)', 'Ours (dual[step=0.5])')
    >>> show_name("dual", "dual[former default, form=each]")
    'dual[form=each] (former default)'
    """
    name = PAPER_NAMES.get(method, method)
    if label == method:
        return name
    for word in (FORMER, NOT_TOLD):
        if word in list_changes(label):
            return f"{strip_label(label, [word])} ({word})"
    return name.replace(f"({method})", f"({label})") if f"({method})" in name else name + label[len(method) :]


def short_name(method: str, label: str) -> str:
    """The same for figures, where there is little room."""
    name = show_name(method, label)
    return name.partition(" (")[0] if label == method else name if name.startswith(method) else label


def describe_column(column: Column, columns: Sequence[Column]) -> str:
    """Its label; where two columns share one, what their keys differ in comes first, as other labels call it.

    >>> some = (Column("q", "Q"), Column("stl10_accuracy", "STL-10 acc."), Column("stl10_q", "Q"))
    >>> [describe_column(column, some) for column in some]
    ['Q', 'STL-10 acc.', 'STL-10 Q']
    """
    for twin in columns:
        if twin.label == column.label and column.key.endswith(f"_{twin.key}"):
            prefix = column.key.removesuffix(twin.key)
            kin = (other.label for other in columns if other.key.startswith(prefix) and other.label != column.label)
            return f"{next(kin, prefix.rstrip('_')).split()[0]} {column.label}"
    return column.label


def list_changes(label: str) -> list[str]:
    """What a label says was set otherwise than by default, ``name=value`` each."""
    inside = label.partition("[")[2].removesuffix("]")
    return inside.split(", ") if inside else []


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
        waiting = tuple(
            (strip_label(label, [mark]), seed)
            for label, seed in results.unfinished
            if mark in list_changes(label) or (part == usual and f"{key}=" not in label)
        )
        found.append(dataclasses.replace(results, runs=named, unfinished=waiting, part=part))
    return tuple(found)
