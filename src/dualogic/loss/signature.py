"""What decides which kernels a call of a logic loss launches, as a key; and which calls are ordinary enough to have one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dualogic.numerics import is_followed

TELLS_OF_HOOKS = hasattr(torch._C._autograd, "_top_saved_tensors_default_hooks")
"""Early versions of torch do not."""
saving_hooks: Callable[[bool], Any] = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", lambda traced: None)
"""Those that change what a backward pass finds, as activation checkpointing does."""


class Layout(NamedTuple):
    """Which tensors a call has, by name: for symbols, as beliefs, as masks of samples; ``where`` may be a lone one."""

    tensors: tuple[str, ...]
    believe: tuple[str, ...] | None
    where: tuple[str, ...] | bool | None

    def rebuild(self, given: Sequence[Tensor]) -> dict[str, Any]:
        """The arguments of a call from its tensors."""
        rest = iter(given)
        tensors = {name: next(rest) for name in self.tensors}
        believe = None if self.believe is None else {name: next(rest) for name in self.believe}
        where: Any = None
        if self.where is not None:
            where = next(rest) if isinstance(self.where, bool) else {name: next(rest) for name in self.where}
        return {"where": where, "believe": believe, "tensors": tensors}


def is_watched() -> bool:
    """Whether torch traces, transforms or inspects what is computed, or computes it again."""
    if torch._C._current_graph_task_id() != -1 or is_followed() or torch._C._len_torch_dispatch_stack():
        return True
    return torch.is_anomaly_enabled() or saving_hooks(False) is not None or torch._C._get_tracing_state() is not None


def can_learn(owner: Any) -> bool:
    """Whether this is an ordinary call of a training loop."""
    if not (owner.capture and owner.training and owner.update == "forward" and owner.reduction != "none"):
        return False
    return torch.is_grad_enabled() and not owner._run.frozen and not is_watched()


def sign(
    owner: Any, device: torch.device, index: Any, where: Any, believe: Any, tensors: dict[str, Any]
) -> tuple[Hashable, Layout, list[Tensor], tuple[int, ...]] | None:
    """The signature of a call, and its tensors in order; ``None`` if something in it is no ordinary tensor."""
    given = list(tensors.values())
    believed: tuple[str, ...] | None = None
    masks: tuple[str, ...] | bool | None = None
    if believe is not None:
        if not isinstance(believe, Mapping):
            return None
        believed = tuple(believe)
        given += believe.values()
    if where is not None:
        masks = tuple(where) if isinstance(where, Mapping) else True
        given += where.values() if isinstance(where, Mapping) else (where,)
    layout = Layout(tuple(tensors), believed, masks)
    try:
        described = tuple([(each.shape, each.stride(), each.dtype, each.requires_grad, each.device) for each in given])
        indexed = None if index is None else (index.shape, index.dtype, index.device)
    except (AttributeError, RuntimeError, TypeError):
        return None
    if not all(type(each) in (Tensor, nn.Parameter) for each in given) or not (index is None or type(index) is Tensor):
        return None
    numbers = [id(each) for each in given]
    slots = tuple(range(len(given)))
    if len(set(numbers)) < len(numbers):
        order = list(dict.fromkeys(numbers))
        slots = tuple(order.index(number) for number in numbers)
    kind = device.type
    settings = (
        owner.reduction,
        owner._off,
        owner._weighted,
        torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind),
        torch.are_deterministic_algorithms_enabled(),
    )
    return (layout, described, indexed, slots, settings), layout, given, slots


def can_stand_for(given: Iterable[Tensor], device: torch.device) -> bool:
    """Whether buffers can take the place of these tensors."""
    return all(each.device == device and each.layout is torch.strided and each.numel() for each in given)
