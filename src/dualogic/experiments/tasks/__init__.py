"""The paper's experiments; :data:`TASKS` finds them by name."""

from __future__ import annotations

from dualogic.experiments.tasks.digits import Digits, DigitsMixed
from dualogic.experiments.tasks.paths import Paths
from dualogic.experiments.tasks.task import Column, Problem, Task
from dualogic.experiments.tasks.transfer import Transfer

TASKS: dict[str, type[Task]] = {
    task.name: task
    for task in (
        Digits,
        DigitsMixed,
        Paths,
        Transfer,
    )
}

__all__ = ["TASKS", "Column", "Digits", "DigitsMixed", "Paths", "Problem", "Task", "Transfer"]
