"""A run's folder: nothing in it is ever half-written."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from dualogic.errors import StateError
from dualogic.experiments.runner.config import Config

CONFIG, METRICS, RESULT, CHECKPOINT, MODEL, DUALS, DIAGNOSIS = (
    "config.json",
    "metrics.jsonl",
    "result.json",
    "checkpoint.pt",
    "model.pt",
    "duals.pt",
    "diagnosis.json",
)


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """The files of one run.

    ``config.json``, ``metrics.jsonl`` (a line for each measured epoch), ``checkpoint.pt`` (all that is needed to go on), and
    when the run has ended ``model.pt`` (the chosen weights), ``duals.pt`` (the state of the ``LogicLoss``), ``diagnosis.json``
    (how its rules are satisfied, for ``dualogic report``) and ``result.json``.

    Args:
        path: of the folder; made when first written to.
    """

    path: Path

    def open(self, config: Config) -> None:
        """Make the folder, or find the run of the same configuration in it.

        Raises:
            StateError: if it holds a run of another configuration.
        """
        file = self.path / CONFIG
        if file.exists():
            differences = config.differences(json.loads(file.read_text(encoding="utf-8")))
            if differences:
                raise StateError(
                    f"{self.path} holds a run of another configuration ({'; '.join(differences)}); choose another --runs folder, "
                    f"or delete this one"
                )
            return
        self.write_text(CONFIG, json.dumps(config.as_dict(), indent=1) + "\n")

    @property
    def result(self) -> dict[str, Any] | None:
        """The result, if the run has ended."""
        file = self.path / RESULT
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None

    def write_text(self, name: str, text: str) -> None:
        """Write a text file whole or not at all."""
        self._write(name, text.encode())

    def write_lines(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write JSON lines whole or not at all."""
        self.write_text(name, "".join(json.dumps(row) + "\n" for row in rows))

    def save(self, name: str, value: Any) -> None:
        """``torch.save``, whole or not at all."""
        buffer = io.BytesIO()
        torch.save(value, buffer)
        self._write(name, buffer.getvalue())

    def load(self, name: str) -> Any:
        """What was saved, on the CPU; ``None`` if nothing was."""
        file = self.path / name
        return torch.load(file, map_location="cpu", weights_only=True) if file.exists() else None

    def forget(self, name: str) -> None:
        """Delete a file that is needed no longer."""
        with contextlib.suppress(FileNotFoundError):
            (self.path / name).unlink()

    def _write(self, name: str, content: bytes) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        part = self.path / f".{name}.{os.getpid()}.part"
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.path / name)
