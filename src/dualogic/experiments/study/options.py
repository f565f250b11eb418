"""What else could be a default? One thing changed at a time; the embedded digits, mixed pool.

Call ``python -m dualogic.experiments.study.options results/study/options.json``; runs that the file holds are not repeated, so
that settings may be added below. A run takes about 6 s on one core.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor

from dualogic.experiments.study.digits import run_settings
from dualogic.methods import Dual, Method

SEEDS = range(10)
EPOCH = 18
"""Updates in an epoch."""


class FirstVisit:
    """A step ten times as large while each sample is seen for the first time: first weights from the costs at that time."""

    def __call__(self, done: Tensor) -> Tensor:
        return torch.where(done < EPOCH, 10.0, 1.0)

    def __repr__(self) -> str:
        return "10 times the step in the first epoch"


class Falling:
    """``1 / sqrt(1 + epochs / 10)``, as Theorem 3 asks for."""

    def __call__(self, done: Tensor) -> Tensor:
        return (1.0 + done / (10 * EPOCH)).rsqrt()

    def __repr__(self) -> str:
        return "1 / sqrt(1 + epochs / 10)"


SETTINGS: dict[str, str | Method | None] = {
    "costs 1 - p": Dual(class_cost="probability"),
    "delta by the square": Dual(delta="square"),
    "delta exact": Dual(delta="exact"),
    "delta as released": Dual(delta="released"),
    "steps rise for 10 epochs": Dual(warmup=10 * EPOCH),
    "steps fall": Dual(schedule=Falling()),
    "first weights from the costs": Dual(schedule=FirstVisit()),
    "forget 0.1": Dual(forget=0.1),
    "forget 0.3": Dual(forget=0.3),
    "projected 0.1": Dual(rule="projected", step=0.1),
    "the rule from epoch 10 on": Dual(),
    "the paper's letter": Dual.paper(),
    "the paper's letter, evidence": Dual.paper(evidence=True),
}
LATE = {"the rule from epoch 10 on": 10}


def main(path: str) -> None:
    """Run what is missing in a file of results."""
    run_settings(SETTINGS, SEEDS, Path(path), "mixed", late=LATE)


if __name__ == "__main__":
    main(sys.argv[1])
