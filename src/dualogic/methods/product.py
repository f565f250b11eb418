"""The product t-norm and its probabilistic sum."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from torch import Tensor

from dualogic import numerics
from dualogic.compile.tree import Level
from dualogic.methods.truth import TruthMethod


@dataclasses.dataclass(frozen=True)
class Product(TruthMethod):
    """Fuzzy logic with products: as if all operands were independent events.

    The truth of ``a & b`` is ``a b``, of ``a | b`` is ``1 - (1 - a)(1 - b)``, of ``~a`` is ``1 - a``, so that ``a >> b`` is
    Reichenbach's ``1 - a + a b``; quantifiers are the same over all entries. Unlike ``semantic`` it forgets that an atom
    that occurs twice is one event.

    Source: van Krieken, Acar, van Harmelen, "Analyzing differentiable fuzzy logic operators", Artificial Intelligence 2022.
    The arguments are those of :class:`~dualogic.methods.truth.TruthMethod`.

    Example:
        >>> import dualogic as dl, torch
        >>> a, b = dl.boolean("a"), dl.boolean("b")
        >>> dl.LogicLoss(a | b, method="product")(a=torch.tensor([0.5]), b=torch.tensor([0.5]))
        tensor(0.2500)
    """

    name: ClassVar[str] = "product"

    def combine(self, level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
        factors = values if level.operation == "&" else 1.0 - values
        product = numerics.product(factors if mask is None else factors.masked_fill(~mask, 1.0))
        return product if level.operation == "&" else 1.0 - product
