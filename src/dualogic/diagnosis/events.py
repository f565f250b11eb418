"""TensorBoard events of a run: measures, delta, weights and which branch holds; off by default."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

import torch

from dualogic.errors import needs
from dualogic.loss import LogicLoss

MOST_ROWS = 4096  # rows of the table in a histogram, evenly spaced


class Events(contextlib.AbstractContextManager["Events"]):
    """Writes scalars and histograms into a folder that ``tensorboard --logdir`` reads.

    Used by the runner and by the Lightning integration. A run that goes on after a stop at step ``first`` hides what it wrote
    after its checkpoint.
    """

    def __init__(self, folder: Path, first: int = 0) -> None:
        with needs("events", "tensorboard is not installed"):
            from torch.utils.tensorboard.writer import SummaryWriter
        self._writer = SummaryWriter(str(folder), purge_step=first if first else None)

    def write(self, step: int, scalars: Mapping[str, float], logic: LogicLoss | None = None) -> None:
        """Write numbers by name (a slash makes a group) and, as histograms, the weights of each operand of each connective."""
        for name, value in scalars.items():
            self._writer.add_scalar(name, value, step)
        if logic is not None:
            for name, weights in weights_by_operand(logic).items():
                self._writer.add_histogram(f"weights/{name}", weights, step)
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()

    def __exit__(self, *raised: object) -> None:
        self.close()


def weights_by_operand(logic: LogicLoss) -> dict[str, torch.Tensor]:
    """The weights of each operand over (at most :data:`MOST_ROWS`) samples, flat, on the CPU."""
    index = None
    if logic.num_samples is not None:
        index = torch.arange(0, logic.num_samples, max(1, logic.num_samples // MOST_ROWS), device=logic.delta.device)
    return {
        f"{path}/operand_{position}": part.flatten().cpu()
        for path, weights in logic.weights(index).items()
        for position, part in enumerate(weights.unbind(-1))
    }
