"""The benchmark from the command line: make the missing runs, print the table, bring pages up to date."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from dualogic.errors import OptionError
from dualogic.experiments.everyday.problems import PROBLEMS
from dualogic.experiments.everyday.runner import list_jobs, run_missing
from dualogic.experiments.everyday.setting import METHODS, NONE, Setting
from dualogic.experiments.everyday.store import Store
from dualogic.experiments.everyday.table import make_table

RESULTS = Path("results/everyday")


@dataclasses.dataclass(frozen=True)
class Request:
    """What is to be run and shown.

    Attributes:
        problems: their names; all by default.
        methods: names, alone or with options as in ``dual:share=0.02``; all by default.
        weights: of the loss of the rules; every method is run with each.
        seeds: numbers and ranges, as in ``0-7`` or ``20 21``.
        jobs: runs at a time.
        out: the folder of results.
        table: only print what the folder holds.
        again: make runs anew that the folder has.
        commit: to note with the runs; asked of git by default.
    """

    problems: Sequence[str] = tuple(PROBLEMS)
    methods: Sequence[str] = METHODS
    weights: Sequence[float] = (1.0,)
    seeds: Sequence[str] = ("0-7",)
    jobs: int = 1
    out: Path = RESULTS
    table: bool = False
    again: bool = False
    commit: str | None = None

    def settings(self) -> list[Setting]:
        """Each method with each weight; training without rules once."""
        found = [Setting(method, 1.0 if method == NONE else weight) for weight in self.weights for method in self.methods]
        return list(dict.fromkeys(found))


def execute(request: Request, show: Callable[[str], None]) -> int:
    """Run what is missing and show the table.

    Args:
        request: see :class:`Request`.
        show: prints a line.

    Returns:
        The exit status: 1 if some runs could not be made.
    """
    unknown = [name for name in request.problems if name not in PROBLEMS]
    if unknown:
        raise OptionError(f"a problem must be one of {', '.join(PROBLEMS)}; got {', '.join(unknown)}")
    if request.jobs < 1:
        raise OptionError(f"--jobs must be 1 or more; got {request.jobs}")
    store, seeds, settings, broken = Store(request.out), read_seeds(request.seeds), request.settings(), 0
    if not request.table:
        jobs = list_jobs(request.problems, settings, seeds)
        broken = run_missing(jobs, store, request.jobs, request.commit, request.again, show)
    runs = [run for run in store.read() if run.problem in request.problems and run.seed in seeds]
    wanted = {(setting.method, setting.weight) for setting in settings}
    show(make_table([run for run in runs if (run.method, run.weight) in wanted]))
    return 1 if broken else 0


def read_seeds(words: Sequence[str]) -> list[int]:
    """Numbers and ranges as a list of seeds.

    Example:
        >>> read_seeds(["0-3", "20"])
        [0, 1, 2, 3, 20]
    """
    seeds: list[int] = []
    for word in words:
        first, _, last = word.partition("-")
        try:
            seeds.extend(range(int(first), int(last or first) + 1))
        except ValueError:
            raise OptionError(f"seeds must be numbers or ranges, as in 0-7 or 20 21; got {word!r}") from None
    return list(dict.fromkeys(seeds))


def count_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
