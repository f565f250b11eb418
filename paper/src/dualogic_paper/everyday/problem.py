"""What every problem is made of: a story in one line, a training run, and the figures that it reports."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

import dualogic as dl

Metrics = dict[str, float]  # figures of a run, by name; shares are in percent
HELD = "held"  # the figure that every problem reports: how often its rules hold, in percent
LossFactory = Callable[..., dl.LogicLoss | None]  # makes the loss of rules, or ``None`` to train without them


@dataclasses.dataclass(frozen=True)
class Problem:
    """An everyday problem."""

    name: str  # of the problem, as on the command line
    about: str  # one line on what is learned, and by which rules
    run: Callable[..., Metrics]  # trains a network and measures it: ``run(make_loss, seed, **sizes) -> Metrics``
    primary: str = "f1"  # the figure by which methods are compared
    title: str = "F1"  # what that figure is called in tables
    lower_is_better: bool = False  # whether a small primary figure is a good one
    tuned: bool = False  # whether the library's defaults were chosen on it; others were only looked at meanwhile

    def __call__(self, make_loss: LossFactory, seed: int, **sizes: int) -> Metrics:
        """Train once, with other sizes if asked for, and measure. The global random state is as before afterwards."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.run(make_loss, seed, **sizes)

    @property
    def decimals(self) -> int:
        """Of the primary figure in tables: errors are small numbers, shares are percent."""
        return 2 if self.lower_is_better else 1


def holds(rules: Mapping[str, dl.Formula], **tensors: Tensor) -> Tensor:
    """Which rule holds on which sample, ``(rules, samples)``.

    >>> x = dl.var("x")
    >>> holds({"low": x >= 0, "high": x <= 1}, x=torch.tensor([0.5, 2.0])).tolist()
    [[True, True], [True, False]]
    """
    bound: dict[str, Any] = dict(tensors)
    return torch.stack([rule.satisfied(**{name: bound[name] for name in rule.symbols}) for rule in rules.values()])


def percent(truths: Tensor) -> float:
    """The share of true entries; not a number if there are no entries."""
    return 100 * truths.double().mean().item()


def f1(said: Tensor, true: Tensor) -> float:
    """The F1 score of yes-or-no answers, in percent, over all entries together."""
    both, either = (said & true).sum().item(), said.sum().item() + true.sum().item()
    return 100 * 2 * both / max(either, 1)


def rmse(said: Tensor, true: Tensor) -> float:
    """The root of the mean squared error."""
    return (said - true).double().square().mean().sqrt().item()
