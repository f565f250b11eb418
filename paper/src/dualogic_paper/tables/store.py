"""Results on disk: run folders as ``dualogic run`` leaves them, and the small files that are committed.

Run folders are ``RUNS/TASK/METHOD/SEED/result.json``; committed files are ``RESULTS/TASK/LABEL.json``, runs sorted by seed.
"""

import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from dualogic.errors import DataError, MissingDataError, OptionError
from dualogic.files import write_whole
from dualogic.report import read_object
from dualogic_paper.runner.config import complete, flatten
from dualogic_paper.runner.folder import CONFIG, RESULT
from dualogic_paper.runner.stored import PARTS, check_result, read_config
from dualogic_paper.tables.runs import Results, Run, make_label, mark_former
from dualogic_paper.tables.times import read_times
from dualogic_paper.tasks import TASKS


def read_results(folder: Path, task: str, on_damage: Callable[[DataError], None] | None = None) -> Results:
    """All runs of a task, from committed files and from run folders alike; damaged run folders are left out if ``on_damage`` is
    given, which is called with what is wrong.
    """
    if task not in TASKS:
        raise OptionError(f"the task must be one of {', '.join(TASKS)}; got {task!r}")
    runs = [run for file in sorted((folder / task).glob("*.json")) for run in _read_file(file, task)]
    unfinished: list[tuple[str, int]] = []
    for place in sorted({file.parent for name in (CONFIG, RESULT) for file in (folder / task).glob(f"*/*/{name}")}):
        try:
            if (place / RESULT).exists():
                runs.append(_check_run(read_object(place / RESULT), place / RESULT, task))
            else:
                values = read_config(place / CONFIG)
                _check_place(values, place / CONFIG, task)
                unfinished.append((make_label(values), values["seed"]))
        except DataError as error:
            if on_damage is None:
                raise
            on_damage(error)
    _check_together(runs)
    if not runs:
        waiting = f"; {len(unfinished)} runs there have not ended" if unfinished else ""
        raise MissingDataError(
            f"no results of {task!r} in {folder / task} (neither LABEL.json nor METHOD/SEED/{RESULT}){waiting}; make them with "
            f"`dualogic run {task} --runs runs` and read them with `dualogic table {task} --runs runs`"
        )
    ordered = tuple(sorted(runs, key=lambda run: (run.label, run.seed)))
    return Results(task, ordered, tuple(sorted(unfinished)), read_times(folder, task))


def find_tasks(folder: Path) -> list[str]:
    """The tasks that have a result in a folder, in the order of :data:`~dualogic_paper.tasks.TASKS`."""
    kinds = ("*.json", f"*/*/{RESULT}")
    return [task for task in TASKS if any(any((folder / task).glob(kind)) for kind in kinds)]


def collect(runs: Path, task: str, results: Path) -> list[Path]:
    """Copy the runs that have ended into committed files, which are returned; a run of the same label and seed is replaced."""
    found = read_results(runs, task)
    changed = [run for run in found.runs if str(run.values["commit"]).endswith("+")]
    if changed:
        raise DataError(
            f"{changed[0].path} was made by source that had changes since commit {changed[0].values['commit'][:-1]}, so nobody "
            "can make it again; commit them, run again, and collect that"
        )
    written = []
    for label in sorted({run.label for run in found.runs}):
        file = results / task / f"{_file_name(label)}.json"
        kept = {run.seed: run for run in _read_file(file, task)} if file.exists() else {}
        strangers = {run.label for run in kept.values()} - {label}
        if strangers:
            raise DataError(f"{file} holds {', '.join(strangers)}, which cannot be kept together with {label}; move it")
        kept.update({run.seed: run for run in found.runs if run.label == label})
        merged = [kept[seed] for seed in sorted(kept)]
        _check_together(merged)
        head = {"task": task, "method": merged[0].method, "label": label}
        lines = ",\n".join(json.dumps(_to_json(run), allow_nan=False) for run in merged)
        file.parent.mkdir(parents=True, exist_ok=True)
        with write_whole(file) as whole:
            whole.write((json.dumps(head)[:-1] + f', "runs": [\n{lines}\n]}}\n').encode())
        written.append(file)
    return written


def _read_file(file: Path, task: str) -> list[Run]:
    content = read_object(file)
    if not isinstance(content.get("runs"), list) or not content["runs"]:
        raise DataError(
            f'{file} must hold {{"task": ..., "method": ..., "label": ..., "runs": [result, ...]}} with one run at least'
        )
    if content.get("task") != task:
        raise DataError(f"{file} lies in the folder of {task!r} but says task {content.get('task')!r}")
    runs = [_check_run(values, file, task) for values in content["runs"]]
    for run in runs:
        if run.method != content.get("method"):
            raise DataError(f"{file} says method {content.get('method')!r} but holds a run of {run.method!r} (seed {run.seed})")
    label = content.get("label")
    # The label that was right when the file was written stays, though defaults may have changed since.
    return [dataclasses.replace(run, label=mark_former(label, run.values)) if isinstance(label, str) else run for run in runs]


def _check_run(values: Any, file: Path, task: str) -> Run:
    checked = check_result(values, file)
    _check_place(checked["config"], file, task)
    checked["config"] = complete(checked["config"])
    return Run(mark_former(make_label(checked["config"]), checked), checked, file)


def _check_place(config: Mapping[str, Any], file: Path, task: str) -> None:
    name = config["task"]["name"]
    if name != task:
        raise DataError(f"{file} lies in the folder of {task!r} but holds a run of {name!r}")


def _check_together(runs: Iterable[Run]) -> None:
    """Runs of one label differ in nothing but the seed."""
    first: dict[str, Run] = {}
    seen: dict[tuple[str, int], Run] = {}
    for run in runs:
        other = seen.setdefault((run.label, run.seed), run)
        if other is not run:
            raise DataError(
                f"seed {run.seed} of {run.label} of {run.task!r} is both in {other.path} and in {run.path}; delete one"
            )
        model = first.setdefault(run.label, run)
        mine, others = flatten(run.values["config"]), flatten(model.values["config"])
        different = {key.rpartition(".")[2] for key in {*mine, *others} if mine.get(key) != others.get(key)}
        differences = sorted(different - {"seed"})
        if run.values["method"] != model.values["method"]:
            # Defaults of a method may have changed between two commits.
            differences.append(f"the method ({run.values['method']} and {model.values['method']})")
        if differences:
            raise DataError(
                f"{run.label} with seed {run.seed} in {run.path} and with seed {model.seed} in {model.path} differ in "
                f"{', '.join(differences)}: they cannot be averaged; run both seeds alike, or keep them in different folders"
            )


def _to_json(run: Run) -> dict[str, Any]:
    names = dict.fromkeys(name for row in run.curve for name in row)

    def shorten(value: float | None, digits: int) -> float | int | None:
        if value is None or not math.isfinite(value):
            return None
        rounded = float(f"{value:.{digits}g}")
        return int(rounded) if rounded.is_integer() else rounded

    history = {name: [shorten(row.get(name), 10 if name == "epoch" else 4) for row in run.curve] for name in names}
    values = {**run.values, "history": history}
    for part in PARTS:
        values[part] = {name: value if math.isfinite(value) else None for name, value in values[part].items()}
    return values


def _file_name(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", label).strip("-")
