"""What is compared: no rule, full labels, a rule taught by some method, or what people use in its place on the same samples."""

import ast
import dataclasses
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dualogic import methods
from dualogic.errors import OptionError
from dualogic.methods import Method

if TYPE_CHECKING:
    from dualogic_paper.tasks.task import Problem

NO_RULE = "none"
SUPERVISED = "supervised"
FIXMATCH = "fixmatch"
CONTROLS = ("entropy", FIXMATCH)
IMAGE_ARMS = ("none", "supervised", *CONTROLS, "pd1", "pd2", "dl2", "hard", "uniform", "dual-paper", "dual")
"""Arms of rules about sums of probabilities: the paper's methods, the ablations, and what needs no logic as controls."""
MOST_SEEDS = 10_000
LARGEST_SEED = 2**63  # which random generators can take
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
    control: str = ""  # what is taught in the place of a rule, see :func:`make_control`; empty for nothing


def names(*, controls: bool = False) -> tuple[str, ...]:
    """All arms, in the order of tables; ``controls`` adds what is taught in the place of rules that ask for certainty.

    >>> names()[:3]
    ('none', 'supervised', 'semantic')
    """
    rivals = [name for name in methods.METHODS if name not in ("dual", "uniform", "hard")]
    first = (NO_RULE, SUPERVISED, *CONTROLS) if controls else (NO_RULE, SUPERVISED)
    published = [name for name in ("semantic", "problog", "pd1", "pd2", "dl2") if name in rivals]
    return (*first, *published, *sorted(set(rivals) - set(published)), "hard", "uniform", *PRESETS, "dual")


def make_arm(name: str, options: Mapping[str, Any] | None = None) -> Arm:
    """Find an arm by its name, see :func:`names`, and set options of its method.

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

    >>> parse_options(["step=0.5", "delta=exact"])
    {'step': 0.5, 'delta': 'exact'}
    """
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise OptionError(f"--options takes name=value, as in step=0.5; got {word!r}")
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name] = value
    return found


def parse_seeds(text: str, dots: str = "..", such_as: str = "3, 0,2,5 or 0..4") -> list[int]:
    """Seeds from text.

    >>> parse_seeds("0..4"), parse_seeds("3"), parse_seeds("0,2,7..8")
    ([0, 1, 2, 3, 4], [3], [0, 2, 7, 8])
    """
    seeds: list[int] = []
    for part in text.split(","):
        words = [word.strip() for word in part.split(dots, 1)]
        known = all(word.isascii() and word.isdigit() and int(word[:25]) < LARGEST_SEED for word in words)
        if not known or int(words[0]) > int(words[-1]):
            raise OptionError(f"--seeds takes numbers such as {such_as}; got {reprlib.repr(text)}")
        found = range(int(words[0]), int(words[-1]) + 1)
        if len(seeds) + len(found) > MOST_SEEDS:
            raise OptionError(f"--seeds takes at most {MOST_SEEDS:,} numbers at once; got {reprlib.repr(text)}")
        seeds += found
    return list(dict.fromkeys(seeds))


SURE = 0.95  # the probability from which FixMatch takes a superclass for true


def make_control(name: str, problem: "Problem", weight: float) -> Callable[..., Tensor]:
    """A loss that is called as a :class:`~dualogic.LogicLoss` is: by ``"entropy"`` what the network believes is made certain, by
    ``"fixmatch"`` superclasses that are believed firmly are taken for labels.
    """
    symbol, groups = problem.beliefs, problem.groups
    if symbol is None or (name == FIXMATCH and groups is None):
        what = "superclasses" if symbol is not None else "logits"
        raise OptionError(f"the task has no {what} that --method {name} could work on; leave it out")

    def lose(rows: Tensor, *, believe: dict[str, Tensor] | None = None, **bound: Any) -> Tensor:
        taught = bound[symbol].float()
        if groups is None or name != FIXMATCH:
            return weight * entropy(taught).mean()
        believed = bound if believe is None else believe
        return weight * fixmatch(taught, believed[symbol].detach().float(), groups).mean()

    return lose


def entropy(logits: Tensor) -> Tensor:
    """Of each sample, ``(batch, classes)`` to ``(batch,)``, in nats."""
    # torch.distributions checks its arguments, for which a recorded step cannot wait.
    logarithms = torch.log_softmax(logits, -1)
    return -(logarithms.exp() * logarithms).sum(-1)


def fixmatch(taught: Tensor, believed: Tensor, groups: Tensor) -> Tensor:
    """FixMatch on superclasses (Sohn et al., 2020): cross entropy with what is believed firmly, 0 elsewhere.

    From logits ``(views * batch, classes)`` and ``(batch, classes)``, and ``groups`` ``(classes, superclasses)`` of 0 and 1.

    >>> groups = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> logits = torch.tensor([[0.0, 0.0, 0.0], [5.0, 5.0, 0.0]])
    >>> fixmatch(torch.zeros(2, 3), logits, groups).exp()
    tensor([1.0000, 1.5000])
    """
    views = len(taught) // len(believed)
    surest, superclass = (believed.softmax(-1) @ groups).max(-1)
    inside = groups[:, superclass.repeat(views)].t() > 0
    logarithms = torch.log_softmax(taught, -1)
    losses = -torch.where(inside, logarithms, -torch.inf).logsumexp(-1)
    return torch.where((surest >= SURE).repeat(views), losses, 0.0)
