"""How long `import dualogic` takes beside `import torch`, each in a process of its own, in turn."""

import resource
import statistics
import subprocess
import sys
from typing import Any

from dualogic_paper.speed.report import entry


def measure(module: str) -> float:
    """Seconds of processor time for a process that does nothing else, and keeps bytecode, as is usual."""
    before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    subprocess.run([sys.executable, "-c", f"import sys; sys.dont_write_bytecode = False; import {module}"], check=True)
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before


def compare(device: str) -> dict[str, Any]:
    """The ratio of the medians of some turns; the first of them leaves the bytecode."""
    turns = [(measure("dualogic"), measure("torch")) for _ in range(11)]
    ours, plain = (statistics.median(seconds) for seconds in zip(*turns, strict=True))
    return {"import_time": entry("import_time", ours / plain, {"seconds": ours, "seconds of torch": plain})}
