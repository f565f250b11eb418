"""What the methods with the paper's truncated-normal loss share: the loss itself and the scale ``delta``."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from dualogic import numerics
from dualogic.arguments import as_number, check_choice, check_size
from dualogic.compile.evaluate import CLASS_COSTS
from dualogic.compile.plan import Plan
from dualogic.constants import Constants
from dualogic.errors import OptionError, SymbolError
from dualogic.formula.connective import Formula
from dualogic.formula.evidence import as_share
from dualogic.kernels import fused
from dualogic.losses import DELTA_RULES, half_normal_loss, half_normal_slope, truncated_normal_loss, truncated_normal_slope
from dualogic.losses.delta import violations_delta
from dualogic.methods.base import Method, Program, State, compile_costs
from dualogic.numerics import wide

VIOLATIONS = "violations"
FOUND = "found"


@dataclasses.dataclass(frozen=True)
class DistributionalMethod(Method):
    """Options of the truncated-normal loss.

    Args:
        class_cost: ``"log"`` (``-log p``) or ``"probability"`` (``1 - p``) for class and Boolean atoms.
        delta: the rule for the scale: ``"violations"`` (the typical cost of samples that violate the rule), ``"mean"`` (Algorithm
            1), ``"square"`` (the bound's minimiser) or ``"exact"`` (the loss's minimiser).
        floor: lower bound of ``delta``. Where costs are small a rule pulls like a loss of weight ``1 / delta``, so a small floor
            puts a rule that is nearly met above the labels. The paper has 0.1, a variance of 0.01.
        ceiling: upper bound of ``delta``.
        evidence: what the antecedent of each ``a >> b`` is that does not say so itself: ``True`` for evidence, which the rule
            does not teach; ``False`` for a claim like any other; or the share of its gradient that is held back. See
            :func:`~dualogic.formula.evidence.evidence`.
        spread: how far from being met a rule may be, in units of its cost: the scale of the half-normal that is the target of
            its costs, for all rules or by their names; 0 for the paper's Dirac. ``delta`` stays at or above it. See
            :func:`~dualogic.losses.half_normal.half_normal_loss`.
    """

    finds_evidence: ClassVar[bool] = False

    class_cost: str = "log"
    delta: str = "mean"
    floor: float = 0.7
    ceiling: float = math.inf
    evidence: bool | float | str = False
    spread: Mapping[str, float] | float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("class_cost", self.class_cost, CLASS_COSTS)
        check_choice("delta", self.delta, (*DELTA_RULES, VIOLATIONS))
        if not 0 < self.floor <= self.ceiling or not math.isfinite(self.floor):
            raise OptionError(
                f"delta needs 0 < floor <= ceiling, and a finite floor; got floor={self.floor!r}, ceiling={self.ceiling!r}"
            )
        if not (self.finds_evidence and self.evidence == FOUND):
            as_share(self.evidence, f"evidence of dl.methods.{type(self).__name__}")
        named = dict(self.spread) if isinstance(self.spread, Mapping) else {"": self.spread}
        for name, value in named.items():
            number = as_number(value, f"the spread of rule {name!r}" if name else "spread, unless it maps rule names to numbers,")
            if not 0 <= number <= self.ceiling or not math.isfinite(number):
                raise OptionError(
                    f"a spread must be a finite number of at least 0, and at most the ceiling of delta ({self.ceiling!r}), which "
                    f"stays at or above it; got {value!r}{f' for rule {name!r}' if name else ''}"
                )
            check_size(number, "a spread")
        if isinstance(self.spread, Mapping):
            object.__setattr__(self, "spread", named)  # a copy, so that the options stay as they were checked

    def mix(self, plan: Plan, values: Any) -> Tensor:
        """Costs ``(batch, rules)``, for a method without weights."""
        raise NotImplementedError

    def program(self, rules: Mapping[str, Formula]) -> DistributionalProgram:
        return DistributionalProgram(rules, self)


class Spreads:
    """The spread of each rule's target, on whatever device it is needed."""

    def __init__(self, values: tuple[float, ...]) -> None:
        self.values = values
        self._on_device: Constants[Tensor] = Constants()

    def like(self, tensor: Tensor) -> Tensor | float:
        """One number if all rules have the same, else ``(rules,)`` on the tensor's device and in its dtype."""
        if len(set(self.values)) == 1:
            return self.values[0]
        device, dtype = tensor.device, tensor.dtype
        return self._on_device.get((device, dtype), lambda: torch.tensor(self.values, device=device, dtype=dtype))


