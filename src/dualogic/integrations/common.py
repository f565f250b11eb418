"""What the integrations share: whole states of a loss, counted satisfaction, and a check for several processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from dualogic.errors import OptionError
from dualogic.formula.connective import Formula
from dualogic.loss import LogicLoss
from dualogic.loss.beliefs import rows_of_all


def whole_state(logic: LogicLoss) -> dict[str, Any]:
    """The ``state_dict()`` of a loss with sharded tables put together; called by all processes.

    It loads into a loss with any kind of table, and from a file with ``weights_only=True``.
    """
    return {name: value.full_tensor() if hasattr(value, "full_tensor") else value for name, value in logic.state_dict().items()}


def check_processes(logic: LogicLoss, processes: int) -> None:
    """Refuse to train in several processes with a loss that knows of one."""
    if processes > 1 and not logic.together:
        raise OptionError(
            f"training runs in {processes} processes, but this LogicLoss would learn in each of them apart; make it with "
            f"LogicLoss(..., process_group='world')"
        )


class Count:
    """How often rules hold, in this process."""

    def __init__(self, rules: Mapping[str, Formula], tol: float = 0.0, lead: float = 0.0) -> None:
        self.rules = rules
        self.tol, self.lead = tol, lead
        self._totals: Tensor
        self.reset()

    def update(self, tensors: Mapping[str, Tensor], where: Tensor | Mapping[str, Tensor] | None = None) -> None:
        """Count a batch; ``tensors`` by symbol, with a leading batch axis, and ``where`` as for the loss."""
        found = []
        for rule, formula in self.rules.items():
            needed = {name: torch.as_tensor(tensors[name]) for name in formula.symbols}
            mask = where.get(rule) if isinstance(where, Mapping) else where
            needed = {name: value[rows_of_all(mask, value.device)] for name, value in needed.items()}
            holds = formula.satisfied(tol=self.tol, lead=self.lead, **needed)
            found.append(torch.stack([holds.sum(), holds.new_full((), holds.numel(), dtype=torch.long)]))
        totals = torch.stack(found)
        self._totals = self._totals.to(totals.device) + totals

    def reset(self) -> None:
        """Forget what was counted."""
        self._totals = torch.zeros(len(self.rules), 2, dtype=torch.long)

    def totals(self, device: torch.device) -> Tensor:
        """How many samples each rule holds on, and of how many, ``(rules, 2)``; zeros before any batch."""
        return self._totals.to(device)

    def fractions(self, totals: Tensor | None = None) -> dict[str, float]:
        """The fraction of samples on which each rule holds, for rules that met any; ``totals`` may be those of all processes."""
        found = (self._totals if totals is None else totals).tolist()
        return {name: holding / total for name, (holding, total) in zip(self.rules, found) if total}
