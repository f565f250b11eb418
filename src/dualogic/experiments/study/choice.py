"""The settings between which the defaults were chosen, on the larger tasks: validation figures, and seeds that no table has.

Call ``python -m dualogic.experiments.study.choice results/study/choice.json --runs RUNS --jobs 8`` on a machine with a GPU and
the data sets; runs that have ended are not repeated. Test figures are left out of the file: nothing can be chosen by them.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dualogic.experiments.runner import Config, Machine, run_all
from dualogic.experiments.study.table import to_markdown
from dualogic.experiments.tasks import TASKS, Task

SEEDS = (20, 21)
SHOWN = {
    "digits-mixed": ("accuracy", "q", "not_p", "pool/q_weight_sixes", "pool/q_weight_others"),
    "hwf": ("accuracy", "satisfied"),
    "cifar100": ("accuracy", "superclass", "satisfied", "pool/all_weight_true_superclass", "pool/all_weight_others"),
}
"""Tasks, and what of a run's validation figures is kept."""
ARMS = {"no rule": "none", "uniform": "uniform", "hard": "hard", "DL2": "dl2"}
FORMS = ("implication", "one", "each", "each implication")
"""Other ways to write the rule of CIFAR-100."""
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "step 0.2, floor 0.1": {"step": 0.2, "floor": 0.1},
    "step 0.5, floor 0.5": {"step": 0.5, "floor": 0.5},
    "step 1, floor 1": {"step": 1.0, "floor": 1.0},
    "step 2, floor 2": {"step": 2.0, "floor": 2.0},
    "gradient steps": {"local": False},
    "exponentiated 0.2": {"rule": "exponentiated", "step": 0.2},
    "delta exact": {"delta": "exact"},
    "forget 0.2": {"forget": 0.2},
    "evidence off": {"evidence": False},
}


def make_configs(seeds: Sequence[int] = SEEDS, tasks: Mapping[str, Task] | None = None) -> dict[tuple[str, str, int], Config]:
    """Every run, by task, name of the setting, and seed.

    Args:
        seeds: of the runs.
        tasks: hyper-parameters other than the defaults, by the name of the task.
    """
    found: dict[tuple[str, str, int], Config] = {}
    for name in SHOWN:
        kind: Any = TASKS[name]
        task = (tasks or {}).get(name) or (kind(model="vgg16") if name == "cifar100" else kind())
        precision: Any = "bf16-mixed" if name == "cifar100" and tasks is None else "32-true"
        for seed in seeds:
            for setting, arm in ARMS.items():
                found[name, setting, seed] = Config(task, arm, seed=seed, precision=precision)
            for setting, options in VARIANTS.items():
                found[name, setting, seed] = Config(task, "dual", options, seed=seed, precision=precision)
            for form in FORMS if name == "cifar100" else ():
                written = dataclasses.replace(task, form=form)
                found[name, f"default, {form}", seed] = Config(written, "dual", seed=seed, precision=precision)
    return found


def collect(path: Path, runs: Path, machine: Machine, configs: Mapping[tuple[str, str, int], Config], jobs: int = 1) -> None:
    """Make every run that is missing, and write what their validation samples say.

    Args:
        path: of the JSON file.
        runs: the folder of all runs.
        machine: where they are made.
        configs: from :func:`make_configs`.
        jobs: how many at a time.
    """
    roots = [runs / f"{number}" for number in range(len(configs))]
    folders = run_all(list(configs.values()), machine, roots, jobs=jobs)
    found = []
    for (task, setting, seed), folder in zip(configs, folders):
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        figures = {**result["validation"], **{f"pool/{key}": value for key, value in result["pool"].items()}}
        kept = {key: figures[key] for key in SHOWN[task] if key in figures}
        found.append({"task": task, "setting": setting, "seed": seed, "commit": result["commit"], **kept})
    lines = ",\n ".join(json.dumps(run) for run in found)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"runs": [\n {lines}\n]}}\n', encoding="utf-8")


def show(runs: Sequence[Mapping[str, Any]], task: str) -> str:
    """The settings of one task as a table; see :func:`dualogic.experiments.study.table.to_markdown`.

    Example:
        >>> run = {"task": "hwf", "setting": "default", "seed": 20, "accuracy": 60.0, "satisfied": 80.0}
        >>> print(show([run, {**run, "seed": 21, "accuracy": 61.0}], "hwf"))
        | setting | seeds | accuracy | satisfied |
        |---|---|---|---|
        | default | 2 | 60.5 (60.0 to 61.0) | 80 |
        <BLANKLINE>
    """
    headings = {key: key.removeprefix("pool/").replace("_", " ") for key in SHOWN[task]}
    return to_markdown([run for run in runs if run["task"] == task], headings, ("setting",))


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--runs", type=Path, default=Path("runs/choice"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    arguments = parser.parse_args()
    collect(arguments.path, arguments.runs, Machine(), make_configs(arguments.seeds), arguments.jobs)
    runs = json.loads(arguments.path.read_text(encoding="utf-8"))["runs"]
    sys.stdout.write("\n".join(show(runs, task) for task in SHOWN))


if __name__ == "__main__":
    main()
