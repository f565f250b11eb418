"""What the methods with the paper's truncated-normal loss share: the loss itself and the scale ``delta``."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from dualogic import fused, numerics
from dualogic.arguments import check_choice
from dualogic.compile.evaluate import CLASS_COSTS
from dualogic.errors import OptionError
from dualogic.formula.connective import Formula
from dualogic.formula.evidence import as_share
from dualogic.losses import DELTA_RULES, truncated_normal_loss
from dualogic.methods.base import Method, Program, State, compile_costs

RELEASED = "released"


@dataclasses.dataclass(frozen=True)
class DistributionalMethod(Method):
    """Options of the truncated-normal loss.

    Args:
        class_cost: ``"log"`` (``-log p``) or ``"probability"`` (``1 - p``) for class and Boolean atoms.
        delta: the rule for the scale: ``"mean"`` (Algorithm 1), ``"square"`` (the bound's minimiser), ``"exact"`` (the
            loss's minimiser) or ``"released"`` (once per epoch, ``clip(mean(mu)^2, floor, previous)``).
        floor: lower bound of ``delta``; 0.1 is the paper's variance of 0.01.
        ceiling: upper bound of ``delta``.
        epoch: for ``"released"``: how many samples make an epoch; the size of the table by default.
        evidence: what the antecedent of each ``a >> b`` is that does not say so itself: ``True`` for evidence, which the rule
            does not teach; ``False`` for a claim like any other; or the share of its gradient that is held back. See
            :func:`~dualogic.formula.evidence.evidence`.
    """

    class_cost: str = "log"
    delta: str = "mean"
    floor: float = 0.1
    ceiling: float = math.inf
    epoch: int | None = None
    evidence: bool | float = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("class_cost", self.class_cost, CLASS_COSTS)
        check_choice("delta", self.delta, (*DELTA_RULES, RELEASED))
        if not 0 < self.floor <= self.ceiling:
            raise OptionError(f"delta needs 0 < floor <= ceiling; got floor={self.floor!r}, ceiling={self.ceiling!r}")
        if self.epoch is not None and self.epoch < 1:
            raise OptionError(f"epoch counts samples and must be at least 1; got {self.epoch!r}")
        as_share(self.evidence, f"evidence of dl.methods.{type(self).__name__}")


class DistributionalProgram(Program):
    """Costs folded by a subclass, then the truncated-normal loss with one ``delta`` per rule."""

    def __init__(self, rules: Mapping[str, Formula], method: DistributionalMethod) -> None:
        self.plan = compile_costs(rules, method.class_cost, as_share(method.evidence, "evidence"))
        self.method = method
        self.epoch = method.epoch

    def initial_state(self, dtype: torch.dtype) -> State:
        state = super().initial_state(dtype)
        state["delta"] = state["delta"].clamp(self.method.floor, self.method.ceiling)
        if self.method.delta == RELEASED:
            if self.epoch is None:
                raise OptionError(
                    "the released delta rule works once per epoch: give the epoch's number of samples, as in "
                    "dl.methods.Dual(delta='released', epoch=10_000), or num_samples to LogicLoss"
                )
            state["epoch_cost"] = torch.zeros_like(state["delta"])
            state["epoch_count"] = torch.zeros((), dtype=dtype)
        return state

    def largest_cost(self, dtype: torch.dtype) -> float:
        # The loss and the step of the duals take squares, and an infinite step would stay in the table for good.
        return numerics.largest_square_root(dtype)

    def mix(self, rows: Tensor | None, values: Any) -> Tensor:
        """Costs ``(batch, rules)``."""
        raise NotImplementedError

    def losses(self, rows: Tensor | None, state: State, values: Any) -> tuple[Tensor, Tensor]:
        costs = self.mix(rows, values)
        # A copy, because delta is updated in place before the backward pass.
        return truncated_normal_loss(costs, state["delta"].to(costs.dtype, copy=True)), costs

    def advance(self, state: State, costs: Tensor, finite: Tensor | None) -> State:
        new = super().advance(state, costs, finite)
        old = state["delta"]
        rule = self.method.delta
        if finite is not None and fused.usable(costs) and rule in ("mean", "square") and costs.shape[0] <= fused.MAX_BATCH:
            new["delta"] = fused.next_delta(costs, finite, old, self.method.floor, self.method.ceiling, rule == "square")
            return new
        if finite is None:
            counted, count = costs, torch.full((), float(costs.shape[0]), dtype=costs.dtype, device=costs.device)
        else:
            counted, count = costs.masked_fill(~finite.unsqueeze(1), 0.0), finite.sum().to(costs.dtype)
        if self.method.delta == RELEASED:
            new.update(self._released(state, counted, count))
            return new
        proposed = DELTA_RULES[self.method.delta](counted, count.clamp_min(1.0)).to(old.dtype)
        bounded = proposed.clamp(self.method.floor, self.method.ceiling)
        new["delta"] = bounded if finite is None else torch.where(count > 0, bounded, old)
        return new

    def _released(self, state: State, costs: Tensor, count: Tensor) -> State:
        total = state["epoch_cost"] + costs.sum(0).to(state["epoch_cost"].dtype)
        seen = state["epoch_count"] + count.to(state["epoch_count"].dtype)
        assert self.epoch is not None, "initial_state saw to it"
        done = seen >= self.epoch
        proposed = torch.minimum((total / seen.clamp_min(1.0)).square().clamp_min(self.method.floor), state["delta"])
        return {
            "delta": torch.where(done, proposed, state["delta"]),
            "epoch_cost": torch.where(done, torch.zeros_like(total), total),
            "epoch_count": torch.where(done, torch.zeros_like(seen), seen),
        }
