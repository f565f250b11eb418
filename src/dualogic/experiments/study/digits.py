"""The bench of the study: the demo's digits, trained under many settings and seeds, with results kept as they come."""

from __future__ import annotations

import dataclasses
import functools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from dualogic import __version__
from dualogic.errors import BindingError, NonFiniteError
from dualogic.experiments.demo.data import Split, load_split, rotate
from dualogic.experiments.demo.measures import RULE, measure
from dualogic.experiments.demo.model import make_network
from dualogic.experiments.demo.training import BATCH, LEARNING_RATE, one_thread
from dualogic.logic_loss import LogicLoss
from dualogic.methods import Method

EPOCHS = 40


@dataclasses.dataclass(frozen=True)
class Bench:
    """Digits with a pool of pairs: an image, and what is shown as the same image turned.

    Attributes:
        split: the demo's division; its pool holds the upright images.
        turned: the other half of each pair, ``(pool, 1, 8, 8)``.
        violating: which pairs break the rule whatever the network learns, ``(pool,)``.
    """

    split: Split
    turned: Tensor
    violating: Tensor


def load_bench(pool: str, seed: int, violating: float = 0.0) -> Bench:
    """The demo's digits, with pairs added to the pool that break the rule.

    Such a pair is a training image of any digit but 6, and, as its turned view, another training image: a true 9. So P holds
    and Q does not, for a network that reads both as it should.

    Args:
        pool: ``"sixes"`` or ``"mixed"``.
        seed: of the division and of the pairs.
        violating: their share of the pool that results.

    Example:
        >>> bench = load_bench("sixes", seed=0, violating=0.1)
        >>> len(bench.turned), int(bench.violating.sum())
        (141, 14)
    """
    split = load_split(pool, seed)
    honest = len(split.pool)
    count = round(honest * violating / (1.0 - violating))
    generator = torch.Generator().manual_seed(seed)
    upright = split.labelled[torch.randint(len(split.labelled), (count,), generator=generator)]
    nines = split.labelled[split.labels == 9]
    shown = nines[torch.randint(len(nines), (count,), generator=generator)]
    none = torch.zeros(count, dtype=torch.bool)
    turned = torch.cat([rotate(split.pool), shown])
    split = dataclasses.replace(split, pool=torch.cat([split.pool, upright]), pool_is_six=torch.cat([split.pool_is_six, none]))
    return Bench(split, turned, torch.cat([torch.zeros(honest, dtype=torch.bool), ~none]))