def find_spreads(spread: Mapping[str, float] | float, names: tuple[str, ...]) -> Spreads | None:
    """The spreads of the rules, or ``None`` if all are 0."""
    if not isinstance(spread, Mapping):
        values = (float(spread),) * len(names)
    else:
        if unknown := [name for name in spread if name not in names]:
            raise SymbolError(f"spread names the rule {unknown[0]!r}, but the rules are {', '.join(map(repr, names))}")
        values = tuple(float(spread.get(name, 0.0)) for name in names)
    return Spreads(values) if any(values) else None


class DistributionalProgram(Program):
    """Costs folded by the method or a subclass, then the truncated-normal loss with one ``delta`` per rule."""

    believes = True

    def __init__(self, rules: Mapping[str, Formula], method: DistributionalMethod) -> None:
        self.method = method
        self.plan = self._plan(rules)
        self.spreads = find_spreads(method.spread, self.plan.names)
        self.units: Spreads | None = None

    def _plan(self, rules: Mapping[str, Formula]) -> Plan:
        return compile_costs(rules, self.method.class_cost, as_share(self.method.evidence, "evidence"))

    def initial_state(self, dtype: torch.dtype) -> State:
        state = super().initial_state(dtype)
        state["delta"] = self._bounded(state["delta"])
        return state

    def largest_cost(self, dtype: torch.dtype) -> float:
        # The loss and the step of the duals take squares, and an infinite step would stay in the table for good.
        return numerics.LARGEST_ROOTS[dtype]

    def mix(self, rows: Tensor | None, state: State, values: Any) -> Tensor:
        """Costs ``(batch, rules)``."""
        return self.method.mix(self.plan, values)

    def losses(self, rows: Tensor | None, state: State, values: Any) -> tuple[Tensor, Tensor]:
        costs = self.mix(rows, state, values)
        # A copy, because delta is updated in place before the backward pass.
        delta = state["delta"].to(costs.dtype, copy=True)
        if self.spreads is None:
            return truncated_normal_loss(costs, delta), costs
        spread = self.spreads.like(delta)
        return half_normal_loss(costs, _at_least(delta, spread), spread), costs

    def slope(self, costs: Tensor, delta: Tensor) -> Tensor:
        """The derivative of the loss with respect to the costs, ``(batch, rules)``."""
        delta = delta.to(costs.dtype)
        if self.spreads is None:
            return truncated_normal_slope(costs, delta)
        spread = self.spreads.like(delta)
        return half_normal_slope(costs, _at_least(delta, spread), spread)

    def _bounded(self, delta: Tensor) -> Tensor:
        delta = delta.clamp(self.method.floor, self.method.ceiling)
        for bound in (self.spreads, self.units):
            delta = delta if bound is None else _at_least(delta, bound.like(delta))
        return delta

    def advance(self, state: State, costs: Tensor, finite: Tensor | None, noted: Tensor | None = None) -> State:
        new = super().advance(state, costs, finite)
        old = state["delta"]
        rule = self.method.delta
        known = rule in ("mean", "square", VIOLATIONS) and self.spreads is None and self.units is None
        limit = self.largest_cost(numerics.narrower(costs.dtype, old.dtype))
        if finite is not None and finite.dim() == 1 and fused.usable(costs) and known and costs.shape[0] <= fused.MAX_BATCH:
            new["delta"] = fused.next_delta(costs, finite, old, self.method.floor, self.method.ceiling, rule, limit)
            return new
        if finite is None:
            counted = costs
        else:
            # Costs under weights that have just moved: one that they left out before may be past the limit.
            finite = wide(finite) & (costs < limit).all(1, keepdim=True)
            counted = costs.masked_fill(~finite, 0.0)
        if rule == VIOLATIONS:
            new["delta"] = self._bounded(violations_delta(counted, old.to(costs.dtype)).to(old.dtype))
            return new
        if finite is None:
            count = torch.full((), float(costs.shape[0]), dtype=costs.dtype, device=costs.device)
        else:
            count = finite.sum(0).to(costs.dtype)
        spread = 0.0 if self.spreads is None else self.spreads.like(counted)
        bounded = self._bounded(DELTA_RULES[rule](counted, count.clamp_min(1.0), spread).to(old.dtype))
        new["delta"] = bounded if finite is None else torch.where(count > 0, bounded, old)
        return new


def _at_least(delta: Tensor, spread: Tensor | float) -> Tensor:
    # Also where a delta was stored by a loss without a spread.
    return delta.clamp_min(spread) if isinstance(spread, float) else torch.maximum(delta, spread)
