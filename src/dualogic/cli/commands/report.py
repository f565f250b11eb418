"""``dualogic report``."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import tyro

from dualogic.errors import DataError, OptionError


@dataclasses.dataclass(frozen=True)
class ReportCommand:
    """Show how runs satisfy their rules, in one HTML page that needs no network.

    The verdict comes first; then each branch and the weights of the duals over training, per class, delta and losses, and the
    samples that break the rule. A run without the rule on the same samples is taken as the baseline, if it is among the runs or
    stands beside them. A damaged run folder is named and left out; the exit status is then 1.
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run folders of one task, as dl.Recorder and dualogic run write them, or folders that hold some."""
    out: Path = Path("report.html")
    """File to write."""

    def run(self) -> int:
        """Read, write, and print the verdict."""
        from dualogic.report import make_model, make_page, read_runs

        if not self.runs:
            raise OptionError("name at least one run folder, as in dualogic report runs/one")
        damage: list[DataError] = []
        model = make_model(read_runs(self.runs, damage.append))
        self.out.parent.mkdir(parents=True, exist_ok=True)
        self.out.write_text(make_page(model), encoding="utf-8")
        print(model["verdict"])
        print(f"written: {self.out}")
        for error in damage:
            print(f"dualogic: {error}; the run is left out", file=sys.stderr)
        return int(bool(damage))


COMMAND = ReportCommand
