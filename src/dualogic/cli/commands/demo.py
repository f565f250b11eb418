"""``dualogic demo``."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Literal

from dualogic.cli.dispatch import require
from dualogic.demo.study import DEFAULT_METHODS

EPOCHS = 40
QUICK_EPOCHS = 2


@dataclasses.dataclass(frozen=True)
class Demo:
    """Teach a network the digit 6 without a single label, by a rule; on a CPU, in about a minute.

    What reads as a 9 after half a turn is a 6. The network can learn that, or cheat by no longer reading turned 6s as 9s.
    Prints a table and saves a figure and all numbers.
    """

    method: tuple[str, ...] = DEFAULT_METHODS
    """Methods to train, by name, or "all". The run without the rule is always made."""
    pool: Literal["sixes", "mixed", "both"] = "both"
    """What the rule sees: only 6s (the paper's setting), all digits, or one after the other."""
    epochs: int | None = None
    """Epochs of each run; 40 by default, 2 with --quick."""
    seed: int = 0
    """Of the data, the weights and the batches."""
    out: Path = Path("demo")
    """Folder for figure.png and results.json."""
    quick: bool = False
    """Take seconds, to see that everything works; the numbers mean little."""

    def run(self) -> int:
        """Train, print, save."""
        require("demo", "rich", "sklearn", "matplotlib")
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        from dualogic.demo import RULE, check_amounts, choose_methods, choose_pools, run_study
        from dualogic.demo.figure import save_figure
        from dualogic.demo.table import describe_pool, make_table, row_label

        methods, pools = choose_methods(self.method), choose_pools(self.pool)
        epochs = self.epochs if self.epochs is not None else QUICK_EPOCHS if self.quick else EPOCHS
        check_amounts(epochs, self.seed)
        self.out.mkdir(parents=True, exist_ok=True)
        console = Console()
        columns = (TextColumn("{task.description:<16}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        count = len(methods) * len(pools)
        console.print(f"Training {count} networks of {epochs} epochs each, for the rule {RULE}", highlight=False, markup=False)
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("", total=count * epochs)
            done = itertools.count(1)
            study = run_study(
                methods,
                pools,
                epochs,
                self.seed,
                skip_missing="all" in self.method,
                on_run=lambda pool, method: progress.update(task, description=f"{pool}, {method}"),
                on_epoch=lambda: progress.advance(task),
                on_end=lambda run: progress.console.print(
                    f"{next(done)}/{count}  {run.pool}, {row_label(run.method)}: {run.seconds:.1f} s", highlight=False
                ),
            )
        figure, numbers = self.out / "figure.png", self.out / "results.json"
        save_figure(study, figure)
        study.save(numbers)
        console.print(make_table(study))
        lines = [f"{pool}, {sentence}" for pool in pools for sentence in describe_pool(study, pool)]
        lines += [f"{method} was left out: {reason}" for method, reason in study.skipped.items()]
        lines += ["", f"{study.seconds:.0f} s. Figure: {figure}. All numbers: {numbers}"]
        for line in lines:
            console.print(line, highlight=False, markup=False, soft_wrap=not console.is_terminal)
        return 0


COMMAND = Demo
