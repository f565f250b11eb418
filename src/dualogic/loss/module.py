"""The module that ties rules, duals and a method to a training loop."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dualogic.arguments import check_choice, check_rules, check_samples, check_weight
from dualogic.compile.binding import Bound
from dualogic.compile.evaluate import autocast_off
from dualogic.constants import outside_inference
from dualogic.duals.factory import make_table
from dualogic.duals.guard import Guard
from dualogic.errors import OptionError, StateError
from dualogic.formula.connective import Formula
from dualogic.loss.checkpoint import Run
from dualogic.loss.inspection import ReadableModule
from dualogic.loss.selection import Selection
from dualogic.loss.step import SteppingModule
from dualogic.methods import Method, resolve
from dualogic.methods.base import State

if TYPE_CHECKING:
    from dualogic.duals.collective import Peers


class LogicLoss(SteppingModule, ReadableModule):
    """The loss of one or several rules, to be added to the task's own.

    Like batch norm it updates its own state (dual variables and ``delta``) in ``forward`` while in training mode with
    gradients enabled, and freezes in ``eval()``. One such call computes the costs of all atoms in at least float32, moves the
    duals in closed form, takes the loss with the new duals and the old ``delta``, and then sets ``delta``; no gradient flows
    through either.

    Args:
        rules: a formula, or a mapping of names to formulas; their losses are averaged, so that a hundred rules pull no harder
            against the task's loss than one.
        num_samples: the number of training samples, each with dual variables of its own; ``forward`` then needs their
            indices. ``None`` keeps one row for all.
        method: a name or an object from ``dl.methods``.
        weight: a factor for all rules, or a mapping from rule names to factors; 2 doubles a rule's share in that mean.
        update: ``"forward"``, or ``"manual"`` to update only when :meth:`step` is called.
        reduction: over samples: ``"mean"``, ``"sum"`` or ``"none"``.
        dtype: of the stored dual variables: ``torch.float32``, or ``torch.bfloat16`` for half the memory (rounded
            stochastically, so that small steps are not lost; see :mod:`dualogic.duals.rounding`).
        process_group: the ``torch.distributed`` group whose processes each pass a part of every batch; ``True`` or ``"world"``
            for the default group. See below.
        table: where they are held: ``"device"``; ``"host"``, in host memory, of which a batch's rows visit the device;
            ``"mapped"`` or ``dl.Mapped(path)``, in a file; ``"sharded"``, spread over the processes of ``process_group`` (all
            others are then held by each process, and a file by one). A table takes
            ``num_samples * width * dtype.itemsize`` bytes, which ``repr`` shows.

    With a ``process_group``, the duals, ``delta`` and the loss are those of one process that sees the parts of all processes as
    one batch; parts may differ in size and may be empty. All processes call ``forward`` together while in training mode with
    gradients enabled (and ``step``, with manual updates), and an error in one is raised in all. The loss is scaled so that its
    *mean over processes* is that of one process, because DDP averages gradients so: a process returns the sum over its part,
    times the number of processes, and for ``"mean"`` by the size of the whole batch. ``"none"`` is left alone. In ``eval()`` or
    without gradients nothing is exchanged, and means are over the process's own part; but rows of a sharded table, in
    ``forward`` with an index and in :meth:`weights`, are fetched by all processes together.

    Several threads may call one loss: their calls follow one another, so that no step is lost. Calls that ``torch.compile`` has
    compiled do not wait for each other; make them from one thread.

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
        with outside_inference():  # state made in inference mode could never be updated
            width = self._program.width
            self._table = make_table(table, self.num_samples, width, dtype, self._peers, self._describe())
            self._state: State = self._program.initial_state(state_dtype)
            self._weights = torch.tensor(self._factors(), dtype=state_dtype)
            self._guard = Guard(self.rules, self.num_samples)
        self._weighted = any(factor != 1.0 for factor in self._factors())
        self._run = Run()
        self._mark_static()

    def _factors(self) -> list[float]:
        """What each rule's loss is multiplied with: its weight, divided by the number of rules."""
        count = 1 if self._program.summed else len(self.rules)
        return [self.weight[name] / count for name in self.rules]

    def _compile(self) -> None:
        self._program = self.method.program(self.rules)
        self._program.shared = self.num_samples is None
        if getattr(self._program, "epoch", 0) is None:
            self._program.epoch = self.num_samples  # type: ignore[attr-defined]

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
        if torch.compiler.is_compiling():
            return self._compute(index, where, tensors)
        with self._run.lock:
            return self._compute(index, where, tensors)

    def _compute(self, index: Tensor | None, where: Tensor | None, tensors: dict[str, Tensor]) -> Tensor:
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
        if updating and not self._run.told and not torch.compiler.is_compiling() and not self._teaches(bound, losses):
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

    def prefetch(self, index: Tensor) -> None:
        """Start bringing the dual variables of the next batch to the device, while this one is still computed.

        Args:
            index: the next batch's training samples, ``(batch,)``; on the CPU, as a data loader gives it.
        """
        if self._program.width and not self._table.shared:
            checked = self._table.check_index(index, len(index), at_once=False)
            with self._run.lock:
                self._table.prefetch(checked)

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
        with self._run.lock, outside_inference(), torch.no_grad():
            self._table.extend_(count)
        self.num_samples = self._guard.samples = count
        self._compile()  # an epoch may be as long as the table
        self._mark_static()
        return self

    def reset_(self) -> LogicLoss:
        """Forget everything learned: equal weights, initial ``delta``, no steps."""
        with self._run.lock:
            self._table.reset_()
            for name, value in self._program.initial_state(self._state["delta"].dtype).items():
                self._state[name].copy_(value)
            self._run.pending = None
            self._run.last = {}
        return self


def _select(bound: Bound, peers: Peers | None) -> Selection:
    mask = bound.selected
    if mask is None:  # another process selects, this one takes all of its part
        mask = torch.ones(bound.batch, dtype=torch.bool, device=bound.device)
    return Selection.of(mask) if peers is None else Selection(mask, peers.sum(mask.sum()))


def _find_peers(group: Any) -> Peers | None:
    # One process needs none of this, and importing it loads a compiler that may never be used.
    if group is None:
        return None
    from dualogic.duals.collective import make_peers

    return make_peers(group)
