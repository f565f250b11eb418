"""``dualogic report``: run folders, written by a :class:`Recorder`, and one page about how runs satisfy their rules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dualogic.report.model import make_model
from dualogic.report.page import make_page
from dualogic.report.reading import read_runs
from dualogic.report.recorder import Recorder
from dualogic.report.stored import (
    CONFIG,
    DIAGNOSIS,
    METRICS,
    RESULT,
    brief,
    check_config,
    is_number,
    read_object,
    read_rows,
    read_text,
    to_numbers,
    to_rows,
)
from dualogic.report.summary import POOL, VALIDATION, WORST, keep_part, summarize, thin, to_png

__all__ = ["CONFIG", "DIAGNOSIS", "METRICS", "POOL", "RESULT", "VALIDATION", "WORST", "Recorder", "make_model", "make_page"]
__all__ += ["brief", "check_config", "is_number", "make_report", "read_object", "read_rows", "read_runs", "read_text"]
__all__ += ["keep_part", "summarize", "thin", "to_numbers", "to_png", "to_rows"]


def make_report(paths: Sequence[Path]) -> str:
    """The page about some runs: of run folders, or of folders that hold some."""
    return make_page(make_model(read_runs(paths)))
