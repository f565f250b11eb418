"""The fraction of samples on which rules hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from dualogic.errors import MissingExtraError
from dualogic.formula.connective import Formula, as_formula

try:
    from torchmetrics import Metric
except ImportError as error:  # pragma: no cover - exercised by a test that hides the package
    raise MissingExtraError("dl.metrics needs torchmetrics; install it with: pip install 'dualogic[metrics]'") from error


class Satisfaction(Metric):
    """How often rules hold, synchronised across processes.

    Args:
        rules: a formula, or a mapping of names to formulas; axes that are not quantified count entry by entry.
        tol: see :meth:`dualogic.Formula.satisfied`.
        lead: see :meth:`dualogic.Formula.satisfied`.
        kwargs: passed on to torchmetrics.

    Example:
        >>> import dualogic as dl, torch
        >>> metric = dl.metrics.Satisfaction(dl.var("x") <= 1)
        >>> metric.update(x=torch.tensor([0.5, 2.0, 1.0, 0.0]))
        >>> metric.compute()
        tensor(0.7500)
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False

    holding: Tensor
    total: Tensor

    def __init__(self, rules: Formula | Mapping[str, Formula], tol: float = 0.0, lead: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._named = isinstance(rules, Mapping)
        self.rules = dict(rules) if isinstance(rules, Mapping) else {"rule": rules}
        for name, formula in self.rules.items():
            as_formula(formula, f"rule {name!r}")
        self.tol = tol
        self.lead = lead
        self.add_state("holding", torch.zeros(len(self.rules), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("total", torch.zeros(len(self.rules), dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, **tensors: Tensor) -> None:
        """Count a batch; ``tensors`` hold the symbols of all rules."""
        for position, formula in enumerate(self.rules.values()):
            needed = {name: tensor for name, tensor in tensors.items() if name in formula.symbols or len(self.rules) == 1}
            holds = formula.satisfied(tol=self.tol, lead=self.lead, **needed)
            self.holding[position] += holds.sum()
            self.total[position] += holds.numel()

    def compute(self) -> Tensor | dict[str, Tensor]:
        """The fraction for a lone formula, or a mapping from rule names to fractions."""
        fraction = (self.holding / self.total).float()
        if not self._named:
            return fraction[0]
        return {name: fraction[position] for position, name in enumerate(self.rules)}
