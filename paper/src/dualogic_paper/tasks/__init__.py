"""The paper's experiments; :data:`TASKS` finds them by name."""

from dualogic_paper.tasks.cifar100 import CIFAR100, CIFAR100Long
from dualogic_paper.tasks.digits import Digits, DigitsMixed
from dualogic_paper.tasks.hwf import HWF, HWF520, HWFEfficiency, HWFEfficiency5
from dualogic_paper.tasks.paths import Paths, PathsDraws
from dualogic_paper.tasks.task import Column, Task
from dualogic_paper.tasks.transfer import Transfer

TASKS: dict[str, type[Task]] = {
    task.name: task
    for task in (
        *(Digits, DigitsMixed, HWF, HWF520, HWFEfficiency, HWFEfficiency5),
        *(Paths, PathsDraws, Transfer, CIFAR100, CIFAR100Long),
    )
}

__all__ = ["TASKS", "Column", "Task"]
