"""Records a training for ``dualogic report``."""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import Tensor
from typing_extensions import Self

from dualogic.diagnosis import Diagnosis, Monitor, ShortcutReport
from dualogic.diagnosis.monitor import Hook
from dualogic.errors import DualogicError, OptionError, StateError, SymbolError
from dualogic.formula.connective import Formula
from dualogic.loss import LogicLoss
from dualogic.loss.beliefs import first_view, rows_of_all
from dualogic.report.journal import Journal
from dualogic.report.reading import NO_RULE
from dualogic.report.seen import Mean, Seen, fingerprint, pick
from dualogic.report.summary import POOL, VALIDATION, WORST, keep_part, summarize

SHARE = 0.003  # of the training's time, what looks at the rules may take, and as much for writing files ...
GRACE = 0.05  # ... and seconds of looks that are free, so that a training of a second has curves too
RESERVED = {"labels", "measures", "pictures", "texts", "words"}


class Recorder:
    """Records a training for ``dualogic report``: losses, how the rules are met, weights, ``delta`` and findings, by epoch.

    A few lines in any loop: :meth:`step` in each step, :meth:`epoch` after each epoch, :meth:`diagnose` at the end. The loss of
    the rules, and the samples that they were trained on, are seen by themselves.

    A step waits for no device and writes nothing. Looks at the rules, and files, take at most 0.6 % of the training's time plus a
    twentieth of a second in all, and are left out where that is spent; at the end everything is written. Files are whole or not
    there, so a training may be killed at any moment; its page then shows a run that has not ended. With several processes the
    first one writes.

    Args:
        folder: of this run; made if absent. What a recorder wrote there before is replaced.
        rules: the loss, or for a run without the rule, to compare with, the rules themselves.
        title: what the page is called; runs of one title are compared.
        name: of this run; that of the folder by default.
        seed: of this run, if there are several.
        tol: for satisfaction; see :meth:`dualogic.Formula.satisfied`.
        lead: likewise.
        classes: names of the labels, in their order.
        labels: the class of each training sample, ``(num_samples,)`` integers, -1 where it is not known; charts of the training
            are then divided by class.
        monitor: whose alarms are recorded too.
        epochs_done: for a training that goes on from a checkpoint: epochs of the folder's run that are kept.

    Attributes:
        is_open: whether steps are recorded.

    Example:
        >>> import dualogic as dl, tempfile, torch
        >>> logic = dl.LogicLoss(dl.var("x") <= 0)
        >>> folder = tempfile.mkdtemp()
        >>> with dl.Recorder(folder, logic, title="a number") as recorder:
        ...     for epoch in range(3):
        ...         loss = logic(x=torch.ones(4, requires_grad=True))
        ...         recorder.step(task_loss=0.5)
        ...         recorder.epoch()
        ...     report = recorder.diagnose(x=torch.tensor([-1.0, 1.0]), texts=["low", "high"])
        >>> report.verdict
        'violated on 50.0 % of the samples'
        >>> sorted(file.name for file in Path(folder).iterdir())
        ['config.json', 'diagnosis.json', 'metrics.jsonl', 'result.json']
    """

    def __init__(
        self,
        folder: str | Path,
        rules: LogicLoss | Formula | Mapping[str, Formula],
        *,
        title: str = "training",
        name: str | None = None,
        seed: int | None = None,
        tol: float = 0.0,
        lead: float = 0.0,
        classes: Sequence[str] | None = None,
        labels: Any = None,
        monitor: Monitor | None = None,
        epochs_done: int = 0,
    ) -> None:
        self.folder = Path(folder)
        self._logic = rules if isinstance(rules, LogicLoss) else None
        if monitor is not None and monitor.logic is not self._logic:
            raise OptionError("the monitor must watch the loss that is recorded: Recorder(folder, logic, monitor=Monitor(logic))")
        # Rows of a sharded table, and weights that a network gives, cannot be listed by one process alone.
        listed = self._logic if self._logic is not None and self._logic.listable else None
        options: dict[str, Any] = {"tol": tol, "lead": lead, "classes": classes}
        self._held = Diagnosis(rules.rules if isinstance(rules, LogicLoss) else rules, worst=WORST, **options)
        self._trained = Diagnosis(listed or self._held.rules, worst=WORST, **options)
        self._symbols = {symbol for formula in self._held.rules.values() for symbol in formula.symbols}
        if self._symbols & RESERVED:
            raise SymbolError(
                f"a symbol named {min(self._symbols & RESERVED)!r} cannot be recorded, because epoch(...) or diagnose(...) "
                f"of a recorder has an argument of this name; rename the symbol"
            )
        self._has_rows = listed is not None and listed.num_samples is not None
        self._labels = None if labels is None else torch.as_tensor(labels).cpu()
        if self._labels is not None and self._logic is not None and self._labels.shape != (self._logic.num_samples,):
            raise OptionError(
                f"labels must be one for each of the loss's num_samples={self._logic.num_samples}; got shape "
                f"{tuple(self._labels.shape)}"
            )
        self._monitor, self._epochs_done = monitor, epochs_done
        called = (name or self.folder.resolve().name) + ("" if seed is None else f", seed {seed}")
        config = {
            "task": {"name": title},
            "method": NO_RULE if self._logic is None else self._logic.method.name,
            "options": {},
            "seed": seed or 0,
            "rules": {rule: str(formula) for rule, formula in self._held.rules.items()},
            "about": {"title": title, "name": called, "taught": self._logic is not None},
        }
        self._journal = Journal(self.folder, config)
        group = torch.distributed
        self._writes = not (group.is_available() and group.is_initialized()) or group.get_rank() == 0
        self._handle: Any = None
        self.is_open = False
        self._started = self._looked = self._wrote = 0.0
        self._latest_look, self._latest_write = 0.0, GRACE  # until it is known what one takes
        self._steps = self._steps_before = 0
        self._losses: defaultdict[str, Mean] = defaultdict(Mean)
        self._seen = Seen()
        self._warned = False

    @property
    def steps(self) -> int:
        """How many steps were noted since the last epoch."""
        return self._steps - self._steps_before

    def open(self, epochs_done: int | None = None) -> Self:
        """Begin; ``with`` does it. ``epochs_done`` takes the place of what the recorder was made with."""
        if not self.is_open and self._writes:
            self._epochs_done = self._epochs_done if epochs_done is None else epochs_done
            self._journal.open(self._epochs_done)
            if self._logic is not None:
                self._handle = self._logic.register_forward_hook(Hook(self._see), with_kwargs=True)
            self._started, self.is_open = time.perf_counter(), True
            self._looked = self._wrote = 0.0
            self._steps = self._steps_before = 0
        return self

    def close(self, failed: bool = False) -> None:
        """Write the end; ``with`` does it. Of one that ``failed`` the page says that the run has not ended."""
        if not self.is_open:
            return
        if not failed and (self.steps or self._held.samples):
            self.epoch()
        if self._handle is not None:
            self._handle.remove()
        self.is_open = False
        found = None if failed else self._look(force=True)
        if found is not None and self._journal.rows:
            self._journal.complete(POOL, found[0])
        self._write(force=True)
        if not failed:
            self._journal.end({"seconds": self._elapsed(), "facts": self._list_facts()})

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close(failed=kind is not None)

    def step(self, task_loss: Tensor | float | None = None, rule_loss: Tensor | float | None = None, **measures: Any) -> None:
        """Note one step of training; nothing waits for the device.

        Args:
            task_loss: the loss of the task, a scalar.
            rule_loss: that of the rules; what the :class:`~dualogic.LogicLoss` returned by default.
            measures: other numbers, by name; their means over the epoch are shown.
        """
        if not self.is_open:
            return
        self._steps += 1
        for name, value in {"task_loss": task_loss, "rule_loss": rule_loss, **measures}.items():
            if value is not None or name in measures:
                self._losses[name if name.endswith("_loss") else f"measure/{name}"].add(value)

    def held_out(self, labels: Any = None, *, where: Tensor | Mapping[str, Tensor] | None = None, **tensors: Any) -> None:
        """Count a batch of held-out samples for the present epoch.

        Args:
            labels: see :meth:`~dualogic.diagnosis.Diagnosis.update`.
            where: the samples that the rules are about, ``(batch,)`` truth values. With a mask for each rule, only samples that
                all rules are about are counted.
            tensors: one for each symbol of the rules, by name.
        """
        if not self.is_open:
            return
        if where is not None and tensors:
            tensors = {name: torch.as_tensor(tensor) for name, tensor in tensors.items()}
            device = next(iter(tensors.values())).device
            chosen = rows_of_all(where, device)
            tensors = {name: tensor[chosen] for name, tensor in tensors.items()}
            if isinstance(labels, Mapping):
                labels = {name: torch.as_tensor(value, device=device)[chosen] for name, value in labels.items()}
            elif labels is not None:
                labels = torch.as_tensor(labels, device=device)[chosen]
        self._held.update(labels=labels, **tensors)

    def epoch(
        self, number: float | None = None, /, *, labels: Any = None, measures: Mapping[str, Any] | None = None, **values: Any
    ) -> None:
        """Close an epoch: note the means of its losses, ``delta``, and how the rules are met.

        Args:
            number: of the epoch; one more than the last by default.
            labels: of the held-out samples; see :meth:`~dualogic.diagnosis.Diagnosis.update`.
            measures: numbers to show, by name.
            values: tensors of held-out samples for all symbols of the rules, or for none; and more measures, as in
                ``accuracy=0.9``.
        """
        if not self.is_open:
            return
        if tensors := {name: value for name, value in values.items() if name in self._symbols}:
            self._held.update(labels=labels, **tensors)
        last = self._journal.rows[-1]["epoch"] if self._journal.rows else self._epochs_done
        row: dict[str, float] = {"epoch": float(last + 1 if number is None else number)}
        losses = {name: mean.read() for name, mean in self._losses.items()}
        if "seen" in losses:
            losses.setdefault("rule_loss", losses.pop("seen"))
        row.update(losses)
        if self._logic is not None:
            row.update({f"delta/{name}": value for name, value in zip(self._logic.rules, self._logic.delta.tolist())})
        numbers = {**(measures or {}), **{name: value for name, value in values.items() if name not in tensors}}
        row.update({f"measure/{name}": _as_number(name, value) for name, value in numbers.items()})
        self._losses.clear()
        self._steps_before = self._steps
        point: dict[str, Any] = {"epoch": row["epoch"]}
        findings: list[tuple[str, str]] = []
        for part, found in ((POOL, self._look()), (VALIDATION, self._close_held())):
            if found is not None:
                point[part], findings = found
        findings += [(alarm.rule, alarm.kind) for alarm in (self._monitor.findings if self._monitor is not None else ())]
        if findings:
            point["findings"] = [list(pair) for pair in dict.fromkeys(findings)]
        self._journal.add(row, point)
        self._write()

    def diagnose(
        self,
        labels: Any = None,
        *,
        pictures: Tensor | Sequence[Any] | Callable[[int], Tensor] | None = None,
        texts: Sequence[str] | Callable[[int], str] | None = None,
        words: Mapping[str, str] | None = None,
        **tensors: Any,
    ) -> ShortcutReport:
        """Diagnose held-out samples at the end of training, also after ``with``, and keep the worst of them to look at.

        Args:
            labels: see :meth:`~dualogic.diagnosis.Diagnosis.update`.
            pictures: of the samples, in their order, or a function from a position to one; see :func:`~dualogic.report.to_png`.
            texts: of the samples, likewise.
            words: what it means to make a part of a rule true, by its text, as in ``{"f == cat": "seeing a cat"}``.
            tensors: one for each symbol of the rules, by name, with a leading batch axis.

        Returns:
            The report, as :func:`dualogic.diagnose` gives it.
        """
        self._held.reset()
        self._held.update(labels=labels, **tensors)
        report, count = self._held.compute(), self._held.samples
        self._held.reset()
        if self._writes:
            if not self.folder.exists():
                raise StateError(f"{self.folder} does not exist; record a training first: with dl.Recorder(...) as recorder: ...")
            samples = fingerprint(count, self._held.tol, self._held.lead, labels, pictures)  # texts may say what a network said
            shown = pick(pictures, "pictures", count), pick(texts, "texts", count)
            self._journal.parts[VALIDATION] = keep_part(report, samples, words, *shown)
            self._write(force=True)
        return report

    def _see(self, args: tuple[Any, ...], options: Mapping[str, Any], loss: Tensor) -> None:
        """After each call of the loss."""
        assert self._logic is not None
        if not self._logic.training or not torch.is_grad_enabled():
            return
        self._losses["seen"].add(loss.detach().sum() / max(loss.numel(), 1))  # reduction="none" gives one for each sample
        tensors = first_view({name: options[name] for name in self._symbols}, options.get("believe"))
        self._seen.add(args[0] if args else options.get("index"), options.get("where"), tensors)

    def _look(self, force: bool = False) -> tuple[dict[str, Any], list[tuple[str, str]]] | None:
        """How the rules are met by the latest samples of the training, with their weights; and what that says."""
        if not self._seen or not (force or self._looked + self._latest_look <= GRACE + SHARE * self._elapsed()):
            return None
        started = time.perf_counter()
        self._trained.reset()
        try:
            for index, tensors in self._seen.take():
                self._trained.update(index=index if self._has_rows else None, labels=self._labels_of(index), **tensors)
        except DualogicError:  # such as outputs that are NaN: it is for the training to complain about them
            return None
        found = self._keep(POOL, self._trained.compute(), "")
        self._latest_look = time.perf_counter() - started
        self._looked += self._latest_look
        return found

    def _labels_of(self, index: Tensor | None) -> Tensor | None:
        if self._labels is None or index is None:
            return None
        index = index.cpu().long()
        # A table may have grown since.
        return torch.where(index < len(self._labels), self._labels[index.clamp(max=len(self._labels) - 1)], -1)

    def _close_held(self) -> tuple[dict[str, Any], list[tuple[str, str]]] | None:
        if not self._held.samples:
            return None
        report = self._held.compute()
        samples = fingerprint(self._held.samples, self._held.tol, self._held.lead)
        self._held.reset()
        return self._keep(VALIDATION, report, samples)

    def _keep(self, part: str, report: ShortcutReport, samples: str) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        self._journal.parts[part] = keep_part(report, samples)
        return summarize(report), [(name, rule.kind) for name, rule in report.rules.items()]

    def _elapsed(self) -> float:
        return time.perf_counter() - self._started

    def _write(self, force: bool = False) -> None:
        if not (force or self._wrote + self._latest_write <= SHARE * self._elapsed()):
            return
        started = time.perf_counter()
        try:
            self._journal.write()
        except OSError as error:  # a full disk is no reason to lose a training
            if not self._warned:
                warnings.warn(f"{self.folder} cannot be written ({error}); training goes on", RuntimeWarning, stacklevel=3)
            self._warned = True
        self._latest_write = time.perf_counter() - started
        self._wrote += self._latest_write

    def _list_facts(self) -> list[list[str]]:
        logic = self._logic
        facts = [["method", NO_RULE if logic is None else logic.method.describe()]]
        if logic is not None and logic.num_samples is not None:
            facts.append(["training samples", str(logic.num_samples)])
        facts += [["epochs", f"{self._journal.rows[-1]['epoch']:g}" if self._journal.rows else "0"], ["steps", str(self._steps)]]
        facts += [["training", f"{self._elapsed():.1f} s"], ["of it recording", f"{self._looked + self._wrote:.2f} s"]]
        return [*facts, ["torch", torch.__version__]]


def _as_number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise SymbolError(
            f"{name!r} is no symbol of the rules, so it must be a number to show; got {type(value).__name__}"
        ) from error
