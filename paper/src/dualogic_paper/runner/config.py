"""Everything that decides what a run computes (:class:`Config`), and where it is computed (:class:`Machine`)."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from dualogic.errors import OptionError
from dualogic_paper.arms import CONTROLS, NO_RULE, SUPERVISED, Arm, Setting, make_arm
from dualogic_paper.tasks import TASKS, Task
from dualogic_paper.tasks.task import AT_LEAST_ONE, Limit


@dataclasses.dataclass(frozen=True)
class Config:
    """One run.

    >>> from dualogic_paper.tasks import Digits
    >>> config = Config(Digits(epochs=1), method="semantic")
    >>> config.arm.name, config.rule_weight, config.learning_rate
    ('semantic', 0.5, 0.0005)
    """

    task: Task  # the experiment with its hyper-parameters
    method: str = "dual"  # the name of an arm; see :mod:`dualogic_paper.arms`
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of the method, after those that the task sets
    weight: float | None = None  # a factor of the rule's loss; the task's for this method by default
    seed: int = 0  # of the division of the data, the weights and the order of batches
    precision: Literal["32-true", "bf16-mixed", "64-true"] = "32-true"  # of the network; costs and duals are float32 at least

    def __post_init__(self) -> None:
        self.task.check()
        if self.weight is not None:
            Limit(0).check("weight", self.weight)
        if self.seed < 0:
            raise OptionError(f"--seeds takes whole numbers of at least 0; got {self.seed}")
        _ = self.arm

    @property
    def setting(self) -> Setting:
        """What the task knows about this method."""
        return self.task.settings.get(self.method, Setting())

    @property
    def arm(self) -> Arm:
        """The method with its options."""
        return make_arm(self.method, self.settings["options"])

    @property
    def rule_weight(self) -> float:
        """The factor of the rule's loss."""
        return self.setting.weight if self.weight is None else self.weight

    @property
    def learning_rate(self) -> float:
        """The task's, unless this method has one of its own and the task's is not changed."""
        own, usual = self.setting.learning_rate, usual_values(type(self.task))["learning_rate"]
        return own if own is not None and self.task.learning_rate == usual else self.task.learning_rate

    @property
    def settings(self) -> dict[str, Any]:
        """What is in force where a task knows better for this method: the rule's weight, the learning rate, options."""
        options = {**self.setting.options, **self.options}
        return {"weight": self.rule_weight, "learning_rate": self.learning_rate, "options": options}

    @property
    def about(self) -> dict[str, Any]:
        """What ``config.json`` says to ``dualogic report``, which knows no task."""
        from dualogic_paper.tables.runs import make_label  # which knows configurations

        taught = self.method not in (NO_RULE, SUPERVISED, *CONTROLS)
        return {"title": self.task.title, "label": make_label(self.as_dict()), "taught": taught}

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {**vars(self), "task": self.task.as_dict(), "options": dict(self.options)}

    def differences(self, other: Mapping[str, Any]) -> list[str]:
        """Where another configuration, as a dictionary, differs; one line each."""
        mine, theirs = flatten(self.as_dict()), flatten(complete(other))
        return [
            f"{key}: {theirs.get(key, 'absent')!r} there, {mine.get(key, 'absent')!r} here"
            for key in sorted({*mine, *theirs})
            if mine.get(key, "absent") != theirs.get(key, "absent")
        ]


@dataclasses.dataclass(frozen=True)
class Machine:
    """Where and how a run is computed; nothing here changes what is computed, up to rounding."""

    accelerator: Literal["auto", "cpu", "cuda", "mps"] = "auto"  # ``"auto"`` takes a GPU if there is one
    devices: int = 1  # how many processes share every batch
    capture: bool | None = None  # record a step once as a CUDA graph and replay it; by default on one GPU
    compile: bool = False  # train the network through ``torch.compile``, whose kernels move less memory
    checkpoint_seconds: float = 10.0  # the least time between two checkpoints; the last epoch always has one
    data: Path | None = None  # the folder of the data sets; the usual place by default
    events: bool = False  # write TensorBoard events into the run folder

    def __post_init__(self) -> None:
        AT_LEAST_ONE.check("devices", self.devices)
        Limit(0).check("checkpoint_seconds", self.checkpoint_seconds)


GONE = {"decayed": "all", "augment": "crop", "pixels": 32}  # former hyper-parameters, and the value with which each did nothing


def complete(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration of an earlier version: hyper-parameters that were not there have their defaults, and some are gone."""
    there = {name: value for name, value in config["task"].items() if name not in GONE or value != GONE[name]}
    return {**config, "task": {**usual_values(TASKS[config["task"]["name"]]), **there}}


def usual_values(kind: type) -> dict[str, Any]:
    """The defaults of a dataclass, by name; fields without one are left out."""
    fields = dataclasses.fields(kind)
    return {field.name: field.default for field in fields if field.default is not dataclasses.MISSING}


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values by their names joined by dots."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            found.update(flatten(value, f"{prefix}{key}."))
        else:
            found[prefix + key] = value
    return found
