"""With which options a run was made, as its result records them; a default may have changed since."""

from __future__ import annotations

import ast
import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from dualogic import methods
from dualogic.errors import OptionError
from dualogic.methods import Method
from dualogic_paper.arms import Setting, make_arm
from dualogic_paper.tasks import TASKS

FORMER = "former default"
NOT_TOLD = "not told which class has no labels"
_BEFORE = {"implication": "or", "first": "equal", "and_step": None, "imply_step": None, "rules": "sum", "local": False}
"""What runs did that were made before these options were there."""
_GONE = {"forget": 0.0, "schedule": None, "epoch": None}
"""Options that there were, and the value that switched each off."""


def read_method(text: str) -> Method | None:
    """The method that a result names; ``None`` if none is known here, or it has an option that is gone and was in use.

    Example:
        >>> read_method("DL2(weight=0.5)").weight
        0.5
    """
    try:
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            return None
        told = {str(word.arg): _value(word.value) for word in call.keywords}
    except (SyntaxError, ValueError):
        return None
    given = {name: value for name, value in told.items() if name not in _GONE or value != _GONE[name]}
    kind = getattr(methods, call.func.id, None)
    if not isinstance(kind, type) or not issubclass(kind, Method) or not given.keys() <= _fields(kind):
        return None
    try:
        made: Method = kind(**({**_BEFORE, **given} if kind is methods.Dual else given))
    except OptionError:
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
    if made is not None and made != present:
        told = isinstance(present, methods.Dual) and present.unlabelled and made == dataclasses.replace(present, unlabelled={})
        word = NOT_TOLD if told else FORMER
    if not word or f"[{word}" in label:
        return label
    name, _, rest = label.partition("[")
    return f"{name}[{word}, {rest}" if rest else f"{name}[{word}]"


def _fields(kind: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def _value(node: ast.expr) -> Any:
    return math.inf if isinstance(node, ast.Name) and node.id == "inf" else ast.literal_eval(node)
