"""Tables and figures from results: mean and deviation over seeds, with the paper's figure in the same cell."""

from __future__ import annotations

from dualogic_paper.tables.branches import make_branch_table
from dualogic_paper.tables.formats import to_latex, to_markdown, to_text
from dualogic_paper.tables.naming import divide
from dualogic_paper.tables.page import make_page, make_tables
from dualogic_paper.tables.published import find_published
from dualogic_paper.tables.runs import Results, Run, make_label
from dualogic_paper.tables.store import collect, find_tasks, read_results
from dualogic_paper.tables.summary import Cell, Row, Table, make_table
from dualogic_paper.tables.times import make_time_table

__all__ = [
    "Cell",
    "Results",
    "Row",
    "Run",
    "Table",
    "collect",
    "divide",
    "find_published",
    "find_tasks",
    "make_branch_table",
    "make_label",
    "make_page",
    "make_table",
    "make_tables",
    "make_time_table",
    "read_results",
    "to_latex",
    "to_markdown",
    "to_text",
]
