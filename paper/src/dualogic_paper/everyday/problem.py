"""What every problem is made of: a story in one line, a training run, and the figures that it reports."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

import dualogic as dl

Metrics = dict[str, float]
"""Figures of a run, by name. Shares are in percent."""
HELD = "held"
"""The figure that every problem reports: how often its rules hold, in percent."""


class LossFactory(Protocol):
    """Makes the loss of the rules, or ``None`` where a network is trained without them."""

    def __call__(
        self, rules: dl.Formula | Mapping[str, dl.Formula], num_samples: int | None = None, **options: Any
    ) -> dl.LogicLoss | None:
        """The loss of formulas for so many samples, ``None`` where all share one row; options are those of ``LogicLoss``."""


@dataclasses.dataclass(frozen=True)
class Problem:
    """An everyday problem."""

    name: str  # of the problem, as on the command line
    about: str  # one line on what is learned, and by which rules
    run: Callable[..., Metrics]  # trains a network and measures it: ``run(make_loss, seed, **sizes) -> Metrics``
    small: Mapping[str, int]  # sizes for a quick try
    primary: str = "f1"  # the figure by which methods are compared
    title: str = "F1"  # what that figure is called in tables
    lower_is_better: bool = False  # whether a small primary figure is a good one
    # whether the defaults of the library were chosen on this problem; the others were only looked at meanwhile
    tuned: bool = False

    def __call__(self, make_loss: LossFactory, seed: int, **sizes: int) -> Metrics:
        """Train once, with other sizes if asked for, and measure. The global random state is as before afterwards."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.run(make_loss, seed, **sizes)

    @property
    def decimals(self) -> int:
        """Of the primary figure in tables: errors are small numbers, shares are percent."""
        return 2 if self.lower_is_better else 1


def batches(count: int, size: int, epochs: int, seed: int) -> Iterator[Tensor]:
    """Positions of samples, in a new order each epoch; the same for every method. The last of an epoch may be smaller.

    Example:
        >>> sorted(torch.cat(list(batches(5, size=2, epochs=1, seed=0))).tolist())
        [0, 1, 2, 3, 4]
    """
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        yield from torch.randperm(count, generator=generator).split(size)


def take_step(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """One step of training."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def train(
    optimizer: torch.optim.Optimizer,
    logic: dl.LogicLoss | None,
    steps: Iterable[Tensor],
    task_loss: Callable[[], Tensor],
    bind: Callable[[Tensor], Mapping[str, Tensor]],
) -> None:
    """Train on the task's loss and on the rules, about what ``bind`` gives for the positions of each batch."""
    for index in steps:
        loss = task_loss()
        if logic is not None:
            loss = loss + logic(index, **bind(index))
        take_step(optimizer, loss)


def train_answers(
    network: nn.Module,
    logic: dl.LogicLoss | None,
    bind: Callable[[Tensor], Mapping[str, Tensor]],
    labelled: tuple[Tensor, Tensor],
    pool: Tensor,
    steps: Iterable[Tensor],
    decay: float = 1e-2,
) -> None:
    """Train a network that gives the logits of yes-or-no answers, by labelled features with their answers ``(n, answers)``, and
    by rules about a pool of features; ``bind`` names the logits as the rules do.
    """
    known, answers = labelled
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=decay)

    def task_loss() -> Tensor:
        return answers.shape[1] * binary_cross_entropy_with_logits(network(known), answers)

    train(optimizer, logic, steps, task_loss, lambda index: bind(network(pool[index])))


def name_columns(names: Sequence[str], columns: Tensor) -> dict[str, Tensor]:
    """The columns of ``(n, names)`` by their names."""
    return dict(zip(names, columns.unbind(1)))


def perceptron(*widths: int) -> nn.Sequential:
    """Linear layers of these widths, with ReLU between them.

    Example:
        >>> perceptron(20, 64, 3)(torch.zeros(2, 20)).shape
        torch.Size([2, 3])
    """
    layers = [layer for pair in itertools.pairwise(widths) for layer in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


def holds(rules: Mapping[str, dl.Formula], **tensors: Tensor) -> Tensor:
    """Which rule holds on which sample, ``(rules, samples)``.

    Example:
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
