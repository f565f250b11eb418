"""What an experiment is: its hyper-parameters, and for one seed all that is trained and measured."""

import abc
import dataclasses
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from dualogic import Formula, LogicLoss
from dualogic.errors import OptionError
from dualogic.methods import Method
from dualogic_paper.arms import Setting

Drawn = tuple[Mapping[str, Formula], tuple[Tensor, dict[str, Tensor]]]
Outputs = tuple[Tensor, dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Column:
    """A measured number: one column of a table."""

    key: str  # its name in the results
    label: str  # its name in tables
    better: Literal["higher", "lower", "neither"] = "higher"  # which way is up; ``"neither"`` for what only describes
    decimals: int = 1  # how many are shown


@dataclasses.dataclass(frozen=True)
class Limit:
    """Which numbers a hyper-parameter may have."""

    low: float = -math.inf  # the least
    high: float = math.inf  # the greatest
    open: bool = False  # leaves ``low`` and ``high`` themselves out

    def check(self, name: str, value: float) -> None:
        """Refuse a number outside.

        >>> Limit(0, 1, open=True).check("held_out", 0)
        Traceback (most recent call last):
            ...
        dualogic.errors.OptionError: --held-out must be above 0 and below 1; got 0
        """
        inside = self.low < value < self.high if self.open else self.low <= value <= self.high
        if math.isfinite(value) and inside:
            return
        words = [] if math.isinf(self.low) else [f"{'above' if self.open else 'at least'} {self.low:g}"]
        words += [] if math.isinf(self.high) else [f"{'below' if self.open else 'at most'} {self.high:g}"]
        raise OptionError(f"--{name.replace('_', '-')} must be {' and '.join(words) or 'a finite number'}; got {value!r}")


AT_LEAST_ONE, SHARE = Limit(1), Limit(0, 1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task(abc.ABC):
    """The hyper-parameters of an experiment; a subclass sets the paper's as defaults and adds its own.

    Attributes:
        epochs: of training.
        batch: the largest number of labelled, and of pool samples, in a step.
        optimizer: ``"adam"`` or ``"sgd"`` (with Nesterov momentum 0.9).
        learning_rate: at its highest.
        decay: of the learning rate: none, or to 0 along half a cosine wave after a rise over the first tenth.
        weight_decay: of the optimizer.
        rule_on: which training samples the rule sees.
        rule_from: the share of all epochs after which the rule starts.
        view: of a sample of the pool, what the rule believes and what it teaches. ``"same"``: what the network says about one
            view. ``"teacher"``: a slow copy of the network is believed. ``"another"``: the copy is believed about that view, and
            the network is taught on a strongly changed one; ``"both"``: on both.
        show_pool: without a rule, and before it starts, the pool passes through the network too, for batch norm.
        measure_every: epochs between two looks at the validation samples; the model is chosen among these epochs.

    A task whose runs differ in kind, such as in the network, says by which hyper-parameter (``parts_by``) and what the
    paper calls its values (``parts``): each has tables and figures of its own.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    columns: ClassVar[tuple[Column, ...]]
    choose_by: ClassVar[str]
    choose_higher: ClassVar[bool] = True
    settings: ClassVar[Mapping[str, Setting]] = {}
    arms: ClassVar[tuple[str, ...]] = ()
    parts_by: ClassVar[str] = ""
    parts: ClassVar[Mapping[str, str]] = {}
    views: ClassVar[tuple[str, ...]] = ("same",)  # those of :attr:`view` that the task knows
    limits: ClassVar[Mapping[str, Limit]] = {}  # of hyper-parameters that a subclass adds; all numbers must be finite

    epochs: int
    batch: int = 128
    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: float = 1e-3
    decay: Literal["none", "cosine"] = "none"
    weight_decay: float = 0.0
    rule_on: Literal["unlabelled", "labelled"] = "unlabelled"
    rule_from: float = 0.0
    view: Literal["same", "teacher", "another", "both"] = "same"
    show_pool: bool = False
    measure_every: int = 1

    @abc.abstractmethod
    def make_problem(self, seed: int, folder: Path | None, device: torch.device) -> "Problem":
        """Data, model and measures for one seed, on the device; data sets are in the usual place without a folder."""

    @abc.abstractmethod
    def make_smoke(self, folder: Path) -> "Task":
        """The same task, so small that it takes seconds on a CPU; writes stand-in data into the folder."""

    @abc.abstractmethod
    def draw(self, method: Method, samples: int, width: float, generator: torch.Generator) -> Drawn:
        """The rules as a method takes them, and what a network might say, drawn without data: outputs of a deviation ``width``,
        and the tensors that the rules' symbols are bound to.
        """

    def check(self) -> None:
        """Refuse hyper-parameters that make no sense, naming the option of the command line."""
        if self.view not in self.views:
            raise OptionError(f"--view must be one of {', '.join(self.views)} for the task {self.name!r}; got {self.view!r}")
        limits = {**COMMON_LIMITS, **self.limits}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                limits.get(field.name, Limit()).check(field.name, value)

    def as_dict(self) -> dict[str, Any]:
        """Name and hyper-parameters, ready for JSON."""
        return {"name": self.name, **dataclasses.asdict(self)}


COMMON_LIMITS: Mapping[str, Limit] = {
    **dict.fromkeys(("epochs", "batch", "measure_every"), AT_LEAST_ONE),
    "learning_rate": Limit(0, open=True),
    "weight_decay": Limit(0),
    "rule_from": SHARE,
}


@dataclasses.dataclass(frozen=True)
class Samples:
    """Some samples and what a network says about them, for a diagnosis."""

    tensors: Mapping[str, Tensor]  # what the rules' symbols are bound to, by name, ``(n, ...)`` each
    inputs: Tensor  # what tells these samples from others, ``(n, ...)``; runs are compared where this is the same
    labels: Any = None  # classes ``(n,)`` or true values of symbols, as :func:`dualogic.diagnose` takes them
    classes: tuple[str, ...] | None = None  # names of the classes
    tol: float = 0.0  # see :meth:`dualogic.Formula.satisfied`
    lead: float = 0.0  # see :meth:`dualogic.Formula.satisfied`
    words: Mapping[str, str] = dataclasses.field(default_factory=dict)  # what it means to make a part of a rule true, by its text
    picture: Callable[[int], Tensor] | None = None  # bytes ``(channels, height, width)`` of the sample at a position
    caption: Callable[[int], str] | None = None  # in words, what the network says about the sample at a position


class Problem(abc.ABC):
    """A task with its data on a device; training samples are numbered from 0."""

    beliefs: ClassVar[str | None] = None  # the symbol that is bound to logits, for what is taught in the place of rules
    groups: Tensor | None = None  # which classes make up each superclass, ``(classes, superclasses)`` of 0 and 1; likewise

    rules: Mapping[str, Formula]  # by name
    labelled: Tensor  # numbers of the samples whose labels the task loss may use
    unlabelled: Tensor  # numbers of the others; their labels are used by the fully supervised reference alone

    def rules_for(self, method: Method) -> Mapping[str, Formula]:
        """The rules in the form that a method can take: :attr:`rules`, unless it needs another one of the same content."""
        return self.rules

    @abc.abstractmethod
    def make_network(self) -> nn.Module:
        """A network with fresh weights, drawn from the global generator."""

    @abc.abstractmethod
    def outputs(self, network: nn.Module, labelled: Tensor, pool: Tensor | None, teacher: nn.Module | None = None) -> Outputs:
        """The task's loss on labelled samples, and a tensor for each symbol of the rules on samples of the pool, if there is one;
        with a teacher, whose word the rule takes, also ``believe``, what it says. Samples come as numbers ``(batch,)``.
        """

    @abc.abstractmethod
    def evaluate(self, network: nn.Module, part: Literal["validation", "test"]) -> dict[str, float]:
        """Measures on held-out samples, by key."""

    @abc.abstractmethod
    def inspect(self, network: nn.Module, logic: LogicLoss | None, pool: Tensor) -> dict[str, float]:
        """What the duals say about the pool, whose samples are rows of the table in this order; for reports only."""

    @abc.abstractmethod
    def samples(self, network: nn.Module, rows: Tensor | None) -> Samples:
        """What a diagnosis looks at: training samples ``(n,)`` or, for ``None``, at most ``MOST_SAMPLES`` validation samples."""
