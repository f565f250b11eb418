"""``dualogic table``."""

import dataclasses
import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro

from dualogic.cli import require
from dualogic.errors import DataError, OptionError
from dualogic_paper.tables.figures import save_figures
from dualogic_paper.tables.formats import to_latex, to_markdown, to_rich, to_text
from dualogic_paper.tables.page import make_page, make_tables
from dualogic_paper.tables.runs import Results
from dualogic_paper.tables.store import collect, find_tasks, read_results
from dualogic_paper.tasks import TASKS

ALL = "all"
FIGURES = Path("figures")


@dataclasses.dataclass(frozen=True)
class TableCommand:
    """Set what was measured beside what the paper printed.

    Each cell is the mean ± deviation over seeds, with the paper's figure in brackets; a mark says whether it is better than
    that of dual, level with it or worse, and bold is what is best by more than chance. Tasks whose duals were looked at have a
    second table: the weight on each branch of the rule beside how often that branch holds. A task of several networks has tables
    for each, and one of run times if benchmarks/TASK.json is in the folder. A damaged run folder is named and left out; the exit
    status is then 1.
    """

    task: tyro.conf.Positional[str]  # The task, or "all" for every task with results.
    results: Annotated[Path, tyro.conf.arg(name="from")] = Path("results")
    """Folder to read: committed files TASK/LABEL.json, or run folders TASK/METHOD/SEED."""
    runs: Path | None = None  # Folder of runs to read instead, as dualogic run leaves it.
    collect: Path | None = None
    """First copy the runs that have ended from --runs into small files in this folder, then read that folder."""
    format: Literal["text", "markdown", "latex", "figure"] = "text"
    """What to make. Markdown for "all" is a page; if --out exists, text outside its markers is kept, its figures filled in."""
    out: Path | None = None
    """File to write instead of printing; for figures the start of their names (figures/TASK.png by default)."""

    def run(self) -> int:
        """Read, and print or write."""
        if self.task not in (ALL, *TASKS):
            raise OptionError(f"the task must be all or one of {', '.join(TASKS)}; got {self.task!r}")
        if self.collect is not None and self.runs is None:
            raise OptionError("--collect copies runs and needs to know from where; add --runs, as in --runs runs")
        folder = self.runs or self.results
        if self.collect is not None and self.runs is not None:
            for task in find_tasks(self.runs) if self.task == ALL else [self.task]:
                for file in collect(self.runs, task, self.collect):
                    print(f"written: {file}")
            folder = self.collect
        damage: list[DataError] = []
        if self.task == ALL and self.format == "markdown":
            old = {"page": self.out.read_text(encoding="utf-8")} if self.out is not None and self.out.exists() else {}
            self._deliver(make_page(folder, **old, on_damage=damage.append))
        else:
            tasks = find_tasks(folder) if self.task == ALL else [self.task]
            if not tasks:
                make_page(folder)  # raises, and says where results were looked for
            self._show([read_results(folder, task, damage.append) for task in tasks])
        for error in damage:
            print(f"dualogic: {error}; the run is left out", file=sys.stderr)
        return int(bool(damage))

    def _show(self, results: list[Results]) -> None:
        from rich.console import Console

        if self.format == "figure":
            self._draw(results)
            return
        made = [table for found in results for table in make_tables(found)]
        if self.format == "text" and self.out is None:
            console = Console()
            for table in made:
                console.print(to_rich(table)) if console.is_terminal else print(to_text(table))
        elif self.format == "markdown":
            self._deliver("\n".join(f"## {table.title}\n\n{to_markdown(table)}" for table in made))
        else:
            self._deliver("\n".join((to_latex if self.format == "latex" else to_text)(table) for table in made))

    def _draw(self, results: list[Results]) -> None:
        require("paper", "matplotlib")
        for found in results:
            base = self.out or FIGURES / f"{found.task}.png"
            if self.out is not None and self.task == ALL:
                base = base.with_name(f"{base.stem}-{found.task}{base.suffix}")
            for file in save_figures(found, base):
                print(f"written: {file}")

    def _deliver(self, text: str) -> None:
        if self.out is None:
            print(text, end="")
            return
        self.out.parent.mkdir(parents=True, exist_ok=True)
        self.out.write_text(text, encoding="utf-8")
        print(f"written: {self.out}")


COMMAND = TableCommand
