"""The primal-dual method: one Lagrange multiplier for each rule and sample."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from dualogic.arguments import check_choice, check_finite
from dualogic.compile.evaluate import CLASS_COSTS
from dualogic.compile.extreme import fold_extremes
from dualogic.compile.tree import Leaf
from dualogic.errors import OptionError
from dualogic.formula.connective import Formula
from dualogic.methods.base import Method, Program, State, compile_costs
from dualogic.methods.lukasiewicz import bounded_sum
from dualogic.methods.truth import DegreeProgram
from dualogic.numerics import is_mapped


@dataclasses.dataclass(frozen=True)
class PrimalDualMethod(Method):
    """Options of the ascent on the multipliers; what a rule costs is left to :class:`PD1` and :class:`PD2`.

    The loss of a rule with cost ``c`` is ``lambda c``. The multiplier starts at 0, and each of its updates is
    ``lambda <- max(0, lambda + a_k c)`` with the rate ``a_k = rate / (1 + decay k)`` for the ``k``-th update, counted from 0. The
    first update comes after ``warmup + interval`` visits, and each further one ``growth`` visits later than the one before it.
    Visits are those of the sample; with ``num_samples=None`` one multiplier serves all samples and every step is a visit. As
    long as a multiplier is 0, its rule has no gradient. A validation sample (``eval()`` without an index) has no multiplier, and
    is charged its plain cost.

    With ``believe=`` of the loss, the multipliers rise by the costs of what is believed; with PD2 these also say which operand is
    taught.

    Source: Nandwani, Pathak, Mausam, Singla, "A primal dual formulation for deep learning with constraints", NeurIPS 2019,
    Algorithm 1. A table row holds the rules' multipliers, then their velocities if there is a momentum, then the number of
    visits; a bfloat16 table counts 256 of them exactly, a float16 table 2,048.

    Args:
        rate: the first rate.
        decay: how fast the rate falls.
        interval: visits before the first update.
        growth: by how many visits the interval grows with each update.
        warmup: visits before the schedule starts.
        momentum: of the ascent.
        bounded: keep the multipliers at or above 0.
    """

    rate: float = 0.05
    decay: float = 0.1
    interval: int = 1
    growth: int = 1
    warmup: int = 0
    momentum: float = 0.0
    bounded: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_finite("rate", self.rate)
        check_finite("decay", self.decay)
        for name, least in (("interval", 1), ("growth", 0), ("warmup", 0)):
            if not getattr(self, name) >= least:
                raise OptionError(f"{name} counts visits and must be at least {least}; got {getattr(self, name)!r}")
        if not 0 <= self.momentum < 1:
            raise OptionError(f"momentum must be at least 0 and below 1; got {self.momentum!r}")

    @classmethod
    def released(cls, **options: Any) -> PrimalDualMethod:
        """The variant of the paper's released script: an update at each visit, rate 0.01, momentum 0.9, no bound at 0.

        Example:
            >>> import dualogic as dl
            >>> dl.methods.PD2.released().momentum
            0.9
        """
        script: dict[str, Any] = {"rate": 1e-2, "interval": 1, "growth": 0, "momentum": 0.9, "bounded": False}
        return cls(**{**script, **options})


@dataclasses.dataclass(frozen=True)
class PD1(PrimalDualMethod):
    """The primal-dual method on Lukasiewicz truth values ("choice 1").

    A class atom is as true as its probability; ``t(a | b | ...) = min(1, sum t)``, ``t(a & b & ...) = max(0, sum t - (k - 1))``,
    and the rule costs ``1 - t``. A comparison is true to the degree ``1 - cost / scale``, which for a probability compared
    with 0 or 1 is the literature's translation. Truth must stay in [0, 1], so on a CPU a cost above ``scale`` is an error: as
    the paper says, this choice does not support regression. The loss is ``lambda (1 - t)``.

    Args:
        scale: the cost at which a comparison is wholly false.

    The other arguments, the schedule and the source are those of
    :class:`~dualogic.methods.primal_dual.PrimalDualMethod`.

    Example:
        >>> import dualogic as dl, torch
        >>> a, b = dl.boolean("a"), dl.boolean("b")
        >>> logic = dl.LogicLoss(a | b, method=dl.methods.PD1(rate=1.0))
        >>> tensors = {"a": torch.tensor([0.25], requires_grad=True), "b": torch.tensor([0.25])}
        >>> logic(**tensors).item()  # the first update sets the multiplier to 0.5
        0.25
        >>> logic(**tensors).item()  # the next is due at the third visit
        0.25
        >>> round(logic(**tensors).item(), 4)  # 0.5 + 0.5 / 1.1
        0.4773
    """

    name: ClassVar[str] = "pd1"

    scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_finite("scale", self.scale, above=True)

    def program(self, rules: Mapping[str, Formula]) -> PrimalDualProgram:
        return PD1Program(rules, self)


@dataclasses.dataclass(frozen=True)
class PD2(PrimalDualMethod):
    """The primal-dual method on costs joined by maximum and minimum ("choice 2").

    A rule costs what it costs at the paper's optimal duals: the worst operand of an ``and``, the best of an ``or``. The loss is
    ``lambda cost``.

    Args:
        class_cost: ``"probability"`` (``1 - p``, as published) or ``"log"`` (``-log p``) for class and Boolean atoms.

    The other arguments, the schedule and the source are those of
    :class:`~dualogic.methods.primal_dual.PrimalDualMethod`.

    Example:
        >>> import dualogic as dl, torch
        >>> logic = dl.LogicLoss(dl.var("x") <= 1, method=dl.methods.PD2(rate=0.5))
        >>> logic(x=torch.tensor([3.0]))  # the multiplier rises to 0.5 * 2
        tensor(2.)
    """

    name: ClassVar[str] = "pd2"

    class_cost: str = "probability"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("class_cost", self.class_cost, CLASS_COSTS)

    def program(self, rules: Mapping[str, Formula]) -> PrimalDualProgram:
        return PD2Program(rules, self)


class PrimalDualProgram(Program):
    """See :class:`PrimalDualMethod`."""

    believes = True
    method: PrimalDualMethod

    def _schedule(self, method: PrimalDualMethod) -> None:
        self.method = method
        self.count = len(self.plan.names)
        self.width = self.count * (2 if method.momentum else 1) + 1
        self.stored = "multipliers, velocities and visits" if method.momentum else "multipliers and visits"

    def owners(self) -> tuple[int, ...]:
        each = tuple(range(self.count))
        return (*each, *(each if self.method.momentum else ()), self.count)

    def mix(self, values: Any) -> Tensor:
        """Costs ``(batch, rules)``."""
        raise NotImplementedError

    def moves(self, rows: Tensor, state: State, values: Any) -> tuple[Tensor, Tensor, Tensor | None]:
        costs = self.mix(values)
        done, due = self._progress(rows[:, -1:].to(costs.dtype) + 1.0)
        rate = self.method.rate / (1.0 + self.method.decay * done)
        parts = []
        ascent = costs
        if self.method.momentum:
            velocity = rows[:, self.count : -1].to(costs.dtype)
            ascent = self.method.momentum * velocity + costs
            parts.append(torch.where(due, ascent - velocity, 0.0).expand_as(costs))
        parts.insert(0, torch.where(due, rate * ascent, 0.0))
        parts.append(torch.ones_like(costs[:, :1]))
        return costs, torch.cat(parts, dim=1), None

    def apply_moves(self, rows: Tensor, moves: Tensor, values: Any) -> Tensor:
        moved = rows.to(moves.dtype) + moves
        if not self.method.bounded:
            return moved
        return torch.cat([moved[:, : self.count].clamp_min(0.0), moved[:, self.count :]], dim=1)

    def _progress(self, visits: Tensor) -> tuple[Tensor, Tensor]:
        """How many updates came before this visit, and whether one is due now; ``(batch, 1)`` each.

        Update ``k`` (from 0) comes at visit ``interval (k + 1) + growth k (k + 1) / 2``, counted after the warm-up.
        """
        interval, growth = float(self.method.interval), float(self.method.growth)
        now = (visits - self.method.warmup).clamp_min(0.0)
        if growth:
            half = interval / growth - 0.5
            guess = torch.sqrt(half * half + 2.0 * now / growth) - half
        else:
            guess = now / interval
        # Rounding may leave a whole number just below itself, so its neighbours are tried.
        number = torch.round(guess)
        number = torch.where(_visit(number, interval, growth) > now, number - 1.0, number)
        due = (_visit(number, interval, growth) == now) & (number >= 1)
        return (number - due.to(number.dtype)).clamp_min(0.0), due

    def losses(self, rows: Tensor | None, state: State, values: Any) -> tuple[Tensor, Tensor]:
        costs = self.mix(values)
        if rows is None:
            return costs, costs
        return rows[:, : self.count].to(costs.dtype) * costs, costs


def _visit(number: Tensor, interval: float, growth: float) -> Tensor:
    """At which visit the ``number``-th update (from 1) is made."""
    return interval * number + growth * number * (number - 1.0) / 2.0


class PD1Program(PrimalDualProgram, DegreeProgram):
    """See :class:`PD1`."""

    def __init__(self, rules: Mapping[str, Formula], method: PD1) -> None:
        DegreeProgram.__init__(self, rules, "linear", method.scale)
        self._schedule(method)

    def relax_comparison(self, leaf: Leaf, cost: Tensor) -> Tensor:
        if cost.device.type == "cpu" and not (torch.compiler.is_compiling() or is_mapped()):
            worst = float(cost.detach().max()) if cost.numel() else 0.0
            if worst > self.scale * (1.0 + 1e-3):
                raise OptionError(
                    f"method 'pd1' needs truth values in [0, 1], but {leaf.formulas[0]} costs up to {worst:.4g}, more than its "
                    f"scale of {self.scale:g}; give a larger one, as in dl.methods.PD1(scale=...), or use 'pd2'"
                )
        return super().relax_comparison(leaf, cost)

    def mix(self, values: Any) -> Tensor:
        return 1.0 - self.plan.fold(values, bounded_sum)


class PD2Program(PrimalDualProgram):
    """See :class:`PD2`."""

    def __init__(self, rules: Mapping[str, Formula], method: PD2) -> None:
        self.plan = compile_costs(rules, method.class_cost)
        self._schedule(method)

    def mix(self, values: Any) -> Tensor:
        return fold_extremes(self.plan, values)
