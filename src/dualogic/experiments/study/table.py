"""A file of results as a table: ``python -m dualogic.experiments.study.table results/study/spread.json``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
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


def to_markdown(runs: Sequence[dict[str, Any]]) -> str:
    """One row for each pool and setting: mean and, in parentheses, smallest and largest over the seeds.

    Example:
        >>> run = {"pool": "mixed", "setting": "dual", "seed": 0, "accuracy": 97.56, "q": 100.0, "weight_sixes": None}
        >>> print(to_markdown([run, {**run, "seed": 1, "accuracy": 95.0}]))
        | pool | setting | seeds | accuracy | Q |
        |---|---|---|---|---|
        | mixed | dual | 2 | 96.3 (95.0 to 97.6) | 100 |
        <BLANKLINE>
    """
    shown = [key for key in COLUMNS if any(run.get(key) is not None for run in runs)]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["pool"], run["setting"]), []).append(run)
    pools = list(dict.fromkeys(pool for pool, _ in groups))
    lines = [
        f"| pool | setting | seeds | {' | '.join(COLUMNS[key] for key in shown)} |",
        f"|---|---|---|{'---|' * len(shown)}",
        *(
            f"| {pool} | {setting} | {len(found)} | {' | '.join(_cell(key, [run[key] for run in found]) for key in shown)} |"
            for (pool, setting), found in sorted(groups.items(), key=lambda group: pools.index(group[0][0]))
        ),
    ]
    return "\n".join(lines) + "\n"


def _cell(key: str, values: Sequence[float | None]) -> str:
    numbers = [value for value in values if value is not None]
    if not numbers:
        return ""
    digits = 2 if key.startswith("weight") else 1 if key == "accuracy" else 0
    mean, low, high = (f"{number:.{digits}f}" for number in (sum(numbers) / len(numbers), min(numbers), max(numbers)))
    return mean if low == high else f"{mean} ({low} to {high})"


if __name__ == "__main__":
    sys.stdout.write(to_markdown(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["runs"]))
