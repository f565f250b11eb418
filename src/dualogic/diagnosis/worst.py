"""The samples of the largest cost, kept while batches go by."""

from __future__ import annotations

import torch
from torch import Tensor


class Worst:
    """For each rule, the samples of the largest cost; of equal ones, the earliest.

    Args:
        count: how many to keep.
        rules: the number of rules.

    Attributes:
        costs: ``(kept, rules)``, the largest first.
        facts: ``(kept, rules, 4)``: position, index, label (-1 where there is none), whether the rule holds.
    """

    def __init__(self, count: int, rules: int) -> None:
        self.count = count
        self.costs = torch.zeros(0, rules, dtype=torch.float64)
        self.facts = torch.zeros(0, rules, 4, dtype=torch.long)

    def add(self, costs: Tensor, holds: Tensor, index: Tensor | None, labels: Tensor | None, offset: int) -> None:
        """Take a batch into account.

        Args:
            costs: at the optimal duals, ``(batch, rules)``.
            holds: which rules hold, ``(batch, rules)``.
            index: names of the samples, ``(batch,)``.
            labels: their classes, ``(batch,)``.
            offset: how many samples came before.
        """
        if not self.count:
            return
        position = torch.arange(offset, offset + len(costs), device=costs.device)
        missing = torch.full_like(position, -1)
        common = torch.stack([position, missing if index is None else index, missing if labels is None else labels], -1)
        # Stable, so that the earliest of equal samples are kept whatever the batches.
        order = costs.sort(dim=0, descending=True, stable=True).indices[: self.count]
        facts = torch.cat([common[order], holds.gather(0, order).long().unsqueeze(-1)], -1)
        self._keep(costs.gather(0, order).double().cpu(), facts.cpu())

    def merge_(self, other: Worst, offset: int) -> None:
        """Add the samples of another, whose positions are counted on from ``offset``."""
        facts = other.facts.clone()
        facts[..., 0] += offset
        self._keep(other.costs, facts)

    def _keep(self, costs: Tensor, facts: Tensor) -> None:
        costs, facts = torch.cat([self.costs, costs]), torch.cat([self.facts, facts])
        order = costs.sort(dim=0, descending=True, stable=True).indices[: self.count]
        self.costs = costs.gather(0, order)
        self.facts = facts.gather(0, order.unsqueeze(-1).expand(-1, -1, 4))
