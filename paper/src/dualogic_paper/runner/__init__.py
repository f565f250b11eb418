"""Train an experiment: configuration, run folder, loop, several runs at once."""

from dualogic_paper.runner.config import Config, Machine
from dualogic_paper.runner.folder import RunFolder
from dualogic_paper.runner.stored import Result
from dualogic_paper.runner.sweep import run_all
from dualogic_paper.runner.train import train

__all__ = ["Config", "Machine", "Result", "RunFolder", "run_all", "train"]
