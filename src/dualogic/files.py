"""Files that are whole or not there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch


def save_whole(value: Any, path: str | os.PathLike[str]) -> None:
    """``torch.save`` under a temporary name, then renamed: whoever reads ``path`` finds the old file or the new one.

    Args:
        value: such as ``{"model": model.state_dict(), "logic": logic.state_dict()}``.
        path: of the file.

    Example:
        >>> import tempfile, torch
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_whole({"step": torch.tensor(3)}, f"{folder}/run.pt")
        ...     torch.load(f"{folder}/run.pt", weights_only=True)
        {'step': tensor(3)}
    """
    target = Path(path)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            torch.save(value, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
