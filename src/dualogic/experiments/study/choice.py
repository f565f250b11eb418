"""The settings between which the defaults were chosen, on the larger tasks: validation figures, and seeds that no table has.

Call ``python -m dualogic.experiments.study.choice results/study/choice.json --runs RUNS --jobs 4`` on a machine with a GPU and
the data sets. Runs that the file or the folder holds are not repeated, so that settings may be added below. Test figures are left
out of the file: nothing can be chosen by them.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dualogic.experiments.runner import Config, Machine, run_all
from dualogic.experiments.study.table import to_markdown
from dualogic.experiments.tasks import CIFAR100, HWF, DigitsMixed, Task

SEEDS = (20, 21)


@dataclasses.dataclass(frozen=True)
class Setting:
    """What is taught, and how.

    Attributes:
        arm: see :mod:`dualogic.experiments.arms`.
        options: of the method.
        weight: a factor of the rule's loss.
        hyper: hyper-parameters of the task.
    """

    arm: str = "dual"
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    weight: float | None = None
    hyper: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Bench:
    """A task, what is tried on it, and what of a run's validation figures is kept."""

    task: Task
    settings: Mapping[str, Setting]
    shown: tuple[str, ...]
    precision: Any = "32-true"


CONTROLS = {name: Setting(arm) for name, arm in (("no rule", "none"), ("uniform", "uniform"), ("hard", "hard"), ("DL2", "dl2"))}
_OPTIONS: dict[str, dict[str, Any]] = {
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
    "exponentiated 2, share 0.02": {"rule": "exponentiated", "step": 2.0, "share": 0.02},
    "exponentiated 2, share 0.005": {"rule": "exponentiated", "step": 2.0, "share": 0.005},
    "exponentiated 2, share 0.02, floor 0.5": {"rule": "exponentiated", "step": 2.0, "share": 0.02, "floor": 0.5},
    "softmax 0.7, share 0.005": {"share": 0.005},
    "softmax 0.7, share 0.02": {"share": 0.02},
    "exponentiated 0.5, share 0.02": {"rule": "exponentiated", "step": 0.5, "share": 0.02},
    "exponentiated 1, share 0.01": {"rule": "exponentiated", "step": 1.0, "share": 0.01},
}
OPTIONS = CONTROLS | {name: Setting(options=options) for name, options in _OPTIONS.items()}
FORMS = ("published", "implication", "one", "each", "each implication")
"""Ways to write the rule of CIFAR-100."""
SCHEDULES: dict[str, dict[str, Any]] = {
    "weight decay 0.0001": {"weight_decay": 1e-4},
    "norms not decayed": {"decayed": "weights"},
    "squares erased": {"augment": "erase"},
    "strong augmentation": {"augment": "strong"},
    "strong augmentation, norms not decayed": {"augment": "strong", "decayed": "weights"},
    "strong augmentation, weight decay 0.0001": {"augment": "strong", "weight_decay": 1e-4},
}
"""How CIFAR-100 is trained, whatever the method: what may decide how far certainty carries over to new images."""


def _of_form(form: str, name: str, arm: str = "dual", weight: float | None = None, start: float = 0.0, **options: Any) -> Any:
    late = f", from {start:.0%} of the epochs on" if start else ""
    heavy = "" if weight is None else f", weight {weight:g}"
    return f"{form}: {name}{heavy}{late}", Setting(arm, options, weight, {"form": form, "rule_from": start})


