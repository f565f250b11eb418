"""Everything that a logic loss keeps: its fields, how they grow, move, are saved and loaded. Its state is in plain tensors."""

from __future__ import annotations

import copy
import types
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from dualogic.arguments import check_choice, check_rules, check_samples, check_weight
from dualogic.constants import outside_inference
from dualogic.duals.factory import find_peers, make_table
from dualogic.duals.guard import Guard
from dualogic.duals.table import DualTable, Update
from dualogic.errors import OptionError, StateError
from dualogic.formula.connective import Formula
from dualogic.formula.printing import fingerprint
from dualogic.loss.checkpoint import Run, as_attributes, copy_saved, differences, find_fault, mark_static
from dualogic.loss.checks import Parts
from dualogic.loss.graphs import Graphs
from dualogic.loss.mistakes import Mistakes, warn_of_idle_rules
from dualogic.methods import Method, resolve
from dualogic.methods.base import Program, State

if TYPE_CHECKING:
    from typing_extensions import Self

    from dualogic.duals.collective import Peers


class KeptModule(nn.Module):
    """The fields of a :class:`~dualogic.LogicLoss`, all set here, and what keeps them: they follow ``.to(device)``, keep their
    dtype, and are all in the ``state_dict``. For the arguments see there.
    """

    def __init__(
        self,
        rules: Formula | Mapping[str, Formula],
        num_samples: int | None,
        method: str | Method,
        weight: float | Mapping[str, float],
        update: str,
        reduction: str,
        dtype: torch.dtype,
        process_group: Any,
        table: Any,
        capture: bool,
    ) -> None:
        super().__init__()
        check_choice("update", update, ("forward", "manual"))
        check_choice("reduction", reduction, ("mean", "sum", "none"))
        if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point or dtype.itemsize == 1:
            raise OptionError(f"dtype must be a floating point torch.dtype of at least 16 bits; got {dtype!r}")
        state_dtype = torch.promote_types(dtype, torch.float32)
        self.rules: dict[str, Formula] = check_rules(rules)
        self.method: Method = resolve(method)
        self.num_samples: int | None = check_samples(num_samples)
        self.update: str = update
        self.reduction: str = reduction
        self.capture: bool = capture
        self._given: tuple[str, ...] | None = None  # symbols without a gradient in training; `None` before it begins
        self._units: tuple[float, ...] = ()  # of the rules' costs, as its first batch shows them
        self._program: Program = self._compile()
        warn_of_idle_rules(self.rules)
        self._peers: Peers | None = find_peers(process_group)
        with outside_inference():  # state made in inference mode could never be updated
            width = self._program.width
            self._table: DualTable = make_table(table, self.num_samples, width, dtype, self._peers, self._describe())
            self._state: State = self._program.initial_state(state_dtype)
            self._factors: Tensor = torch.ones(len(self.rules), dtype=state_dtype)
            self._guard: Guard = Guard(self.rules, self.num_samples)
        self._run: Run = Run()
        self._mistakes: Mistakes = Mistakes()
        self._weight: dict[str, float] = {}
        self._weighted: bool = False
        self._off: tuple[str, ...] = ()
        self.weight = weight
        self._mark_static()

    def _compile(self) -> Program:
        return self.method.program(self.rules).facing(self._given or (), self._units).for_samples(self.num_samples)

    def _face(self, given: tuple[str, ...], units: tuple[float, ...] = ()) -> None:
        """Take it that no rule can change these symbols, and that costs have such units: nothing is learned yet, or what was is
        about to be replaced.
        """
        before, same = self._program, units == self._units
        self._given, self._units = given, units
        program = self._compile()
        if program.plan is before.plan and same:
            return
        table, device = self._table, self._table.device
        with outside_inference():
            if program.width != before.width:
                if table.choice is None:
                    self._given = ()
                    return
                table = make_table(table.choice, self.num_samples, program.width, table.values.dtype, self._peers)
                table.to_(device)
            state = program.initial_state(self._state["delta"].dtype)
            self._state = {name: value.to(device) for name, value in state.items()}
        self._program, self._table = program, table
        self._mark_static()

    def _parts(self) -> Parts:
        manual, frozen, validated = self.update == "manual", self._run.frozen > 0, self._run.validated
        held = (self._program, self._table, self._state, self._guard, self._peers, self._off)
        return Parts(*held, manual, self.training, frozen, validated)

    def _commit(self) -> None:
        assert self._run.pending is not None
        update, state = self._run.pending
        self._run.pending = None
        with torch.no_grad():
            self._write(update, state.values())

    def _write(self, update: Update | None, state: Iterable[Tensor]) -> None:
        if update is not None:
            self._table.commit(update, self._state["steps"])
        # In place, so that captured graphs, which know addresses only, see the new state.
        for kept, value in zip(self._state.values(), state):
            if value is not kept:
                kept.copy_(value)

    @property
    def weight(self) -> Mapping[str, float]:
        """The factor of each rule; may be assigned, as ``weight=`` when the loss is made. See :meth:`set_weight`."""
        return types.MappingProxyType(self._weight)

    @weight.setter
    def weight(self, value: float | Mapping[str, float]) -> None:
        weight = check_weight(value, self.rules)
        factors = [each if self._program.summed else each / len(weight) for each in weight.values()]
        with self._run.lock, torch.no_grad():
            self._weight, self._weighted = weight, self._weighted or any(factor != 1.0 for factor in factors)
            self._off = tuple(name for name, each in weight.items() if not each)
            # In place, so that graphs that were compiled or captured see it.
            self._factors.copy_(torch.tensor(factors, dtype=self._factors.dtype))

    def set_weight(self, name: str | None, value: float) -> None:
        """Change the weight of a rule, or of all, as a schedule does; checkpoints hold it.

        At 0 a rule is switched off: its duals rest and nothing is counted until it gets another weight. A captured graph sees
        new weights if it was captured after a first call of this, but not that a rule is switched off or on: capture it again.

        Args:
            name: of the rule; ``None`` for all rules.
            value: a number of at least 0.

        Example:
            >>> import dualogic as dl
            >>> logic = dl.LogicLoss({"low": dl.var("x") >= 0, "high": dl.var("x") <= 9}, weight={"high": 0.0})
            >>> logic.set_weight("high", 0.5)
            >>> dict(logic.weight)
            {'low': 1.0, 'high': 0.5}
        """
        self.weight = value if name is None else {**self._weight, name: value}
        self._weighted = True

    def prefetch(self, index: Tensor) -> None:
        """Start bringing the dual variables of the next batch to the device, while this one is still computed.

        Args:
            index: the next batch's training samples, ``(batch,)``; on the CPU, as a data loader gives it.
        """
        if self._program.width and not self._table.shared:
            with self._run.lock:
                self._table.prefetch(self._table.check_index(index, len(index), at_once=False))

    def extend(self, num_samples: int) -> Self:
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
        if (count := check_samples(num_samples)) is None:
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
        self._program = self._compile()
        self._mark_static()
        return self

    def reset_(self) -> Self:
        """Forget everything learned: equal weights, initial ``delta``, no steps."""
        with self._run.lock:
            self._face(())
            self._table.reset_()
            for name, value in self._program.initial_state(self._state["delta"].dtype).items():
                self._state[name].copy_(value)
            self._run.pending = None
            self._run.last = {}
            self._given = None  # the next training call tells anew
        return self

    @property
    def _kept(self) -> dict[str, Tensor]:
        """The tensors of a checkpoint, by name."""
        return {**self._table.state(), **self._state}

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        device = fn(torch.empty(0, device=self._table.device)).device
        if device == self._table.device:
            return self
        begins = self._table.device.type == "meta"  # where nothing has a value
        with outside_inference():
            self._table.to_(device)
            self._guard.to_(device)
            self._run.to_(device)
            state = self._program.initial_state(self._state["delta"].dtype) if begins else self._state
            self._state = {name: value.to(device) for name, value in state.items()}
            self._factors = torch.ones_like(self._factors, device=device) if begins else self._factors.to(device)
        if begins:
            self.weight = self._weight
        self._mark_static()
        return self

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        with self._run.lock:
            destination.update({prefix + name: value for name, value in self._kept.items()})

    def __getattr__(self, name: str) -> Any:
        # torch.distributed.checkpoint looks every key of a state_dict up as an attribute.
        if name == "table" or name in self.__dict__.get("_state", ()):
            return as_attributes(self._kept)[name]
        return super().__getattr__(name)

    def _describe(self) -> dict[str, Any]:
        rules = {name: fingerprint(formula) for name, formula in self.rules.items()}
        return {"rules": rules, "num_samples": self.num_samples, "method": self.method.name, "rows": self._program.stored}

    def get_extra_state(self) -> dict[str, Any]:
        """What a checkpoint must agree on (rules, method, number of samples), and the weights."""
        return {**self._describe(), "weight": dict(self._weight), "given": self._given, "units": self._units}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Checked in ``_load_from_state_dict``, before anything is written."""

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], strict: bool, *lists: list[str]
    ) -> None:
        missing_keys, _, error_msgs = lists
        with self._run.lock:
            extra, saved = state_dict.get(f"{prefix}_extra_state"), state_dict.get(f"{prefix}delta")
            problems = differences(extra, self.get_extra_state(), self.rules)
            if isinstance(saved, Tensor) and self._state["delta"].is_meta and not saved.is_meta:
                if local_metadata.get("assign_to_params_buffers"):
                    self.to_empty(device=saved.device)
                else:
                    problems.append("this loss is on the device meta: give assign=True, or call to_empty(device=...) first")
            before = self._given, self._units, self._program, self._table, self._state
            if extra is not None and not problems:
                self._face(tuple(extra.get("given") or ()), tuple(extra.get("units", ())))
            own = self._kept
            rest = {key: value for key, value in state_dict.items() if key.removeprefix(prefix) not in own}
            lacking = len(missing_keys)
            super()._load_from_state_dict(rest, prefix, local_metadata, strict, *lists)
            missing_keys.extend(prefix + name for name in own if prefix + name not in state_dict)
            for name, value in own.items():
                if prefix + name in state_dict:
                    fault = find_fault(name, state_dict[prefix + name], value, self._program.plan.masked)
                    problems += [] if fault is None else [f"{prefix}{name} {fault}"]
            if problems:
                error_msgs.append("the checkpoint does not fit this LogicLoss, and none of it was loaded: " + "; ".join(problems))
            if problems or len(missing_keys) != lacking:
                self._given, self._units, self._program, self._table, self._state = before
            else:
                # All or nothing: a table of one run beside the delta of another would be the state of neither.
                with torch.no_grad():
                    for name, value in own.items():
                        copy_saved(value, state_dict[prefix + name])
                self.weight = self._weight if extra is None else extra.get("weight", self._weight)
                self._run.pending = None
                given = self._given if extra is None else extra.get("given", ())  # earlier checkpoints turned nothing round
                self._given = None if given is None else tuple(given)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        with outside_inference():
            twin.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return twin

    def _mark_static(self) -> None:
        """Say that the tensors that are kept now will stay; graphs of earlier ones, which know addresses only, go."""
        mark_static((*self._table.changing(), self._guard.flags, *self._state.values()))
        self._run.graphs = Graphs.of(self)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_program": None, "_run": Run()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._program = self._compile()
        self._mark_static()
