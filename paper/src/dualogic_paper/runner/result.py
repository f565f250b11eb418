"""What is kept of a run that has ended."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch

from dualogic_paper.runner.config import Config


@dataclasses.dataclass(frozen=True)
class Result:
    """A run in numbers."""

    config: dict[str, Any]  # see :class:`~dualogic_paper.runner.config.Config`
    method: str  # with all its options, as text
    chosen_epoch: int  # whose weights had the best validation figure
    validation: dict[str, float]  # measures of the chosen weights
    test: dict[str, float]  # measures of the chosen weights; nothing was chosen by them
    last: dict[str, float]  # test measures of the last weights
    pool: dict[str, float]  # what the duals say about the training samples that the rule saw, at the end
    history: list[dict[str, float]]  # a thinned learning curve
    steps: int  # of training
    seconds: float  # of training, without measuring
    machine: dict[str, str]  # where it ran
    commit: str  # of dualogic
    failure: str | None = None  # why training stopped early; ``None`` if it did not
    # see :attr:`~dualogic_paper.runner.config.Config.settings`; ``None`` in results of earlier versions
    settings: dict[str, Any] | None = None
    date: str = ""  # of the end of the run, in UTC; empty in results of earlier versions

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON, with numbers to six digits."""
        return _round(dataclasses.asdict(self))  # type: ignore[no-any-return]


def list_facts(config: Config, result: Result) -> list[list[str]]:
    """Label and value of the settings and measures of a run that has ended, as ``dualogic report`` shows them."""
    from dualogic_paper.tables.naming import describe_column

    facts = [["method", result.method or config.method]]
    if config.options:
        facts.append(["options", ", ".join(f"{key}={value}" for key, value in config.options.items())])
    facts += [["epochs", str(config.task.epochs)], ["chosen epoch", str(result.chosen_epoch)]]
    facts.append(["training", f"{result.seconds:.0f} s"])
    columns = config.task.columns
    measured = [(column, result.test[column.key]) for column in columns if result.test.get(column.key) is not None]
    facts += [[f"test {describe_column(column, columns)}", f"{value:.{column.decimals}f}"] for column, value in measured]
    return [*facts, ["commit", result.commit]]


def describe_machine(device: torch.device) -> dict[str, str]:
    """What ran: processor or GPU, and versions."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {"device": name, "torch": torch.__version__, "python": platform.python_version()}


def find_date() -> str:
    """Today, in UTC, such as ``"2026-01-31"``."""
    return dt.datetime.now(dt.timezone.utc).date().isoformat()


@functools.cache
def find_commit() -> str:
    """The commit of the source, marked ``+`` if the source was changed since; the version if there is no repository.

    ``DUALOGIC_COMMIT`` in the environment says it for a copy of the source without its repository.
    """
    from dualogic import __version__

    if os.environ.get("DUALOGIC_COMMIT"):
        return os.environ["DUALOGIC_COMMIT"]
    try:
        return _git("rev-parse", "--short", "HEAD") + ("+" if _git("status", "--short", "--", ":/src", ":/paper/src") else "")
    except (OSError, subprocess.CalledProcessError):
        return f"version {__version__}"


def _git(*words: str) -> str:
    call = ["git", "-C", str(Path(__file__).parent), *words]
    return subprocess.run(call, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603


def _round(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _round(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_round(entry) for entry in value]
    return value
