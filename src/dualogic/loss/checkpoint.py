"""How a logic loss is saved and loaded, and what of it is not: its state is in plain tensors, not in buffers."""

from __future__ import annotations

import copy
import math
import threading
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from dualogic.arguments import check_weight, shorten
from dualogic.constants import outside_inference
from dualogic.duals.table import Update
from dualogic.errors import DualogicError
from dualogic.formula.connective import Formula
from dualogic.formula.fingerprint import stands_for
from dualogic.methods.base import State

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

    def to_(self, device: torch.device) -> None:
        """Move to another device; an update that was not applied is left behind."""
        self.last = {name: value.to(device) for name, value in self.last.items()}
        self.selected = None if self.selected is None else self.selected.to(device)
        self.pending = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Run, ()


def mark_static(tensors: Iterable[Tensor]) -> None:
    """Tell torch.compile's CUDA graphs that state stays where it is, so that updates in place do not rule them out."""
    for tensor in tensors:
        # What torch._dynamo.mark_static_address does, without importing a compiler that may never be used.
        tensor._dynamo_static_input_type = "guarded"  # type: ignore[attr-defined]


class PlainState(nn.Module):
    """Torch's hooks for a module whose state is in plain tensors: it follows ``.to(device)``, keeps its dtype, and is all in the
    ``state_dict``. What the state is, the subclass says.
    """

    _run: Run

    def _kept(self, saved: Collection[str] | None = None) -> dict[str, Tensor]:
        """The tensors of a checkpoint by name, or those to copy one to that holds the names ``saved``."""
        raise NotImplementedError

    def _find_faults(self, extra: Any, pairs: Mapping[str, tuple[Any, Tensor]], prefix: str) -> list[str]:
        """What is wrong with a checkpoint: its extra state, and saved tensors beside one's own."""
        raise NotImplementedError

    def _take_over(self, extra: Any) -> None:
        """Take over what the extra state of a checkpoint holds, once all of it fits."""
        raise NotImplementedError

    def _move_(self, device: torch.device) -> None:
        """Take the state to a device."""
        raise NotImplementedError

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        old = self._kept()["delta"].device
        device = fn(torch.empty(0, device=old)).device
        if device != old:
            with outside_inference():
                self._move_(device)
        return self

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        with self._run.lock:
            destination.update({prefix + name: value for name, value in self._kept().items()})

    def __getattr__(self, name: str) -> Any:
        # torch.distributed.checkpoint looks every key of a state_dict up as an attribute.
        if not name.startswith("_") and "_run" in self.__dict__:
            found = as_attributes(self._kept())
            if name in found:
                return found[name]
        return super().__getattr__(name)

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Checked in ``_load_from_state_dict``, before anything is written."""

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], strict: bool, *found: list[str]
    ) -> None:
        missing_keys, _, error_msgs = found
        with self._run.lock:
            own = self._kept([key.removeprefix(prefix) for key in state_dict if key.startswith(prefix)])
            rest = {key: value for key, value in state_dict.items() if key.removeprefix(prefix) not in own}
            lacking = len(missing_keys)
            super()._load_from_state_dict(rest, prefix, local_metadata, strict, *found)
            missing_keys.extend(prefix + name for name in own if prefix + name not in state_dict)
            there = {name: value for name, value in own.items() if prefix + name in state_dict}
            pairs = {name: (state_dict[prefix + name], value) for name, value in there.items()}
            extra = state_dict.get(f"{prefix}_extra_state")
            problems = self._find_faults(extra, pairs, prefix)
            if problems:
                error_msgs.append("the checkpoint does not fit this LogicLoss, and none of it was loaded: " + "; ".join(problems))
            elif len(missing_keys) == lacking:
                # All or nothing: a table of one run beside the delta of another would be the state of neither.
                with torch.no_grad():
                    for saved, value in pairs.values():
                        copy_saved(value, saved)
                self._take_over(extra)
                self._run.pending = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        with outside_inference():
            twin.__setstate__(copy.deepcopy(self.__getstate__(), memo))  # type: ignore[no-untyped-call]
        return twin


def differences(saved: Mapping[str, Any] | None, mine: Mapping[str, Any], rules: Mapping[str, Formula]) -> list[str]:
    """What the rules, method and number of samples of a checkpoint and of a loss disagree on, in words."""
    if saved is None:
        return []
    if not isinstance(saved, Mapping) or not {"rules", "num_samples", "method"} <= saved.keys():
        return [f"its _extra_state is not that of a LogicLoss: {shorten(repr(saved))}"]
    found = []
    for name in {**saved["rules"], **mine["rules"]}:
        theirs, ours = saved["rules"].get(name, "nothing"), mine["rules"].get(name, "nothing")
        # Texts that were saved whole are as good as what is saved now.
        if theirs != ours and not (name in rules and isinstance(theirs, str) and stands_for(theirs, rules[name])):
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
    if "weight" in saved:
        try:
            check_weight(saved["weight"], rules)
        except DualogicError as error:
            found.append(str(error))
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
    if name.startswith(("steps", "epoch_", "table.squares")) and low < 0:
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
