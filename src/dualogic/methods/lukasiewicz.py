"""Lukasiewicz's fuzzy logic: bounded sums of degrees of truth."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import torch
from torch import Tensor

from dualogic.compile.tree import Level
from dualogic.methods.truth import TruthMethod


def bounded_sum(level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
    """``max(0, sum - (k - 1))`` for ``and``, ``min(1, sum)`` for ``or``; ``(batch, k, *rest)`` to ``(batch, *rest)``."""
    if level.operation == "&":
        lacking = 1.0 - values
        return torch.relu(1.0 - (lacking if mask is None else lacking.masked_fill(~mask, 0.0)).sum(1))
    return (values if mask is None else values.masked_fill(~mask, 0.0)).sum(1).clamp(max=1.0)


@dataclasses.dataclass(frozen=True)
class Lukasiewicz(TruthMethod):
    """Fuzzy logic with bounded sums.

    The truth of an ``and`` of ``k`` operands is ``max(0, sum t - (k - 1))``, of an ``or`` is ``min(1, sum t)``, of ``~a`` is
    ``1 - a``, so that ``a >> b`` is ``min(1, 1 - a + b)``; quantifiers are the same over all entries. An ``and`` of many
    operands of middling truth is at 0, where it has no gradient.

    Source: van Krieken, Acar, van Harmelen, "Analyzing differentiable fuzzy logic operators", Artificial Intelligence 2022.
    The arguments are those of :class:`~dualogic.methods.truth.TruthMethod`.

    Example:
        >>> import dualogic as dl, torch
        >>> a, b = dl.boolean("a"), dl.boolean("b")
        >>> dl.LogicLoss(a & b, method="lukasiewicz")(a=torch.tensor([0.75]), b=torch.tensor([0.5]))
        tensor(0.7500)
    """

    name: ClassVar[str] = "lukasiewicz"

    def combine(self, level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
        return bounded_sum(level, values, mask, extent)
