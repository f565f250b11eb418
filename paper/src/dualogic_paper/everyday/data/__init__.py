"""Small data sets that travel with the problems, so that nothing has to be fetched; README.md says where they come from."""

from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt
import torch


def load(name: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays of one file, by name."""
    with files(__package__).joinpath(f"{name}.npz").open("rb") as file, np.load(file) as archive:
        return {key: archive[key] for key in archive.files}


def load_images() -> tuple[torch.Tensor, torch.Tensor]:
    """The digits: images ``(1797, 1, 8, 8)`` in [0, 1], and what they show ``(1797,)``."""
    arrays = load("digits")
    images = torch.tensor(arrays["images"], dtype=torch.float32).unsqueeze(1) / 16
    return images, torch.tensor(arrays["labels"], dtype=torch.long)
