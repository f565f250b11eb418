"""Tables inside pages: blocks between markers are made anew, everything else stays as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from dualogic.errors import DataError
from dualogic_paper.everyday.problems import PROBLEMS
from dualogic_paper.everyday.store import Run
from dualogic_paper.everyday.table import make_problem_tables, make_short_table


def list_problems(runs: Sequence[Run]) -> str:
    """One line for each problem; those by which defaults were chosen first."""
    groups = {
        "The defaults of `dual` were chosen on these, with seeds from 20 on:": [
            problem for problem in PROBLEMS.values() if problem.tuned
        ],
        "These were only looked at meanwhile, with the same seeds from 20 on:": [
            problem for problem in PROBLEMS.values() if not problem.tuned
        ],
    }
    parts = []
    for heading, problems in groups.items():
        lines = [f"| `{problem.name}` | {problem.about} | {problem.title} |" for problem in problems]
        parts.append("\n".join([heading, "", "| problem | what is learned, by which rules | figure |", "|---|---|---|", *lines]))
    return "\n\n".join(parts)


BLOCKS: dict[str, Callable[[Sequence[Run]], str]] = {
    "everyday": make_short_table,
    "everyday problems": list_problems,
    "everyday tables": make_problem_tables,
}
"""What stands between ``<!-- NAME -->`` and ``<!-- /NAME -->``, by name."""


def update_page(page: str, runs: Sequence[Run]) -> str:
    r"""A page with its blocks made from runs; refuses one without a block, or with a block that has no end.

    Example:
        >>> print(update_page("Before.\n\n<!-- everyday -->\nold\n<!-- /everyday -->\n", []))
        Before.
        <BLANKLINE>
        <!-- everyday -->
        <BLANKLINE>
        No runs yet.
        <BLANKLINE>
        <!-- /everyday -->
        <BLANKLINE>
    """
    found = 0
    for name, make in BLOCKS.items():
        start, end = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
        if start not in page:
            continue
        if end not in page:
            raise DataError(f"the marker {start.strip()} of the page has no partner; add {end.strip()} on a line of its own")
        # Blank lines, because a comment right after a table would be taken for a row of it.
        block = f"{start}\n{make(runs)}\n{end}"
        page = re.sub(f"{re.escape(start)}.*?{re.escape(end)}", lambda _, block=block: block, page, flags=re.DOTALL)  # type: ignore[misc]
        found += 1
    if not found:
        raise DataError(f"the page has no marker to put a table at; add <!-- {' -->, <!-- '.join(BLOCKS)} --> and its end")
    return page
