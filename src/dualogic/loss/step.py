"""One step of a logic loss: rows are fetched, move, give the losses and are written; then ``delta`` follows the costs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dualogic import numerics
from dualogic.compile.plan import describe_cost
from dualogic.duals.table import DualTable, Update
from dualogic.errors import NonFiniteError, StateError
from dualogic.kernels import fused
from dualogic.loss.checks import CheckedModule
from dualogic.loss.opaque import snapshot
from dualogic.loss.selection import Selection
from dualogic.methods.base import State

if TYPE_CHECKING:
    from typing_extensions import Self


class SteppingModule(CheckedModule):
    """A module that evaluates its program on stored rows and updates them: in ``forward``, by :meth:`step`, or not at all."""

    def step(self) -> None:
        """With ``update="manual"``: apply the update that belongs to the latest training call of ``forward``.

        Call it once per optimizer step, wherever the duals should move; a closure may evaluate the loss as often as it likes.
        """
        if self.update != "manual":
            raise StateError('step() belongs to LogicLoss(..., update="manual"); this loss updates itself in forward')
        with self._run.lock:
            if self._run.pending is None:
                raise StateError("step() has nothing to apply: call forward in training mode, with gradients enabled, first")
            self._commit()

    @contextlib.contextmanager
    def frozen(self) -> Iterator[Self]:
        """Suspend updates, as in ``with logic.frozen(): ...``; the stored duals are used."""
        with self._run.lock:
            self._run.frozen += 1
        try:
            yield self
        finally:
            with self._run.lock:
                self._run.frozen -= 1

    def _evaluate(
        self,
        values: Any,
        index: Tensor | None,
        optimal: bool,
        updating: bool,
        at_once: bool,
        selection: Selection | None,
    ) -> tuple[Tensor, Tensor]:
        """Losses and costs ``(batch, rules)``, in the order of the design: duals, loss, delta."""
        compiling = not at_once and torch.compiler.is_compiling()
        whole_batch = selection is None and not at_once and not compiling
        if updating and whole_batch and index is not None and self._plain:
            whole = self._program.whole_step(index, self._table.values, self._state, self._guard.flags, values)
            if whole is not None:
                return whole
        rows, index, good = (None, index, None) if optimal else self._fetch(index, at_once)
        state = self._state
        if compiling:
            rows, state = self._snapshot(rows)
        update: Update | None = None
        finite: Tensor | None = None
        noted: Tensor | None = None
        if updating and rows is not None and self._program.width:
            with torch.no_grad():
                known = self._scale_first(rows, good, state, values, selection) if self._program.loss_first else state
                update, finite, noted = self._move(index, good, rows, known, values, at_once, selection)
        loss_first = self._program.loss_first or self.update == "manual"
        losses, costs = self._program.losses(rows if loss_first or update is None else update.local, state, values)
        if selection is not None:
            losses, costs = selection.only(losses), selection.only(costs)
        if update is None:
            finite = self._find_finite(costs, values, at_once, self.training and torch.is_grad_enabled(), updating, rows)
        if updating:
            seen = costs.detach()
            if update is not None and self.update == "manual" and not self._program.loss_first:
                # The loss came before the move, but delta follows the costs under the moved duals, as in forward mode.
                with torch.no_grad():
                    seen = self._program.losses(update.local, state, values)[1]
            if selection is not None:
                seen, finite = selection.only(seen), selection.among(finite)
            # Weights that have moved may be on a cost that they left out before.
            alone = update is not None and at_once and self._peers is None
            if alone and not seen.sum().item() < self._limits(seen.dtype, stored=True)[0]:
                self._find_finite(seen, values, at_once, True, True, rows)
            if self._peers is not None:
                seen, finite = self._peers.gather(seen), None if finite is None else self._peers.gather(finite)
                noted = None if noted is None else self._peers.gather(noted)
                if finite is None and update is not None:
                    finite = (seen < self._limits(seen.dtype, stored=True)[0]).all(1)
            after = self._program.advance(state, seen, finite, noted)
            self._run.pending = (update, after if selection is None else selection.gate(after, state))
            if self.update == "forward":
                self._commit()
        return losses, costs

    def _scale_first(self, rows: Tensor, good: Tensor | None, state: State, values: Any, selection: Selection | None) -> State:
        """The state, with the ``delta`` that this step ends with: by that one Algorithm 1 moves the duals."""
        costs = self._program.losses(rows, state, values)[1]
        counted = (costs < self._limits(costs.dtype, stored=True)[0]).all(1)
        counted = counted if good is None else counted & good
        if selection is not None:
            costs, counted = selection.only(costs), selection.among(counted)
        if self._peers is not None:
            costs, counted = self._peers.gather(costs), self._peers.gather(counted)
        after = self._program.advance(state, costs, counted)
        return {**state, "delta": (after if selection is None else selection.gate(after, state))["delta"]}

    def _fetch(self, index: Tensor | None, at_once: bool) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Rows of the table, a safe index, and which entries of it were in range (``None`` if all are)."""
        if not self._program.width:
            return self._state["delta"].new_empty(1, 0), index, None
        if at_once or index is None:
            return self._table.fetch(index), index, None  # type: ignore[arg-type]
        return self._table.fetch_checked(index, self._guard.flags)

    def _move(
        self,
        index: Tensor | None,
        good: Tensor | None,
        rows: Tensor,
        state: State,
        values: Any,
        at_once: bool,
        selection: Selection | None,
    ) -> tuple[Update, Tensor | None, Tensor | None]:
        """The rows after a step, which samples count: in range, with finite costs and moves (``None`` if all do), and what else
        they tell.
        """
        costs, moves, noted = self._program.moves(rows, state, values)
        if selection is not None:
            costs, moves = selection.only(costs), selection.only(moves)
        elif good is not None and index is not None and self._can_fuse(rows, moves):
            limit, most = self._limits(costs.dtype, stored=True)
            new, moved = fused.advance_rows(index, good, costs, rows, moves, self._guard.flags, limit, most)
            return Update(new, index, new), moved, noted
        counted = self._find_finite(costs, values, at_once, True, True, rows, moves)
        if good is not None and counted is not None:
            counted = counted & good
        selected = None
        if selection is not None:
            counted, selected = selection.among(counted), selection.mask
        if counted is not None:
            moves = torch.where(counted.unsqueeze(1), moves, 0.0)

        def apply(rows: Tensor, moves: Tensor) -> Tensor:
            return self._program.apply_moves(rows, moves, values)

        if self._peers is None or self._table.collective:
            return self._table.advance(index, rows, moves, apply, counted, selected), counted, noted  # type: ignore[arg-type]
        from dualogic.duals.replicated import advance_together

        return advance_together(self._table, self._peers, index, rows, moves, apply, counted, selected), counted, noted

    def _snapshot(self, rows: Tensor | None) -> tuple[Tensor | None, State]:
        """Copies of what this step reads and then overwrites; see :mod:`dualogic.loss.opaque`."""
        names = list(self._state)
        copies = snapshot([*self._state.values(), *(() if rows is None else (rows,))])
        return None if rows is None else copies[-1], dict(zip(names, copies))

    @property
    def _plain(self) -> bool:
        """The table is a tensor on this device, updated in forward by this process alone."""
        return self._peers is None and type(self._table) is DualTable and self.update == "forward"

    def _can_fuse(self, rows: Tensor, moves: Tensor) -> bool:
        plain = self._peers is None and type(self._table) is DualTable and self._program.additive and rows.dtype == moves.dtype
        return plain and fused.usable(rows) and rows.shape[0] <= fused.MAX_BATCH

    def _limits(self, dtype: torch.dtype, stored: bool) -> tuple[float, float]:
        """What costs and moves of a type must stay below; if they are to be stored, for the type of what is stored too."""
        compiling = torch.compiler.is_compiling()  # then they are constants, and a memory of them would compile once more
        found = None if compiling else self._run.limits.get((dtype, stored))
        if found is None:
            narrow = numerics.narrower(dtype, self._state["delta"].dtype) if stored else dtype
            found = (self._program.largest_cost(narrow), numerics.largest_move(narrow))
            if not compiling:
                self._run.limits[dtype, stored] = found
        return found

    def _find_finite(
        self,
        costs: Tensor,
        values: Any,
        at_once: bool,
        learning: bool,
        stored: bool,
        rows: Tensor | None,
        moves: Tensor | None = None,
    ) -> Tensor | None:
        """Which samples have costs and moves within limits; at once, raises an error if some have not, and gives ``None``."""
        costs = costs.detach()
        limit, most = self._limits(costs.dtype, stored)
        if at_once:
            # Costs are not negative: if their sum is small enough, so are they. Only a suspicious sum is looked at closely.
            fine = costs.sum().item() < limit or bool((costs < limit).all())
            # Where nothing exists a move is -inf; where a move overflows downwards, another does upwards.
            fine = fine and (moves is None or not moves.numel() or moves.amax().item() < most)
            if self._peers is not None and learning:
                self._peers.agree(lambda: None if fine else self._refuse(costs, values, limit, rows, moves))
            elif not fine:
                self._refuse(costs, values, limit, rows, moves)
            return None
        finite = costs < limit
        if moves is not None:
            finite = finite & (moves < most).all(1, keepdim=True)
        self._guard.note_costs(finite)
        return finite.all(1)

    def _refuse(self, costs: Tensor, values: Any, limit: float, rows: Tensor | None, moves: Tensor | None) -> None:
        """Say what is behind a cost or a move that is past its limit."""
        if moves is not None and bool((costs < limit).all()):
            sample = int(moves.amax(1).nan_to_num(torch.inf).argmax())
            raise NonFiniteError(
                f"the dual variables of the sample at position {sample} would move by {moves[sample].amax().item():.4g}, past "
                f"what can be stored; give the method a smaller step (and look at its schedule), or divide the terms of the "
                f"rules by a scale. No dual variable was changed."
            )
        sample, _, found = describe_cost(self._program.plan.names, costs, limit)
        if rows is not None and not bool((rows[min(sample, rows.shape[0] - 1)] < torch.inf).all()):
            raise NonFiniteError(f"{found}, because {self._table.spoilt}. No dual variable was changed.")
        self._program.plan.refuse_non_finite(costs, values, limit)

    def _commit(self) -> None:
        assert self._run.pending is not None
        update, state = self._run.pending
        self._run.pending = None
        with torch.no_grad():
            if update is not None:
                self._table.commit(update, self._state["steps"])
            # In place, so that captured graphs, which know addresses only, see the new state.
            for name, value in state.items():
                self._state[name].copy_(value)
