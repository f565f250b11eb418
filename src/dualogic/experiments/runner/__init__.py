"""Train an experiment: configuration, run folder, loop, several runs at once."""

from __future__ import annotations

from dualogic.experiments.runner.config import Config, Machine
from dualogic.experiments.runner.folder import RunFolder
from dualogic.experiments.runner.result import Result
from dualogic.experiments.runner.sweep import run_all
from dualogic.experiments.runner.train import train

__all__ = ["Config", "Machine", "Result", "RunFolder", "run_all", "train"]
