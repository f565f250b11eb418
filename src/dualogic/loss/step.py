"""One step of a logic loss: rows are fetched, move and give the losses; then ``delta`` follows the costs. Nothing is written."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import torch
from torch import Tensor

from dualogic import numerics
from dualogic.compile.evaluate import autocast_off
from dualogic.compile.instructions import Guided
from dualogic.compile.plan import describe_cost
from dualogic.duals.table import DualTable, SharedRow, Update
from dualogic.errors import NonFiniteError
from dualogic.kernels import fused
from dualogic.loss.beliefs import average, tile
from dualogic.loss.checks import Call, Parts
from dualogic.methods.base import Program, State
from dualogic.numerics import is_mapped, wide


# A copy that a compiler can neither drop nor compute again. ``torch.compile`` may compute in the backward pass, from a graph's
# inputs, what it did not save in the forward pass, even when the same graph has changed those inputs in the meantime: the
# gradient is then silently that of the new duals and delta. What an operator makes that it cannot look into is always saved.
@torch.library.custom_op("dualogic::snapshot", mutates_args=(), schema="(Tensor[] values) -> Tensor[]")  # torch 2.4 infers none
def snapshot(values: list[Tensor]) -> list[Tensor]:
    """Copies of the tensors, as they are at this moment of a compiled graph."""
    return [value.clone() for value in values]


@snapshot.register_fake
def _(values: list[Tensor]) -> list[Tensor]:
    return [torch.empty_like(value) for value in values]


@dataclasses.dataclass
class Outcome:
    """What a call comes to: losses and costs ``(batch, rules)``, rows to write, what all samples share from now on, and how much
    heavier than in a plain mean each loss is (``None`` for no heavier).
    """

    losses: Tensor
    costs: Tensor
    update: Update | None = None
    state: State | None = None
    emphasis: Tensor | None = None


@dataclasses.dataclass
class Fetched:
    """What a step reads and its owner then overwrites: rows (``None`` for the optimal duals), where they are from, which entries
    of that index were in range (``None`` for all), and what all samples share.
    """

    rows: Tensor | None
    index: Tensor | None
    good: Tensor | None
    state: State

    @classmethod
    def of(cls, parts: Parts, index: Tensor | None, at_once: bool, optimal: bool = False) -> Fetched:
        """The rows of some samples; nothing is stored if the program has no width."""
        if optimal:
            return cls(None, index, None, parts.state)
        if not parts.program.width:
            return cls(parts.state["delta"].new_empty(1, 0), index, None, parts.state)
        if at_once or index is None:
            return cls(parts.table.fetch(index), index, None, parts.state)  # type: ignore[arg-type]
        return cls(*parts.table.fetch_checked(index, parts.guard.flags), parts.state)

    def copied(self) -> Fetched:
        """The same with copies of what is overwritten; see :func:`snapshot`."""
        copies = snapshot([*self.state.values(), *(() if self.rows is None else (self.rows,))])
        return Fetched(None if self.rows is None else copies[-1], self.index, self.good, dict(zip(self.state, copies)))


def take_step(parts: Parts, call: Call) -> Outcome:
    """The losses of a call and the state after it, in the order of Algorithm 1: duals, loss, delta."""
    with autocast_off(call.bound.device):
        # A method that refuses values, or a function of a user's, may fail in one process only.
        evaluate = functools.partial(_evaluate, parts.program, call)
        return _take(parts, call, *(call.peers.agree(evaluate) if call.peers is not None and call.at_once else evaluate()))


def _evaluate(program: Program, call: Call) -> tuple[Any, Any]:
    """The values of what is taught, and of what is believed; ``None`` for a method that has no use for the latter."""
    values = program.evaluate(call.bound)
    if call.believed is None:
        return values, values
    if not (program.believes or program.width or type(program).advance is not Program.advance):
        return values, None
    with torch.no_grad():
        return values, program.evaluate(call.believed)


def _lose(program: Program, call: Call, rows: Tensor | None, state: State, values: Any, beliefs: Any) -> tuple[Tensor, Tensor]:
    """Losses and costs ``(batch, rules)`` of what is taught."""
    if call.believed is None:
        return program.losses(rows, state, values)
    if program.believes:
        batch = call.believed.batch
        values = Guided(values, [tile(value, call.views) if value.shape[0] == batch else value for value in beliefs])
    rows = rows if rows is None or rows.shape[0] == 1 else tile(rows, call.views)
    losses, costs = program.losses(rows, state, values)
    return average(losses, call.views), average(costs, call.views)


def _take(parts: Parts, call: Call, values: Any, beliefs: Any) -> Outcome:
    """A step with the atoms' values of what is taught, and of what is believed."""
    program, selection = parts.program, call.selection
    compiling = torch.compiler.is_compiling()
    short = None if compiling else _take_short(parts, call, values)
    if short is not None:
        return short
    fetched = Fetched.of(parts, call.index, call.at_once, call.optimal)
    if compiling:
        fetched = fetched.copied()
    rows, state = fetched.rows, fetched.state
    if call.updating and rows is not None and call.believed is None and not compiling:
        values = beliefs = program.settle(state, values)
    update: Update | None = None
    finite: Tensor | None = None
    noted: Tensor | None = None
    if call.updating and rows is not None and program.width:
        with torch.no_grad():
            known = _scale_first(parts, call, beliefs, fetched, rows) if program.loss_first else state
            update, finite, noted = _move(parts, call, beliefs, fetched, known, rows)
    moved = rows if update is None or program.loss_first else update.local
    losses, costs = _lose(program, call, rows if parts.manual else moved, state, values, beliefs)
    if selection is not None:
        losses, costs = selection.only(losses), selection.only(costs)
    emphasis = program.emphasis(state, costs.detach())
    if update is None or call.believed is not None:
        taught = _find_finite(parts, call, values, costs, rows)
        finite = taught if update is None else finite
    if not call.updating:
        return Outcome(losses, costs, emphasis=emphasis)
    seen = costs.detach()
    apart = call.believed is not None and beliefs is not None
    if apart or (update is not None and parts.manual and not program.loss_first):
        # Delta follows the costs of what is believed, under the moved duals even if the loss came before the move.
        with torch.no_grad():
            seen = program.losses(moved, state, beliefs)[1]
    if selection is not None:
        seen = selection.only(seen)
    if apart and update is None:
        finite = _find_finite(parts, call, beliefs, seen, rows)
    if selection is not None:
        finite = selection.among(finite)
    limit = _limits(parts, seen.dtype, stored=True)[0]
    # Weights that have moved may be on a cost that they left out before.
    moving = update is not None and not program.still
    if moving and call.at_once and parts.peers is None and not seen.sum().item() < limit:
        _find_finite(parts, call, beliefs, seen, rows)
    if parts.peers is not None:
        seen, finite = parts.peers.gather(seen), None if finite is None else parts.peers.gather(finite)
        noted = None if noted is None else parts.peers.gather(noted)
        if finite is None and update is not None:
            finite = (seen < limit).all(1)
    after = program.advance(state, seen, finite, noted)
    return Outcome(losses, costs, update, after if selection is None else selection.gate(after, state), emphasis)


