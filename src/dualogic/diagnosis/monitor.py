"""Tells, during training, that a rule is being satisfied by a shortcut."""

from __future__ import annotations

import dataclasses
import warnings
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from dualogic.compile.binding import Bound
from dualogic.compile.plan import compile_rules
from dualogic.diagnosis.accumulator import Diagnosis
from dualogic.diagnosis.alarm import INFO, KINDS, Alarm
from dualogic.diagnosis.assemble import assemble_rules
from dualogic.diagnosis.expectation import check_truths
from dualogic.diagnosis.pull import measure_pull
from dualogic.diagnosis.tally import Tally
from dualogic.diagnosis.watch import watch
from dualogic.diagnosis.window import HISTORY, Look, Sums, Window
from dualogic.errors import OptionError, ShortcutWarning, StateError, SymbolError
from dualogic.formula.printing import fingerprint
from dualogic.formula.shape import as_int
from dualogic.formula.symbol import Variable
from dualogic.loss import LogicLoss
from dualogic.loss.beliefs import first_view, rows_of_all

PATIENCE = 3  # looks in a row that must agree before an alarm is raised, or cleared
MOST_RULES = 8  # rules whose gradients are taken at one look; more take turns


class Monitor:
    """Watches a :class:`~dualogic.LogicLoss` in training and warns of rules that are satisfied by a shortcut.

    At every ``every``-th training call of the loss it looks at the batch that the loss saw: which branches hold, what the duals
    weigh, and where the rule's gradient goes. The network is not computed again, and training is not changed. What it says, and
    from when on, is listed in ``docs/monitor.md``. Each alarm is given once, as a :class:`~dualogic.errors.ShortcutWarning`,
    until it has cleared.

    On a CUDA device a look's numbers travel to the host in the background and are judged when they have arrived. Calls in
    ``eval()``, without gradients, in ``logic.frozen()``, or while a graph is captured or compiled, are not looked at; there, call
    :meth:`look`. With several processes each looks at its own part of the batches. Rows of a sharded table are not fetched, so
    weights and gradients are then left out.

    Args:
        logic: the loss.
        every: how many training calls make one look. Choose it so that training has fifty looks at least.
        tol: see :meth:`dualogic.Formula.satisfied`.
        lead: see :meth:`dualogic.Formula.satisfied`.
        labels: true values of symbols for all training samples, by name, each ``(num_samples, ...)``; see
            :meth:`~dualogic.diagnosis.Diagnosis.update`. They tell a rightly false antecedent from one that was switched off.
        on_finding: called with each new :class:`~dualogic.diagnosis.alarm.Alarm`.
        warn: give Python warnings.

    Example:
        >>> import dualogic as dl, torch
        >>> s = dl.var("s")
        >>> logic = dl.LogicLoss((s == 0) | (s == 1), method="uniform")
        >>> monitor = dl.Monitor(logic, every=1, warn=False)
        >>> for _ in range(5):
        ...     _ = logic(s=torch.rand(8, requires_grad=True))
        >>> [(finding.kind, finding.rule) for finding in monitor.findings]
        [('no gradient from the rule', 'rule')]
    """

    def __init__(
        self,
        logic: LogicLoss,
        every: int = 100,
        *,
        tol: float = 0.0,
        lead: float = 0.0,
        labels: Mapping[str, Any] | None = None,
        on_finding: Callable[[Alarm], object] | None = None,
        warn: bool = True,
    ) -> None:
        if not isinstance(logic, LogicLoss):
            raise OptionError(f"a monitor watches a LogicLoss, as in dl.Monitor(logic); got {type(logic).__name__}")
        if (number := as_int(every)) is None or number < 1:
            raise OptionError(f"every counts training calls and must be a number of at least 1; got {every!r}")
        self.logic = logic
        self.every = number
        self._on_finding, self._warn = on_finding, warn
        self._diagnosis = Diagnosis(logic, tol=tol, lead=lead, worst=0)
        self._plan = compile_rules(logic.rules.items(), "log")
        self._labels = self._check_labels(labels)
        self._window = Window()
        self._calls = self._turn = 0
        self._task: Tensor | None = None
        self._streaks: dict[tuple[str, str], int] = {}
        self._active: dict[tuple[str, str], Alarm] = {}
        self._history: deque[dict[str, Any]] = deque(maxlen=HISTORY)
        self._travelling: deque[Look] = deque()
        self._handle = logic.register_forward_hook(Hook(self._see), with_kwargs=True)

    @property
    def findings(self) -> tuple[Alarm, ...]:
        """What is wrong now, the most serious first."""
        self.wait()
        return tuple(sorted(self._active.values(), key=lambda alarm: KINDS.index(alarm.kind)))

    @property
    def history(self) -> list[dict[str, Any]]:
        """One entry for each look: the step, what was measured of each rule, and the kinds of the alarms that were on."""
        self.wait()
        return list(self._history)

    def wait(self) -> None:
        """Wait for the numbers of all looks so far, and judge them."""
        while self._travelling:
            self._judge(self._travelling.popleft().arrive())

    def task_loss(self, loss: Tensor) -> None:
        """Tell the task's own loss, which is read at the next look only; with it, a ``delta`` at its floor can be judged."""
        self._task = loss.detach()

    def look(self, index: Any = None, *, where: Tensor | Mapping[str, Tensor] | None = None, **tensors: Tensor) -> None:
        """Look at a batch now: for loops that are compiled or captured as a graph.

        Args:
            index: as for the loss.
            where: as for the loss. With a mask for each rule, only samples that all rules are about are looked at.
            tensors: as for the loss. If some require a gradient, the others are taken to be given and not taught.
        """
        if missing := [name for name in self._plan.symbols if name not in tensors]:
            raise StateError(
                f"look() needs the same tensors as the loss; no tensor was given for {', '.join(map(repr, missing))}"
            )
        self._calls += 1
        self._take(index, where, tensors)

    def _see(self, args: tuple[Any, ...], options: Mapping[str, Any], loss: Tensor) -> None:
        """After each call of the loss."""
        logic = self.logic
        if not logic.updating:
            return
        self._calls += 1
        if self._travelling and self._travelling[0].arrived():
            self._judge(self._travelling.popleft().arrive())
        if (self._calls - 1) % self.every:
            return
        if logic.device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            return
        index = args[0] if args else options.get("index")
        taught = {name: options[name] for name in self._plan.symbols}
        self._take(index, options.get("where"), first_view(taught, options.get("believe")))

    def _take(self, index: Any, where: Tensor | Mapping[str, Tensor] | None, tensors: Mapping[str, Any]) -> None:
        tensors = {name: torch.as_tensor(tensors[name]) for name in self._plan.symbols}
        taught = frozenset(name for name, tensor in tensors.items() if tensor.requires_grad)
        taught = taught or frozenset(name for name, tensor in tensors.items() if tensor.is_floating_point())
        with torch.no_grad():
            if where is not None and len(where):
                device = next(iter(tensors.values())).device
                chosen = rows_of_all(where, device)
                tensors = {name: tensor[chosen] for name, tensor in tensors.items()}
                index = None if index is None else torch.as_tensor(index, device=device)[chosen]
            bound = self._plan.bind({name: tensor.detach() for name, tensor in tensors.items()}, False, whole=True)
            if not bound.batch:
                return
            sums, latest = self._measure(index, bound, taught)
        self._travelling.append(Look(self._calls, sums, latest))
        if bound.device.type != "cuda":
            self.wait()

    def _measure(self, index: Any, bound: Bound, taught: frozenset[str]) -> tuple[Sums, Sums]:
        logic, diagnosis = self.logic, self._diagnosis
        view = logic.view(index)
        truths = {}
        if self._labels and index is not None:
            chosen = torch.as_tensor(index, device="cpu").long()
            labels = {name: values[chosen.clamp(max=len(values) - 1)] for name, values in self._labels.items()}
            truths = check_truths(labels, self._plan.symbols, bound)
        diagnosis.reset()
        diagnosis._tally = Tally(waiting=False)
        elsewhere = diagnosis._count(bound, None, None, truths, view.weights)
        sums = dict(diagnosis._tally.total)
        count = len(logic.rules)
        numbers = [number % count for number in range(self._turn, self._turn + min(MOST_RULES, count))]
        self._turn = (self._turn + len(numbers)) % count
        sums.update(measure_pull(view, self._plan, diagnosis._parts, numbers, bound, taught, elsewhere))
        if self._task is not None:
            sums["task"] = torch.stack([torch.ones_like(self._task), self._task]).double()
            self._task = None
        batch = torch.full((), bound.batch, dtype=torch.float64, device=bound.device)
        shares: Sums = {("evidence", path): share.double() for path, share in view.evidence.items()}
        if (strength := view.program.strength(view.state)) is not None:
            shares["strength"] = strength.double()
        return sums, {**shares, **{name: view.state[name].double() for name in ("delta", "steps")}, "batch": batch}

    def _check_labels(self, labels: Mapping[str, Any] | None) -> dict[str, Tensor]:
        """The labels of all samples, and of one more that is not known: the table may grow."""
        if not labels:
            return {}
        if (samples := self.logic.num_samples) is None:
            raise OptionError("labels are for training samples with an index; this LogicLoss has num_samples=None")
        tensors = {name: torch.as_tensor(values).cpu() for name, values in labels.items()}
        for name, tensor in tensors.items():
            if tensor.dim() == 0 or tensor.shape[0] != samples:
                raise OptionError(
                    f"the labels of {name!r} must be one for each of {samples} training samples; got shape {tuple(tensor.shape)}"
                )
            if name not in self._plan.symbols:
                known = ", ".join(map(repr, self._plan.symbols))
                raise SymbolError(f"labels names {name!r}, but the symbols of the rules are {known}")
            number = torch.float64 if isinstance(self._plan.symbols[name], Variable) else torch.int8
            tensor = tensor.to(torch.promote_types(tensor.dtype, number))  # which has a number for what is not known
            tensors[name] = torch.cat([tensor, torch.full_like(tensor[:1], torch.nan if tensor.is_floating_point() else -1)])
        return tensors

    def _judge(self, look: Look) -> None:
        self._window.add(look.sums, look.latest)
        found = {(alarm.kind, alarm.path): alarm for alarm in watch(self._diagnosis, self.logic, self._window)}
        fresh = []
        for key in {**self._streaks, **found}:
            streak = self._streaks.get(key, 0)
            # Counted up while it is found and down while it is not, from the side that it is on.
            streak = min(streak + 1, PATIENCE) if key in found else streak - 1 if key in self._active else 0
            self._streaks[key] = streak
            if key in found and streak >= PATIENCE:
                alarm = dataclasses.replace(found[key], step=look.step)
                worse = key not in self._active or (self._active[key].severity == INFO and alarm.severity != INFO)
                if worse:
                    fresh.append(alarm)
                self._active[key] = alarm if worse else dataclasses.replace(alarm, step=self._active[key].step)
            elif streak <= 0:
                self._active.pop(key, None)
                del self._streaks[key]
        self._history.append(self._describe(look))
        for alarm in fresh:
            if self._on_finding is not None:
                self._on_finding(alarm)
            if self._warn and alarm.severity != INFO:
                warnings.warn(str(alarm), ShortcutWarning, stacklevel=2)

    def _describe(self, look: Look) -> dict[str, Any]:
        entry: dict[str, Any] = {"step": look.step, "findings": sorted({kind for kind, _ in self._active})}
        for number, (name, rule) in enumerate(assemble_rules(self._diagnosis, look.sums).items()):
            delta = float(look.latest["delta"][number])
            numbers: dict[str, Any] = {"satisfied": rule.satisfied, "cost": rule.cost, "delta": delta}
            if rule.antecedent is not None:
                numbers["antecedent"] = rule.antecedent.holds
            for part in rule.choices:
                numbers[part.path] = {operand.text: operand.holds for operand in part.operands}
                if ("pull", part.path) in look.sums:
                    numbers[f"{part.path}/pull"] = look.sums["pull", part.path][:2].tolist()
            entry[name] = numbers
        return entry

    def state_dict(self) -> dict[str, Any]:
        """Everything that a resumed run needs to go on as if it had not stopped."""
        self.wait()
        return {
            "rules": {name: fingerprint(formula) for name, formula in self.logic.rules.items()},
            "calls": self._calls,
            "turn": self._turn,
            "window": self._window.state_dict(),
            "streaks": dict(self._streaks),
            "active": [dataclasses.asdict(alarm) for alarm in self._active.values()],
            "history": list(self._history),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state_dict` gave."""
        rules = {name: fingerprint(formula) for name, formula in self.logic.rules.items()}
        if state["rules"] != rules:
            raise StateError(f"the state of a monitor is of other rules: {state['rules']}; this one watches {rules}")
        try:
            # All of it is read before any of it is taken over.
            calls, turn, streaks = state["calls"], state["turn"], dict(state["streaks"])
            alarms = [Alarm(**each) for each in state["active"]]
            history = deque(state["history"], maxlen=HISTORY)
            self._window.load_state_dict(state["window"])
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(
                f"this is not what Monitor.state_dict() gives: {type(error).__name__}: {error}. Nothing was changed"
            ) from error
        self._travelling.clear()
        self._calls, self._turn, self._streaks, self._history = calls, turn, streaks, history
        self._active = {(alarm.kind, alarm.path): alarm for alarm in alarms}

    def remove(self) -> None:
        """Stop watching; what was found stays."""
        self.wait()
        self._handle.remove()


class Hook:
    """What a loss calls after forward, with what it was called with, by position and by name, and with what it gives.

    A copy of the loss is not watched, and neither is one that was pickled.
    """

    def __init__(self, see: Callable[[tuple[Any, ...], Mapping[str, Any], Tensor], None] | None = None) -> None:
        self._see = see

    def __call__(self, logic: Any, args: tuple[Any, ...], options: Mapping[str, Any], output: Tensor) -> None:
        if self._see is not None and not torch.compiler.is_compiling():
            self._see(args, options, output)

    def __reduce__(self) -> tuple[type[Hook], tuple[()]]:
        return Hook, ()
