"""Do better ways to ascend help? Optimism, averages, temperature, adaptive steps, order and others; embedded digits, mixed pool.

Call ``python -m dualogic.experiments.study.ascent results/study/ascent.json``; runs that the file holds are not repeated, so that
settings may be added below. A run takes about 6 s on one core.

The methods are those of :mod:`dualogic.experiments.study.variants`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from dualogic.experiments.study.digits import run_settings
from dualogic.experiments.study.options import EPOCH
from dualogic.experiments.study.variants import (
    Adaptive,
    Averaged,
    Entropic,
    Extragradient,
    Normalised,
    Optimistic,
    Ordered,
    Tempered,
)
from dualogic.methods import Dual, Method

SEEDS = range(10)

FAST: dict[str, Any] = {"step": 2.0, "floor": 0.5}
"""A step and a floor with which the default falls."""

FASTER: dict[str, Any] = {"step": 4.0, "floor": 0.5}

SETTINGS: dict[str, str | Method | None] = {
    "default": Dual(),
    "optimistic": Optimistic(),
    "extragradient": Extragradient(),
    "average 0.9": Averaged(decay=0.9),
    "average 0.99": Averaged(decay=0.99),
    "mean of all visits": Averaged(),
    "temperature 4 to 1": Tempered(start=4.0, end=1.0),
    "temperature 1 to 0.25": Tempered(start=1.0, end=0.25),
    "entropy 1 to 0": Entropic(entropy=1.0),
    "entropy 4 to 0": Entropic(entropy=4.0),
    "step 0.2": Dual(step=0.2),
    "step 0.2, temperature 4 to 1": Tempered(start=4.0, end=1.0, step=0.2),
    "step 2, floor 0.5": Dual(**FAST),
    "step 2, floor 0.5, optimistic": Optimistic(**FAST),
    "step 2, floor 0.5, extragradient": Extragradient(**FAST),
    "step 2, floor 0.5, average 0.9": Averaged(decay=0.9, **FAST),
    "step 2, floor 0.5, mean of all visits": Averaged(**FAST),
    "step 2, floor 0.5, temperature 4 to 1": Tempered(start=4.0, end=1.0, **FAST),
    "step 2, floor 0.5, entropy 4 to 0": Entropic(entropy=4.0, **FAST),
    "step 2, floor 0.5, steps rise for 10 epochs": Dual(warmup=10 * EPOCH, **FAST),
    "step 4, floor 0.5": Dual(**FASTER),
    "step 4, floor 0.5, optimistic": Optimistic(**FASTER),
    "step 4, floor 0.5, extragradient": Extragradient(**FASTER),
    "step 4, floor 0.5, average 0.9": Averaged(decay=0.9, **FASTER),
    "step 4, floor 0.5, temperature 4 to 1": Tempered(start=4.0, end=1.0, **FASTER),
    "step 4, floor 0.5, steps rise for 10 epochs": Dual(warmup=10 * EPOCH, **FASTER),
    **{f"adaptive {step:g}": Adaptive(step=step) for step in (0.1, 0.3, 1.0, 3.0)},
    **{f"adaptive {step:g}, decay 0.9": Adaptive(step=step, decay=0.9) for step in (0.03, 0.1, 0.3, 1.0)},
    **{f"normalised by the batch, {step:g}": Normalised(step=step, by="batch") for step in (0.03, 0.1, 0.3, 1.0)},
    **{f"normalised by the cost, {step:g}": Normalised(step=step, by="cost") for step in (0.2, 0.7)},
    "costs 1 - p": Ordered(class_cost="probability"),
    "costs 1 - p, outer first": Ordered(class_cost="probability", late="inner"),
    "costs 1 - p, inner first": Ordered(class_cost="probability", late="outer"),
    "nine classes": Ordered(unfold=True),
    "nine classes, outer first": Ordered(unfold=True, late="inner"),
    "nine classes, inner first": Ordered(unfold=True, late="outer"),
}


def main(path: str) -> None:
    """Run what is missing in a file of results."""
    run_settings(SETTINGS, SEEDS, Path(path), "mixed")


if __name__ == "__main__":
    main(sys.argv[1])
