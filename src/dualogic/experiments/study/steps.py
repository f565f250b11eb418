"""How far should a visit move a weight, by which rule, and how small may delta become? The embedded digits, mixed pool.

Call ``python -m dualogic.experiments.study.steps results/study/steps.json``; runs that the file holds are not repeated, so that
settings may be added below. A run takes about 6 s on one core.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dualogic.experiments.study.digits import run_settings
from dualogic.methods import Dual, Method

SEEDS = range(3)
STEPS = {"softmax": (0.2, 0.5, 0.7, 1.0, 2.0), "exponentiated": (0.05, 0.1, 0.2, 0.5)}
FLOORS = (0.1, 0.5, 0.7, 1.0)
SETTINGS: dict[str, str | Method | None] = {
    f"{rule} {step}, floor {floor}": Dual(evidence=True, rule=rule, step=step, floor=floor)
    for rule, steps in STEPS.items()
    for step in steps
    for floor in FLOORS
}


def main(path: str) -> None:
    """Run what is missing in a file of results."""
    run_settings(SETTINGS, SEEDS, Path(path), "mixed")


if __name__ == "__main__":
    main(sys.argv[1])
