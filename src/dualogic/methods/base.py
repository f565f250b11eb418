"""What every method offers to :class:`~dualogic.loss.LogicLoss`.

A *method* is a frozen set of options. Given rules, it makes a *program*: pure functions from stored rows, global state and
bound tensors to losses and to new state. The module only stores.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from dualogic.arguments import as_number, check_choice, check_size
from dualogic.compile.binding import Bound
from dualogic.compile.evaluate import CLASS_COSTS
from dualogic.compile.plan import Plan, compile_rules
from dualogic.errors import OptionError
from dualogic.formula.connective import Formula
from dualogic.formula.shape import as_int

State = dict[str, Tensor]


class Program(abc.ABC):
    """The rules under one method, as pure functions.

    Attributes:
        plan: the compiled rules.
        width: stored numbers per sample.
        loss_first: compute the loss with the old rows, then ``delta`` from their costs, and move the rows by the new ``delta``.
        still: no move changes what anything costs.
        additive: ``apply_moves`` is a plain addition, which the fused kernels know.
        summed: the losses of rules are added up; otherwise they are averaged, so that many rules are no heavier than one.
        stored: what a row holds, in words; checkpoints of the same words can be read.
        believes: :meth:`losses` takes :class:`~dualogic.compile.instructions.Guided` values, with what is believed beside what is
            taught. In any case :meth:`moves` and :meth:`advance` follow what is believed.
        measures: costs may have a unit, which a first batch shows.
        recorded: the calls on a CPU that were recorded, see :class:`~dualogic.methods.straight.Steps`; ``None`` to record none.
    """

    plan: Plan
    width: int = 0
    loss_first: bool = False
    still: bool = False
    additive: bool = False
    summed: bool = False
    stored: str = "nothing"
    recorded: Any = None
    believes: bool = False
    measures: bool = False

    def for_samples(self, count: int | None) -> Program:
        """The same program for a table of so many samples, or for one row that serves all."""
        return self

    def owners(self) -> tuple[int, ...]:
        """The position of the rule that each stored number belongs to; the number of rules stands for all of them."""
        return (len(self.plan.names),) * self.width

    def initial_state(self, dtype: torch.dtype) -> State:
        """The state that all samples share: ``delta`` and ``steps`` at least."""
        return {"delta": torch.ones(len(self.plan.names), dtype=dtype), "steps": torch.zeros((), dtype=torch.long)}

    def evaluate(self, bound: Bound) -> Any:
        """Everything that is computed from the tensors once, differentiably."""
        return self.plan.evaluate(bound)

    def settle(self, state: State, values: Any) -> Any:
        """The values, with what :meth:`moves` and :meth:`losses` would both compute; before a step, with gradients."""
        return values

    def moves(self, rows: Tensor, state: State, values: Any) -> tuple[Tensor, Tensor, Tensor | None]:
        """The costs ``(batch, rules)``, what to add to the rows ``(batch, width)``, and what each sample tells :meth:`advance`
        besides, ``(batch, ...)``; called without gradients.
        """
        raise NotImplementedError

    def whole_step(self, index: Tensor, table: Tensor, state: State, flags: Tensor, values: Any) -> tuple[Tensor, Tensor] | None:
        """A whole training step in place, where a method has a faster way: losses and costs, or ``None``."""
        return None

    def apply_moves(self, rows: Tensor, moves: Tensor, values: Any) -> Tensor:
        """The rows after a move."""
        return rows + moves

    @abc.abstractmethod
    def losses(self, rows: Tensor | None, state: State, values: Any) -> tuple[Tensor, Tensor]:
        """Losses and costs ``(batch, rules)``; ``rows=None`` stands for the optimal duals."""

    def strength(self, state: State) -> Tensor | None:
        """How much of its pull each rule keeps, ``(rules,)``; ``None`` for all of it, always."""
        return None

    def emphasis(self, state: State, costs: Tensor) -> Tensor | None:
        """How much heavier than in a mean over rules each loss is, ``(batch, rules)``, by costs without a gradient, which are 0
        where a rule is not about a sample; ``None`` for no heavier.
        """
        return None

    def advance(self, state: State, costs: Tensor, finite: Tensor | None, noted: Tensor | None = None) -> State:
        """The shared state after a step with these costs; ``finite`` says which samples count, ``(batch,)``, or which of them for
        each rule, ``(batch, rules)``; ``noted`` comes from :meth:`moves`.
        """
        return {**state, "steps": state["steps"] + 1}

    def largest_cost(self, dtype: torch.dtype) -> float:
        """What costs must stay below; one that does not is treated as infinite, and moves nothing."""
        return math.inf

    def weights(self, rows: Tensor) -> dict[str, Tensor]:
        """The weights of each connective by path, ``(batch, ..., k)``."""
        return {}

    def facing(self, given: Collection[str], units: tuple[float, ...] = ()) -> Program:
        """The program for calls in which no rule can change the ``given`` symbols, and for rules whose costs have such
        ``units``, as :meth:`find_units` gives them; itself, if that makes no difference.
        """
        return self

    def find_units(self, numbers: Mapping[str, Tensor], counted: Tensor | None) -> tuple[float, ...]:
        """In which unit each rule costs, by what was predicted for a first batch, if it ``measures``; 0 for 1. ``counted`` says
        which samples each rule is about, ``(batch, rules)`` or ``(batch, 1)``; ``None`` for all.
        """
        return ()

    def evidence(self, state: State) -> dict[str, Tensor]:
        """How much of the antecedent of each implication is evidence, 0 to 1, by path; of implications that rest alone."""
        return {}


@dataclasses.dataclass(frozen=True)
class Method(abc.ABC):
    """Options of a method; subclasses are frozen dataclasses with a ``name``."""

    name: ClassVar[str]

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            kind = str(field.type)
            optional = value is None and kind.endswith("None")
            if kind.startswith("int") and not optional and as_int(value) is None:
                raise OptionError(f"{field.name} of dl.methods.{type(self).__name__} must be a whole number; got {value!r}")
            if kind.startswith("float") and not optional:
                what = f"{field.name} of dl.methods.{type(self).__name__}"
                check_size(as_number(value, what), what)

    @abc.abstractmethod
    def program(self, rules: Mapping[str, Formula]) -> Program:
        """Compile rules for this method."""

    def describe(self) -> str:
        """A stable text of the options, kept in checkpoints."""
        return repr(self)


def compile_costs(rules: Mapping[str, Formula], class_cost: str, *options: Any) -> Plan:
    """The plan of a method that works on costs; the options are those of :func:`~dualogic.compile.plan.compile_rules`."""
    check_choice("class_cost", class_cost, CLASS_COSTS)
    return compile_rules(rules.items(), class_cost, *options)
