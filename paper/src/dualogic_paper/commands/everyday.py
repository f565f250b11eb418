"""``dualogic everyday``."""

import dataclasses
from pathlib import Path

from dualogic.cli import require


@dataclasses.dataclass(frozen=True)
class Everyday:
    """Train every method on everyday problems, and compare it with no rule and with dual.

    Each run takes seconds on one core. Runs are kept in a folder and not repeated. The table has the mean over seeds, how often
    the rules hold, and paired differences with 95 % intervals. `python -m dualogic_paper.everyday` does the same with
    torch and numpy alone.
    """

    problems: tuple[str, ...] = ()
    """Names of problems; all by default."""
    methods: tuple[str, ...] = ()
    """Names of methods, "none" among them, alone or with options as in dual:share=0.02; all by default."""
    weights: tuple[float, ...] = (1.0,)
    """Weights of the loss of the rules; every method is run with each."""
    seeds: tuple[str, ...] = ("0-7",)
    """Numbers and ranges, as in 0-7 or 20 21."""
    jobs: int = 1
    """Runs at a time."""
    out: Path = Path("results/everyday")
    """Folder of results; runs that it has are not repeated."""
    table: bool = False
    """Only print what the folder holds."""
    again: bool = False
    """Make runs anew that the folder has."""
    commit: str | None = None
    """To note with the runs; asked of git by default."""
    pages: tuple[Path, ...] = ()
    """Pages whose tables between markers are made anew from what is shown, such as README.md docs/everyday.md."""

    def run(self) -> int:
        """Run what is missing, and print."""
        require("demo", "numpy")
        from dualogic_paper.everyday.command import execute

        return execute(self, lambda line: print(line, flush=True))


COMMAND = Everyday
