"""Every run behind docs/results.md.

Call: ``python -m dualogic_paper.every_run --runs RUNS --jobs 16 --part small`` (and ``images`` and ``cifar100``, two at a time;
``vgg16``, ``resnet50`` and ``densenet100`` for longer schedules, four at a time with ``--compile``), on a machine with a GPU and
the data sets; then ``dualogic table all --runs RUNS/FOLDER --collect results`` for each folder in RUNS. Runs that have ended are
not made again. Many runs share a GPU best under ``nvidia-cuda-mps-control -d``.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dualogic.errors import StateError
from dualogic_paper.runner import Config, Machine, run_all
from dualogic_paper.tasks import TASKS

SEEDS = range(5)
MORE_SEEDS = range(10)
SMALL = ("hwf", "hwf-5-20", "digits-mixed", "digits", "hwf-efficiency", "hwf-efficiency-5", "paths", "paths-draws")
IMAGES = ("cifar10-stl10",)
NETWORKS = ("vgg16", "resnet50", "densenet100")
CHANGED: dict[str, dict[str, Any]] = {"cifar10-stl10": {"epochs": 30, "measure_every": 5}}  # a tenth of the paper's epochs
PRECISION: dict[str, Any] = {"cifar10-stl10": "bf16-mixed", "cifar100": "bf16-mixed"}
CIFAR100_ARMS = ("dual", "none", "dl2", "hard", "uniform", "entropy", "pd1", "pd2")
MAIN_ROWS = {(network, arm): 3 for network in ("vgg16", "resnet50") for arm in ("none", "dual")}  # seeds; all else has one
FORMS = {"vgg16": ("each", "one"), "resnet50": ("each",), "densenet100": ("each",)}  # for ``dual``, beside the published one
MAIN_LONG = (("dual", "one", "another"), ("dl2", "published", "same"), ("dual", "one", "same"), ("none", "published", "same"))
OTHER_LONG = (
    *(("dual", "one", "both"), ("dual", "one", "teacher"), ("fixmatch", "published", "another")),
    *((arm, "published", "same") for arm in ("fixmatch", "entropy", "pd2", "hard", "dual-paper")),
)
LONG = {  # epochs, seeds, and rows of the longer schedules: arm, form of the rule, view of the images
    "vgg16": (200, 5, MAIN_LONG + OTHER_LONG),
    "resnet50": (100, 3, MAIN_LONG),
    "densenet100": (100, 3, MAIN_LONG),
}
SHOWN_IN_FULL = {"digits-mixed": ("none", "uniform", "dual")}  # arms with ten seeds
FEWER = {"paths-draws": ("none", "pd2", "dl2", "hard", "uniform", "dual-paper", "dual")}

# What the tables' rows leave open: which part of the defaults does what. Task, arm, options of the method, hyper-parameters.
VARIANTS: tuple[tuple[str, str, dict[str, Any], dict[str, Any]], ...] = (
    ("digits-mixed", "dual", {"evidence": False}, {}),
    ("digits-mixed", "uniform", {"evidence": True}, {}),
    ("digits", "dual", {"evidence": False}, {}),
    ("digits", "uniform", {"evidence": True}, {}),
    ("hwf", "none", {}, {"ink": True}),
    ("hwf", "dual", {}, {"ink": True}),
    ("paths", "dual", {"delta": "exact"}, {}),
    ("paths-draws", "dual", {"delta": "exact"}, {}),
    ("cifar10-stl10", "dual", {"delta": "exact"}, {}),
)


def make_tables(tasks: tuple[str, ...]) -> Iterator[tuple[Path, Config]]:
    """The tables' rows; and each variant in a folder of its own, because a run's folder is named after task, method and seed."""

    def make(task: str, arm: str, seed: int, options: dict[str, Any], changed: dict[str, Any]) -> Config:
        hyper = TASKS[task](**{**CHANGED.get(task, {}), **changed})
        return Config(hyper, arm, options, seed=seed, precision=PRECISION.get(task, "32-true"))

    for task in tasks:
        for arm in FEWER.get(task, TASKS[task].arms):
            for seed in MORE_SEEDS if arm in SHOWN_IN_FULL.get(task, ()) else SEEDS:
                yield Path("main"), make(task, arm, seed, {}, {})
    for number, (task, arm, options, changed) in enumerate(VARIANTS):
        for seed in SEEDS if task in tasks else ():
            yield Path(f"variant-{number}"), make(task, arm, seed, options, changed)


def make_cifar100() -> Iterator[tuple[Path, Config]]:
    """Each network in folders of its own; the most telling runs first."""
    for network in NETWORKS:
        for arm in CIFAR100_ARMS:
            for form in ("published", *FORMS[network]) if arm == "dual" else ("published",):
                for seed in range(MAIN_ROWS.get((network, arm), 1) if form == "published" or network == "vgg16" else 1):
                    task = TASKS["cifar100"](model=network, form=form)
                    yield Path(f"{network}-{form}"), Config(task, arm, seed=seed, precision=PRECISION["cifar100"])


def make_long(network: str) -> Iterator[tuple[Path, Config]]:
    """Each row in a folder of its own, as a run's folder is not named after the task's options; the longest runs come first."""
    epochs, seeds, rows = LONG[network]
    for seed in range(seeds):
        for number, (arm, form, view) in enumerate(rows):
            task = TASKS["cifar100-long"](model=network, form=form, view=view, epochs=epochs)
            yield Path(f"{network}-{number}"), Config(task, arm, seed=seed, precision=PRECISION["cifar100"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--part", choices=("small", "images", "cifar100", *LONG), default="small")
    parser.add_argument("--compile", action="store_true", help="train networks through torch.compile")
    arguments = parser.parse_args()
    parts = {"small": make_tables(SMALL), "images": make_tables(IMAGES), "cifar100": make_cifar100()}
    batches = list(make_long(arguments.part) if arguments.part in LONG else parts[arguments.part])
    started, done = time.perf_counter(), 0

    def report(config: Config) -> None:
        nonlocal done
        done += 1
        at = f"{time.perf_counter() - started:6.0f} s {done}/{len(batches)}"
        print(f"{at} {config.task.name} {config.method} {config.seed}", flush=True)

    configs, folders = [config for _, config in batches], [arguments.runs / folder for folder, _ in batches]
    try:
        machine = Machine(compile=arguments.compile, checkpoint_seconds=60.0)
        run_all(configs, machine, folders, jobs=arguments.jobs, on_end=report)
    except StateError as error:
        print(error)


if __name__ == "__main__":
    main()
