"""What run folders hold, whole or not."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dualogic.diagnosis import ShortcutReport
from dualogic.errors import DataError, OptionError
from dualogic_paper.arms import ENTROPY, NO_RULE, SUPERVISED, names
from dualogic_paper.runner.diagnosis import POOL, VALIDATION
from dualogic_paper.runner.folder import CONFIG, DIAGNOSIS, METRICS, RESULT
from dualogic_paper.runner.stored import read_config, read_object, read_result, read_rows

KEYS = {"report", "samples", "words", "pictures", "captions"}
"""What a diagnosis has about each part."""


@dataclasses.dataclass(frozen=True)
class Record:
    """One run, as far as its folder goes.

    Attributes:
        path: of the folder.
        config: see :class:`~dualogic_paper.runner.config.Config`.
        history: a dictionary for each measured epoch.
        result: see :class:`~dualogic_paper.runner.result.Result`; ``None`` before the run has ended.
        diagnosis: see :mod:`dualogic_paper.runner.diagnosis`; ``None`` if the run kept none.
        missing: what the folder lacks, a sentence each.
    """

    path: Path
    config: dict[str, Any]
    history: list[dict[str, Any]]
    result: dict[str, Any] | None
    diagnosis: dict[str, Any] | None
    missing: tuple[str, ...]

    @property
    def task(self) -> str:
        """The task's name."""
        return str(self.config["task"]["name"])

    @property
    def method(self) -> str:
        """The name of the arm."""
        return str(self.config["method"])

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self.config["seed"])

    @property
    def taught(self) -> bool:
        """A rule was taught."""
        return self.method not in (NO_RULE, SUPERVISED, ENTROPY)

    def report(self, part: str = VALIDATION) -> ShortcutReport | None:
        """How the rules are satisfied on validation samples, or on the pool."""
        found = (self.diagnosis or {}).get(part)
        return None if found is None else ShortcutReport.from_dict(found["report"])

    @property
    def samples(self) -> str | None:
        """A fingerprint of the validation samples; reports on the same ones can be compared."""
        found = (self.diagnosis or {}).get(VALIDATION)
        return None if found is None else str(found["samples"])


def read_runs(paths: Sequence[Path], on_damage: Callable[[DataError], None] | None = None) -> list[Record]:
    """Read run folders, or all run folders inside of a folder, each once.

    Args:
        paths: run folders, or folders that hold some.
        on_damage: called with what is wrong with a run folder, which is then left out; by default that is raised.

    Raises:
        OptionError: if there is none, or if they are of different tasks.
        DataError: if all of them are damaged.
    """
    folders: dict[Path, None] = {}
    for path in paths:
        found = [path] if (path / CONFIG).is_file() else sorted((file.parent for file in path.rglob(CONFIG)), key=_order)
        if not found:
            raise OptionError(f"{path} is no run folder and has none inside (looked for {CONFIG}); see dualogic run --help")
        folders.update(dict.fromkeys(folder.resolve() for folder in found))
    records, damage = [], []
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
    return records


def read_run(folder: Path) -> Record:
    """Read one run folder; what is not there yet is named in ``missing``.

    Raises:
        DataError: if a file is damaged.
    """
    config = read_config(folder / CONFIG)
    result = read_result(folder / RESULT) if (folder / RESULT).exists() else None
    diagnosis = read_object(folder / DIAGNOSIS) if (folder / DIAGNOSIS).exists() else None
    history: list[dict[str, Any]] = read_rows(folder / METRICS) if (folder / METRICS).exists() else []
    if result is not None and not history:
        history = result["history"]
    if diagnosis is not None:
        _check(diagnosis, folder / DIAGNOSIS)
    missing = []
    if result is None:
        missing.append(f"{RESULT}: the run has not ended; start it again to go on")
    if not history:
        missing.append(f"{METRICS}: nothing was measured yet, so there are no curves")
    if diagnosis is None and result is not None:
        missing.append(
            f"{DIAGNOSIS}: the run is older than reports, or its task shows no samples; so there is no verdict, no division by "
            f"class and no sample. Run it again in another folder to have them"
        )
    return Record(folder, config, history, result, diagnosis, tuple(missing))


def find_baseline(record: Record, others: Sequence[Record]) -> Record | None:
    """The run without a rule on the same samples: among the others, or beside this one in ``RUNS/TASK/none/SEED``."""
    if not record.taught or record.samples is None:
        return None
    beside = record.path.parent.parent / NO_RULE / str(record.seed)
    candidates = [other for other in others if other.method == NO_RULE and other.task == record.task]
    if (beside / CONFIG).is_file():
        with contextlib.suppress(DataError):  # a damaged neighbour is no baseline, and no reason to show nothing
            candidates.append(read_run(beside))
    return next((other for other in candidates if other.samples == record.samples), None)


def _check(diagnosis: Any, file: Path) -> None:
    """Refuse what another version, or a hand, has written."""
    parts = [diagnosis.get(part) for part in (VALIDATION, POOL)] if isinstance(diagnosis, dict) else []
    known = [part for part in parts if part is not None]
    if not known or any(not isinstance(part, dict) or not part.keys() >= KEYS for part in known) or "history" not in diagnosis:
        raise DataError(f"{file} is not what dualogic run writes; delete it, or run again in another folder")
    for part in known:
        try:
            ShortcutReport.from_dict(part["report"])
        except DataError as error:
            raise DataError(f"{file}: {error}; delete it, or run again in another folder") from error


def _order(folder: Path) -> tuple[str, int, str, int, str]:
    """Task, then arms in the order of tables, then seeds by number."""
    method, seed = folder.parent.name, folder.name
    known = names(entropy=True)
    place = known.index(method) if method in known else len(known)
    return (folder.parent.parent.name, place, method, int(seed) if seed.isdigit() else -1, seed)