CERTAINTY: dict[str, Setting] = dict(
    [
        *CONTROLS.items(),
        *(
            (f"no rule, learning rate {rate}", Setting("none", hyper={"learning_rate": rate}))
            for rate in (0.05, 0.03, 0.02, 0.01)
        ),
        ("entropy", Setting("entropy")),
        *((f"DL2, weight {weight}", Setting("dl2", weight=weight)) for weight in (3.0, 10.0)),
        *(_of_form(form, "default") for form in FORMS),
        *(_of_form(form, "floor 0.1", floor=0.1) for form in FORMS),
        *(_of_form("one", f"floor {floor}", floor=floor) for floor in (0.3, 0.05)),
        *(_of_form("one", f"floor 0.1, step {step}", floor=0.1, step=step) for step in (0.2, 2.0)),
        *(_of_form("one", f"floor 0.1, delta {delta}", floor=0.1, delta=delta) for delta in ("square", "exact")),
        _of_form("one", "floor 0.1, delta square, step 2", floor=0.1, delta="square", step=2.0),
        _of_form("one", "floor 0.1, delta square, step 2", weight=5.0, floor=0.1, delta="square", step=2.0),
        _of_form("one", "default", weight=10.0),
        _of_form("one", "step 2", weight=30.0, start=0.5, step=2.0),
        _of_form("one", "floor 0.1, exponentiated 0.3, forget 0.1", floor=0.1, rule="exponentiated", step=0.3, forget=0.1),
        _of_form("one", "hard", "hard"),
        _of_form("one", "hard, floor 0.1", "hard", floor=0.1),
        _of_form("one", "floor 0.1", start=0.5, floor=0.1),
        *(_of_form(form, "exponentiated 2, share 0.02", **_OPTIONS["exponentiated 2, share 0.02"]) for form in FORMS),
        _of_form("each", "exponentiated 2, share 0.02, floor 0.5", **_OPTIONS["exponentiated 2, share 0.02, floor 0.5"]),
        _of_form("each", "exponentiated 4, share 0.05", rule="exponentiated", step=4.0, share=0.05),
        _of_form("each implication", "floor 0.03", floor=0.03),
        _of_form("each implication", "floor 0.1, step 2", floor=0.1, step=2.0),
        _of_form("each implication", "floor 0.1", weight=5.0, start=0.5, floor=0.1),
        *(
            (f"100 epochs: {name}", dataclasses.replace(setting, hyper={**setting.hyper, "epochs": 100}))
            for name, setting in (
                ("no rule", Setting("none")),
                ("DL2", Setting("dl2")),
                _of_form("each", "default"),
                _of_form("each implication", "floor 0.1", floor=0.1),
                _of_form("one", "default"),
                _of_form("one", "floor 0.1, delta square, step 2", floor=0.1, delta="square", step=2.0),
                *(
                    _of_form(form, "exponentiated 2, share 0.02", **_OPTIONS["exponentiated 2, share 0.02"])
                    for form in ("each", "one")
                ),
                _of_form("each", "exponentiated 2, share 0.02, floor 0.5", **_OPTIONS["exponentiated 2, share 0.02, floor 0.5"]),
                _of_form("one", "exponentiated 2, share 0.02, floor 0.5", **_OPTIONS["exponentiated 2, share 0.02, floor 0.5"]),
                _of_form("each", "exponentiated 2, share 0.02, floor 0.3", rule="exponentiated", step=2.0, share=0.02, floor=0.3),
            )
        ),
        *(
            (f"100 epochs, {about}: {name}", dataclasses.replace(setting, hyper={**setting.hyper, **changed, "epochs": 100}))
            for about, changed in SCHEDULES.items()
            for name, setting in (
                ("no rule", Setting("none")),
                ("DL2", Setting("dl2")),
                _of_form("each", "default"),
                _of_form("each", "exponentiated 2, share 0.02", **_OPTIONS["exponentiated 2, share 0.02"]),
            )
        ),
    ]
)
"""Of a rule that asks for certainty: how it is written, and how hard it pulls."""
_CERTAINTY_SHOWN = ("accuracy", "superclass", "satisfied", "pool/all_weight_true_superclass", "pool/all_weight_others")

BENCHES = {
    "digits-mixed": Bench(DigitsMixed(), OPTIONS, ("accuracy", "q", "not_p", "pool/q_weight_sixes", "pool/q_weight_others")),
    "hwf": Bench(HWF(), OPTIONS, ("accuracy", "satisfied")),
    "cifar100, VGG16": Bench(CIFAR100(model="vgg16"), CERTAINTY, _CERTAINTY_SHOWN, "bf16-mixed"),
    "cifar100, ResNet50": Bench(CIFAR100(model="resnet50"), CERTAINTY, _CERTAINTY_SHOWN, "bf16-mixed"),
}


