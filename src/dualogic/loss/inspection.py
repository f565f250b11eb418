"""What can be read from a logic loss: a view of some samples, statistics of the latest batch, and a line for ``print``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from dualogic.arguments import shorten
from dualogic.compile.evaluate import autocast_off
from dualogic.duals.table import DualTable
from dualogic.errors import SampleIndexError
from dualogic.formula.connective import Formula
from dualogic.loss.checks import Parts, check_index
from dualogic.loss.step import Fetched
from dualogic.methods.base import Program, State


@dataclasses.dataclass(frozen=True)
class View:
    """What a loss holds for some samples at one moment; made by :meth:`~dualogic.LogicLoss.view`. Using it changes nothing.

    Attributes:
        rows: the stored numbers ``(batch, width)``, or ``(1, width)`` if all samples share them; ``None`` if this process
            cannot have them alone.
        state: what all samples share, by name: ``"delta"`` and ``"steps"`` at least.
        program: the rules under the loss's method.
    """

    rows: Tensor | None
    state: State
    program: Program

    @property
    def weights(self) -> dict[str, Tensor]:
        """As :meth:`~dualogic.LogicLoss.weights` gives them; empty if nothing is stored, or it cannot be had."""
        if self.rows is None or not self.program.width:
            return {}
        with torch.no_grad():
            return self.program.weights(self.rows.to(self.state["delta"].dtype))

    @property
    def evidence(self) -> dict[str, Tensor]:
        """How much of each antecedent is taken for evidence, by path; see :meth:`~dualogic.LogicLoss.statistics`."""
        return self.program.evidence(self.state)

    def losses(self, **tensors: Tensor) -> Tensor:
        """What the samples' tensors would lose with these rows and this state, ``(batch, rules)``; differentiable."""
        return self.losses_and_costs(tensors)[0]

    def losses_and_costs(self, tensors: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """The same, and what the loss is of."""
        bound = self.program.plan.bind(tensors, False, whole=True)
        with autocast_off(bound.device):
            return self.program.losses(self.rows, self.state, self.program.evaluate(bound))


def look_at(parts: Parts, index: Any, at_once: bool, alone: bool = False) -> View:
    """A view of the samples of an index; without rows if they need all processes together and this one looks ``alone``."""
    if parts.table.collective and alone:
        return View(None, parts.state, parts.program)

    def check() -> Tensor | None:
        if index is None and not parts.table.shared:
            raise SampleIndexError("weights(index) needs the indices of training samples: each has weights of its own")
        return check_index(parts, index, 0 if index is None else _count(index), at_once)

    checked = parts.peers.agree(check) if parts.peers is not None and parts.table.collective else check()
    return View(Fetched.of(parts, checked, at_once).rows, parts.state, parts.program)


def summarise(
    rules: Mapping[str, Formula], program: Program, state: State, last: Mapping[str, Tensor], selected: Tensor | None
) -> dict[str, dict[str, Any]]:
    """Means for each rule over ``last``, what the latest call computed; see :meth:`~dualogic.LogicLoss.statistics`."""
    columns = {
        key: (value.mean(0) if selected is None else value.sum(0) / selected.sum(0)).unbind() for key, value in last.items()
    }
    columns["delta"] = state["delta"].clone().unbind()
    strength = program.strength(state)
    if strength is not None:
        columns["strength"] = strength.clone().unbind()
    found: dict[str, dict[str, Any]] = {
        name: {key: values[position] for key, values in columns.items()} for position, name in enumerate(rules)
    }
    for path, share in program.evidence(state).items():
        name = path
        while name not in found:
            name = name.rpartition("/")[0]
        found[name].setdefault("evidence", {})[path] = share.clone()
    return found


def describe(rules: Mapping[str, Formula], name: str, table: DualTable) -> str:
    """The first rules, the method and the size of the table, in a line."""
    shown = ", ".join(f"{name}: {shorten(str(formula))}" for name, formula in list(rules.items())[:3])
    more = f" and {len(rules) - 3} more" if len(rules) > 3 else ""
    size = f" ({table.memory()})" if table.width else ""
    variables = "dual variable" if table.width == 1 else "dual variables"
    return f"{shown}{more}; method={name}, {table.width} {variables} {table.owner}{size}"


def _count(index: Any) -> int:
    try:
        return len(torch.as_tensor(index))
    except (TypeError, ValueError, RuntimeError) as error:
        raise SampleIndexError(
            f"weights(index) needs training samples as a tensor of shape (batch,), as in torch.tensor([7]); got {index!r}"
        ) from error