@one_thread()
def train(bench: Bench, method: str | Method | None, seed: int, epochs: int = EPOCHS, rule_from: int = 0) -> dict[str, Any]:
    """One run, as in :func:`dualogic.experiments.demo.training.train`: cross-entropy, and the rule.

    Args:
        bench: the data.
        method: a name or an object from ``dl.methods``, or ``None`` for no rule.
        seed: of the weights and of the order of the batches.
        epochs: each visits every labelled image and every pair once.
        rule_from: the number of epochs before the rule is taught.

    Returns:
        The demo's measures of the held-out images after the last epoch; the mean weight on Q of the pairs that break the rule;
        ``delta``; the method's options; seconds; and why training stopped early, if it did.

    Example:
        >>> found = train(load_bench("sixes", seed=0), "dual", seed=0, epochs=1)
        >>> found["failure"] is None, found["weight_violating"] is None
        (True, True)
    """
    started = time.perf_counter()
    split = bench.split
    network = make_network(seed)
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    task_order, pool_order = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
    logic = None if method is None else LogicLoss(RULE, num_samples=len(split.pool), method=method)
    steps = -(-len(split.labelled) // BATCH)
    failure = None
    try:
        for epoch in range(epochs):
            taught = logic if epoch >= rule_from else None
            labelled = torch.randperm(len(split.labelled), generator=task_order).tensor_split(steps)
            unlabelled = torch.randperm(len(split.pool), generator=pool_order).tensor_split(steps)
            for chosen, index in zip(labelled, unlabelled):
                loss = _loss(network, taught, bench, chosen, index)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    except (NonFiniteError, BindingError) as error:
        failure = str(error)
    return {
        **dataclasses.asdict(measure(network, split, logic)),
        "weight_violating": _weight_on_violating(logic, bench),
        "delta": None if logic is None else logic.delta.item(),
        "options": None if logic is None else logic.method.describe(),
        "seconds": round(time.perf_counter() - started, 2),
        "failure": failure,
    }


def _loss(network: torch.nn.Module, logic: LogicLoss | None, bench: Bench, chosen: Tensor, index: Tensor) -> Tensor:
    images, labels = bench.split.labelled[chosen], bench.split.labels[chosen]
    if logic is None or not len(index):
        return cross_entropy(network(images), labels)
    everything = torch.cat([images, bench.split.pool[index], bench.turned[index]])
    logits, f, g = network(everything).split([len(images), len(index), len(index)])
    loss: Tensor = cross_entropy(logits, labels) + logic(index, f=f, g=g)
    return loss


def _weight_on_violating(logic: LogicLoss | None, bench: Bench) -> float | None:
    if logic is None or not bench.violating.any():
        return None
    weights = logic.weights(bench.violating.nonzero().squeeze(1)).get("rule")
    return None if weights is None else weights[:, 1].mean().item()


def run_settings(
    settings: Mapping[str, str | Method | None],
    seeds: range,
    path: Path,
    pool: str,
    violating: float = 0.0,
    epochs: int = EPOCHS,
    on_run: Callable[[str, int], None] = lambda name, seed: None,
    late: Mapping[str, int] | None = None,
) -> list[dict[str, Any]]:
    """Train every setting with every seed; the file is written after each run, and runs that it holds are not repeated.

    Args:
        settings: methods by the name of their row; ``None`` for no rule.
        seeds: of the data, the weights and the batches.
        path: a JSON file.
        pool: the name of the pool.
        violating: see :func:`load_bench`.
        epochs: of each run.
        on_run: called with the setting and the seed before each run.
        late: the number of epochs before the rule is taught, for settings where it is not taught from the first on.

    Returns:
        All runs of the file.
    """

    def each() -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, Any]]]]:
        for seed in seeds:
            bench = load_bench(pool, seed, violating)
            for name, method in settings.items():
                key = {"setting": name, "pool": pool, "violating": violating, "seed": seed, "epochs": epochs}
                yield key, functools.partial(train, bench, method, seed, epochs, (late or {}).get(name, 0))

    return run_missing(path, each(), list(settings), on_run=on_run)


def run_missing(
    path: Path,
    wanted: Iterable[tuple[dict[str, Any], Callable[[], dict[str, Any]]]],
    order: Sequence[str],
    rule: str = str(RULE),
    on_run: Callable[[str, int], None] = lambda name, seed: None,
) -> list[dict[str, Any]]:
    """Make the runs that a file does not hold; it is written after each.

    Args:
        path: a JSON file.
        wanted: what a run is known by, its setting and seed among it, and a function that makes it.
        order: of the settings in the file; seeds of one stand together.
        rule: that is taught.
        on_run: called with the setting and the seed before each run.

    Returns:
        All runs of the file.
    """
    runs: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []
    for key, make in wanted:
        if any(key.items() <= run.items() for run in runs):
            continue
        on_run(key["setting"], key["seed"])
        runs.append({**key, **make()})
        runs.sort(key=lambda run: (order.index(run["setting"]) if run["setting"] in order else len(order), run["seed"]))
        save(path, runs, rule)
    return runs


def save(path: Path, runs: list[dict[str, Any]], rule: str = str(RULE)) -> None:
    """Write runs, a line each, with the rule that was taught and the versions that made them."""
    versions = {"dualogic": __version__, "torch": torch.__version__}
    lines = ",\n  ".join(json.dumps(run) for run in runs)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'{{\n "rule": {json.dumps(rule)},\n "versions": {json.dumps(versions)},\n "runs": [\n  {lines}\n ]\n}}\n',
        encoding="utf-8",
    )
