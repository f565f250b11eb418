"""What the paper proves or claims about convergence, measured on problems small enough to know the answer."""

import json
import time
from pathlib import Path
from typing import Any

import torch

from dualogic_paper.convergence.cycles import scan_steps
from dualogic_paper.convergence.dual_steps import measure_dual_steps
from dualogic_paper.convergence.rate import measure_plateaus, measure_rates
from dualogic_paper.convergence.table import TABLES
from dualogic_paper.origin import describe_machine, find_commit, find_date, shorten

__all__ = ["TABLES", "run_convergence", "save"]


def run_convergence(smoke: bool = False) -> dict[str, Any]:
    """Measure everything, on one core, in some minutes; a smoke run takes seconds, and its numbers mean nothing."""
    started = time.perf_counter()
    results = {
        "smoke": smoke,
        "rate": measure_rates([2**power for power in (range(3, 6) if smoke else range(6, 14))], seeds=2 if smoke else 16),
        "plateau": measure_plateaus(iterations=50 if smoke else 3000),
        "dual_steps": measure_dual_steps(limit=200 if smoke else 50_000),
        "cycles": scan_steps(*(5, 600, 1) if smoke else (25, 4000, 3)),
        "machine": {**describe_machine(torch.device("cpu")), "date": find_date()},
        "commit": find_commit(),
    }
    results["seconds"] = round(time.perf_counter() - started, 1)
    return shorten(results)


def save(results: dict[str, Any], folder: Path) -> list[Path]:
    """Write ``results.json`` and ``figure.png`` into a folder, and return their paths."""
    from dualogic_paper.convergence.figure import save_figure

    folder.mkdir(parents=True, exist_ok=True)
    numbers, figure = folder / "results.json", folder / "figure.png"
    numbers.write_text(json.dumps(results) + "\n", encoding="utf-8")
    save_figure(results, figure)
    return [numbers, figure]
