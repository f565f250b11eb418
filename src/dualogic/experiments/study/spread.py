"""Does a spread help where a rule only mostly holds? The embedded digits, with a tenth of the pool breaking the rule.

Call ``python -m dualogic.experiments.study.spread results/study/spread.json``; runs that the file holds are not repeated. A run
takes 2 to 6 s on one core.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dualogic.experiments.study.digits import run_settings
from dualogic.methods import Dual, Method

SEEDS = range(3)
VIOLATING = 0.1
SPREADS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""In units of the cost, ``-log p``: a pair that breaks the rule and is read as it should be costs 3 to 10."""


def _dual(floor: float = 0.1, spread: float = 0.0, evidence: bool = False) -> Dual:
    """With a small step and a small floor, so that the spread and not the floor decides."""
    return Dual(step=0.2, floor=floor, spread=spread, evidence=evidence)


SETTINGS: dict[str, str | Method | None] = {
    "no rule": None,
    **{f"dual, spread {spread:g}": _dual(spread=spread) for spread in SPREADS},
    # A spread also keeps delta large: what does that do by itself?
    **{f"dual, floor {floor:g}": _dual(floor) for floor in SPREADS[1:]},
    **{f"dual, evidence, spread {spread:g}": _dual(spread=spread, evidence=True) for spread in (0.0, 1.0, 2.0)},
}


def main(path: str) -> None:
    """Run what is missing in a file of results."""
    for pool in ("sixes", "mixed"):
        run_settings(SETTINGS, SEEDS, Path(path), pool, VIOLATING)


if __name__ == "__main__":
    main(sys.argv[1])
