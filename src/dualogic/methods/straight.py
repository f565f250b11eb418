"""A training step of weighted rules on a CPU, recorded: from the atoms' costs to losses, new rows, and what all samples share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dualogic.compile.instructions import Registers
from dualogic.compile.straight import Straight, Unrecordable
from dualogic.losses.truncated_normal import truncated_normal_loss
from dualogic.methods.base import State
from dualogic.methods.closed_form import Closed, Slopes, lose
from dualogic.methods.mixture import Mixture

if TYPE_CHECKING:
    from dualogic.methods.dual import DualProgram

MOST = 16
"""So many signatures of calls are recorded."""
LARGEST = 1_000_000
"""Of numbers in the atoms of a batch: where there are more, the walk takes no time beside them."""


Taken = tuple[Tensor, Tensor, Tensor, Sequence[Tensor], State]
"""A step that changed nothing yet: losses, costs, rows, the sums of the costs before and after with the largest move, state."""


class Steps:
    """The recorded steps of a program, by what their tensors look like; a step that is seen for the second time is recorded."""

    def __init__(self, program: DualProgram) -> None:
        self.leaves = tuple(sorted({leaf.operand[0] for leaf in program.plan.leaves}))
        self.known: dict[Any, Straight | None] = {}

    def take(self, program: DualProgram, rows: Tensor, state: State, registers: Registers, evident: bool) -> Taken | None:
        """A step, or ``None`` if it is not recorded; rows that all samples share move by the mean."""
        atoms = [registers[number] for number in self.leaves]
        key = (rows.shape, rows.dtype, evident, *[(atom.shape, atom.stride(), atom.dtype) for atom in atoms])
        given = [rows, *state.values(), *atoms]
        straight = self.known.get(key) or self._record(program, key, given, tuple(state), evident)
        if straight is None:
            return None
        found: list[Tensor] = []

        def compute() -> tuple[Tensor, Slopes]:
            (losses, *rest), kept = straight.first(given)
            found.extend(rest)
            return losses, lambda gradient: straight.second(kept, gradient)

        def repeat(taught: Sequence[Tensor]) -> Tensor:
            delta, *tensors = found[5 + len(state) :]
            shares: dict[int, Any] = {level.number: 1.0 if level.share is None else level.share for level in program.leaning}
            shares.update(zip([level.number for level in program.leaning if level.share is None], tensors))
            mixture = Mixture(program.rule, found[1], nearest=program.nearest, shares=shares)
            known = {**dict(zip(self.leaves, atoms)), **dict(zip(program.taught, taught))}
            return truncated_normal_loss(program.plan.fold(known, mixture), delta)  # type: ignore[arg-type]

        losses: Tensor = Closed.apply(compute, repeat, *[registers[number] for number in program.taught])  # type: ignore[no-untyped-call]
        return losses, found[0], found[1], found[2:5], dict(zip(state, found[5:]))

    def _record(
        self, program: DualProgram, key: Any, given: list[Tensor], names: Sequence[str], evident: bool
    ) -> Straight | None:
        if key not in self.known:
            if len(self.known) < MOST and sum(tensor.numel() for tensor in given) <= LARGEST:
                self.known[key] = None
            return None

        def walk(rows: Tensor, *rest: Tensor) -> tuple[Sequence[Tensor], Slopes]:
            return _walk(program, rows, dict(zip(names, rest)), dict(zip(self.leaves, rest[len(names) :])), evident)

        try:
            self.known[key] = Straight(walk, [tensor.detach() for tensor in given], program.plan.fixed())
        except Unrecordable:
            program.recorded = None
        return self.known[key]


def _walk(program: DualProgram, rows: Tensor, state: State, atoms: Any, evident: bool) -> tuple[Sequence[Tensor], Slopes]:
    """What is recorded; see :mod:`dualogic.loss.step`, of which this is the shortest way through."""
    values = program.settle(state, atoms, evident)
    with torch.no_grad():
        costs, moves, noted = program.moves(rows, state, values)
        new = program.apply_moves(rows, moves.sum(0, keepdim=True) / moves.shape[0] if program.shared else moves, values)
        mixture = program.mixture(new, state, values, remember=True, sloped=True)
        delta = state["delta"].to(costs.dtype, copy=True)
        losses, seen, slopes = lose(program.plan, mixture, delta, values, program.taught)
        after = program.advance(state, seen, None, noted)
        shares = [share for share in values.shares.values() if isinstance(share, Tensor)]
        before = costs.sum()
        sums = before, before if seen is costs else seen.sum(), moves.amax()
        return [losses, seen, new, *sums, *after.values(), delta, *shares], slopes
