"""A run's folder: nothing in it is ever half-written."""

import contextlib
import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import torch

from dualogic.errors import DataError, StateError
from dualogic.files import remove_leftovers, write_whole
from dualogic.report import CONFIG, DIAGNOSIS, METRICS, RESULT, read_object
from dualogic_paper.runner.config import Config
from dualogic_paper.runner.stored import ABOUT, check_result, load_sealed, read_config, seal
from dualogic_paper.tasks import TASKS

__all__ = ["CHECKPOINT", "CONFIG", "DIAGNOSIS", "DUALS", "METRICS", "MODEL", "RESULT", "RunFolder"]

CHECKPOINT, MODEL, DUALS = "checkpoint.pt", "model.pt", "duals.pt"


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """The files of one run: ``config.json``, ``metrics.jsonl``, ``checkpoint.pt``, and when it has ended ``model.pt`` (the chosen
    weights), ``duals.pt`` (the state of the ``LogicLoss``), ``diagnosis.json`` (for ``dualogic report``) and ``result.json``.
    """

    path: Path

    def open(self, config: Config) -> None:
        """Make the folder, or find the run of the same configuration in it; clears away what a killed run was writing."""
        remove_leftovers(self.path)
        file = self.path / CONFIG
        if file.exists():
            there = read_config(file)
            if there["task"]["name"] not in TASKS:
                raise DataError(f"{file} is of a task that does not exist, {there['task']['name']!r}; delete it, or restore it")
            differences = config.differences(there)
            if differences:
                raise StateError(
                    f"{self.path} holds a run of another configuration ({'; '.join(differences)}); choose another --runs folder, "
                    f"or delete this one"
                )
            return
        self.write_json(CONFIG, {**config.as_dict(), ABOUT: config.about}, indent=1)

    def remove_unused(self) -> None:
        """Remove the folder if nothing was computed in it, and those above it that are empty then, up to that of all runs."""
        with contextlib.suppress(OSError):  # a folder that is not empty stays
            if [file.name for file in self.path.iterdir()] == [CONFIG]:
                self.forget(CONFIG)
                for folder in (self.path, *list(self.path.parents)[:3]):
                    folder.rmdir()

    @property
    def result(self) -> dict[str, Any] | None:
        """The result, if the run has ended."""
        file = self.path / RESULT
        return check_result(read_object(file), file) if file.exists() else None

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole or not at all."""
        self.path.mkdir(parents=True, exist_ok=True)
        with write_whole(self.path / name) as file:
            file.write(content)

    def write_json(self, name: str, *values: Any, indent: int | None = None) -> None:
        """Write one value, or one in each line."""
        self.write(name, "".join(json.dumps(value, indent=indent) + "\n" for value in values).encode())

    def save(self, name: str, value: Any) -> None:
        """``torch.save`` with a checksum at the end; ``torch.load`` reads it too."""
        buffer = io.BytesIO()
        torch.save(value, buffer)
        self.write(name, seal(buffer.getvalue()))

    def load(self, name: str) -> Any:
        """What was saved, on the CPU; ``None`` if nothing was."""
        file = self.path / name
        return load_sealed(file) if file.exists() else None

    def forget(self, name: str) -> None:
        """Delete a file that is needed no longer."""
        with contextlib.suppress(FileNotFoundError):
            (self.path / name).unlink()
