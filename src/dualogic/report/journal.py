"""The files of a run folder that a :class:`~dualogic.report.recorder.Recorder` writes, each whole or not there."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dualogic.errors import StateError
from dualogic.files import remove_leftovers, write_whole
from dualogic.report.reading import read_run
from dualogic.report.stored import CONFIG, DIAGNOSIS, METRICS, RESULT, check_config, read_object
from dualogic.report.summary import MOST_POINTS, thin

WRITER = "dl.Recorder"


class Journal:
    """What is known of a run so far, and its folder, which is made when first written to."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self.folder, self.config = folder, {**config, "writer": WRITER}
        self.rows: list[dict[str, float]] = []
        self.points: list[dict[str, Any]] = []
        self.parts: dict[str, Any] = {}

    def open(self, epochs_done: int) -> None:
        """Begin anew, or after some epochs of the run in the folder, which a recorder must have written, of these rules."""
        remove_leftovers(self.folder)
        self.rows, self.points, self.parts = [], [], {}
        file = self.folder / CONFIG
        there = check_config(read_object(file), file) if file.exists() else None
        if there is not None and there.get("writer") != WRITER:
            raise StateError(f"{self.folder} holds a run that no recorder wrote; choose another folder, or delete this one")
        if there is not None and epochs_done:
            changed = [key for key in ("task", "method", "seed", "rules") if there.get(key) != self.config[key]]
            if changed:
                raise StateError(
                    f"{self.folder} holds a run with another {changed[0]}, {there.get(changed[0])!r}, and cannot go on after "
                    f"epoch {epochs_done} with {self.config[changed[0]]!r}; choose another folder"
                )
            record = read_run(self.folder)
            self.rows = [row for row in record.history if row["epoch"] <= epochs_done]
            self.points = [one for one in record.points if one["epoch"] <= epochs_done]
        for name in (RESULT, DIAGNOSIS, METRICS):  # the end first: what is left by a kill is a run that has not ended
            with contextlib.suppress(FileNotFoundError):
                (self.folder / name).unlink()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write(CONFIG, json.dumps(self.config, indent=1) + "\n")

    def add(self, row: dict[str, float], point: dict[str, Any]) -> None:
        """Note an epoch; an epoch that was noted before is replaced."""
        self.rows = [one for one in self.rows if one["epoch"] < row["epoch"]] + [row]
        self.points = [one for one in self.points if one["epoch"] < row["epoch"]]
        if len(point) > 1:
            self.points.append(point)
        if len(self.points) > 2 * MOST_POINTS:
            self.points = thin(self.points)

    def complete(self, part: str, summary: Mapping[str, Any]) -> None:
        """Add what was measured at the end to the last epoch."""
        epoch = self.rows[-1]["epoch"]
        if not self.points or self.points[-1]["epoch"] != epoch:
            self.points.append({"epoch": epoch})
        self.points[-1].setdefault(part, summary)

    def write(self) -> None:
        """Write what is known so far."""
        self._write(METRICS, "".join(json.dumps(row) + "\n" for row in self.rows))
        if self.points or self.parts:
            self._write(DIAGNOSIS, json.dumps({"history": self.points, **self.parts}) + "\n")

    def end(self, result: Mapping[str, Any]) -> None:
        """Write how the run ended."""
        self._write(RESULT, json.dumps({"config": self.config, **result}, indent=1) + "\n")

    def _write(self, name: str, text: str) -> None:
        with write_whole(self.folder / name) as file:
            file.write(text.encode())
