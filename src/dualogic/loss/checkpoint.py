"""How a logic loss is moved, copied, saved and loaded: its state is in plain tensors, not in buffers."""

from __future__ import annotations

import copy
import math
import threading
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from dualogic.arguments import shorten
from dualogic.constants import outside_inference
from dualogic.duals.guard import Guard
from dualogic.duals.table import DualTable, Update
from dualogic.formula.connective import Formula
from dualogic.formula.fingerprint import fingerprint, stands_for
from dualogic.methods.base import Method, Program, State

if TYPE_CHECKING:
    from typing_extensions import Self


class Run:
    """What changes from call to call and is not saved; kept apart because setting attributes of a module is slow.

    Whoever reads or changes the stored state holds ``lock``: a step reads rows, moves them and writes them back, and a step of
    another thread in between would be lost.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.frozen = 0
        self.validated = False
        self.told = False
        self.pending: tuple[Update | None, State] | None = None
        self.last: dict[str, Tensor] = {}
        self.selected: Tensor | None = None
        self.limits: dict[tuple[torch.dtype, bool], tuple[float, float]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Run, ()


class KeptModule(nn.Module):
    """A module whose dual variables and ``delta`` follow it to a device, keep their dtype, and are all in its ``state_dict``."""

    rules: dict[str, Formula]
    method: Method
    num_samples: int | None
    _program: Program
    _table: DualTable
    _state: State
    _weights: Tensor
    _guard: Guard
    _run: Run

    def _compile(self) -> None:
        raise NotImplementedError

    def _mark_static(self) -> None:
        """Tell torch.compile's CUDA graphs that the state stays where it is, so that updates in place do not rule them out."""
        for tensor in (*self._table.changing(), self._guard.flags, *self._state.values()):
            # What torch._dynamo.mark_static_address does, without importing a compiler that may never be used.
            tensor._dynamo_static_input_type = "guarded"  # type: ignore[attr-defined]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        device = fn(torch.empty(0, device=self._table.device)).device
        if device == self._table.device:
            return self
        with outside_inference():
            self._table.to_(device)
            self._state = {name: value.to(device) for name, value in self._state.items()}
            self._weights = self._weights.to(device)
            self._guard.to_(device)
            self._run.last = {name: value.to(device) for name, value in self._run.last.items()}
            self._run.selected = None if self._run.selected is None else self._run.selected.to(device)
            self._run.pending = None
        self._mark_static()
        return self

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        with self._run.lock:
            for name, value in {**self._table.state(), **self._state}.items():
                destination[prefix + name] = value

    def __getattr__(self, name: str) -> Any:
        # torch.distributed.checkpoint looks every key of a state_dict up as an attribute.
        if name == "table" or name in self.__dict__.get("_state", ()):
            return as_attributes({**self._table.state(), **self._state})[name]
        return super().__getattr__(name)

    def get_extra_state(self) -> dict[str, Any]:
        """What a checkpoint must agree on: the rules, the method, the number of samples, and a file that holds the rows."""
        file = self._table.left_out
        return self._describe() if file is None else {**self._describe(), "file": file}

    def _describe(self) -> dict[str, Any]:
        return {
            "rules": {name: fingerprint(formula) for name, formula in self.rules.items()},
            "num_samples": self.num_samples,
            "method": self.method.name,
            "rows": self._program.stored,
        }

    def _in_short(self, saved: Any) -> Any:
        """What a checkpoint says of the rules, with texts that were saved whole as they are saved now."""
        if not isinstance(saved, Mapping) or not isinstance(saved.get("rules"), Mapping):
            return saved
        rules = {
            name: fingerprint(self.rules[name])
            if name in self.rules and isinstance(text, str) and stands_for(text, self.rules[name])
            else text
            for name, text in saved["rules"].items()
        }
        return {**saved, "rules": rules}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Checked in ``_load_from_state_dict``, before anything is written."""

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        with self._run.lock:
            self._load(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def _load(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        saved = [key.removeprefix(prefix) for key in state_dict if key.startswith(prefix)]
        own = {**self._table.loading(saved), **self._state}
        rest = {key: value for key, value in state_dict.items() if key.removeprefix(prefix) not in own}
        lacking = len(missing_keys)
        super()._load_from_state_dict(rest, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        missing_keys.extend(prefix + name for name in own if prefix + name not in state_dict)
        problems = differences(self._in_short(state_dict.get(f"{prefix}_extra_state")), self.get_extra_state())
        for name, value in own.items():
            if prefix + name in state_dict:
                fault = find_fault(name, state_dict[prefix + name], value, self._program.plan.masked)
                problems += [] if fault is None else [f"{prefix}{name} {fault}"]
        if problems:
            error_msgs.append("the checkpoint does not fit this LogicLoss, and none of it was loaded: " + "; ".join(problems))
        elif len(missing_keys) == lacking:
            # All or nothing: a table of one run beside the delta of another would be the state of neither.
            with torch.no_grad():
                for name, value in own.items():
                    copy_saved(value, state_dict[prefix + name])
            self._run.pending = None

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.update(_program=None, _run=Run())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._compile()
        self._mark_static()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        with outside_inference():
            twin.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return twin


def differences(saved: Mapping[str, Any] | None, mine: Mapping[str, Any]) -> list[str]:
    """What the rules, method and number of samples of a checkpoint and of a loss disagree on, in words."""
    if saved is None:
        return []
    if not isinstance(saved, Mapping) or not {"rules", "num_samples", "method"} <= saved.keys():
        return [f"its _extra_state is not that of a LogicLoss: {shorten(repr(saved))}"]
    found = []
    for name in {**saved["rules"], **mine["rules"]}:
        theirs, ours = saved["rules"].get(name, "nothing"), mine["rules"].get(name, "nothing")
        if theirs != ours:
            found.append(f"rule {name!r} is {shorten(theirs)} in the checkpoint and {shorten(ours)} here")
    if not found and list(saved["rules"]) != list(mine["rules"]):
        # The columns of the table and the entries of delta follow the order of the rules.
        theirs, ours = (shorten(", ".join(map(repr, side["rules"]))) for side in (saved, mine))
        found.append(f"the rules are in the order {theirs} in the checkpoint and {ours} here: give them in the same order")
    for key in ("num_samples", "method"):
        if saved[key] != mine[key]:
            found.append(f"{key} is {saved[key]!r} in the checkpoint and {mine[key]!r} here{_remedy(key, saved[key], mine[key])}")
    # Checkpoints of before this was kept do not say.
    if saved["method"] == mine["method"] and saved.get("rows", mine["rows"]) != mine["rows"]:
        found.append(f"a row holds {saved['rows']} in the checkpoint and {mine['rows']} here: give the method the same options")
    if "file" in saved and "file" in mine and saved["file"] != mine["file"]:
        found.append("its table stayed in another file than the one that is open here: give the path of that file, or of a copy")
    return found


def _remedy(key: str, saved: Any, mine: Any) -> str:
    if key != "num_samples" or not isinstance(saved, int) or not isinstance(mine, int) or saved > mine:
        return ""
    return f" (to go on with more samples, load it into a LogicLoss with num_samples={saved} and call logic.extend({mine}))"


def find_fault(name: str, saved: Any, own: Tensor, masked: bool) -> str | None:
    """Why a saved tensor cannot take the place of one's own, or ``None``; reads it once and keeps no copy.

    Args:
        name: of the tensor in the state, such as ``"delta"`` or ``"table"``.
        saved: from a checkpoint.
        own: what it would be copied to.
        masked: whether a table may hold -inf, which marks an operand that does not exist.

    Example:
        >>> import torch
        >>> find_fault("delta", torch.tensor([-1.0]), torch.tensor([1.0]), False)
        'must be above 0; the checkpoint has -1'
    """
    if not isinstance(saved, Tensor):
        return f"must be a tensor; the checkpoint has {shorten(repr(saved))}"
    if saved.shape != own.shape:
        return f"has shape {tuple(saved.shape)} in the checkpoint and {tuple(own.shape)} here"
    if saved.is_complex() or saved.is_floating_point() != own.is_floating_point():
        return f"is of {saved.dtype} in the checkpoint and of {own.dtype} here"
    # Of a tensor that is spread over processes each looks at its part.
    part: Tensor = saved.to_local() if hasattr(saved, "device_mesh") else saved  # type: ignore[attr-defined]
    if part.device.type == "meta" or own.device.type == "meta" or not part.numel():
        return None
    low, high = (bound.item() for bound in torch.aminmax(part.detach()))
    most = torch.finfo(own.dtype).max if own.is_floating_point() else torch.iinfo(own.dtype).max
    if not high <= most or not (low >= -most or (low == -math.inf and masked and name == "table")):
        return f"must hold finite numbers of {own.dtype}; the checkpoint has them from {low:g} to {high:g}"
    if name == "delta" and not low > 0:
        return f"must be above 0; the checkpoint has {low:g}"
    if (name.startswith(("steps", "epoch_", "table.squares"))) and low < 0:
        return f"must be at least 0; the checkpoint has {low:g}"
    return None


def copy_saved(value: Any, saved: Any) -> None:
    """``value.copy_(saved)``, where each may be spread over processes as a ``DTensor`` along its first axis, or not."""
    mine, theirs = (getattr(tensor, "device_mesh", None) for tensor in (value, saved))
    if mine is None:
        value.copy_(saved if theirs is None else saved.full_tensor())
        return
    local: Tensor = value.to_local()
    if theirs == mine and value.placements == saved.placements:
        local.copy_(saved.to_local())
        return
    whole = saved if theirs is None else saved.full_tensor()
    block = -(-value.shape[0] // mine.size())
    local.copy_(whole[mine.get_local_rank() * block :][: local.shape[0]])


def as_attributes(state: Mapping[str, Tensor]) -> dict[str, Any]:
    """Dotted names as objects with attributes, one level after the other.

    Example:
        >>> import torch
        >>> as_attributes({"table.layers.0": torch.tensor(5)})["table"].layers
        namespace(0=tensor(5))
    """
    found: dict[str, Any] = {}
    for name in dict.fromkeys(key.split(".")[0] for key in state):
        below = {key.removeprefix(f"{name}."): value for key, value in state.items() if key.startswith(f"{name}.")}
        found[name] = types.SimpleNamespace(**as_attributes(below)) if below else state[name]
    return found