def _take_short(parts: Parts, call: Call, values: Any) -> Outcome | None:
    """A training step on a GPU in three kernels, if nothing about it is special."""
    table, index, program = parts.table, call.index, parts.program
    usual = call.updating and call.selection is None and call.believed is None and parts.peers is None and not parts.manual
    if not usual or type(table) not in (DualTable, SharedRow) or not program.width:
        return None
    if call.at_once or index is None:
        return None
    whole = program.whole_step(index, table.values, parts.state, parts.guard.flags, values)
    return None if whole is None else Outcome(*whole)


def _scale_first(parts: Parts, call: Call, values: Any, fetched: Fetched, rows: Tensor) -> State:
    """The state, with the ``delta`` that this step ends with: by that one Algorithm 1 moves the duals."""
    program, selection, state = parts.program, call.selection, fetched.state
    costs = program.losses(rows, state, values)[1]
    counted = (costs < _limits(parts, costs.dtype, stored=True)[0]).all(1)
    counted = counted if fetched.good is None else counted & fetched.good
    if selection is not None:
        costs, counted = selection.only(costs), selection.among(counted)
    if parts.peers is not None:
        costs, counted = parts.peers.gather(costs), parts.peers.gather(counted)
    after = program.advance(state, costs, counted)
    return {**state, "delta": (after if selection is None else selection.gate(after, state))["delta"]}


def _move(
    parts: Parts, call: Call, values: Any, fetched: Fetched, state: State, rows: Tensor
) -> tuple[Update, Tensor | None, Tensor | None]:
    """The rows after a step, which samples count: in range, with finite costs and moves (``None`` if all do), and what else
    they tell.
    """
    index, good, selection = fetched.index, fetched.good, call.selection
    costs, moves, noted = parts.program.moves(rows, state, values)
    if selection is not None:
        columns = selection.columns(parts.program.plan.positions(parts.program.owners(), moves.device))
        costs, moves = selection.only(costs), torch.where(wide(columns), moves, 0.0)
    elif good is not None and index is not None and _can_fuse(parts, rows, moves):
        limit, most = _limits(parts, costs.dtype, stored=True)
        new, moved = fused.advance_rows(index, good, costs, rows, moves, parts.guard.flags, limit, most)
        return Update(new, index, new), moved, noted
    counted = _find_finite(parts, call, values, costs, rows, moves)
    if good is not None and counted is not None:
        counted = counted & good
    if counted is not None:
        moves = torch.where(counted.unsqueeze(1), moves, 0.0)
    movable, selected = counted, None
    if selection is not None:
        selected = selection.mask
        movable = columns if counted is None else columns & (counted if columns.dim() == 1 else wide(counted))

    def apply(rows: Tensor, moves: Tensor) -> Tensor:
        return parts.program.apply_moves(rows, moves, values)

    if parts.peers is None or parts.table.collective:
        return parts.table.advance(index, rows, moves, apply, movable, selected), counted, noted  # type: ignore[arg-type]
    from dualogic.duals.collective import advance_together

    return advance_together(parts.table, parts.peers, index, rows, moves, apply, movable, selected), counted, noted


