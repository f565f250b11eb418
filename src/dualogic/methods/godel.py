"""Goedel's fuzzy logic: minimum and maximum of degrees of truth."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from torch import Tensor

from dualogic.compile.tree import Level
from dualogic.methods.truth import TruthMethod


@dataclasses.dataclass(frozen=True)
class Godel(TruthMethod):
    """Fuzzy logic with ``and = min`` and ``or = max`` over degrees of truth.

    The truth of ``a & b`` is ``min(a, b)``, of ``a | b`` is ``max(a, b)``, of ``~a`` is ``1 - a``, so that ``a >> b`` is
    Kleene-Dienes' ``max(1 - a, b)``; quantifiers are the same over all entries. Only the operand that decides gets a gradient.

    Source: van Krieken, Acar, van Harmelen, "Analyzing differentiable fuzzy logic operators", Artificial Intelligence 2022.
    The arguments are those of :class:`~dualogic.methods.truth.TruthMethod`.

    Example:
        >>> import dualogic as dl, torch
        >>> a, b = dl.boolean("a"), dl.boolean("b")
        >>> dl.LogicLoss(a & b, method="godel")(a=torch.tensor([0.5]), b=torch.tensor([0.25]))
        tensor(0.7500)
    """

    name: ClassVar[str] = "godel"

    def combine(self, level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
        if values.shape[1] == 0:
            return values.sum(1) + float(level.operation == "&")  # a sum of nothing, which still has a gradient
        if level.operation == "&":
            return (values if mask is None else values.masked_fill(~mask, 1.0)).amin(1)
        return (values if mask is None else values.masked_fill(~mask, 0.0)).amax(1)
