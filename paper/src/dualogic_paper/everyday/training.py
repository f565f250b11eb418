"""How the problems train: one loop for all, on the labels and on the rules."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

import dualogic as dl


def batches(count: int, size: int, epochs: int, seed: int) -> Iterator[Tensor]:
    """Positions of samples, in a new order each epoch; the same for every method. The last of an epoch may be smaller.

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
    network: nn.Module,
    logic: dl.LogicLoss | None,
    steps: Iterable[Tensor],
    task_loss: Callable[[], Tensor],
    bind: Callable[[Tensor], Mapping[str, Tensor]],
    rate: float = 3e-3,
    decay: float = 0.0,
) -> None:
    """Train on the task's loss and on the rules, about what ``bind`` gives for the positions of each batch."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=decay)
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
    tests: Tensor,
    decay: float = 1e-2,
) -> Tensor:
    """Train a network that gives the logits of yes-or-no answers, by labelled features with their answers ``(n, answers)``, and
    by rules about a pool of features; ``bind`` names the logits as the rules do. What it says about tests, then.
    """
    known, answers = labelled

    def task_loss() -> Tensor:
        return answers.shape[1] * binary_cross_entropy_with_logits(network(known), answers)

    train(network, logic, steps, task_loss, lambda index: bind(network(pool[index])), decay=decay)
    return ask(network, tests)


@torch.no_grad()
def ask(network: nn.Module, inputs: Tensor) -> Tensor:
    """What a network says once it is trained."""
    said: Tensor = network.eval()(inputs)
    return said


def name_columns(names: Sequence[str], columns: Tensor) -> dict[str, Tensor]:
    """The columns of ``(n, names)`` by their names."""
    return dict(zip(names, columns.unbind(1)))


def perceptron(*widths: int) -> nn.Sequential:
    """Linear layers of these widths, with ReLU between them.

    >>> perceptron(20, 64, 3)(torch.zeros(2, 20)).shape
    torch.Size([2, 3])
    """
    layers = [layer for pair in itertools.pairwise(widths) for layer in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(*layers[:-1])
