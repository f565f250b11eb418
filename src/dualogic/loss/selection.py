"""A rule on part of a batch: which samples count, without ever waiting for the device to say how many."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor


@dataclasses.dataclass(frozen=True)
class Selection:
    """The samples that a call of a loss is about.

    Everything is done by masks, because a selection by indexing would have to know how many there are.

    Attributes:
        mask: ``(batch,)`` bool.
        count: how many samples are selected, in all processes together, ``()``.

    Example:
        >>> import torch
        >>> part = Selection.of(torch.tensor([True, False]))
        >>> part.only(torch.tensor([[2.0], [torch.nan]])).flatten()
        tensor([2., 0.])
    """

    mask: Tensor
    count: Tensor

    @classmethod
    def of(cls, mask: Tensor) -> Selection:
        """The selection of one process."""
        return cls(mask, mask.sum())

    def only(self, values: Tensor) -> Tensor:
        """Values ``(batch, ...)`` of the selected samples, and 0 elsewhere."""
        return torch.where(self.mask.view(-1, *(1,) * (values.dim() - 1)), values, 0.0)

    def among(self, other: Tensor | None) -> Tensor:
        """Which selected samples are also in another mask; ``None`` stands for all."""
        return self.mask if other is None else self.mask & other

    def gate(self, new: dict[str, Tensor], old: dict[str, Tensor]) -> dict[str, Tensor]:
        """``new`` if anything is selected, else ``old``."""
        return {name: torch.where(self.count > 0, value, old[name]) for name, value in new.items()}

    def mean(self, total: Tensor) -> Tensor:
        """A sum over the selected samples, divided by their number; 0 if there is none."""
        return total / self.count.clamp_min(1)
