"""From ``LogicLoss(table=...)`` to a table."""

from __future__ import annotations

from typing import Any

import torch

from dualogic.duals.table import DualTable, SharedRow
from dualogic.errors import OptionError

PLACES = ("device",)


def make_table(choice: Any, samples: int | None, width: int, dtype: torch.dtype) -> DualTable:
    """The table that holds the dual variables.

    Args:
        choice: a name out of ``PLACES``.
        samples: the number of training samples; ``None`` for one row that serves all.
        width: dual variables per sample.
        dtype: of the storage.
    """
    if not isinstance(choice, str) or choice not in PLACES:
        raise OptionError(f"table must be one of {', '.join(map(repr, PLACES))}; got {choice!r}")
    if samples is None:
        if choice != "device":
            raise OptionError(f"table={choice!r} keeps a row for each training sample; give num_samples, or leave table out")
        return SharedRow(width, dtype)
    return DualTable(samples, width, dtype)
