"""The demo's network, and one training run of it."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from dualogic.demo.data import CLASSES, Split, rotate
from dualogic.demo.measures import RULE, Measures, measure
from dualogic.errors import BindingError, NonFiniteError
from dualogic.loss import LogicLoss

BATCH = 64
LEARNING_RATE = 1e-3


@dataclasses.dataclass(frozen=True)
class Run:
    """What one training run did."""

    pool: str  # what the rule saw, "sixes" or "mixed"
    method: str  # how the rule was taught; "none" for no rule
    options: str  # the method with all its options, as text
    history: tuple[Measures, ...]  # measures before training and after each epoch
    seconds: float  # wall time
    failure: str | None = None  # why training stopped early; `None` if it did not

    @property
    def final(self) -> Measures:
        """The measures after the last epoch that was finished."""
        return self.history[-1]


def make_network(seed: int) -> nn.Sequential:
    """A small convolutional network, from images ``(n, 1, 8, 8)`` to logits ``(n, 10)``; the global random state is left alone.

    Example:
        >>> import torch
        >>> make_network(seed=0)(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * 4 * 4, 64),
            nn.ReLU(),
            nn.Linear(64, CLASSES),
        )


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Compute with a single thread.

    Tensors this small gain little from a second one and lose much if its core is busy with something else; and the order of
    additions, so the result, no longer depends on the machine's number of cores.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@one_thread()
def train(
    split: Split, pool: str, method: str | None, epochs: int, seed: int, on_epoch: Callable[[], None] = lambda: None
) -> Run:
    """Train a network from scratch: cross-entropy on the labelled images, and the rule on the pool from the first epoch.

    An epoch visits each labelled image and each image of the pool once. All methods start from the same weights and see
    the same batches.

    Args:
        split: the data.
        pool: the name of its pool, for the report.
        method: a name from ``dl.methods.METHODS``, taken with its defaults, or ``None`` for no rule.
        epochs: how many.
        seed: of the weights and of the order of the batches.
        on_epoch: called after each epoch.

    Example:
        >>> from dualogic.demo import load_split
        >>> run = train(load_split("sixes", seed=0), "sixes", "dual", epochs=1, seed=0)
        >>> len(run.history), run.history[0].weight_sixes
        (2, 0.5)
    """
    started = time.perf_counter()
    network = make_network(seed)
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    # Two orders, so that the run without the rule is the same for every pool.
    task_order, pool_order = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
    logic = None if method is None else LogicLoss(RULE, num_samples=len(split.pool), method=method)
    history = [measure(network, split, logic)]
    failure = None
    steps = -(-len(split.labelled) // BATCH)
    for _ in range(epochs):
        labelled = torch.randperm(len(split.labelled), generator=task_order).tensor_split(steps)
        unlabelled = torch.randperm(len(split.pool), generator=pool_order).tensor_split(steps)
        try:
            for chosen, index in zip(labelled, unlabelled):
                loss = _loss(network, logic, split, chosen, index)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            history.append(measure(network, split, logic))
        except (NonFiniteError, BindingError) as error:
            # A method that diverges is a result of the demo, not a failure of it.
            failure = str(error)
            break
        on_epoch()
    return Run(
        pool=pool,
        method="none" if method is None else method,
        options="" if logic is None else logic.method.describe(),
        history=tuple(history),
        seconds=time.perf_counter() - started,
        failure=failure,
    )


def _loss(network: nn.Module, logic: LogicLoss | None, split: Split, chosen: Tensor, index: Tensor) -> Tensor:
    images, labels = split.labelled[chosen], split.labels[chosen]
    if logic is None or not len(index):
        return cross_entropy(network(images), labels)
    pool = split.pool[index]
    # One pass through the network is faster than three; without batch norm it is the same.
    logits, f, g = network(torch.cat([images, pool, rotate(pool)])).split([len(images), len(pool), len(pool)])
    loss: Tensor = cross_entropy(logits, labels) + logic(index, f=f, g=g)
    return loss
