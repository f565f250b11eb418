"""Is an antecedent better taken as evidence? The embedded digits, mixed pool.

Call ``python -m dualogic.experiments.study.evidence results/study/evidence.json``; runs that the file holds are not repeated, so
that settings may be added below. A run takes about 6 s on one core.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dualogic.experiments.study.digits import run_settings
from dualogic.methods import Dual, Method, Uniform

SEEDS = range(10)
SETTINGS: dict[str, str | Method | None] = {
    "no rule": None,
    "uniform": Uniform(evidence=False),
    "uniform, evidence": Uniform(evidence=True),
    "dual": Dual(evidence=False),
    "dual, a tenth of the gradient": Dual(evidence=0.9),
    "dual, evidence": Dual(evidence=True),
}


def main(path: str) -> None:
    """Run what is missing in a file of results."""
    run_settings(SETTINGS, SEEDS, Path(path), "mixed")


if __name__ == "__main__":
    main(sys.argv[1])
