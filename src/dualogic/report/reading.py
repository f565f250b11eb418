"""What run folders hold, whole or not."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dualogic.diagnosis import ShortcutReport
from dualogic.errors import DataError, OptionError
from dualogic.report import stored
from dualogic.report.stored import CONFIG, DIAGNOSIS, METRICS, RESULT, check_config, read_object
from dualogic.report.summary import POOL, VALIDATION

NO_RULE = "none"  # the method of a run without a rule, with which others are compared
UNTAUGHT = (NO_RULE, "supervised", "entropy")  # methods that teach no rule, for folders that do not say it
NOTHING: dict[str, Any] = {"samples": "", "words": {}, "pictures": {}, "captions": {}}
"""What a diagnosis has about each part besides its report, where nothing was kept."""


@dataclasses.dataclass(frozen=True)
class Record:
    """One run, as far as its folder goes."""

    path: Path  # of the folder
    task: str  # its name
    method: str  # its name
    options: dict[str, Any]  # of the method
    seed: int
    about: dict[str, Any]  # what a page says: `title`, `name` (of the run) or `label` (of its settings)
    taught: bool  # whether a rule was taught
    history: list[dict[str, float]]  # numbers by name, for each measured epoch
    result: dict[str, Any] | None  # how it ended: `facts` (pairs of a label and a value), `failure`; `None` before
    points: list[dict[str, Any]]  # summaries by epoch of how the rules are satisfied
    # How they are satisfied at the end: on validation samples, and on samples of the training; as far as it was kept.
    reports: dict[str, ShortcutReport]
    # What else `keep_part` kept about the samples of the first report, which the verdict is about.
    kept: dict[str, Any]
    missing: tuple[str, ...]  # what the folder lacks, a sentence each

    @property
    def report(self) -> ShortcutReport | None:
        """What the verdict is about: validation samples if some were diagnosed, otherwise those of the training."""
        return next(iter(self.reports.values()), None)


def read_runs(paths: Sequence[Path], on_damage: Callable[[DataError], None] | None = None) -> list[Record]:
    """Read run folders of one task, or all run folders inside of a folder, each once; those without a rule come first.

    ``on_damage`` is called with what is wrong with a run folder, which is then left out; without it, or if all are damaged, that
    is raised.
    """
    folders: dict[Path, Path] = {}
    for path in paths:
        found = [path] if (path / CONFIG).is_file() else sorted(file.parent for file in path.rglob(CONFIG))
        if not found:
            raise OptionError(
                f"{path} is no run folder and has none inside (looked for {CONFIG}); dl.Recorder(folder, logic) writes one, and "
                f"so does dualogic run"
            )
        folders.update({folder.resolve(): path for folder in found if folder.resolve() not in folders})
    records: list[Record] = []
    damage = []
    for folder in folders:
        try:
            records.append(read_run(folder))
        except DataError as error:
            damage.append(error)
    for one in damage:
        if on_damage is None or not records:
            raise one
        on_damage(one)
    tasks = list(dict.fromkeys(record.task for record in records))
    if len(tasks) > 1:
        raise OptionError(f"a report is about runs of one task; got {', '.join(tasks)}; make one for each")
    places = list(dict.fromkeys(folders.values()))

    def order(record: Record) -> tuple[Any, ...]:
        place = places.index(folders[record.path])
        return place, record.taught, record.method != NO_RULE, record.method, record.seed, str(record.path)

    return sorted(records, key=order)


def read_run(folder: Path) -> Record:
    """Read one run folder; what is not there yet is named in ``missing``, and what is damaged raises a :class:`DataError`."""
    config = check_config(read_object(folder / CONFIG), folder / CONFIG)
    ended, diagnosed = ((folder / name).exists() for name in (RESULT, DIAGNOSIS))
    result = read_object(folder / RESULT) if ended else {}
    if lacking := [name for name in ("config", "seconds") if ended and name not in result]:
        raise DataError(f"a result in {folder / RESULT} lacks {', '.join(lacking)}; delete it, or restore the file")
    facts, failure = result.get("facts") or [], result.get("failure") or ""
    if not stored.are_pairs(facts) or not isinstance(failure, str):
        raise DataError(
            f"{folder / RESULT} must hold its facts in pairs of texts, and a failure as a text; got "
            f"{stored.brief([facts, failure])}; delete it, or restore the file"
        )
    history = stored.read_rows(folder / METRICS) if (folder / METRICS).exists() else []
    points, reports, kept = _read_diagnosis(folder / DIAGNOSIS) if diagnosed else ([], {}, NOTHING)
    missing = [] if ended else [f"{RESULT}: the run has not ended, or was stopped"]
    missing += [] if history else [f"{METRICS}: nothing was measured yet, so there are no curves"]
    if ended and not diagnosed:
        missing.append(
            f"{DIAGNOSIS}: the run kept nothing about how its rules are met; so there is no verdict, no division by class and no "
            f"sample. Run it again in another folder to have them"
        )
    if ended and diagnosed and VALIDATION not in reports:
        what = "the verdict is about samples of the training" if reports else "there is no verdict"
        missing.append(f"held-out samples: none were diagnosed at the end (recorder.diagnose), so {what}")
    method, about = config["method"], config.get("about", {})
    taught = about.get("taught", method not in UNTAUGHT)
    named = (folder, config["task"]["name"], method, config["options"], config["seed"], about, taught)
    return Record(*named, history, result if ended else None, points, reports, kept, tuple(missing))


def find_baseline(record: Record, others: Sequence[Record]) -> Record | None:
    """The run without a rule on the same samples: among the others, or beside this one; of the same seed, if there is one."""
    samples = record.kept["samples"]  # a fingerprint
    if not record.taught or not samples:
        return None
    found = [other for other in (*others, *_read_neighbours(record)) if other.method == NO_RULE and other.task == record.task]
    same = [other for other in found if other.kept["samples"] == samples]
    return min(same, key=lambda other: other.seed != record.seed, default=None)


def _read_neighbours(record: Record) -> Iterator[Record]:
    """Runs without a rule in folders beside this one, or in ``RUNS/TASK/none/SEED`` beside ``RUNS/TASK/METHOD/SEED``."""
    for folder in (record.path.parent.parent / NO_RULE / str(record.seed), *sorted(record.path.parent.iterdir())):
        if folder != record.path and (folder / CONFIG).is_file():
            with contextlib.suppress(DataError):  # a damaged neighbour is no baseline, and no reason to show nothing
                if check_config(read_object(folder / CONFIG), folder / CONFIG)["method"] == NO_RULE:
                    yield read_run(folder)


def _read_diagnosis(file: Path) -> tuple[list[dict[str, Any]], dict[str, ShortcutReport], dict[str, Any]]:
    """The points, the reports and what was kept about the first of them; refuses what another version, or a hand, has written."""
    diagnosis = read_object(file)
    parts = {part: diagnosis[part] for part in (VALIDATION, POOL) if diagnosis.get(part) is not None}
    points = diagnosis.get("history")
    whole = all(isinstance(part, dict) and part.keys() >= {"report", *NOTHING} for part in parts.values())
    whole = whole and all(
        isinstance(part[key], dict) for part in parts.values() for key in ("report", *NOTHING) if key != "samples"
    )
    if not whole or not isinstance(points, list) or not all(map(_is_point, points)):
        raise DataError(f"{file} is not what a run writes; delete it, or run again in another folder")
    try:
        reports = {name: ShortcutReport.from_dict(part["report"]) for name, part in parts.items()}
    except DataError as error:
        raise DataError(f"{file}: {error}; delete it, or run again in another folder") from error
    return points, reports, next(iter(parts.values()), NOTHING)


def _is_point(entry: Any) -> bool:
    """Whether an entry of a diagnosis's history has its epoch, and findings in pairs of a rule and a kind."""
    return isinstance(entry, dict) and stored.is_number(entry.get("epoch")) and stored.are_pairs(entry.get("findings", []))
