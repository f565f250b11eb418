"""The page of all results: prose by hand; figures in it and blocks between markers are made from the committed files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from dualogic.errors import DataError, MissingDataError
from dualogic_paper.tables.branches import make_branch_table
from dualogic_paper.tables.formats import to_markdown
from dualogic_paper.tables.parts import divide
from dualogic_paper.tables.prose import fill
from dualogic_paper.tables.runs import Results
from dualogic_paper.tables.store import find_tasks, read_results
from dualogic_paper.tables.summary import Table, make_table
from dualogic_paper.tables.time_table import make_time_table
from dualogic_paper.tasks import TASKS

HEADER = """# Results

What was measured, beside what the paper printed: each cell is the mean ± standard deviation over seeds, with the paper's figure
in brackets. The runs are the files in `results/`, with configuration, seed, commit and time. The text between the markers is made
by `dualogic table all --format markdown --out docs/results.md`.
"""
_BLOCK = re.compile(r"<!-- begin (?P<task>[\w-]+) -->\n.*?<!-- end (?P=task) -->\n", re.DOTALL)
_MARK = re.compile(r"<!-- (?:begin|end) [\w-]+ -->")


def make_tables(results: Results) -> list[Table]:
    """All tables of a task: for each part what was measured and how the rule is met, and the times."""
    found = [table for part in divide(results) for table in (make_table(part), make_branch_table(part))]
    return [table for table in (*found, make_time_table(results)) if table is not None]


def make_block(results: Results) -> str:
    """The tables of one task between markers."""
    lines = [f"<!-- begin {results.task} -->", f"## {TASKS[results.task].title}", ""]
    for part in divide(results):
        branches = make_branch_table(part)
        lines += [f"### {part.part_title}", ""] if part.part else []
        lines.append(to_markdown(make_table(part)))
        if branches is not None:
            lines += [f"###{'#' if part.part else ''} Duals read as probabilities", "", to_markdown(branches)]
    times = make_time_table(results)
    if times is not None:
        lines += ["### Run time", "", to_markdown(times)]
    return "\n".join([*lines, f"<!-- end {results.task} -->\n"])


def make_page(folder: Path, page: str = HEADER, on_damage: Callable[[DataError], None] | None = None) -> str:
    """A page with each block made anew, and tasks without a block added at the end; text outside the markers stays.

    Figures in that text are filled in, see :mod:`dualogic_paper.tables.prose`. Refuses a marker without a partner, a block
    without results, and a figure that has no place in a table.
    """
    tasks = find_tasks(folder)
    if not tasks:
        raise MissingDataError(
            f"no results in {folder} (looked for TASK/LABEL.json and TASK/METHOD/SEED/result.json); make some with "
            f"`dualogic run TASK --runs runs` and collect them with `dualogic table TASK --runs runs --collect {folder}`"
        )
    lonely = _MARK.search(_BLOCK.sub("", page))
    if lonely:
        raise DataError(
            f"the marker {lonely.group()} of the page has no partner; markers are <!-- begin TASK --> and <!-- end TASK -->"
        )
    found = {task: read_results(folder, task, on_damage) for task in tasks}
    blocks = {task: make_block(results) for task, results in found.items()}
    present = [match["task"] for match in _BLOCK.finditer(page)]
    lost = [task for task in present if task not in blocks]
    if lost:
        raise MissingDataError(f"the page has a block for {', '.join(lost)}, but {folder} has no results of it; delete the block")
    tables = {table.name: table for results in found.values() for table in make_tables(results)}
    page = fill(_BLOCK.sub(lambda match: blocks[match["task"]], page), tables)
    return "\n".join([page, *(blocks[task] for task in tasks if task not in present)])
