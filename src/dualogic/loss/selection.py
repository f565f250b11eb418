"""Rules on part of a batch: which samples count, without ever waiting for the device to say how many."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from dualogic.numerics import wide


@dataclasses.dataclass(frozen=True)
class Selection:
    """The samples that a call of a loss is about.

    Everything is done by masks, because a selection by indexing would have to know how many there are.

    Example:
        >>> import torch
        >>> part = Selection.of(torch.tensor([True, False]))
        >>> part.only(torch.tensor([[2.0], [torch.nan]])).flatten()
        tensor([2., 0.])
    """

    mask: Tensor  # which samples any rule is about, `(batch,)` bool
    count: Tensor  # how many samples are selected, in all processes together, `()`; or for each rule, `(rules,)`
    # Which samples each rule is about, `(batch, rules)` bool; `None` if the mask is that of all rules.
    ruled: Tensor | None = None

    @classmethod
    def of(cls, mask: Tensor, ruled: Tensor | None = None) -> Selection:
        """The selection of one process."""
        return cls(mask, mask.sum() if ruled is None else ruled.sum(0), ruled)

    @property
    def each(self) -> Tensor:
        """What counts, for all rules ``(batch, 1)`` or for each ``(batch, rules)``."""
        return wide(self.mask if self.ruled is None else self.ruled)

    def only(self, values: Tensor) -> Tensor:
        """Values ``(batch, rules)`` of the selected samples, and 0 elsewhere."""
        return torch.where(self.each, values, 0.0)

    def among(self, other: Tensor | None) -> Tensor:
        """What counts of another mask ``(batch,)``: samples ``(batch,)``, or ``(batch, rules)``; ``None`` stands for all."""
        if self.ruled is None:
            return self.mask if other is None else self.mask & other
        return self.ruled if other is None else self.ruled & other.unsqueeze(1)

    def columns(self, owners: Tensor) -> Tensor:
        """Which stored numbers count, for all ``(batch,)`` or for each ``(batch, width)``, by the rule that owns each.

        The number of rules, as an owner, stands for all of them.
        """
        if self.ruled is None:
            return self.mask
        return torch.cat([self.ruled, self.mask.unsqueeze(1)], 1).index_select(1, owners)

    def gate(self, new: dict[str, Tensor], old: dict[str, Tensor]) -> dict[str, Tensor]:
        """``new`` if anything is selected, else ``old``."""
        some = (self.count > 0).any()
        return {name: torch.where(some, value, old[name]) for name, value in new.items()}

    def mean(self, total: Tensor) -> Tensor:
        """A sum over the selected samples, divided by their number, 0 if there is none; or the sum of that over rules."""
        return (total / self.count.clamp_min(1)).sum()
