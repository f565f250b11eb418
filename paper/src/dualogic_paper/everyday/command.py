"""The benchmark from the command line: make the missing runs, print the table, bring pages up to date."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

from dualogic.errors import OptionError
from dualogic_paper.everyday.problems import PROBLEMS
from dualogic_paper.everyday.runner import list_jobs, run_missing
from dualogic_paper.everyday.setting import METHODS, NONE, Setting
from dualogic_paper.everyday.store import Store
from dualogic_paper.everyday.table import make_tables, update_page

RESULTS = Path("results/everyday")


@dataclasses.dataclass(frozen=True)
class Request:
    """What is to be run and shown.

    Attributes:
        problems: their names; none stands for all.
        methods: names, alone or with options as in ``dual:share=0.02``; none stands for all.
        weights: of the loss of the rules; every method is run with each.
        seeds: numbers and ranges, as in ``0-7`` or ``20 21``.
        jobs: runs at a time.
        out: the folder of results.
        table: only print what the folder holds.
        again: make runs anew that the folder has.
        commit: to note with the runs; asked of git by default.
        pages: files whose tables between markers are made anew from what is shown.
    """

    problems: Sequence[str] = ()
    methods: Sequence[str] = ()
    weights: Sequence[float] = (1.0,)
    seeds: Sequence[str] = ("0-7",)
    jobs: int = 1
    out: Path = RESULTS
    table: bool = False
    again: bool = False
    commit: str | None = None
    pages: Sequence[Path] = ()

    def settings(self) -> list[Setting]:
        """Each method with each weight; training without rules once."""
        found = [
            Setting(method, 1.0 if method == NONE else weight) for weight in self.weights for method in self.methods or METHODS
        ]
        return list(dict.fromkeys(found))


def execute(request: Request, show: Callable[[str], None]) -> int:
    """Run what is missing and show the table, line by line; the exit status is 1 if some runs could not be made."""
    problems = request.problems or tuple(PROBLEMS)
    unknown = [name for name in problems if name not in PROBLEMS]
    if unknown:
        raise OptionError(f"a problem must be one of {', '.join(PROBLEMS)}; got {', '.join(unknown)}")
    if request.jobs < 1:
        raise OptionError(f"--jobs must be 1 or more; got {request.jobs}")
    store, seeds, settings, broken = Store(request.out), read_seeds(request.seeds), request.settings(), 0
    if not request.table:
        jobs = list_jobs(problems, settings, seeds)
        broken = run_missing(jobs, store, request.jobs, request.commit, request.again, show)
    wanted = {(setting.method, setting.weight) for setting in settings}
    runs = [run for run in store.read() if run.problem in problems and run.seed in seeds and (run.method, run.weight) in wanted]
    show(make_tables(runs))
    for page in request.pages:
        page.write_text(update_page(page.read_text(encoding="utf-8"), runs), encoding="utf-8")
        show(f"written: {page}")
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