def make_configs(bench: Bench, seeds: Sequence[int] = SEEDS, only: Sequence[str] | None = None) -> dict[tuple[str, int], Config]:
    """Every run of a bench, by name of the setting and seed.

    Args:
        bench: one of :data:`BENCHES`.
        seeds: of the runs.
        only: names of settings; all by default.
    """
    return {
        (name, seed): Config(
            dataclasses.replace(bench.task, **setting.hyper),
            setting.arm,
            setting.options,
            setting.weight,
            seed=seed,
            precision=bench.precision,
        )
        for seed in seeds
        for name, setting in bench.settings.items()
        if only is None or name in only
    }


def collect(
    path: Path,
    runs: Path,
    machine: Machine,
    configs: Mapping[tuple[str, str, int], Config],
    jobs: int = 1,
    benches: Mapping[str, Bench] = BENCHES,
) -> list[dict[str, Any]]:
    """Make every run that is missing, and write what their validation samples say.

    Args:
        path: of the JSON file.
        runs: the folder of all runs.
        machine: where they are made.
        configs: from :func:`make_configs`, by bench, setting and seed.
        jobs: how many at a time.
        benches: what is shown of each.

    Returns:
        All runs of the file, in the order of the settings.
    """
    found = {_key(run): run for run in (json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else ())}
    missing = {key: config for key, config in configs.items() if key not in found}
    roots = [runs / re.sub(r"\W+", "-", f"{bench} {setting}") for bench, setting, _ in missing]
    folders = run_all(list(missing.values()), machine, roots, jobs=jobs)
    for (bench, setting, seed), folder in zip(missing, folders):
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        figures = {**result["validation"], **{f"pool/{key}": value for key, value in result["pool"].items()}}
        kept = {key: figures[key] for key in benches[bench].shown if key in figures}
        about = {"config": result["config"], "method": result["method"], "commit": result["commit"], "failure": result["failure"]}
        found[bench, setting, seed] = {"task": bench, "setting": setting, "seed": seed, **about, **kept}
    places = {
        (name, setting): (row, column)
        for row, (name, bench) in enumerate(benches.items())
        for column, setting in enumerate(bench.settings)
    }
    ordered = sorted(found.values(), key=lambda run: (*places[run["task"], run["setting"]], run["seed"]))
    lines = ",\n ".join(json.dumps(run) for run in ordered)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"runs": [\n {lines}\n]}}\n', encoding="utf-8")
    return ordered


def _key(run: Mapping[str, Any]) -> tuple[str, str, int]:
    return run["task"], run["setting"], run["seed"]


def show(runs: Sequence[Mapping[str, Any]], bench: str) -> str:
    """The settings of one bench as a table; see :func:`dualogic.experiments.study.table.to_markdown`.

    Example:
        >>> run = {"task": "hwf", "setting": "default", "seed": 20, "accuracy": 60.0, "satisfied": 80.0}
        >>> print(show([run, {**run, "seed": 21, "accuracy": 61.0}], "hwf"))
        | setting | seeds | accuracy | satisfied |
        |---|---|---|---|
        | default | 2 | 60.5 (60.0 to 61.0) | 80 |
        <BLANKLINE>
    """
    headings = {key: key.removeprefix("pool/").replace("_", " ") for key in BENCHES[bench].shown}
    return to_markdown([run for run in runs if run["task"] == bench], headings, ("setting",))


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--runs", type=Path, default=Path("runs/choice"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--benches", nargs="+", choices=BENCHES, default=list(BENCHES))
    parser.add_argument("--settings", nargs="+", help="only these")
    parser.add_argument("--tune", action="store_true", help="let cuDNN time its algorithms")
    arguments = parser.parse_args()
    configs = {
        (name, *key): config
        for name in arguments.benches
        for key, config in make_configs(BENCHES[name], arguments.seeds, arguments.settings).items()
    }
    runs = collect(arguments.path, arguments.runs, Machine(tune=arguments.tune), configs, arguments.jobs)
    sys.stdout.write("\n".join(f"{name}\n\n{show(runs, name)}" for name in BENCHES))


if __name__ == "__main__":
    main()
