"""The page of all results: prose by hand; blocks between markers, and figures in sentences, are made from the committed files.

A figure stands between ``<!-- figure TABLE; ROW; COLUMN -->`` and ``<!-- /figure -->``, neither of which is shown. ``ROW`` is a
label and ``COLUMN`` a key; a fourth part asks for something else than the mean:

- ``published``: the paper's figure;
- ``deviation``, ``lowest`` or ``highest``, over seeds;
- ``percent``: by how much a ratio exceeds 1; ``published percent``: by how much the paper's figure exceeds that without a rule;
- ``against ROW``: the difference from another row of the table, seed by seed, with half of its 95 % interval;
- ``minus ROW``: a difference of two means of the table, with its sign.

``<!-- figure TABLE; better; COLUMN -->`` (or ``level``, ``worse``) gives the rows that are so, compared with ``dual``.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from dualogic.errors import DataError, MissingDataError
from dualogic_paper.arms import NO_RULE
from dualogic_paper.comparison import compare_rows
from dualogic_paper.tables.branches import make_branch_table
from dualogic_paper.tables.by_heart import make_heart_table
from dualogic_paper.tables.formats import to_markdown
from dualogic_paper.tables.naming import divide
from dualogic_paper.tables.runs import Results
from dualogic_paper.tables.store import find_tasks, read_results
from dualogic_paper.tables.summary import MARKS, Cell, Table, make_table
from dualogic_paper.tables.times import make_time_table
from dualogic_paper.tasks import TASKS

MINUS = "\N{MINUS SIGN}"
Value = TypeVar("Value")
FIGURE = re.compile(r"(?P<start><!-- figure (?P<what>[^>]*?) -->).*?(?P<end><!-- /figure -->)", re.DOTALL)


def fill(page: str, tables: Mapping[str, Table]) -> str:
    """Bring the figures of a page up to date; refuses one that is of no table, row or column that there is."""
    return FIGURE.sub(lambda match: f"{match['start']}{_show(match['what'], tables)}{match['end']}", page)


def _show(what: str, tables: Mapping[str, Table]) -> str:
    table_name, label, key, *rest = (part.strip() for part in what.split(";"))
    table = _find(what, "table", table_name, tables)
    place = _find(what, "column", key, {column.key: number for number, column in enumerate(table.columns)})
    rows = {row.label: row for row in table.rows}
    if label in MARKS:
        names = [f"`{row.label}`" for row in table.rows if row.cells[place].mark == label]
        return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:]))) or "none"
    cell = _find(what, "row", label, rows).cells[place]
    if not cell.values:
        raise DataError(f"the figure {what!r} of the page was not measured; take the sentence out")
    kind = rest[0] if rest else ""
    if kind.startswith("minus"):
        difference = cell.mean - _find(what, "row", kind.removeprefix("minus").strip(), rows).cells[place].mean
        return f"{difference:+.{cell.decimals}f}".replace("-", MINUS)
    if kind.startswith("against"):
        other = kind.removeprefix("against").strip()
        found = compare_rows(cell.by_seed, _find(what, "row", other, rows).cells[place].by_seed)
        if found is None:
            raise DataError(f"the figure {what!r} of the page compares rows of too few seeds; take the sentence out")
        return f"{found.mean:+.{cell.decimals}f} ± {found.margin:.{cell.decimals}f}".replace("-", MINUS)
    if kind == "published percent":
        plain = _find(what, "row", NO_RULE, rows).cells[place]
        return f"{100 * (float(_read(what, cell, 'published')) / float(_read(what, plain, 'published')) - 1):.1f} %"
    return _read(what, cell, kind)


def _read(what: str, cell: Cell, kind: str) -> str:
    if kind == "published":
        if cell.published is None:
            raise DataError(f"the figure {what!r} of the page is not in the paper")
        return cell.published.text
    if kind == "percent":
        return f"{100 * (cell.mean - 1):.1f} %"
    kinds = {"": cell.mean, "deviation": cell.deviation, "lowest": min(cell.values), "highest": max(cell.values)}
    value = _find(what, "kind", kind, kinds)
    return f"{value or 0.0:.{cell.decimals}f}"


def _find(what: str, kind: str, name: str, known: Mapping[str, Value]) -> Value:
    if name not in known:
        raise DataError(f"the figure {what!r} of the page names the {kind} {name!r}; there are {', '.join(map(repr, known))}")
    return known[name]


HEADER = """# Results

What was measured, beside what the paper printed: each cell is the mean ± standard deviation over seeds, with the paper's figure
in brackets. The runs are the files in `results/`, with configuration, seed, commit and time. The text between the markers is made
by `dualogic table all --format markdown --out docs/results.md`.
"""
_BLOCK = re.compile(r"<!-- begin (?P<task>[\w-]+) -->\n.*?<!-- end (?P=task) -->\n", re.DOTALL)
_MARK = re.compile(r"<!-- (?:begin|end) [\w-]+ -->")


def list_sections(results: Results) -> list[tuple[str, Table]]:
    """All tables of a task, with headings: for each part what was measured, how the rule is met and what by heart; and times."""
    found: list[tuple[str, Table | None]] = []
    for part in divide(results):
        found.append((f"### {part.part_title}" if part.part else "", make_table(part)))
        deeper = "####" if part.part else "###"
        found.append((f"{deeper} Duals read as probabilities", make_branch_table(part)))
        found.append((f"{deeper} Training images and new ones", make_heart_table(part)))
    found.append(("### Run time", make_time_table(results)))
    return [(heading, table) for heading, table in found if table is not None]


def make_tables(results: Results) -> list[Table]:
    """All tables of a task."""
    return [table for _, table in list_sections(results)]


def make_block(task: str, sections: Sequence[tuple[str, Table]]) -> str:
    """The tables of one task between markers."""
    lines = [f"<!-- begin {task} -->", f"## {TASKS[task].title}", ""]
    for heading, table in sections:
        lines += [heading, "", to_markdown(table)] if heading else [to_markdown(table)]
    return "\n".join([*lines, f"<!-- end {task} -->\n"])


def make_page(folder: Path, page: str = HEADER, on_damage: Callable[[DataError], None] | None = None) -> str:
    """A page with each block made anew, and tasks without a block added at the end; in text outside, figures are filled in."""
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
    found = {task: list_sections(read_results(folder, task, on_damage)) for task in tasks}
    blocks = {task: make_block(task, sections) for task, sections in found.items()}
    present = [match["task"] for match in _BLOCK.finditer(page)]
    lost = [task for task in present if task not in blocks]
    if lost:
        raise MissingDataError(f"the page has a block for {', '.join(lost)}, but {folder} has no results of it; delete the block")
    tables = {table.name: table for sections in found.values() for _, table in sections}
    page = fill(_BLOCK.sub(lambda match: blocks[match["task"]], page), tables)
    return "\n".join([page, *(blocks[task] for task in tasks if task not in present)])
