"""Runs on disk: one JSON file for each problem, with one line for each run."""

import contextlib
import dataclasses
import json
import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dualogic.errors import DataError
from dualogic.files import write_whole

try:
    import fcntl
except ImportError:  # not on Windows, where two commands must not share a folder
    fcntl = None  # type: ignore[assignment]
Key = tuple[str, str, float, int]


@dataclasses.dataclass(frozen=True)
class Run:
    """A run that has ended."""

    problem: str  # its name
    method: str  # its name, with the options that were asked for
    weight: float  # of the loss of the rules
    seed: int  # of the run
    metrics: dict[str, float]  # what was measured; empty if the run failed
    options: str = ""  # the method with all its options
    failure: str | None = None  # why there are no figures: the method refuses the rules, or training broke down
    seconds: float = 0.0  # of one core
    commit: str = ""  # of the code
    date: str = ""  # on which it ended
    versions: dict[str, str] = dataclasses.field(default_factory=dict)  # of Python, torch and numpy

    @property
    def key(self) -> Key:
        """What a store holds once."""
        return self.problem, self.method, self.weight, self.seed


class Store:
    """A folder of runs, made when the first is added. Several commands may write to it at once."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def read(self, problem: str | None = None) -> list[Run]:
        """All runs, or those of one problem."""
        files = sorted(self.folder.glob("*.json" if problem is None else f"{problem}.json"))
        return [run for file in files for run in _read(file)]

    def add(self, runs: Iterable[Run]) -> None:
        """Keep runs; one that is there already is replaced. A file is whole or as before, whatever happens."""
        self.folder.mkdir(parents=True, exist_ok=True)
        new: dict[str, dict[Key, Run]] = {}
        for run in runs:
            new.setdefault(run.problem, {})[run.key] = run
        with self._locked():
            for problem, found in new.items():
                merged = {run.key: run for run in self.read(problem)} | found
                lines = ",\n ".join(json.dumps(_to_json(merged[key])) for key in sorted(merged))
                with write_whole(self.folder / f"{problem}.json") as file:
                    file.write(f'{{"runs": [\n {lines}\n]}}\n'.encode())

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        if fcntl is None:
            yield
            return
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _read(file: Path) -> list[Run]:
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))["runs"]
        for row in rows:  # JSON has no NaN
            row["metrics"] = {name: math.nan if value is None else float(value) for name, value in row["metrics"].items()}
        return [Run(**row) for row in rows]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f'{file} must be an object {{"runs": [...]}} of runs, as `dualogic everyday` writes it; got {error}. '
            "Move the file away, or choose another folder with --out"
        ) from error


def _to_json(run: Run) -> dict[str, Any]:
    # Six digits are more than any table shows.
    metrics = {name: None if math.isnan(value) else float(f"{value:.6g}") for name, value in run.metrics.items()}
    return {**dataclasses.asdict(run), "metrics": metrics}
