"""What a ``state_dict`` holds of a logic loss, and whether one fits another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


def differences(saved: Mapping[str, Any] | None, mine: Mapping[str, Any]) -> list[str]:
    """What the rules, method and number of samples of a checkpoint and of a loss disagree on, in words."""
    if saved is None:
        return []
    found = []
    for name in {**saved["rules"], **mine["rules"]}:
        theirs, ours = saved["rules"].get(name, "nothing"), mine["rules"].get(name, "nothing")
        if theirs != ours:
            found.append(f"rule {name!r} is {shorten(theirs)} in the checkpoint and {shorten(ours)} here")
    for key in ("num_samples", "method"):
        if saved[key] != mine[key]:
            found.append(f"{key} is {saved[key]!r} in the checkpoint and {mine[key]!r} here")
    return found


def load_tensors(
    own: Mapping[str, Tensor],
    state_dict: Mapping[str, Any],
    prefix: str,
    problems: list[str],
    missing_keys: list[str],
    error_msgs: list[str],
) -> bool:
    """Copy saved tensors into ``own`` if all fit; otherwise say why not and change nothing.

    Returns:
        Whether the tensors were copied.
    """
    for name, value in own.items():
        given = state_dict.get(prefix + name)
        if given is None:
            missing_keys.append(prefix + name)
        elif given.shape != value.shape:
            problems.append(f"{prefix}{name} has shape {tuple(given.shape)} in the checkpoint and {tuple(value.shape)} here")
    if problems:
        error_msgs.append("the checkpoint does not fit this LogicLoss: " + "; ".join(problems))
        return False
    with torch.no_grad():
        for name, value in own.items():
            if prefix + name in state_dict:
                copy_saved(value, state_dict[prefix + name])
    return True


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


def shorten(text: str, limit: int = 120) -> str:
    """``text``, cut off with dots if it is long."""
    return text if len(text) <= limit else f"{text[:limit]}..."
