"""What is compared: no rule, full labels, or a rule taught by some method; :func:`make_arm` finds one by name."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dualogic import methods
from dualogic.errors import OptionError
from dualogic.methods import Method

NO_RULE = "none"
SUPERVISED = "supervised"
ENTROPY = "entropy"
FIXMATCH = "fixmatch"
CONTROLS = (ENTROPY, FIXMATCH)
IMAGE_ARMS = ("none", "supervised", *CONTROLS, "pd1", "pd2", "dl2", "hard", "uniform", "dual-paper", "dual")
"""Arms of rules about sums of probabilities: the paper's methods, the ablations, and what needs no logic as controls."""
PRESETS: dict[str, Callable[..., Method]] = {"dual-paper": methods.Dual.paper}


@dataclasses.dataclass(frozen=True)
class Setting:
    """What one method needs otherwise than the task's defaults."""

    weight: float = 1.0  # a factor of the rule's loss
    learning_rate: float | None = None  # instead of the task's
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of the method


@dataclasses.dataclass(frozen=True)
class Arm:
    """One row of a table."""

    name: str  # in tables and on the command line
    method: Method | None  # teaches the rule; ``None`` if no rule is taught
    supervised: bool = False  # all training samples are labelled
    control: str = ""  # what is taught in the place of a rule, see :mod:`dualogic_paper.controls`; empty for nothing


def names(*, controls: bool = False) -> tuple[str, ...]:
    """All arms, in the order of tables; ``controls`` adds what is taught in the place of rules that ask for certainty.

    Example:
        >>> names()[:3]
        ('none', 'supervised', 'semantic')
    """
    rivals = [name for name in methods.METHODS if name not in ("dual", "uniform", "hard")]
    first = (NO_RULE, SUPERVISED, *CONTROLS) if controls else (NO_RULE, SUPERVISED)
    published = [name for name in ("semantic", "problog", "pd1", "pd2", "dl2") if name in rivals]
    return (*first, *published, *sorted(set(rivals) - set(published)), "hard", "uniform", *PRESETS, "dual")


def make_arm(name: str, options: Mapping[str, Any] | None = None) -> Arm:
    """Find an arm by its name, see :func:`names`, and set options of its method.

    Example:
        >>> make_arm("dual", {"step": 0.5}).method.step
        0.5
        >>> make_arm("none").method is None
        True
    """
    options = dict(options or {})
    if name in (NO_RULE, SUPERVISED, *CONTROLS):
        if options:
            raise OptionError(f"the arm {name!r} teaches no rule and takes no options; got {', '.join(options)}")
        return Arm(name, None, supervised=name == SUPERVISED, control=name if name in CONTROLS else "")
    make = PRESETS.get(name) or methods.METHODS.get(name)
    if make is None:
        raise OptionError(f"--method must be one of {', '.join(names(controls=True))}; got {name!r}")
    try:
        return Arm(name, make(**options))
    except TypeError as error:
        known = [field.name for field in dataclasses.fields(make())]
        raise OptionError(f"the method {name!r} has the options {', '.join(known)}; got {', '.join(options)}") from error


def parse_options(words: Sequence[str]) -> dict[str, Any]:
    """Options of a method from words ``name=value`` of the command line; a value is a Python literal, or else text.

    Example:
        >>> parse_options(["step=0.5", "delta=exact"])
        {'step': 0.5, 'delta': 'exact'}
    """
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise OptionError(f"--options takes name=value, as in step=0.5; got {word!r}")
        found[name] = parse_value(value)
    return found


def parse_value(text: str) -> Any:
    """A Python literal, or else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
