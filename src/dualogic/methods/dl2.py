"""DL2: costs added for ``and`` and multiplied for ``or``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from dualogic import numerics
from dualogic.arguments import check_choice, check_finite
from dualogic.compile.atoms import Compare
from dualogic.compile.binding import Bound
from dualogic.compile.evaluate import CLASS_COSTS
from dualogic.compile.tree import Level
from dualogic.formula.connective import Formula
from dualogic.methods.base import Method, Program, State, compile_costs
from dualogic.methods.straight import Steps


@dataclasses.dataclass(frozen=True)
class DL2(Method):
    """DL2's translation: a conjunction costs the sum of its operands, a disjunction their product.

    ``L(v <= c) = max(v - c, 0)``, ``L(v == c) = |v - c|``, ``L(v != c) = xi [v = c]``, ``L(v < c) = max(v - c, 0) + xi [v = c]``,
    ``L(a & b) = L(a) + L(b)``, ``L(a | b) = L(a) L(b)``; negations are pushed down to the atoms and quantifiers are sums and
    products over all entries. The cost is 0 exactly where the rule holds. A class atom ``f == k`` stands for ``p_k = 1`` and
    costs ``1 - p_k``; ``f != k`` is "some other class has probability 1", a product over the others, as in the paper's
    comparison. A product vanishes with its smallest factor, and with it the gradient of all others.

    What is believed (``believe=`` of the loss) plays no part: there are no weights that it could decide.

    Source: Fischer et al., "DL2: Training and querying neural networks with logic", ICML 2019.

    Args:
        weight: factor of the loss; DL2 leaves it to the user.
        strictness: the constant ``xi``.
        class_cost: ``"probability"`` for ``1 - p``; ``"log"`` for ``-log p``, with which ``f != k`` is a single atom.

    Example:
        >>> import dualogic as dl, torch
        >>> x, y = dl.var("x"), dl.var("y")
        >>> logic = dl.LogicLoss((x <= 1) | (y < 0), method=dl.methods.DL2(weight=0.5))
        >>> logic(x=torch.tensor([3.0, 3.0, 1.0]), y=torch.tensor([4.0, 0.0, 9.0]))  # (2 * 4 + 2 * xi + 0) / 2 / 3
        tensor(1.6667)
    """

    name: ClassVar[str] = "dl2"

    weight: float = 1.0
    strictness: float = 1.0
    class_cost: str = "probability"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("class_cost", self.class_cost, CLASS_COSTS)
        check_finite("weight", self.weight)
        check_finite("strictness", self.strictness, above=True)

    def program(self, rules: Mapping[str, Formula]) -> DL2Program:
        return DL2Program(rules, self)


class DL2Program(Program):
    """See :class:`DL2`."""

    def __init__(self, rules: Mapping[str, Formula], method: DL2) -> None:
        self.plan = compile_costs(rules, method.class_cost)
        self.method = method
        self.recorded = Steps.of(self)

    def evaluate(self, bound: Bound) -> Any:
        registers = self.plan.evaluate(bound)
        constants = self.plan.constants(bound.device, bound.dtype)
        for number, comparison in self.plan.comparisons:
            if comparison.strict is False:
                continue
            registers[number] = registers[number] + self._penalty(comparison, registers, constants)
        return registers

    def _penalty(self, comparison: Compare, registers: list[Tensor], constants: list[Tensor]) -> Tensor:
        """``xi`` where a strict comparison holds with equality (at its margin)."""
        difference = registers[comparison.operand].detach()
        sign, margin, strict = (
            constants[field[0]] if isinstance(field, tuple) else field
            for field in (comparison.sign, comparison.margin, comparison.strict)
        )
        if comparison.kind != "unequal":
            difference = difference * sign + margin
        return self.method.strictness * (difference == 0).to(difference.dtype) * strict

    def losses(self, rows: Tensor | None, state: State, values: Any) -> tuple[Tensor, Tensor]:
        costs = self.plan.fold(values, add_and_multiply)
        return costs if self.method.weight == 1.0 else self.method.weight * costs, costs


def add_and_multiply(level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
    """The sum over an ``and``, the product over an ``or``; an empty ``or`` cannot be met at any cost."""
    if level.operation == "&":
        return (values if mask is None else values.masked_fill(~mask, 0.0)).sum(1)
    if mask is None:
        return numerics.product(values)
    return torch.where(mask.any(1), numerics.product(values.masked_fill(~mask, 1.0)), torch.inf)
