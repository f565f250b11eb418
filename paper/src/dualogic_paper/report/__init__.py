"""``dualogic report``: one page about how runs satisfy their rules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dualogic_paper.report.model import make_model
from dualogic_paper.report.page import make_page
from dualogic_paper.report.reading import read_runs

__all__ = ["make_model", "make_page", "make_report", "read_runs"]


def make_report(paths: Sequence[Path]) -> str:
    """The page about some runs.

    Args:
        paths: run folders, or folders that hold some.
    """
    return make_page(make_model(read_runs(paths)))
