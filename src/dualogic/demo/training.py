"""The demo's rule and network, one training run of it, and what is measured on held-out images."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from dualogic.demo.data import CLASSES, SIX, Split, rotate
from dualogic.errors import BindingError, NonFiniteError
from dualogic.formula.symbol import categorical
from dualogic.loss import LogicLoss

BATCH = 64
LEARNING_RATE = 1e-3
LEAD = 0.1  # by how much a class must lead to count, as in the paper's digit tables

upright = categorical("f", CLASSES, input="logits")
turned = categorical("g", CLASSES, input="logits")

P = turned == 9
Q = upright == SIX
RULE = P >> Q

# The paper's reading of not-P: some other class leads 9 by 0.1. `turned != 9` is the complement of P instead: it also
# holds where 9 leads by less than 0.1, so undecided images would count as denials.
NOT_P = turned.isin([digit for digit in range(CLASSES) if digit != 9])


@dataclasses.dataclass(frozen=True)
class Measures:
    """What a network does, in percent; weights in [0, 1]."""

    accuracy: float  # on all held-out images
    satisfied: float  # held-out 6s on which not-P or Q holds
    p: float  # held-out 6s that read as a 9 after half a turn
    not_p: float  # held-out 6s on which some other class leads 9 after half a turn; undecided ones are in neither
    q: float  # held-out 6s called a 6
    false_six: float  # held-out images of other classes called a 6
    weight_sixes: float | None  # the mean dual weight on Q over the 6s of the pool; `None` for a method without such weights
    weight_others: float | None  # the same over the rest of the pool; `None` also if there is no rest


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
    """A small convolutional network, from images ``(n, 1, 8, 8)`` to logits ``(n, 10)``; leaves the global random state alone."""
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
    the same batches. ``pool`` is the name of the split's pool, for the report; ``method`` one from ``dl.methods.METHODS``, taken
    with its defaults, or ``None`` for no rule; ``on_epoch`` is called after each epoch.
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
    options = "" if logic is None else logic.method.describe()
    return Run(pool, method or "none", options, tuple(history), time.perf_counter() - started, failure)


def _loss(network: nn.Module, logic: LogicLoss | None, split: Split, chosen: Tensor, index: Tensor) -> Tensor:
    images, labels = split.labelled[chosen], split.labels[chosen]
    if logic is None or not len(index):
        return cross_entropy(network(images), labels)
    pool = split.pool[index]
    # One pass through the network is faster than three; without batch norm it is the same.
    logits, f, g = network(torch.cat([images, pool, rotate(pool)])).split([len(images), len(pool), len(pool)])
    loss: Tensor = cross_entropy(logits, labels) + logic(index, f=f, g=g)
    return loss


@torch.no_grad()
def measure(network: nn.Module, split: Split, logic: LogicLoss | None) -> Measures:
    """Measure a network on the held-out images, and the duals on the pool."""
    predicted = network(split.held_out).argmax(1)
    is_six = split.held_out_labels == SIX
    sixes = split.held_out_sixes
    f, g = network(sixes), network(rotate(sixes))
    weights = None if logic is None else logic.weights(torch.arange(len(split.pool))).get("rule")
    # On Q, the second operand of `not P or Q`, for the pool's 6s and for its other images.
    on_q = [] if weights is None else [weights[chosen, 1] for chosen in (split.pool_is_six, ~split.pool_is_six)]
    weight_sixes, weight_others = [part.mean().item() if len(part) else None for part in on_q] or (None, None)
    return Measures(
        accuracy=_percent(predicted == split.held_out_labels),
        satisfied=_percent((NOT_P | Q).satisfied(lead=LEAD, f=f, g=g)),
        p=_percent(P.satisfied(lead=LEAD, g=g)),
        not_p=_percent(NOT_P.satisfied(lead=LEAD, g=g)),
        q=_percent(Q.satisfied(lead=LEAD, f=f)),
        false_six=_percent(predicted[~is_six] == SIX),
        weight_sixes=weight_sixes,
        weight_others=weight_others,
    )


def _percent(holds: Tensor) -> float:
    return 100 * holds.double().mean().item()
