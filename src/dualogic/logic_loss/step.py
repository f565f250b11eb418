"""One step of a logic loss: rows are fetched, move, give the losses and are written; then ``delta`` follows the costs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dualogic import fused
from dualogic.duals.table import DualTable, Update
from dualogic.errors import StateError
from dualogic.logic_loss.checks import CheckedModule
from dualogic.methods.base import State
from dualogic.opaque import snapshot
from dualogic.selection import Selection

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
        if self._run.pending is None:
            raise StateError("step() has nothing to apply: call forward in training mode, with gradients enabled, first")
        self._commit()

    @contextlib.contextmanager
    def frozen(self) -> Iterator[Self]:
        """Suspend updates, as in ``with logic.frozen(): ...``; the stored duals are used."""
        self._run.frozen += 1
        try:
            yield self
        finally:
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
        if updating and rows is not None and self._program.width:
            with torch.no_grad():
                update, finite = self._move(index, good, rows, state, values, at_once, selection)
        loss_first = self._program.loss_first or self.update == "manual"
        losses, costs = self._program.losses(rows if loss_first or update is None else update.local, state, values)
        if selection is not None:
            losses, costs = selection.only(losses), selection.only(costs)
        if update is None:
            finite = self._find_finite(costs, values, at_once, self.training and torch.is_grad_enabled())
        if updating:
            seen = costs.detach()
            if update is not None and self.update == "manual" and not self._program.loss_first:
                # The loss came before the move, but delta follows the costs under the moved duals, as in forward mode.
                with torch.no_grad():
                    seen = self._program.losses(update.local, state, values)[1]
            if selection is not None:
                seen, finite = selection.only(seen), selection.among(finite)
            if self._peers is not None:
                seen, finite = self._peers.gather(seen), None if finite is None else self._peers.gather(finite)
            after = self._program.advance(state, seen, finite)
            self._run.pending = (update, after if selection is None else selection.gate(after, state))
            if self.update == "forward":
                self._commit()
        return losses, costs

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
    ) -> tuple[Update, Tensor | None]:
        """The rows after a step, and which samples have finite costs (``None`` if all do)."""
        costs, moves = self._program.moves(rows, state, values)
        if selection is not None:
            costs = selection.only(costs)
        elif good is not None and index is not None and self._can_fuse(rows, moves):
            new, finite = fused.advance_rows(
                index, good, costs, rows, moves, self._guard.flags, self._program.largest_cost(costs.dtype)
            )
            return Update(new, index, new), finite
        found = self._find_finite(costs, values, at_once, learning=True)
        counted = found if good is None or found is None else found & good
        selected = None
        if selection is not None:
            counted, selected = selection.among(counted), selection.mask
        if counted is not None:
            moves = torch.where(counted.unsqueeze(1), moves, 0.0)

        def apply(rows: Tensor, moves: Tensor) -> Tensor:
            return self._program.apply_moves(rows, moves, values)

        if self._peers is None or self._table.collective:
            return self._table.advance(index, rows, moves, apply, counted, selected), found  # type: ignore[arg-type]
        from dualogic.duals.replicated import advance_together

        return advance_together(self._table, self._peers, index, rows, moves, apply, counted, selected), found

    def _snapshot(self, rows: Tensor | None) -> tuple[Tensor | None, State]:
        """Copies of what this step reads and then overwrites; see :mod:`dualogic.opaque`."""
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

    def _find_finite(self, costs: Tensor, values: Any, at_once: bool, learning: bool) -> Tensor | None:
        costs = costs.detach()
        limit = self._program.largest_cost(costs.dtype)
        if at_once:
            # Costs are not negative: if their sum is small enough, so are they. Only a suspicious sum is looked at closely.
            fine = costs.sum().item() < limit or bool((costs < limit).all())
            if self._peers is not None and learning:
                self._peers.agree(lambda: None if fine else self._program.plan.refuse_non_finite(costs, values, limit))
            elif not fine:
                self._program.plan.refuse_non_finite(costs, values, limit)
            return None
        finite = costs < limit
        self._guard.note_costs(finite)
        return finite.all(1)

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
