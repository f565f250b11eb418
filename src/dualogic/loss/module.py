"""The module that ties rules, duals and a method to a training loop."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, final

import torch
from torch import Tensor

from dualogic.compile.evaluate import are_satisfied
from dualogic.duals.memory import Memory
from dualogic.errors import StateError
from dualogic.formula.connective import Formula
from dualogic.formula.node import Node
from dualogic.loss.checks import find_given, find_units, prepare, reads_at_once, warn_untaught
from dualogic.loss.inspection import View, describe, look_at, summarise
from dualogic.loss.repeated import call_again
from dualogic.loss.state import KeptModule
from dualogic.loss.step import reduce, take_step
from dualogic.methods import Method
from dualogic.numerics import is_transformed

if TYPE_CHECKING:
    from dualogic.diagnosis import ShortcutReport


@final
class LogicLoss(KeptModule):
    """The loss of one or several rules, to be added to the task's own.

    Like batch norm it updates its own state (dual variables and ``delta``) in ``forward`` while in training mode with
    gradients enabled, and freezes in ``eval()``. One such call computes the costs of all atoms in at least float32, moves the
    duals in closed form, takes the loss with the new duals and the old ``delta``, and then sets ``delta``; no gradient flows
    through either.

    Args:
        rules: a formula, or a mapping of names to formulas; their losses are averaged, so that a hundred rules pull no harder
            against the task's loss than one; ``dual`` raises those of samples that violate few of many.
        num_samples: the number of training samples, each with dual variables of its own; ``forward`` then needs their
            indices. ``None`` keeps one row for all.
        method: a name or an object from ``dl.methods``.
        weight: a factor for all rules, or a mapping from rule names to factors; 2 doubles a rule's share in that mean, and 0
            switches it off. See :meth:`set_weight`.
        update: ``"forward"``, or ``"manual"`` to update only when :meth:`step` is called; until then the loss is taken with the
            stored duals.
        reduction: over samples: ``"mean"``, ``"sum"`` or ``"none"``.
        dtype: of the stored dual variables: ``torch.float32``, or ``torch.bfloat16`` for half the memory (rounded
            stochastically, so that small steps are not lost; see :mod:`dualogic.duals.rounding`).
        process_group: the ``torch.distributed`` group whose processes each pass a part of every batch; ``True`` or ``"world"``
            for the default group. See below.
        table: where they are held: ``"device"``; ``"host"``, in host memory, of which a batch's rows visit the device;
            ``"mapped"`` or ``dl.Mapped(path)``, in a file; ``"sharded"``, spread over the processes of ``process_group`` (all
            others are then held by each process, and a file by one). A table takes
            ``num_samples * width * dtype.itemsize`` bytes, which ``repr`` shows.
        capture: on a GPU, calls of one process that repeat run as a recorded CUDA graph: one launch instead of some hundred, with
            the same result. ``False`` switches that off, which second derivatives (``create_graph=True``) may need.

    With a ``process_group``, the duals, ``delta`` and the loss are those of one process that sees all parts as one batch; parts
    may differ in size and may be empty. All processes call ``forward`` together while in training mode with gradients enabled
    (and ``step``, with manual updates), and an error in one is raised in all. The loss is scaled so that its *mean over
    processes* is that of one process, because DDP averages gradients so; ``"none"`` is left alone. In ``eval()`` or without
    gradients nothing is exchanged, and means are over a process's own part; but rows of a sharded table are fetched by all.

    Several threads may call one loss; their calls follow one another. Calls that ``torch.compile`` has compiled do not wait for
    each other; make them from one thread.

    Example:
        >>> import dualogic as dl, torch
        >>> f, g = dl.categorical("f", 10, input="logits"), dl.categorical("g", 10, input="logits")
        >>> logic = dl.LogicLoss((g == 9) >> (f == 6), num_samples=100)
        >>> logic  # doctest: +ELLIPSIS
        LogicLoss(rule: (g == 9) >> (f == 6); method=dual, 1 dual variable for each of 100 samples (4 B per sample, ...))
        >>> print(logic.memory())
        4 B per sample, 400 B in total, float32 on cpu
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
        capture: bool = True,
    ) -> None:
        super().__init__(rules, num_samples, method, weight, update, reduction, dtype, process_group, table, capture)

    def forward(
        self,
        index: Tensor | None = None,
        *,
        where: Tensor | Mapping[str, Tensor] | None = None,
        believe: Mapping[str, Tensor] | None = None,
        **tensors: Tensor,
    ) -> Tensor:
        """The loss of a batch; updates the state in training mode.

        Args:
            index: which training samples these are, ``(batch,)`` integers. With a table it is needed in training; in
                ``eval()``, without it the optimal duals are used, because validation samples have no row of their own.
            where: which samples the rules are about, ``(batch,)`` bool; ``None`` for all. A call with it does what a call with
                these samples alone would do: the others have no loss, move nothing, and count neither for ``delta`` nor in a
                mean. Their index may be anything, such as -1, and their tensors too: NaN or infinities there reach neither the
                loss nor the gradient of a selected sample, and their own gradient is exactly 0 at the tensors given here (a
                network that made NaN may still turn that 0 into NaN on its way back). If none is selected the loss is 0, with
                a gradient of 0, and nothing changes. On an accelerator nothing waits for the mask. A mapping from rule names
                gives each rule a mask of its own, and then its loss is the mean over its own samples; rules that it does not
                name are about all. A rule without a sample pulls nothing, its duals rest and its ``delta`` stays.
            believe: what the duals, ``delta`` and evidence go by, of some symbols, such as a slow teacher's view of the samples;
                ``tensors`` are then what is taught, and have the loss and the gradient. Beliefs have none, ever. Symbols that it
                does not name are the same for both. A tensor that it names may hold several views of each sample, one block
                after the other as from ``torch.cat([view, another])``, whose losses are averaged; ``index``, ``where``, beliefs
                and the other tensors then have one entry for each sample.
            tensors: one for each symbol, by name, with a leading batch axis.

        Returns:
            A scalar, or ``(batch,)`` with ``reduction="none"``; differentiable with respect to the tensors.
        """
        if torch.compiler.is_compiling():
            return self._compute(index, where, believe, tensors)
        with self._run.lock:
            graphs = self._run.graphs
            loss = None if graphs is None else graphs(self, index, where, believe, tensors)
            if loss is None:
                loss = self._compute(index, where, believe, tensors)
                if graphs is not None:
                    graphs.watch(loss)
            self._mistakes.look(self, index, tensors, loss)
            return loss

    def _compute(self, index: Any, where: Any, believe: Any, tensors: dict[str, Tensor]) -> Tensor:
        run, compiling = self._run, torch.compiler.is_compiling()
        if where is None and believe is None and not compiling:
            loss = call_again(self, index, tensors)
            if loss is not None:
                return loss
        parts = self._parts()
        call = prepare(parts, index, where, believe, tensors)
        run.validated = run.validated or not compiling
        if call.updating and not (compiling or is_transformed()):
            if self._given is None and call.bound.predicted:
                given = find_given(self._program.plan.symbols, call.bound.predicted)
                self._face(given)
                self._face(given, find_units(self._program, call))
                parts = self._parts()
            self._mistakes.look_for_late_gradients(self._given, call.bound.predicted)
        outcome = take_step(parts, call)
        if call.updating and not run.told and not compiling:
            run.told = warn_untaught(self.rules, self._program, call.bound, outcome.losses)
        if outcome.state is not None:
            run.pending = (outcome.update, outcome.state)
            if not parts.manual:
                self._commit()
        elif parts.manual and parts.learning and not parts.frozen:
            run.pending = (None, self._state)  # an empty batch has an empty update
        run.last = {"cost": outcome.costs.detach(), "loss": outcome.losses.detach()}
        run.selected = None if call.selection is None else call.selection.among(None)
        factors = self._factors.to(outcome.losses.dtype, copy=True) if self._weighted else None
        if outcome.emphasis is not None:
            factors = outcome.emphasis if factors is None else factors * outcome.emphasis
        return reduce(outcome.losses if factors is None else outcome.losses * factors, call, self.reduction)

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
    def frozen(self) -> Iterator[LogicLoss]:
        """Suspend updates, as in ``with logic.frozen(): ...``; the stored duals are used."""
        with self._run.lock:
            self._run.frozen += 1
        try:
            yield self
        finally:
            with self._run.lock:
                self._run.frozen -= 1

    def check(self) -> None:
        """Wait for the device and raise an error if a step so far met a bad index or a cost that is not finite.

        On a CPU such problems are raised at once; on an accelerator, a few steps later, or here.
        """
        if self._peers is None:
            self._guard.check()
        else:
            self._peers.agree(self._guard.check)

    @property
    def symbols(self) -> Mapping[str, Node]:
        """The symbols that tensors must be bound to, by name: those that a rule uses."""
        return dict(self._program.plan.symbols)

    @property
    def together(self) -> bool:
        """Whether it was made for several processes, with ``process_group=``."""
        return self._peers is not None

    @property
    def listable(self) -> bool:
        """Whether this process alone can list the weights of all samples; not so for sharded tables."""
        return not self._table.collective and (self._table.shared or self.num_samples is not None)

    @property
    def updating(self) -> bool:
        """Whether a call of ``forward`` now would learn: in training mode, with gradients, and not frozen."""
        return self.training and torch.is_grad_enabled() and not self._run.frozen

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self._table.device

    @property
    def delta(self) -> Tensor:
        """The scale of each rule's truncated normal, ``(rules,)``."""
        return self._state["delta"].clone()

    def weights(self, index: Tensor | None = None) -> dict[str, Tensor]:
        """How each connective weighs its operands.

        Args:
            index: training samples ``(batch,)``; not needed for a shared row.

        Returns:
            A mapping from paths to weights ``(batch, ..., k)`` that sum to 1, or are all 0 where a mask left nothing to weigh. A
            path is the rule's name (``"rule"`` for a lone formula) followed by operand positions in its negation normal form, as
            in ``"rule/0"``.
        """
        with self._run.lock:
            return look_at(self._parts(), index, at_once=True).weights if self._program.width else {}

    def view(self, index: Tensor | None = None) -> View:
        """What it holds for some samples at this moment, for those who look into a training; changes nothing.

        Args:
            index: training samples ``(batch,)``; not needed for a shared row. On an accelerator nothing waits for it.
        """
        with self._run.lock:
            return look_at(self._parts(), index, reads_at_once(self.device), alone=True)

    def statistics(self) -> dict[str, dict[str, Any]]:
        """Means over the latest batch (this process's part of it, and there the selected samples) for each rule: cost, loss and
        delta, on the device; waits for nothing. A rule that was about no sample, or is switched off, has NaN for the first two.

        With ``method="dual"`` a rule that has implications also has ``"evidence"``: a mapping from their paths, as in
        :meth:`weights`, to how much of the antecedent is taken for evidence. 1 means that the rule reads its antecedent and
        teaches its consequent alone; 0 that either may give way. It starts at 1 and falls as the consequent is seen to be known
        without the antecedent, unless ``evidence=`` or :func:`dualogic.evidence` says what it is. Of an antecedent that compares
        numbers nothing is found out: it is 0, and numbers give way that have a gradient. And then there is
        ``"strength"``: 1, or less while the rule holds back because the belief in its antecedent, or in both sides, falls.

        Example:
            >>> import dualogic as dl
            >>> logic = dl.LogicLoss(dl.boolean("rain") >> dl.boolean("wet"))
            >>> logic.statistics()["rule"]["evidence"]
            {'rule': tensor(1.)}
        """
        return summarise(self.rules, self._program, self._state, self._run.last, self._run.selected)

    def satisfied(self, *, tol: float = 0.0, lead: float = 0.0, **tensors: Tensor) -> dict[str, Tensor]:
        """Where each rule holds, ``(batch,)`` bool: a mapping from rule names (``"rule"`` for a lone formula).

        Args:
            tol: as in :meth:`dualogic.Formula.satisfied`.
            lead: likewise.
            tensors: one for each symbol of the rules, by name, as for the loss itself.

        Example:
            >>> import dualogic as dl, torch
            >>> logic = dl.LogicLoss({"low": dl.var("x") >= 0, "order": dl.var("x") <= dl.var("y")})
            >>> logic.satisfied(x=torch.tensor([1.0, -1.0]), y=torch.tensor([0.0, 0.0]))
            {'low': tensor([ True, False]), 'order': tensor([False,  True])}
        """
        return dict(zip(self.rules, are_satisfied(self.rules, tol, lead, tensors).unbind(1)))

    def diagnose(self, tol: float = 0.0, labels: Any = None, **options: Any) -> ShortcutReport:
        """How a batch, or a whole data set, satisfies the rules; :func:`dualogic.diagnose` with this loss.

        Args:
            tol: as there.
            labels: likewise.
            options: likewise, and the tensors by name. With ``index=`` the report also says what the dual variables chose.
        """
        from dualogic.diagnosis import diagnose  # which is built on this module

        return diagnose(self, tol, labels, **options)

    def memory(self) -> Memory:
        """The dual variables' bytes per sample and in total; ``print`` shows them in words."""
        return self._table.memory()

    def extra_repr(self) -> str:
        """The rules and the size of the table, for ``print``."""
        return describe(self.rules, self.method.name, self._table)

    def __repr__(self) -> str:
        return f"LogicLoss({self.extra_repr()})"
