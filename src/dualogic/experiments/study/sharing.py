"""Weights that can turn back: exponentiated steps with a fixed share; the embedded digits, mixed pool.

Call ``python -m dualogic.experiments.study.sharing results/study/sharing.json``; runs that the file holds are not repeated, so
that settings may be added below. A run takes about 6 s on one core.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dualogic.experiments.study.digits import run_settings
from dualogic.methods import Dual, Method

SEEDS = range(10)
SHARE = 0.02
SETTINGS: dict[str, str | Method | None] = {
    **{f"exponentiated {step:g}": Dual(rule="exponentiated", step=step) for step in (0.2, 0.5, 2.0)},
    **{
        f"exponentiated {step:g}, share {SHARE}": Dual(rule="exponentiated", step=step, share=SHARE)
        for step in (0.2, 0.5, 1.0, 2.0, 4.0)
    },
    **{f"exponentiated 2, share {share}": Dual(rule="exponentiated", step=2.0, share=share) for share in (0.005, 0.05)},
    f"exponentiated 2, share {SHARE}, floor 0.1": Dual(rule="exponentiated", step=2.0, share=SHARE, floor=0.1),
    f"exponentiated 2, share {SHARE}, no evidence": Dual(rule="exponentiated", step=2.0, share=SHARE, evidence=False),
    f"softmax 0.7, share {SHARE}": Dual(share=SHARE),
}


def main(path: str) -> None:
    """Run what is missing in a file of results."""
    run_settings(SETTINGS, SEEDS, Path(path), "mixed")


if __name__ == "__main__":
    main(sys.argv[1])
