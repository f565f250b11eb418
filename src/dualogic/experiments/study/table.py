"""A file of results as a table: ``python -m dualogic.experiments.study.table results/study/spread.json``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

COLUMNS = {
    "accuracy": "accuracy",
    "q": "Q",
    "not_p": "not-P",
    "weight_sixes": "weight on Q: 6s",
    "weight_others": "others",
    "weight_violating": "breaking",
}
"""Measures and their headings; see :class:`dualogic.experiments.demo.Measures`."""


def to_markdown(
    runs: Sequence[Mapping[str, Any]], columns: Mapping[str, str] = COLUMNS, by: tuple[str, ...] = ("pool", "setting")
) -> str:
    """One row for each pool and setting: mean and, in parentheses, smallest and largest over the seeds.

    Args:
        runs: from a file of results.
        columns: measures and their headings; those that no run has are left out.
        by: what names a row. Rows stand in the order in which they come, those of one value of the first together.

    Example:
        >>> run = {"pool": "mixed", "setting": "dual", "seed": 0, "accuracy": 97.56, "q": 100.0, "weight_sixes": None}
        >>> print(to_markdown([run, {**run, "seed": 1, "accuracy": 95.0}]))
        | pool | setting | seeds | accuracy | Q |
        |---|---|---|---|---|
        | mixed | dual | 2 | 96.3 (95.0 to 97.6) | 100 |
        <BLANKLINE>
    """
    shown = [key for key in columns if any(run.get(key) is not None for run in runs)]
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for run in runs:
        groups.setdefault(tuple(run[key] for key in by), []).append(run)
    order = list(dict.fromkeys(key[0] for key in groups))
    lines = [_row(*by, "seeds", *(columns[key] for key in shown)), "|" + "---|" * (len(by) + 1 + len(shown))]
    for key, found in sorted(groups.items(), key=lambda group: order.index(group[0][0])):
        lines.append(_row(*key, str(len(found)), *(_cell(column, [run.get(column) for run in found]) for column in shown)))
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(key: str, values: Sequence[float | None]) -> str:
    numbers = [value for value in values if value is not None]
    if not numbers:
        return ""
    digits = 2 if "weight" in key else 1 if key == "accuracy" else 0
    mean, low, high = (f"{number:.{digits}f}" for number in (sum(numbers) / len(numbers), min(numbers), max(numbers)))
    return mean if low == high else f"{mean} ({low} to {high})"


if __name__ == "__main__":
    sys.stdout.write(to_markdown(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["runs"]))
