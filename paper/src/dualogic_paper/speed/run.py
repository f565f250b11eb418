"""Every figure in one command, with the machine it ran on.

    python -m dualogic_paper.speed.run                        # all that this machine can measure
    python -m dualogic_paper.speed.run --only rule_eager      # some; the file keeps the others
    python -m dualogic_paper.speed.run --pages                # write the tables of pages from results/benchmarks/*.json

A GPU is used where there is one; a CPU with one thread. Results are kept in ``results/benchmarks/<cpu|h200|...>.json``; a figure
that fails leaves its error there. The exit status is 1 if a bound is missed or a figure fails.
"""

import argparse
import gc
import json
import os
import platform
import re
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from dualogic_paper.origin import find_commit, find_date
from dualogic_paper.speed import atoms, eager, monitor, processes, report, rule, start, table, training

Measure = Callable[[str], dict[str, Any]]

# Which figures a measurement gives, and on which devices it can be taken; the quick and most telling ones come first.
MEASUREMENTS: dict[tuple[str, ...], tuple[tuple[str, ...], Measure]] = {
    ("rule_eager",): (("cuda",), rule.eager),
    ("rule_fastest", "rule_gpu_time"): (("cuda",), rule.captured),
    **{(f"eager_{name}", f"network_{name}"): (("cuda",), partial(eager.compare, name)) for name in report.NETWORKS},
    ("train_cifar",): (("cpu",), training.cifar),
    ("train_implication", "train_implication_hand", "eval_implication"): (("cpu",), training.implication),
    ("train_shop",): (("cpu",), training.many_rules),
    ("train_dl2",): (("cpu",), training.dl2),
    ("eval_cifar",): (("cpu",), training.cifar_evaluated),
    ("compiled_steps",): (("cpu", "cuda"), rule.thousand),
    **{(f"atoms_{size}",): (("cpu", "cuda"), partial(atoms.compare, size)) for size in report.SIZES},
    ("table_bytes", "table_ratio"): (("cpu", "cuda"), table.compare),
    ("table_host", "table_mapped"): (("cpu", "cuda"), table.compare_places),
    ("monitor",): (("cpu",), monitor.compare),
    ("import_time",): (("cpu", "cuda"), start.compare),
    ("processes", "processes_checkpoint"): (("cpu", "cuda"), processes.compare),
}


def describe_machine(device: str, commit: str, command: str) -> dict[str, Any]:
    """What a reader needs to run it again; where the file went does not matter to them."""
    return {
        "device": device,
        "name": torch.cuda.get_device_name() if device == "cuda" else processor(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda if device == "cuda" else None,
        "python": platform.python_version(),
        "date": find_date(),
        "commit": commit,
        "command": command,
    }


def processor() -> str:
    """The processor's name."""
    try:
        names = re.findall(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        names = []
    return str(names[0]).strip() if names else platform.processor() or platform.machine()


def take(names: tuple[str, ...], measure: Measure, device: str) -> dict[str, Any]:
    """The figures of one measurement, or its error under each name."""
    start = time.perf_counter()
    try:
        found = measure(device)
    except Exception as error:
        traceback.print_exc()
        found = {name: {"error": f"{type(error).__name__}: {error}"[:2000]} for name in names}
    for value in found.values():
        value["seconds"] = round(time.perf_counter() - start, 1)
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(report.FIGURES), help="figures to measure")
    parser.add_argument("--out", type=Path, help="the JSON file to write")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--commit", help="the commit that is measured, where git does not know it")
    parser.add_argument("--pages", action="store_true", help="only write the tables of pages from the JSON files")
    options = parser.parse_args()
    if options.pages:
        report.write_pages()
        return 0
    torch.set_num_threads(1)
    command = " ".join(["python -m dualogic_paper.speed.run", *(["--only", *options.only] if options.only else [])])
    machine = describe_machine(options.device, options.commit or find_commit(), command)
    kind = "cpu" if options.device == "cpu" else machine["name"].split()[-1].lower()  # the last word of the GPU's name
    path = options.out or report.RESULTS / f"{kind}.json"
    print(json.dumps(machine, indent=2), flush=True)
    figures: dict[str, Any] = json.loads(path.read_text())["figures"] if options.only and path.exists() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    fine = True
    for names, (devices, measure) in MEASUREMENTS.items():
        if options.device not in devices or (options.only and not set(names) & set(options.only)):
            continue
        for name, found in take(names, measure, options.device).items():
            figures[name] = {**found, "date": machine["date"], "commit": machine["commit"]}
            shown = report.show_entry(report.FIGURES[name], found)
            bound = report.show_number(report.FIGURES[name].bound, report.FIGURES[name].unit)
            print(f"{report.FIGURES[name].what}: {shown} (bound {bound}) {json.dumps(found)}", flush=True)
            fine = fine and found.get("passed", False)
        ordered = {name: figures[name] for name in report.FIGURES if name in figures}
        path.write_text(json.dumps({"machine": machine, "figures": ordered}, indent=2) + "\n")
    print(f"written to {path.name}")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
