"""``dualogic everyday``."""

import dataclasses
from pathlib import Path

from dualogic.errors import OptionError
from dualogic_paper.arms import parse_seeds


@dataclasses.dataclass(frozen=True)
class Everyday:
    """Train every method on everyday problems, and compare it with no rule and with dual.

    Each run takes seconds on one core. Runs are kept in a folder and not repeated. The table has the mean over seeds, how often
    the rules hold, and paired differences with 95 % intervals. `python -m dualogic_paper.everyday` does the same with
    torch and numpy alone.
    """

    problems: tuple[str, ...] = ()  # Names of problems; all by default.
    methods: tuple[str, ...] = ()
    """Names of methods, "none" among them, alone or with options as in dual:share=0.02; all by default."""
    weights: tuple[float, ...] = (1.0,)  # Weights of the loss of the rules; every method is run with each.
    seeds: tuple[str, ...] = ("0-7",)  # Numbers and ranges, as in 0-7 or 20 21.
    jobs: int = 1  # Runs at a time.
    out: Path = Path("results/everyday")  # Folder of results; runs that it has are not repeated.
    table: bool = False  # Only print what the folder holds.
    again: bool = False  # Make runs anew that the folder has.
    commit: str | None = None  # To note with the runs; asked of git by default.
    pages: tuple[Path, ...] = ()
    """Pages whose tables between markers are made anew from what is shown, such as README.md docs/everyday.md."""

    def run(self) -> int:
        """Run what is missing, and print the table; the exit status is 1 if some runs could not be made."""
        from dualogic_paper.everyday.problems import PROBLEMS
        from dualogic_paper.everyday.runner import Job, run_missing
        from dualogic_paper.everyday.setting import METHODS, NONE, Setting
        from dualogic_paper.everyday.store import Store
        from dualogic_paper.everyday.table import make_tables, update_page

        problems = self.problems or tuple(PROBLEMS)
        unknown = [name for name in problems if name not in PROBLEMS]
        if unknown:
            raise OptionError(f"a problem must be one of {', '.join(PROBLEMS)}; got {', '.join(unknown)}")
        if self.jobs < 1:
            raise OptionError(f"--jobs must be 1 or more; got {self.jobs}")
        store, seeds, broken = Store(self.out), parse_seeds(",".join(self.seeds), "-", "0-7 or 20 21"), 0
        methods = [(method, weight) for weight in self.weights for method in self.methods or METHODS]
        # Training without rules is run once, whatever the weights.
        settings = list(dict.fromkeys(Setting(method, 1.0 if method == NONE else weight) for method, weight in methods))
        jobs = [Job(problem, setting, seed) for seed in seeds for problem in problems for setting in settings]
        if not self.table:
            broken = run_missing(jobs, store, self.jobs, self.commit, self.again, lambda line: print(line, flush=True))
        wanted = {job.key for job in jobs}
        runs = [run for run in store.read() if run.key in wanted]
        print(make_tables(runs))
        for page in self.pages:
            page.write_text(update_page(page.read_text(encoding="utf-8"), runs), encoding="utf-8")
            print(f"written: {page}")
        return 1 if broken else 0


COMMAND = Everyday