def join_losses(losses: Tensor, reduction: str, batch: int) -> Tensor:
    """The loss of a batch of which all samples count, in one process."""
    if reduction == "none":
        return losses.sum(1)
    if reduction == "mean" and batch and losses.shape[1] == 1:
        return losses.mean()  # one operation instead of two, each way
    return losses.sum() if reduction == "sum" else losses.sum() / max(batch, 1)


def reduce(losses: Tensor, call: Call, reduction: str) -> Tensor:
    """The loss of a call from those of its samples and rules, ``(batch, rules)``; see :class:`~dualogic.LogicLoss`."""
    if reduction == "none" and call.samples.dropped:
        return losses.sum() + losses.new_zeros(call.samples.dropped)
    if reduction == "none" or (call.selection is None and call.peers is None):
        return join_losses(losses, reduction, call.batch)
    selection = call.selection if reduction == "mean" else None
    total = losses.sum() if selection is None or selection.ruled is None else losses.sum(0)
    total = total if call.peers is None else total * call.peers.size
    if reduction == "sum":
        return total
    return total / max(call.batch, 1) if selection is None else selection.mean(total)


def _can_fuse(parts: Parts, rows: Tensor, moves: Tensor) -> bool:
    plain = parts.peers is None and type(parts.table) is DualTable  # on this device, and updated by this process alone
    fits = plain and parts.program.additive and rows.dtype == moves.dtype
    return fits and fused.usable(rows) and rows.shape[0] <= fused.MAX_BATCH


def _limits(parts: Parts, dtype: torch.dtype, stored: bool) -> tuple[float, float]:
    """What costs and moves of a type must stay below; if they are to be stored, for the type of what is stored too."""
    narrow = numerics.narrower(dtype, parts.state["delta"].dtype) if stored else dtype
    return parts.program.largest_cost(narrow), numerics.largest_move(narrow)


def _find_finite(
    parts: Parts, call: Call, values: Any, costs: Tensor, rows: Tensor | None, moves: Tensor | None = None
) -> Tensor | None:
    """Which samples have costs and moves within limits; at once, raises an error if some have not, and gives ``None``."""
    limit, most = _limits(parts, costs.dtype, call.updating)
    costs = costs.detach()
    if call.at_once:
        # Costs are not negative: if their sum is small enough, so are they. Only a suspicious sum is looked at closely.
        fine = costs.sum().item() < limit or bool((costs < limit).all())
        # Where nothing exists a move is -inf; where a move overflows downwards, another does upwards.
        fine = fine and (moves is None or not moves.numel() or moves.amax().item() < most)
        if call.peers is not None:
            call.peers.agree(lambda: None if fine else _refuse(parts, values, costs, limit, rows, moves))
        elif not fine:
            _refuse(parts, values, costs, limit, rows, moves)
        return None
    finite = costs < limit
    if moves is not None:
        finite = finite & (moves < most).all(1, keepdim=True)
    if not is_mapped():
        parts.guard.flags[1:] |= (~finite).any(0)
    return finite.all(1)


def _refuse(parts: Parts, values: Any, costs: Tensor, limit: float, rows: Tensor | None, moves: Tensor | None) -> None:
    """Say what is behind a cost or a move that is past its limit."""
    if moves is not None and bool((costs < limit).all()):
        sample = int(moves.amax(1).nan_to_num(torch.inf).argmax())
        raise NonFiniteError(
            f"the dual variables of the sample at position {sample} would move by {moves[sample].amax().item():.4g}, past "
            f"what can be stored; give the method a smaller step, or divide the terms of the "
            f"rules by a scale. No dual variable was changed."
        )
    sample, _, found = describe_cost(parts.program.plan.names, costs, limit)
    if rows is not None and not bool((rows[min(sample, rows.shape[0] - 1)] < torch.inf).all()):
        raise NonFiniteError(f"{found}, because {parts.table.spoilt}. No dual variable was changed.")
    parts.program.plan.refuse_non_finite(costs, values, limit)
