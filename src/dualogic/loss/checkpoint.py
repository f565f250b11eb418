"""How a logic loss is saved and loaded, and what of it is not: its state is in plain tensors, not in buffers."""

from __future__ import annotations

import math
import threading
import types
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dualogic.arguments import check_weight, shorten
from dualogic.duals.table import Update
from dualogic.errors import DualogicError
from dualogic.formula.connective import Formula
from dualogic.formula.printing import stands_for
from dualogic.methods.base import State

if TYPE_CHECKING:
    from dualogic.loss.graphs import Graphs


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
        self.graphs: Graphs | None = None

    def to_(self, device: torch.device) -> None:
        """Move to another device; an update that was not applied is left behind."""
        self.last = {name: value.to(device) for name, value in self.last.items() if not value.is_meta}
        self.selected = None if self.selected is None or self.selected.is_meta else self.selected.to(device)
        self.pending = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Run, ()


def mark_static(tensors: Iterable[Tensor]) -> None:
    """Tell torch.compile's CUDA graphs that state stays where it is, so that updates in place do not rule them out."""
    for tensor in tensors:
        # What torch._dynamo.mark_static_address does, without importing a compiler that may never be used.
        tensor._dynamo_static_input_type = "guarded"  # type: ignore[attr-defined]


def differences(saved: Mapping[str, Any] | None, mine: Mapping[str, Any], rules: Mapping[str, Formula]) -> list[str]:
    """What the rules, method and number of samples of a checkpoint and of a loss disagree on, in words."""
    if saved is None:
        return []
    whole = isinstance(saved, Mapping) and {"rules", "num_samples", "method"} <= saved.keys()
    if not whole or not isinstance(saved["rules"], Mapping):
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
        theirs, ours = saved[key], mine[key]
        if theirs != ours:
            grown = key == "num_samples" and isinstance(theirs, int) and isinstance(ours, int) and theirs < ours
            remedy = f"load it into a LogicLoss with num_samples={theirs} and call logic.extend({ours})"
            more = f" (to go on with more samples, {remedy})" if grown else ""
            found.append(f"{key} is {theirs!r} in the checkpoint and {ours!r} here{more}")
    # Checkpoints of before this was kept do not say.
    if saved["method"] == mine["method"] and saved.get("rows", mine["rows"]) != mine["rows"]:
        found.append(f"a row holds {saved['rows']} in the checkpoint and {mine['rows']} here: give the method the same options")
    if "weight" in saved:
        try:
            check_weight(saved["weight"], rules)
        except DualogicError as error:
            found.append(str(error))
    return found


def find_fault(name: str, saved: Any, own: Tensor, masked: bool) -> str | None:
    """Why a saved tensor cannot take the place of one's own, or ``None``; reads it once. A masked table may hold -inf."""
    if not isinstance(saved, Tensor):
        return f"must be a tensor; the checkpoint has {shorten(repr(saved))}"
    if saved.shape != own.shape:
        return f"has shape {tuple(saved.shape)} in the checkpoint and {tuple(own.shape)} here"
    if saved.is_complex() or saved.is_floating_point() != own.is_floating_point():
        return f"is of {saved.dtype} in the checkpoint and of {own.dtype} here"
    # Of a tensor that is spread over processes each looks at its part.
    part: Tensor = saved.to_local() if hasattr(saved, "device_mesh") else saved  # type: ignore[attr-defined]
    if own.device.type == "meta" or not part.numel():
        return None
    if part.device.type == "meta" or part.layout != torch.strided:
        kind = "one on the device meta" if part.device.type == "meta" else f"one of {part.layout}"
        return f"must be a tensor that holds all its numbers; the checkpoint has {kind}"
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
    """Dotted names as objects with attributes, one level after the other."""
    found: dict[str, Any] = {}
    for name in dict.fromkeys(key.split(".")[0] for key in state):
        below = {key.removeprefix(f"{name}."): value for key, value in state.items() if key.startswith(f"{name}.")}
        found[name] = types.SimpleNamespace(**as_attributes(below)) if below else state[name]
    return found
