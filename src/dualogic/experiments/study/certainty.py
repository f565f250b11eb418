"""A rule that asks for certainty, as CIFAR-100's does, where a run takes seconds: noisy embedded digits, few of them labelled.

Call ``python -m dualogic.experiments.study.certainty results/study/certainty.json``; runs that the file holds are not repeated,
so that settings may be added below. A run takes about 4 s on one core.

Digits form five groups of two, and the rule is that each group has all of the probability or none. Like CIFAR-100 the bench has
labels for a small share of its images, so that the network knows much of the labelled images and little of the others; each
unlabelled image is visited 30 times.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

import dualogic as dl
from dualogic.errors import BindingError, NonFiniteError
from dualogic.experiments.demo.data import CLASSES, load_digits
from dualogic.experiments.demo.model import make_network
from dualogic.experiments.demo.training import BATCH, one_thread
from dualogic.experiments.division import divide_by_class
from dualogic.experiments.study.digits import run_missing
from dualogic.experiments.tasks.cifar100 import TOLERANCE, read_weights, write_rules
from dualogic.experiments.tasks.task import percent
from dualogic.logic_loss import LogicLoss
from dualogic.methods import Dual, Method

SEEDS = range(10)
EPOCHS = 30
LABELLED, HELD_OUT = 10, 60
"""Images of each class."""
NOISE = 0.4
LEARNING_RATE, MOMENTUM, WEIGHT_DECAY, WARM_UP = 0.05, 0.9, 5e-4, 0.1
GROUPS = 5
GROUP_OF = torch.arange(CLASSES) % GROUPS
NAMES = tuple(f"{digit} or {digit + GROUPS}" for digit in range(GROUPS))

_p = dl.categorical("p", CLASSES, input="logits")
MASS = _p.probabilities @ dl.constant("group", functional.one_hot(GROUP_OF, GROUPS).float())
RULE = ((MASS == 0) | (MASS == 1)).all()


@dataclasses.dataclass(frozen=True)
class Setting:
    """What is taught, and how.

    Attributes:
        method: ``None`` for no rule.
        form: of the rule; see :class:`~dualogic.experiments.tasks.cifar100.CIFAR100`.
        weight: a factor of the rule's loss.
        start: the share of all epochs after which the rule starts.
        epochs: each visits every unlabelled image once.
        labelled: images among the ``2 * BATCH`` of a step.
    """

    method: str | Method | None
    form: Any = "published"
    weight: float = 1.0
    start: float = 0.0
    epochs: int = EPOCHS
    labelled: int = BATCH


_DISCOUNTED = Dual(rule="exponentiated", step=0.3, forget=0.3)
_SHARING = Dual(rule="exponentiated", step=2.0, share=0.02)
SETTINGS: dict[str, Setting] = {
    "no rule": Setting(None),
    "DL2": Setting("dl2"),
    "DL2, weight 3": Setting("dl2", weight=3.0),
    "DL2, weight 3, from 30 % of the epochs on": Setting("dl2", weight=3.0, start=0.3),
    "DL2, weight 10": Setting("dl2", weight=10.0),
    "published: uniform": Setting("uniform"),
    "published: hard": Setting("hard"),
    "each: hard": Setting("hard", "each"),
    "one: hard": Setting("hard", "one"),
    "published: default": Setting("dual"),
    "implication: default": Setting("dual", "implication"),
    "each: default": Setting("dual", "each"),
    "each implication: default": Setting("dual", "each implication"),
    "one: default": Setting("dual", "one"),
    "each: floor 0.1": Setting(Dual(floor=0.1), "each"),
    "each implication: floor 0.1": Setting(Dual(floor=0.1), "each implication"),
    "one: floor 0.1": Setting(Dual(floor=0.1), "one"),
    "one: step 2": Setting(Dual(step=2.0), "one"),
    "one: weight 10": Setting("dual", "one", weight=10.0),
    "one: weight 10, from 30 % of the epochs on": Setting("dual", "one", weight=10.0, start=0.3),
    "each: forget 0.3": Setting(Dual(forget=0.3), "each"),
    "each: exponentiated 0.3": Setting(Dual(rule="exponentiated", step=0.3), "each"),
    "published: exponentiated 0.3, forget 0.3": Setting(_DISCOUNTED),
    "each: exponentiated 0.3, forget 0.3": Setting(_DISCOUNTED, "each"),
    "one: exponentiated 0.3, forget 0.3": Setting(_DISCOUNTED, "one"),
    "published: exponentiated 0.3, forget 0.3, floor 0.3": Setting(dataclasses.replace(_DISCOUNTED, floor=0.3)),
    "each: exponentiated 0.3, forget 0.3, floor 0.5": Setting(dataclasses.replace(_DISCOUNTED, floor=0.5), "each"),
    "each: exponentiated 0.3, forget 0.3, floor 0.3": Setting(dataclasses.replace(_DISCOUNTED, floor=0.3), "each"),
    "each: exponentiated 1, forget 0.5": Setting(Dual(rule="exponentiated", step=1.0, forget=0.5), "each"),
    "one: exponentiated 1, forget 0.5": Setting(Dual(rule="exponentiated", step=1.0, forget=0.5), "one"),
    "published: exponentiated 2, share 0.02": Setting(_SHARING),
    "each: exponentiated 2, share 0.02": Setting(_SHARING, "each"),
    "one: exponentiated 2, share 0.02": Setting(_SHARING, "one"),
    "each: exponentiated 2, share 0.02, floor 0.5": Setting(dataclasses.replace(_SHARING, floor=0.5), "each"),
    "each: exponentiated 4, share 0.05": Setting(dataclasses.replace(_SHARING, step=4.0, share=0.05), "each"),
    "70 epochs: no rule": Setting(None, epochs=70),
    "70 epochs: DL2": Setting("dl2", epochs=70),
    "70 epochs: each: default": Setting("dual", "each", epochs=70),
    "70 epochs: each: exponentiated 2, share 0.02": Setting(_SHARING, "each", epochs=70),
    **{
        f"{epochs} epochs, a quarter labelled: {name}": Setting(method, form, epochs=epochs, labelled=BATCH // 2)
        for epochs in (45, 105)  # as many steps as 30 and 70 epochs of batches of which half is labelled
        for name, method, form in (
            ("no rule", None, "published"),
            ("DL2", "dl2", "published"),
            ("each: default", "dual", "each"),
            ("each: exponentiated 2, share 0.02", _SHARING, "each"),
        )
    },
}
COLUMNS = {
    "accuracy": "accuracy",
    "group": "group",
    "satisfied": "satisfied",
    "weight_true": 'weight on "all": true group',
    "weight_others": "others",
}


@one_thread()
def train(setting: Setting, seed: int) -> dict[str, Any]:
    """One run: cross-entropy of the few labelled images, and the rule on the others.

    Args:
        setting: what is taught.
        seed: of the division, the noise, the weights and the batches.

    Returns:
        In percent, of the held-out images after the last epoch: whose digit is right, whose group is right, and which meet the
        rule; the mean weight on "all", on the unlabelled images, of the true group and of the others; the method's options;
        seconds; and why training stopped early, if it did.

    Example:
        >>> found = train(dataclasses.replace(SETTINGS["one: default"], epochs=1), seed=0)
        >>> found["failure"] is None, 0 < found["weight_true"] < 1
        (True, True)
    """
    started, epochs = time.perf_counter(), setting.epochs
    generator = torch.Generator().manual_seed(seed)
    images, labels = load_digits()
    images = images + NOISE * torch.randn(images.shape, generator=generator)
    labelled, held_out, pool = divide_by_class(labels, CLASSES, lambda count: [LABELLED, HELD_OUT], seed)
    network = make_network(seed)
    optimizer = torch.optim.SGD(network.parameters(), LEARNING_RATE, momentum=MOMENTUM, nesterov=True, weight_decay=WEIGHT_DECAY)
    size = 2 * BATCH - setting.labelled
    steps = len(pool) // size
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, epochs * steps, pct_start=WARM_UP, cycle_momentum=False
    )
    logic = None
    if setting.method is not None:
        rules = write_rules(MASS, setting.form, NAMES)
        logic = LogicLoss(rules, len(pool), setting.method, weight=setting.weight)
    failure = None
    try:
        for epoch in range(epochs):
            rows = torch.randperm(len(pool), generator=generator)[: steps * size].view(steps, size)
            for index in rows:
                chosen = labelled[torch.randint(len(labelled), (setting.labelled,), generator=generator)]
                logits = network(_shift(images[torch.cat([chosen, pool[index]])], generator))
                loss = functional.cross_entropy(logits[: setting.labelled], labels[chosen])
                if logic is not None and epoch >= setting.start * epochs:
                    loss = loss + logic(index, p=logits[setting.labelled :])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
    except (NonFiniteError, BindingError) as error:
        failure = str(error)
    with torch.no_grad():
        logits = network(images[held_out])
    predicted, truth = logits.argmax(1), labels[held_out]
    return {
        "accuracy": percent(predicted == truth),
        "group": percent(GROUP_OF[predicted] == GROUP_OF[truth]),
        "satisfied": percent(RULE.satisfied(tol=TOLERANCE, p=logits)) if failure is None else 0.0,
        **_weights_on_all(logic, GROUP_OF[labels[pool]]),
        "options": None if logic is None else logic.method.describe(),
        "seconds": round(time.perf_counter() - started, 2),
        "failure": failure,
    }


def _shift(images: Tensor, generator: torch.Generator) -> Tensor:
    """Images ``(n, 1, 8, 8)`` moved by at most one pixel in each direction."""
    count, size = len(images), images.shape[-1]
    wide = functional.pad(images, (1, 1, 1, 1)).squeeze(1)
    down, right = torch.randint(3, (2, count, 1), generator=generator)
    lines = torch.arange(size)
    return wide[torch.arange(count).view(-1, 1, 1), (lines + down).unsqueeze(2), (lines + right).unsqueeze(1)].unsqueeze(1)


def _weights_on_all(logic: LogicLoss | None, groups: Tensor) -> dict[str, float]:
    weights = {} if logic is None else read_weights(logic.weights(torch.arange(len(groups))), NAMES)
    if not weights:
        return {}
    true = functional.one_hot(groups, GROUPS).bool()
    return {"weight_true": weights["all"][true].mean().item(), "weight_others": weights["all"][~true].mean().item()}


def run(path: Path, settings: Mapping[str, Setting] = SETTINGS, seeds: range = SEEDS) -> list[dict[str, Any]]:
    """Train every setting with every seed; the file is written after each run, and runs that it holds are not repeated.

    Args:
        path: a JSON file.
        settings: by the name of their row.
        seeds: of each.

    Returns:
        All runs of the file, in the order of the settings.
    """

    def each() -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, Any]]]]:
        for seed in seeds:
            for name, setting in settings.items():
                about = {key: getattr(setting, key) for key in ("form", "weight", "start", "epochs", "labelled")}
                yield {"setting": name, "seed": seed, **about}, functools.partial(train, setting, seed)

    return run_missing(path, each(), list(settings), str(RULE))


if __name__ == "__main__":
    run(Path(sys.argv[1]))
