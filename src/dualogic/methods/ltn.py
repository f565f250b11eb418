"""Logic Tensor Networks: the stable product with p-mean quantifiers."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import torch
from torch import Tensor

from dualogic.compile.tree import Level
from dualogic.errors import OptionError
from dualogic.formula.connective import Quantifier
from dualogic.methods.truth import TruthMethod


@dataclasses.dataclass(frozen=True)
class LTN(TruthMethod):
    """Logic Tensor Networks' stable product real logic.

    With ``pi_0(x) = (1 - e) x + e`` and ``pi_1(x) = (1 - e) x`` the truth of ``a & b`` is ``pi_0(a) pi_0(b)`` and of ``a | b``
    is ``1 - (1 - pi_1(a)) (1 - pi_1(b))``; a chain is folded from the left, and ``a >> b`` is Reichenbach's. Quantifiers are
    generalised means: ``.all()`` is ``1 - mean((1 - pi_1(x))^p)^(1/p)`` and ``.any()`` is ``mean(pi_0(x)^p)^(1/p)``, so an
    ``and`` over an axis weighs all of its entries and a larger ``p`` listens to the worst. The shifts keep gradients finite,
    and leave a rule that holds with a cost of the order of ``e``.

    Source: Badreddine, d'Avila Garcez, Serafini, Spranger, "Logic Tensor Networks", Artificial Intelligence 2022; values
    and gradients equal those of LTNtorch. Samples and rules are averaged and summed by
    :class:`~dualogic.LogicLoss`, where LTN would take one more p-mean over them.

    Args:
        p_all: the exponent of ``.all()``.
        p_any: the exponent of ``.any()``.
        epsilon: the shift; 0 gives the plain product.

    The other arguments are those of :class:`~dualogic.methods.truth.TruthMethod`.

    Example:
        >>> import dualogic as dl, torch
        >>> b = dl.boolean("b", 3)
        >>> logic = dl.LogicLoss(b.all(), method=dl.methods.LTN(p_all=2, epsilon=0.0))
        >>> logic(b=torch.tensor([[1.0, 1.0, 0.25]]))  # sqrt(0.75 ** 2 / 3)
        tensor(0.4330)
    """

    name: ClassVar[str] = "ltn"

    p_all: float = 2.0
    p_any: float = 2.0
    epsilon: float = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("p_all", self.p_all), ("p_any", self.p_any)):
            if not 1 <= value < torch.inf:
                raise OptionError(f"{name} is the exponent of a mean and must be at least 1 and finite; got {value!r}")
        if not 0 <= self.epsilon < 1:
            raise OptionError(f"epsilon must be at least 0 and below 1; got {self.epsilon!r}")

    def combine(self, level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
        if isinstance(level.formulas[0], Quantifier):
            return self._aggregate(level.operation, values, mask)
        if level.order != tuple(range(len(level.order))):
            values = torch.cat([values.narrow(1, slot, 1) for slot in level.order], dim=1)
        kept = 1.0 - self.epsilon
        if level.operation == "&":
            return self._chain(values, kept * values + self.epsilon)
        # With n = 1 - truth, an "or" is the same chain: n' = (kept n + e) (1 - pi_1(x)).
        return 1.0 - self._chain(1.0 - values, 1.0 - kept * values)

    def _aggregate(self, operation: str, values: Tensor, mask: Tensor | None) -> Tensor:
        if not values.shape[1]:
            return values.sum(1) + float(operation == "&")
        kept = 1.0 - self.epsilon
        if operation == "&":
            base, exponent = (1.0 - kept * values).clamp_min(0.0), self.p_all
        else:
            base, exponent = (kept * values + self.epsilon).clamp_min(0.0), self.p_any
        if mask is not None:
            base = base.masked_fill(~mask, 0.0)
        # Relative to the largest, no large exponent takes all powers to 0, where the root has an infinite slope. The value does
        # not depend on it, so that it gets no gradient.
        largest = base.detach().amax(1, keepdim=True)
        powers = (base / torch.where(largest > 0, largest, 1.0)) ** exponent
        mean = powers.mean(1) if mask is None else powers.sum(1) / mask.sum(1).clamp_min(1)
        root = torch.where(mean > 0, mean, 1.0) ** (1.0 / exponent) * largest.squeeze(1)
        return 1.0 - root if operation == "&" else root

    def _chain(self, first: Tensor, shifted: Tensor) -> Tensor:
        """``y_k (e + c y_{k-1} (e + ... c y_2 (e + c x_1)))``: a left fold over dimension 1, without a loop over operands."""
        kept = 1.0 - self.epsilon
        tails = shifted[:, 1:].flip(1).cumprod(1)
        powers = kept ** torch.arange(tails.shape[1], dtype=tails.dtype, device=tails.device)
        scaled = tails * powers.view(1, -1, *(1,) * (tails.dim() - 2))
        return self.epsilon * scaled.sum(1) + kept * scaled[:, -1] * first[:, 0]
