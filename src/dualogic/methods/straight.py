"""A training step of weighted rules on a CPU, recorded: from the atoms' costs to losses, new rows, and what all samples share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from dualogic.compile.instructions import Registers
from dualogic.compile.straight import Straight, Unrecordable
from dualogic.losses.truncated_normal import loss_and_slope, truncated_normal_loss
from dualogic.methods.base import State
from dualogic.methods.closed_form import differentiable_slopes, find_slopes
from dualogic.methods.mixture import Mixture

if TYPE_CHECKING:
    from dualogic.methods.dual import DualProgram

MOST = 16
"""So many signatures of calls are recorded."""
LARGEST = 1_000_000
"""Of numbers in the atoms of a batch: where there are more, the walk takes no time beside them."""


class Taken(NamedTuple):
    """A step that changed nothing yet.

    Attributes:
        losses: ``(batch, rules)``; a gradient flows through these alone.
        costs: likewise, with the rows after the step.
        rows: after the step.
        sums: the sum of the costs before and after the step, and the largest move.
        state: what all samples share, after the step.
    """

    losses: Tensor
    costs: Tensor
    rows: Tensor
    sums: tuple[Tensor, Tensor, Tensor]
    state: State


class Steps:
    """The recorded steps of a program, by what their tensors look like; a step that is seen for the second time is recorded."""

    def __init__(self, program: DualProgram) -> None:
        self.leaves = tuple(sorted({leaf.operand[0] for leaf in program.plan.leaves}))
        self.taught = tuple(self.leaves.index(number) for number in program.taught)
        self.known: dict[Any, Straight | None] = {}

    def take(self, program: DualProgram, rows: Tensor, state: State, registers: Registers, evident: bool) -> Taken | None:
        """A step, or ``None`` if it is not recorded; rows that all samples share move by the mean."""
        atoms = [registers[number] for number in self.leaves]
        key = (rows.shape, rows.dtype, evident, *[(atom.shape, atom.stride(), atom.dtype) for atom in atoms])
        straight = self.known.get(key)
        if straight is None:
            straight = self._record(program, key, [rows, *state.values(), *atoms], tuple(state), evident)
            if straight is None:
                return None
        found: list[Tensor] = []
        losses: Tensor = _Taken.apply(  # type: ignore[no-untyped-call]
            program, straight, [rows, *state.values(), *atoms], found, *[atoms[place] for place in self.taught]
        )
        costs, new, before, after, most, *states = found
        return Taken(losses, costs, new, (before, after, most), dict(zip(state, states)))

    def _record(
        self, program: DualProgram, key: Any, given: list[Tensor], names: tuple[str, ...], evident: bool
    ) -> Straight | None:
        if key not in self.known:
            if len(self.known) < MOST and sum(tensor.numel() for tensor in given) <= LARGEST:
                self.known[key] = None
            return None
        count = 1 + len(names)

        def walk(rows: Tensor, *rest: Tensor) -> Any:
            return _walk(program, rows, dict(zip(names, rest)), dict(zip(self.leaves, rest[count - 1 :])), evident)

        try:
            self.known[key] = Straight(walk, [tensor.detach() for tensor in given], program.plan.fixed())
        except Unrecordable:
            self.known.clear()
            program.recorded = None
        return self.known.get(key)


def _walk(program: DualProgram, rows: Tensor, state: State, atoms: Any, evident: bool) -> Any:
    """What is recorded; see :mod:`dualogic.loss.step`, of which this is the shortest way through."""
    with torch.enable_grad():
        values = program.settle(state, atoms, evident)
    with torch.no_grad():
        costs, moves, noted = program.moves(rows, state, values)
        new = program.apply_moves(rows, moves.sum(0, keepdim=True) / moves.shape[0] if program.shared else moves, values)
        mixture = program.mixture(new, state, values, remember=True, sloped=True)
        delta = state["delta"].to(costs.dtype, copy=True)
        seen = program.plan.fold(values, mixture)
        losses, slope = loss_and_slope(seen, delta)
        after = program.advance(state, seen, None, noted)
        shares = [share for share in values.shares.values() if isinstance(share, Tensor)]

    def later(gradient: Tensor) -> list[Tensor | None]:
        with torch.no_grad():
            slopes = find_slopes(program.plan, mixture, values, gradient * slope)
        return [slopes.get(number) for number in program.taught]

    return [losses, seen, new, costs.sum(), seen.sum(), moves.amax(), *after.values(), delta, *shares], later


class _Taken(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, program: DualProgram, straight: Straight, given: list[Tensor], found: list[Tensor], *atoms: Tensor
    ) -> Tensor:
        (losses, *rest), kept = straight.first(given)
        found += rest
        ctx.held = program, straight, kept, given, rest
        ctx.save_for_backward(*atoms)
        return losses

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        program, straight, kept, given, rest = ctx.held
        atoms = ctx.saved_tensors
        if not torch.is_grad_enabled():
            return (*(None,) * 4, *straight.second(kept, gradients[0]))
        steps: Steps = program.recorded
        number = len(given) - len(steps.leaves) - 1  # of what all samples share
        delta, *found = rest[5 + number :]
        shares = {level.number: 1.0 if level.share is None else level.share for level in program.leaning}
        shares.update(zip([level.number for level in program.leaning if level.share is None], found))
        mixture = Mixture(program.rule, rest[1], nearest=program.nearest, shares=shares)
        registers = {**dict(zip(steps.leaves, given[1 + number :])), **dict(zip(program.taught, atoms))}
        wanted = ctx.needs_input_grad[4:]
        slopes = differentiable_slopes(program.plan, mixture, delta, registers, atoms, wanted, gradients[0])
        return (*(None,) * 4, *slopes)
