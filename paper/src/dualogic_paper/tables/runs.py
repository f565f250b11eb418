"""Runs that have ended, as tables need them; and with which options they were made, as a default may have changed since."""

import ast
import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dualogic import methods
from dualogic.errors import OptionError
from dualogic.methods import Method
from dualogic_paper.arms import Setting, make_arm
from dualogic_paper.runner.config import Config, usual_values
from dualogic_paper.tasks import TASKS, Task

FORMER = "former default"
NOT_TOLD = "not told which class has no labels"
NEAREST = "first=nearest"
UNLED = ("digits", "digits-mixed", "cifar10-stl10")  # no part of an *and* can lead: there is none, or all cost the same
_BEFORE = {"implication": "or", "first": "equal", "and_step": None, "rules": "sum", "local": False}
"""What runs did that were made before these options were there."""
_GONE = {"forget": 0.0, "schedule": None, "epoch": None}  # options that there were, and the value that switched each off


def read_method(text: str) -> Method | None:
    """The method that a result names; ``None`` if none is known here, or it has an option that is gone and was in use."""
    try:
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            return None
        infinite = {word.arg for word in call.keywords if isinstance(word.value, ast.Name) and word.value.id == "inf"}
        told = {str(word.arg): math.inf if word.arg in infinite else ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError):
        return None
    off = {**_GONE, "imply_step": 0.0 if told.get("implication", "or") == "rests" else told.get("imply_step")}  # not of an `or`
    given = {name: value for name, value in told.items() if name not in off or value != off[name]}
    kind = getattr(methods, call.func.id, None)
    if not isinstance(kind, type) or not issubclass(kind, Method):
        return None
    try:
        made: Method = kind(**({**_BEFORE, **given} if kind is methods.Dual else given))
    except (OptionError, TypeError):  # a value, or a name, that is no option today
        return None
    return made


def mark_former(label: str, values: Mapping[str, Any]) -> str:
    """The label of a run, with a word in front of its options if the method was another one then."""
    config = values["config"]
    setting = TASKS[config["task"]["name"]].settings.get(config["method"], Setting())
    made, word = read_method(values["method"]), ""
    present = make_arm(config["method"], {**setting.options, **config["options"]}).method
    if isinstance(made, methods.Dual) and made.rules == "mean" and "each" not in config["task"].get("form", ""):
        made = dataclasses.replace(made, rules="violated")  # the same for the few rules that a task has
    alike = config["task"]["name"] in UNLED or config["task"].get("form") == "one"
    if isinstance(made, methods.Dual) and made.first == "nearest" and alike and "first" not in config["options"]:
        made = dataclasses.replace(made, first="decisive")
    if made is not None and made != present:
        word = FORMER
        if isinstance(present, methods.Dual) and present.unlabelled and made == dataclasses.replace(present, unlabelled={}):
            word = NOT_TOLD
        elif isinstance(present, methods.Dual) and made == dataclasses.replace(present, first="nearest"):
            word = NEAREST
    if not word or f"[{word}" in label:
        return label
    name, _, rest = label.partition("[")
    return f"{name}[{word}, {rest}" if rest else f"{name}[{word}]"


@dataclasses.dataclass(frozen=True)
class Run:
    """One run that has ended, as a table needs it."""

    label: str  # the method and what was set otherwise than by default, such as ``dual[step=0.5]``
    values: dict[str, Any]  # see :class:`~dualogic_paper.runner.stored.Result`
    path: Path  # where it was read

    @property
    def task(self) -> str:
        return str(self.values["config"]["task"]["name"])

    @property
    def method(self) -> str:
        return str(self.values["config"]["method"])

    @property
    def seed(self) -> int:
        return int(self.values["config"]["seed"])

    @property
    def hyper(self) -> dict[str, Any]:
        return dict(self.values["config"]["task"])

    @property
    def made(self) -> Method | None:
        """The method that was recorded; ``None`` if no rule was taught."""
        return read_method(self.values["method"])

    @property
    def settled_task(self) -> Task:
        """The task with its hyper-parameters, but for those that it no longer has."""
        kind = TASKS[self.task]
        known = {field.name for field in dataclasses.fields(kind)}
        return kind(**{name: value for name, value in self.hyper.items() if name in known})

    @property
    def diverged(self) -> bool:
        return self.values.get("failure") is not None

    @property
    def curve(self) -> list[dict[str, float]]:
        """What was measured while training, a dictionary for each measured epoch."""
        history: list[dict[str, float]] = self.values["history"]
        return history


@dataclasses.dataclass(frozen=True)
class Results:
    """All runs of a task."""

    task: str  # its name
    runs: tuple[Run, ...]  # that have ended, sorted by label and seed
    unfinished: tuple[tuple[str, int], ...] = ()  # label and seed of runs that were started but have no result
    times: tuple[Any, ...] = ()  # how long a step takes, by a benchmark; see :mod:`dualogic_paper.tables.times`
    part: str = ""  # the value of the task's ``parts_by`` that these runs share; empty if they are all of the task's

    @property
    def name(self) -> str:
        """Unique among the parts of all tasks."""
        return f"{self.task}-{self.part}" if self.part else self.task

    @property
    def title(self) -> str:
        """Above tables and figures."""
        title = TASKS[self.task].title
        return f"{title}: {self.part_title}" if self.part else title

    @property
    def part_title(self) -> str:
        """The part, as the paper calls it."""
        return TASKS[self.task].parts.get(self.part, self.part)


def make_label(config: Mapping[str, Any]) -> str:
    """Name a configuration by its method and what was set otherwise than by default; runs of one label differ in the seed only.

    >>> from dualogic_paper.tasks import Digits
    >>> make_label(Config(Digits(), "dual").as_dict())
    'dual'
    >>> make_label(Config(Digits(epochs=5), "dual", {"step": 0.5}, seed=3).as_dict())
    'dual[epochs=5, step=0.5]'
    """
    hyper = {name: value for name, value in config["task"].items() if name != "name"}
    others = {name: value for name, value in config.items() if name not in ("task", "method", "options", "seed")}
    usual = {**usual_values(Config), **usual_values(TASKS[config["task"]["name"]])}
    usual = json.loads(json.dumps(usual, default=str))  # as they come back from files
    changed = {name: value for name, value in {**hyper, **others}.items() if value != usual.get(name)} | config["options"]
    words = [f"{name}={value}" for name, value in changed.items()]
    return f"{config['method']}[{', '.join(words)}]" if words else str(config["method"])
