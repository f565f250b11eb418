"""Which differences between rows are more than chance: what is in bold, and how each row stands to ``dual``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dualogic_paper import arms
from dualogic_paper.comparison import LEVEL, adjust, compare_rows
from dualogic_paper.tables.runs import FORMER, NOT_TOLD
from dualogic_paper.tasks import Column

if TYPE_CHECKING:
    from dualogic_paper.tables.summary import Row

OWN = "dual"
MARKS = {"better": "▲", "level": "≈", "worse": "▼"}


def find_own(rows: Sequence[Row]) -> Row | None:
    """The row with which the others are compared: ``dual``; where it was not run, without being told, its former default, or with
    other options.
    """
    found = {row.label: row for row in rows if any(cell.values for cell in row.cells)}
    others = (row for row in found.values() if row.method == OWN and FORMER not in row.label)
    return found.get(OWN) or found.get(f"{OWN}[{NOT_TOLD}]") or found.get(f"{OWN}[{FORMER}]") or next(others, None)


def mark_rows(rows: Sequence[Row], columns: Sequence[Column]) -> list[Row]:
    """Set ``best`` and ``mark`` of all cells in columns that have a better and a worse.

    - The best mean is the best by more than chance if the 95 % interval of its difference from the next mean is clear of 0. A row
      of one seed, one with a diverged run, and one whose method has no gradient cannot be the best. Full supervision is left out.
    - A row is better or worse than ``dual`` if ``p < 0.05`` after Holm's method over the rows of the column, and else level.

    Differences are taken seed by seed where two rows share seeds; see :func:`~dualogic_paper.comparison.compare_rows`.
    """
    cells = [list(row.cells) for row in rows]
    own = find_own(rows)
    for position, column in enumerate(columns):
        if column.better == "neither":
            continue
        sign = 1 if column.better == "higher" else -1
        running = [
            number
            for number, row in enumerate(rows)
            if row.method != arms.SUPERVISED and cells[number][position].values and not cells[number][position].diverged
        ]
        ranked = sorted(running, key=lambda number: -sign * cells[number][position].mean)
        if len(ranked) > 1 and rows[ranked[0]].teaches:
            first, second = (cells[number][position].by_seed for number in ranked[:2])
            difference = compare_rows(first, second)
            if difference is not None and difference.is_sure and sign * difference.mean > 0:
                cells[ranked[0]][position] = dataclasses.replace(cells[ranked[0]][position], best=True)
        if own is None:
            continue
        against = own.cells[position].by_seed
        found = {
            number: difference
            for number in running
            if rows[number] is not own and (difference := compare_rows(cells[number][position].by_seed, against)) is not None
        }
        for number, p in zip(found, adjust([difference.p for difference in found.values()])):
            mark = "level" if p >= LEVEL else "better" if sign * found[number].mean > 0 else "worse"
            cells[number][position] = dataclasses.replace(cells[number][position], mark=mark)
    return [dataclasses.replace(row, cells=tuple(found)) for row, found in zip(rows, cells)]


def describe_marks(rows: Sequence[Row]) -> list[str]:
    """What bold and marks mean, if there are any."""
    own, notes = find_own(rows), []
    if any(cell.mark for row in rows for cell in row.cells) and own is not None:
        notes.append(
            f"{MARKS['better']} better than {own.name}, {MARKS['level']} level with it, {MARKS['worse']} worse: p < {LEVEL} "
            "after Holm's method over the column, differences taken seed by seed."
        )
    if any(cell.best for row in rows for cell in row.cells):
        notes.append("Bold: the best mean, where the 95 % interval of its difference from the next one is clear of 0.")
    return notes
