"""Hard satisfaction as a metric; needs torchmetrics (``pip install -e '.[metrics]'``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from dualogic.errors import FormulaTypeError, SymbolError, needs
from dualogic.formula.connective import Formula, as_formula

with needs("metrics", "dl.metrics needs torchmetrics"):
    from torchmetrics import Metric

__all__ = ["Satisfaction"]


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
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    holding: Tensor
    total: Tensor

    def __init__(self, rules: Formula | Mapping[str, Formula], tol: float = 0.0, lead: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._named = isinstance(rules, Mapping)
        self.rules = dict(rules) if isinstance(rules, Mapping) else {"rule": rules}
        if not self.rules:
            raise FormulaTypeError("Satisfaction needs at least one rule")
        # The names of all symbols are looked up once; a clash of declarations shows here, not in the training loop.
        self._symbols = {name: frozenset(as_formula(formula, f"rule {name!r}").symbols) for name, formula in self.rules.items()}
        self.tol = tol
        self.lead = lead
        self.add_state("holding", torch.zeros(len(self.rules), dtype=torch.long), dist_reduce_fx="sum")
        self.add_state("total", torch.zeros(len(self.rules), dtype=torch.long), dist_reduce_fx="sum")

    def update(self, **tensors: Tensor) -> None:
        """Count a batch; ``tensors`` hold the symbols of all rules, by name."""
        if unknown := [name for name in tensors if not any(name in symbols for symbols in self._symbols.values())]:
            wanted = ", ".join(sorted(frozenset().union(*self._symbols.values())))
            raise SymbolError(f"{unknown[0]!r} is not a symbol of any rule of this metric; their symbols are {wanted}")
        holding, counts = [], []
        for name, formula in self.rules.items():
            needed = {key: tensor for key, tensor in tensors.items() if key in self._symbols[name]}
            holds = formula.satisfied(tol=self.tol, lead=self.lead, **needed)
            holding.append(holds.sum())
            counts.append(holds.numel())
        # Nothing is counted unless every rule could be evaluated.
        self.holding += torch.stack(holding)
        self.total += torch.tensor(counts, device=self.total.device)

    def compute(self) -> Tensor | dict[str, Tensor]:
        """The fraction for a lone formula, or a mapping from rule names to fractions; NaN before any sample."""
        fraction = (self.holding.double() / self.total.double()).float()
        if not self._named:
            return fraction[0]
        return {name: fraction[position] for position, name in enumerate(self.rules)}
