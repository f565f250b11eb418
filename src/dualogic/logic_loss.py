"""The module that ties rules, duals and a method to a training loop."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dualogic import fused
from dualogic.arguments import check_choice, check_rules, check_samples, check_weight, shorten
from dualogic.checkpoint import KeptModule, Run
from dualogic.compile.binding import Bound
from dualogic.compile.evaluate import autocast_off
from dualogic.duals.factory import make_table
from dualogic.duals.guard import Guard
from dualogic.duals.memory import Memory
from dualogic.duals.table import DualTable, Update
from dualogic.errors import (
    OptionError,
    SampleIndexError,
    ShortcutWarning,
    StateError,
)
from dualogic.formula.connective import Formula
from dualogic.methods import Method, resolve
from dualogic.methods.base import State
from dualogic.opaque import snapshot
from dualogic.selection import Selection

if TYPE_CHECKING:
    from dualogic.duals.collective import Peers


class LogicLoss(KeptModule):
    """The loss of one or several rules, to be added to the task's own.

    Like batch norm it updates its own state (dual variables and ``delta``) in ``forward`` while in training mode with
    gradients enabled, and freezes in ``eval()``. One such call computes the costs of all atoms in at least float32, moves the
    duals in closed form, takes the loss with the new duals and the old ``delta``, and then sets ``delta``; no gradient flows
    through either.

    Args:
        rules: a formula, or a mapping of names to formulas; their losses are summed.
        num_samples: the number of training samples, each with dual variables of its own; ``forward`` then needs their
            indices. ``None`` keeps one row for all.
        method: a name or an object from ``dl.methods``.
        weight: a factor for all rules, or a mapping from rule names to factors.
        update: ``"forward"``, or ``"manual"`` to update only when :meth:`step` is called.
        reduction: over samples: ``"mean"``, ``"sum"`` or ``"none"``.
        dtype: of the stored dual variables: ``torch.float32``, or ``torch.bfloat16`` for half the memory (rounded
            stochastically, so that small steps are not lost; see :mod:`dualogic.duals.rounding`).
        process_group: the ``torch.distributed`` group whose processes each pass a part of every batch; ``True`` or ``"world"``
            for the default group. See below.
        table: where they are held: ``"device"``; ``"host"``, in host memory, of which a batch's rows visit the device;
            ``"mapped"`` or ``dl.Mapped(path)``, in a file; ``"sharded"``, spread over the processes of ``process_group`` (all
            others are then held by each process, and a file by one); or ``dl.Amortised(features=...)``, a network that takes
            features for an index. A table takes ``num_samples * width * dtype.itemsize`` bytes, which ``repr`` shows.

    With a ``process_group``, the duals, ``delta`` and the loss are those of one process that sees the parts of all processes as
    one batch; parts may differ in size and may be empty. All processes call ``forward`` together while in training mode with
    gradients enabled (and ``step``, with manual updates), and an error in one is raised in all. The loss is scaled so that its
    *mean over processes* is that of one process, because DDP averages gradients so: a process returns the sum over its part,
    times the number of processes, and for ``"mean"`` by the size of the whole batch. ``"none"`` is left alone. In ``eval()`` or
    without gradients nothing is exchanged, and means are over the process's own part; but rows of a sharded table, in
    ``forward`` with an index and in :meth:`weights`, are fetched by all processes together.

    Example:
        >>> import dualogic as dl, torch
        >>> f, g = dl.categorical("f", 10, input="logits"), dl.categorical("g", 10, input="logits")
        >>> logic = dl.LogicLoss((g == 9) >> (f == 6), num_samples=100)
        >>> logic  # doctest: +ELLIPSIS
        LogicLoss(rule: (g == 9) >> (f == 6); method=dual, 2 dual variables for each of 100 samples (8 B per sample, ...))
        >>> print(logic.memory())
        8 B per sample, 800 B in total, float32 on cpu
        >>> logits = torch.zeros(2, 10, requires_grad=True)
        >>> logic(torch.tensor([7, 3]), f=logits, g=logits).backward()
        >>> logic.weights(torch.tensor([7]))["rule"].sum(-1)
        tensor([1.])
    """

    def __init__(
        self,
        rules: Formula | Mapping[str, Formula],
        num_samples: int | None = None,
        method: str | Method = "dual",
        *,
        weight: float | Mapping[str, float] = 1.0,
        update: str = "forward",
        reduction: str = "mean",
        dtype: torch.dtype = torch.float32,
        process_group: Any = None,
        table: Any = "device",
    ) -> None:
        super().__init__()
        self.rules = check_rules(rules)
        self.method = resolve(method)
        self.num_samples = check_samples(num_samples)
        check_choice("update", update, ("forward", "manual"))
        check_choice("reduction", reduction, ("mean", "sum", "none"))
        if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
            raise OptionError(f"dtype must be a floating point torch.dtype; got {dtype!r}")
        self.update = update
        self.reduction = reduction
        self.weight = check_weight(weight, self.rules)
        self._compile()
        self._peers = _find_peers(process_group)
        state_dtype = torch.promote_types(dtype, torch.float32)
        with torch.inference_mode(False):  # state made in inference mode could never be updated
            self._table = make_table(table, self.num_samples, self._program.width, dtype, self._peers)
            self._state: State = self._program.initial_state(state_dtype)
        self._weights = torch.tensor([self.weight[name] for name in self.rules], dtype=state_dtype)
        self._weighted = any(value != 1.0 for value in self.weight.values())
        self._guard = Guard(self.rules, self.num_samples)
        self._run = Run()
        self._mark_static()

    def _compile(self) -> None:
        self._program = self.method.program(self.rules)
        self._program.shared = self.num_samples is None
        if getattr(self._program, "epoch", 0) is None:
            self._program.epoch = self.num_samples  # type: ignore[attr-defined]

    # ------------------------------------------------------------------ calling

    def forward(self, index: Tensor | None = None, *, where: Tensor | None = None, **tensors: Tensor) -> Tensor:
        """The loss of a batch; updates the state in training mode.

        Args:
            index: which training samples these are, ``(batch,)`` integers. With a table it is needed in training; in
                ``eval()``, without it the optimal duals are used, because validation samples have no row of their own.
            where: which samples the rules are about, ``(batch,)`` bool; ``None`` for all. A call with it does what a call with
                these samples alone would do: the others have no loss, move nothing, and count neither for ``delta`` nor in a
                mean. Their index may be anything, such as -1, and their tensors too: NaN or infinities there reach neither the
                loss nor the gradient of a selected sample, and their own gradient is exactly 0 at the tensors given here (a
                network that made NaN may still turn that 0 into NaN on its way back). If none is selected the loss is 0, with
                a gradient of 0, and nothing changes. On an accelerator nothing waits for the mask.
            tensors: one for each symbol, by name, with a leading batch axis.

        Returns:
            A scalar, or ``(batch,)`` with ``reduction="none"``; differentiable with respect to the tensors.
        """
        optimal = index is None and not self.training and not self._table.shared
        learning = self.training and torch.is_grad_enabled()
        peers = self._peers if learning else None
        if self._peers is None or not (learning or (self._table.collective and index is not None)):
            bound, index = self._prepare(index, where, tensors)
        else:
            bound, index = self._peers.agree(
                functools.partial(self._prepare, index, where, tensors),
                lambda ready: ready[0].batch,
                lambda ready: ready[0].selected is not None,
            )
        selection = None if bound.selected is None and not (peers and peers.marked) else _select(bound, peers)
        batch = bound.batch if peers is None else peers.total
        at_once = bound.device.type == "cpu" and not torch.compiler.is_compiling()
        with autocast_off(bound.device):
            updating = learning and not self._run.frozen and batch > 0
            losses, costs = self._evaluate(self._program.evaluate(bound), index, optimal, updating, at_once, selection)
        if updating and not losses.requires_grad and not self._run.told and not torch.compiler.is_compiling():
            self._tell_untaught(bound)
        if self.update == "manual" and learning and not updating and not self._run.frozen:
            self._run.pending = (None, self._state)  # an empty batch has an empty update
        self._run.last = {"cost": costs.detach(), "loss": losses.detach()}
        self._run.selected = None if selection is None else selection.mask
        if self._weighted:
            losses = losses * self._weights.to(losses.dtype)
        if self.reduction == "none":
            return losses.sum(1) if not bound.dropped else losses.sum() + losses.new_zeros(bound.dropped)
        if selection is not None:
            total = losses.sum() if peers is None else losses.sum() * peers.size
            return selection.mean(total) if self.reduction == "mean" else total
        if self.reduction == "mean" and peers is None and batch and losses.shape[1] == 1:
            return losses.mean()  # one operation instead of two, each way
        total = losses.sum() if peers is None else losses.sum() * peers.size
        return total / max(batch, 1) if self.reduction == "mean" else total

    def _prepare(self, index: Any, where: Any, tensors: dict[str, Tensor]) -> tuple[Bound, Tensor | None]:
        """Bound tensors and the index, after all checks that can be made before anything is computed."""
        compiling = torch.compiler.is_compiling()
        if self.training and torch.is_grad_enabled() and not self._run.frozen and self.update == "forward" and not compiling:
            _refuse_recomputation()
        bound = self._program.plan.bind(tensors, False if compiling else None if self._run.validated else True, where)
        self._run.validated = self._run.validated or not compiling
        self._check_device(bound.device)
        at_once = bound.device.type == "cpu" and not compiling
        if not at_once and not compiling:
            self._guard.poll()
        index = self._check_index(index, bound.batch, at_once, where)
        if at_once and bound.selected is not None and not bool(bound.selected.any()):
            return bound.emptied(), None if index is None else index[:0]
        return bound, index

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
        whole_batch = selection is None and not at_once and not torch.compiler.is_compiling()
        if updating and whole_batch and index is not None and self._plain:
            whole = self._program.whole_step(index, self._table.values, self._state, self._guard.flags, values)
            if whole is not None:
                return whole
        rows, index, good = (None, index, None) if optimal else self._fetch(index, at_once)
        state = self._state
        if torch.compiler.is_compiling():
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
        limit = self._program.largest_cost(costs.dtype)
        if at_once:
            # Costs are not negative: if their sum is small enough, so are they. Only a suspicious sum is looked at closely.
            fine = costs.detach().sum().item() < limit or bool((costs.detach() < limit).all())
            if self._peers is not None and learning:
                self._peers.agree(lambda: None if fine else self._program.plan.refuse_non_finite(costs.detach(), values, limit))
            elif not fine:
                self._program.plan.refuse_non_finite(costs.detach(), values, limit)
            return None
        finite = costs.detach() < limit
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
    def frozen(self) -> Iterator[LogicLoss]:
        """Suspend updates, as in ``with logic.frozen(): ...``; the stored duals are used."""
        self._run.frozen += 1
        try:
            yield self
        finally:
            self._run.frozen -= 1

    def extend(self, num_samples: int) -> LogicLoss:
        """Make room for more training samples; what was learned stays, and new samples start at equal weights.

        With a ``process_group`` all processes call it. A checkpoint of the smaller table loads before, not after.

        Args:
            num_samples: the new number of samples, not less than the present one.

        Returns:
            The loss itself.

        Example:
            >>> import dualogic as dl
            >>> x = dl.var("x")
            >>> dl.LogicLoss((x <= 0) | (x >= 1), num_samples=3).extend(5).num_samples
            5
        """
        count = check_samples(num_samples)
        if count is None:
            raise OptionError("extend needs a number of samples; got None")
        if self.num_samples is not None and count < self.num_samples:
            raise StateError(
                f"extend only grows: this loss has num_samples={self.num_samples}, and {count} would forget what was learned for "
                f"the last {self.num_samples - count} samples; make a new LogicLoss for fewer"
            )
        if count == self.num_samples:
            return self
        with torch.inference_mode(False), torch.no_grad():
            self._table.extend_(count)
        self.num_samples = self._guard.samples = count
        self._compile()  # an epoch may be as long as the table
        self._mark_static()
        return self

    def reset_(self) -> LogicLoss:
        """Forget everything learned: equal weights, initial ``delta``, no steps."""
        self._table.reset_()
        for name, value in self._program.initial_state(self._state["delta"].dtype).items():
            self._state[name].copy_(value)
        self._run.pending = None
        self._run.last = {}
        return self

    # ------------------------------------------------------------------ looking inside

    @property
    def together(self) -> bool:
        """Whether it was made for several processes, with ``process_group=``."""
        return self._peers is not None

    @property
    def listable(self) -> bool:
        """Whether this process alone can list the weights of all samples; not so for sharded tables and for networks."""
        return not self._table.collective and (self._table.shared or self.num_samples is not None)

    @property
    def delta(self) -> Tensor:
        """The scale of each rule's truncated normal, ``(rules,)``."""
        return self._state["delta"].clone()

    def weights(self, index: Tensor | None = None) -> dict[str, Tensor]:
        """How each connective weighs its operands.

        Args:
            index: training samples ``(batch,)``; not needed for a shared row.

        Returns:
            A mapping from paths to weights ``(batch, ..., k)`` that sum to 1. A path is the rule's name (``"rule"`` for a lone
            formula) followed by operand positions in its negation normal form, as in ``"rule/0"``.
        """
        if not self._program.width:
            return {}
        if not self._table.shared:
            if index is None:
                raise SampleIndexError("weights(index) needs the indices of training samples: each has weights of its own")
            check = functools.partial(self._check_index, index, _count(index), at_once=True)
            index = self._peers.agree(check) if self._peers is not None and self._table.collective else check()
        with torch.no_grad():
            return self._program.weights(self._table.fetch(index).to(self._state["delta"].dtype))  # type: ignore[arg-type]

    def memory(self) -> Memory:
        """The dual variables' bytes per sample and in total; ``print`` shows them in words."""
        return self._table.memory()

    def prefetch(self, index: Tensor) -> None:
        """Start bringing the dual variables of the next batch to the device, while this one is still computed.

        Args:
            index: the next batch's training samples, ``(batch,)``; on the CPU, as a data loader gives it.
        """
        if self._program.width and not self._table.shared:
            self._table.prefetch(self._table.check_index(index, len(index), at_once=False))

    def statistics(self) -> dict[str, dict[str, Tensor]]:
        """Means over the latest batch (this process's part of it, and there the selected samples) for each rule: cost, loss and
        delta, on the device.

        Waits for nothing.
        """
        found: dict[str, dict[str, Tensor]] = {}
        selected = self._run.selected
        columns = {
            key: (value.mean(0) if selected is None else value.sum(0) / selected.sum()).unbind()
            for key, value in self._run.last.items()
        }
        columns["delta"] = self.delta.unbind()
        for position, name in enumerate(self.rules):
            found[name] = {key: values[position] for key, values in columns.items()}
        return found

    def extra_repr(self) -> str:
        """The rules and the size of the table, for ``print``."""
        return self._summary()

    def __repr__(self) -> str:
        return f"LogicLoss({self._summary()})"

    def _summary(self) -> str:
        names = list(self.rules)
        shown = ", ".join(f"{name}: {shorten(str(self.rules[name]))}" for name in names[:3])
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        bytes_taken = f" ({self.memory()})" if self._program.width else ""
        return f"{shown}{more}; method={self.method.name}, {self._program.width} dual variables {self._table.owner}{bytes_taken}"

    # ------------------------------------------------------------------ checks

    def _tell_untaught(self, bound: Bound) -> None:
        """Warn, once, that the rules teach nothing although some tensor could be taught."""
        self._run.told = True
        needy = [name for name, tensor in bound.tensors.items() if tensor.requires_grad]
        rest = [name for name, tensor in bound.tensors.items() if not tensor.requires_grad and tensor.is_floating_point()]
        if needy:
            rules = "; ".join(f"{name}: {shorten(str(formula))}" for name, formula in list(self.rules.items())[:3])
            warnings.warn(
                f"no gradient flows from the rules ({rules}) into any tensor: {', '.join(map(repr, needy))} can be taught but is "
                f"read as evidence only, as the antecedent of >> is by default in method='dual'. Check that the other tensors "
                f"({', '.join(map(repr, rest)) or 'none'}) require a gradient and were not detached or made under no_grad; or "
                f"let the rule teach its antecedent: dl.evidence(a, False) >> b, or dl.methods.Dual(evidence=False)",
                ShortcutWarning,
                stacklevel=5,
            )

    def _fetch(self, index: Tensor | None, at_once: bool) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Rows of the table, a safe index, and which entries of it were in range (``None`` if all are)."""
        if not self._program.width:
            return self._state["delta"].new_empty(1, 0), index, None
        if at_once or index is None:
            return self._table.fetch(index), index, None  # type: ignore[arg-type]
        return self._table.fetch_checked(index, self._guard.flags)

    def _check_device(self, device: torch.device) -> None:
        if self._table.device != device:
            raise StateError(
                f"the tensors are on {device} and the dual variables on {self._table.device}; call .to({str(device)!r}) on "
                f"the LogicLoss, as on any module"
            )

    def _check_index(self, index: Any, batch: int, at_once: bool, where: Any = None) -> Tensor | None:
        """The index as a tensor on the right device; its range is checked here only if that needs no waiting."""
        if self._table.shared:
            return None
        if index is None:
            if self.training:
                raise SampleIndexError(self._table.missing_index(batch))
            return None
        if not self._program.width:
            # Nothing is kept for the samples, but a wrong index would show when the method is changed.
            if at_once and self.num_samples is not None:
                self._table.check_index(index, batch, at_once, where)
            return None
        return self._table.check_index(index, batch, at_once, where)

    def check(self) -> None:
        """Wait for the device and raise an error if a step so far met a bad index or a cost that is not finite.

        On a CPU such problems are raised at once; on an accelerator, a few steps later, or here.
        """
        if self._peers is None:
            self._guard.check()
        else:
            self._peers.agree(self._guard.check)


def _select(bound: Bound, peers: Peers | None) -> Selection:
    mask = bound.selected
    if mask is None:  # another process selects, this one takes all of its part
        mask = torch.ones(bound.batch, dtype=torch.bool, device=bound.device)
    return Selection.of(mask) if peers is None else Selection(mask, peers.sum(mask.sum()))


def _count(index: Any) -> int:
    try:
        return len(torch.as_tensor(index))
    except (TypeError, ValueError, RuntimeError) as error:
        raise SampleIndexError(
            f"weights(index) needs training samples as a tensor of shape (batch,), as in torch.tensor([7]); got {index!r}"
        ) from error


def _find_peers(group: Any) -> Peers | None:
    # One process needs none of this, and importing it loads a compiler that may never be used.
    if group is None:
        return None
    from dualogic.duals.collective import make_peers

    return make_peers(group)


def _refuse_recomputation() -> None:
    # Inside a backward pass forward runs again only because activation checkpointing recomputes it; a second update would
    # change the duals twice and the loss under the gradient's feet.
    if torch._C._current_graph_task_id() != -1:
        raise StateError(
            'LogicLoss is inside a region that activation checkpointing computes again; use update="manual" and call '
            "logic.step() after backward, or keep the loss outside of the checkpointed region"
        )
