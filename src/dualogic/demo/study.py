"""All runs of the demo: which, in what order, and what is kept of them."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from dualogic import methods as registry
from dualogic.demo.data import POOLS, load_split
from dualogic.demo.training import LEAD, RULE, Run, train
from dualogic.errors import MissingExtraError, OptionError

NO_RULE = "none"
ALL = "all"
DEFAULT_METHODS = ("hard", "uniform", "dual")
LAST = "dual"


@dataclasses.dataclass(frozen=True)
class Study:
    """Runs with everything that is needed to repeat them."""

    epochs: int  # of each run
    seed: int  # of each run and of the division of the data
    runs: tuple[Run, ...]  # in the order of the table
    skipped: dict[str, str]  # methods that could not run here, with the reason
    sizes: dict[str, dict[str, int]]  # for each pool, how many images there are of each kind
    seconds: float  # wall time of all runs

    def of_pool(self, pool: str) -> list[Run]:
        """The runs on one pool."""
        return [run for run in self.runs if run.pool == pool]

    @property
    def pools(self) -> list[str]:
        """The pools that have runs, in order."""
        return list(dict.fromkeys(run.pool for run in self.runs))

    def save(self, path: Path) -> None:
        """Write all numbers to a file, as JSON."""
        from dualogic import __version__

        numbers = {
            "rule": str(RULE),
            "lead": LEAD,
            "epochs": self.epochs,
            "seed": self.seed,
            "date": dt.datetime.now(dt.timezone.utc).date().isoformat(),
            "versions": {"dualogic": __version__, "torch": torch.__version__},
            "sizes": self.sizes,
            "seconds": round(self.seconds, 2),
            "skipped": self.skipped,
            "runs": [{**dataclasses.asdict(run), "final": dataclasses.asdict(run.final)} for run in self.runs],
        }
        path.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


def choose_methods(names: Sequence[str]) -> tuple[str, ...]:
    """The methods to train, no rule first and ``dual`` last; ``"all"`` names each of them, and nothing the demo's own choice."""
    known = registry.METHODS
    for name in names:
        if name not in (*known, ALL, NO_RULE):
            raise OptionError(f"--method must be {ALL}, {NO_RULE} or one of {', '.join(known)}; got {name!r}")
    chosen = list(known) if ALL in names else list(dict.fromkeys(names or DEFAULT_METHODS))
    return (NO_RULE, *sorted((name for name in chosen if name != NO_RULE), key=lambda name: name == LAST))


def choose_pools(name: str) -> tuple[str, ...]:
    """``"both"`` or one of the pools, as a tuple."""
    if name == "both":
        return POOLS
    if name not in POOLS:
        raise OptionError(f"--pool must be both or one of {', '.join(POOLS)}; got {name!r}")
    return (name,)


def check_amounts(epochs: int, seed: int) -> None:
    """Refuse numbers with which nothing can be trained."""
    if epochs < 1:
        raise OptionError(f"--epochs must be at least 1; got {epochs}")
    if not 0 <= seed < 2**63:
        raise OptionError(f"--seed must be a whole number from 0 to {2**63 - 1}; got {seed}")


def run_study(
    methods: Sequence[str],
    pools: Sequence[str],
    epochs: int,
    seed: int,
    *,
    skip_missing: bool = False,
    on_run: Callable[[str, str], None] = lambda pool, method: None,
    on_epoch: Callable[[], None] = lambda: None,
    on_end: Callable[[Run], None] = lambda run: None,
) -> Study:
    """Train every method on every pool.

    ``methods`` and ``pools`` are names, as :func:`choose_methods` and :func:`choose_pools` give them. ``skip_missing`` leaves out
    a method whose extra is not installed, instead of raising. ``on_run`` is called with the pool and method before each run,
    ``on_epoch`` after each epoch, and ``on_end`` with each run that has ended.
    """
    check_amounts(epochs, seed)
    started = time.perf_counter()
    runs: list[Run] = []
    skipped: dict[str, str] = {}
    sizes: dict[str, dict[str, int]] = {}
    for pool in pools:
        split = load_split(pool, seed)
        sizes[pool] = {
            "labelled": len(split.labelled),
            "pool": len(split.pool),
            "pool_sixes": int(split.pool_is_six.sum()),
            "held_out": len(split.held_out),
            "held_out_sixes": len(split.held_out_sixes),
        }
        for method in methods:
            if method in skipped:
                continue
            on_run(pool, method)
            try:
                runs.append(train(split, pool, None if method == NO_RULE else method, epochs, seed, on_epoch))
            except MissingExtraError as error:
                if not skip_missing:
                    raise
                skipped[method] = str(error)
            else:
                on_end(runs[-1])
    return Study(epochs, seed, tuple(runs), skipped, sizes, time.perf_counter() - started)
