"""What is believed beside what is taught: ``believe=`` of a logic loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from dualogic.compile.binding import as_tensor
from dualogic.errors import BindingError, SymbolError, suggest
from dualogic.formula.node import Node
from dualogic.formula.symbol import Mask


def split(symbols: Mapping[str, Node], tensors: Mapping[str, Any], believe: Any) -> tuple[dict[str, Any], dict[str, Any], int]:
    """What is taught, what is believed, and how many views of each sample are taught.

    Args:
        symbols: of the rules.
        tensors: of a call, by symbol. With ``k`` views of each of ``batch`` samples, those that ``believe`` names hold ``k``
            blocks of ``batch``, and the others one.
        believe: the beliefs ``(batch, ...)`` by symbol.

    Example:
        >>> import dualogic as dl, torch
        >>> views, teacher, other = torch.zeros(6, 2), torch.ones(3, 2), torch.zeros(3)
        >>> taught, believed, number = split({"p": dl.var("p", 2), "x": dl.var("x")}, {"p": views, "x": other}, {"p": teacher})
        >>> number, [tuple(value.shape) for value in taught.values()], [tuple(value.shape) for value in believed.values()]
        (2, [(6, 2), (6,)], [(3, 2), (3,)])
    """
    if not isinstance(believe, Mapping) or not believe:
        raise BindingError(f"believe must map symbols to tensors, as in believe={{'p': teacher_logits}}; got {believe!r}")
    pairs = {name: _check(name, symbols, tensors, belief) for name, belief in believe.items()}
    first, (taught, belief) = next(iter(pairs.items()))
    count, batch = taught.shape[0], belief.shape[0]
    if count % max(batch, 1) or count < batch:
        raise BindingError(
            f"{first!r} has {count} samples and what is believed of it {batch}: what is taught may hold several views of each "
            f"sample, as from torch.cat([view, another]), but beliefs are one for each. Average those of several views first: "
            f"probabilities.unflatten(0, (2, -1)).mean(0)"
        )
    views = count // max(batch, 1) or 1
    whole, believed = dict(tensors), {name: value for name, value in tensors.items() if name in symbols}
    for name, value in believed.items():
        if name in pairs:
            believed[name] = pairs[name][1]
            continue
        value = as_tensor(repr(name), value)
        if views > 1 and value.shape[:1] != (batch,):
            raise BindingError(
                f"{name!r} is not in believe, so it must be the same for all {views} views of a sample: give it {batch} entries, "
                f"one for each sample, or believe something of it; got shape {tuple(value.shape)}"
            )
        believed[name] = value.detach()
        whole[name] = tile(value, views)
    return whole, believed, views


def _check(name: str, symbols: Mapping[str, Node], tensors: Mapping[str, Any], belief: Any) -> tuple[Tensor, Tensor]:
    """What is taught of a symbol, and what is believed of it, without a gradient and in the type that the former counts in."""
    if name not in symbols:
        known = ", ".join(map(repr, symbols))
        raise SymbolError(f"believe names {name!r}, but the symbols of the rules are {known}{suggest(str(name), symbols)}")
    if isinstance(symbols[name], Mask):
        raise BindingError(
            f"believe names the mask {name!r}, but what exists is the same for what is believed and what is taught"
        )
    if name not in tensors:
        raise SymbolError(f"believe names {name!r}, but no tensor was given for it: what is taught comes as {name}=...")
    taught, found = as_tensor(repr(name), tensors[name]), as_tensor(f"what is believed of {name!r}", belief).detach()
    if found.shape[1:] != taught.shape[1:] or not found.dim():
        raise BindingError(
            f"what is believed of {name!r} must have the shape of what is taught but for the number of samples, "
            f"(batch, {', '.join(map(str, taught.shape[1:]))}); got {tuple(found.shape)}"
        )
    if found.device != taught.device:
        raise BindingError(f"what is believed of {name!r} is on {found.device} and what is taught on {taught.device}")
    if found.is_floating_point() or taught.is_floating_point():
        found = found.to(torch.promote_types(taught.dtype, torch.float32))
    return taught, found


def tile(value: Tensor, views: int) -> Tensor:
    """``(batch, ...)`` for each of several views, ``(views * batch, ...)``."""
    return value if views == 1 else value.repeat(views, *(1,) * (value.dim() - 1))


def tile_where(where: Any, views: int) -> Any:
    """The same for what a user gave as ``where=``."""
    if where is None or views == 1 or isinstance(where, bool):
        return where
    if isinstance(where, Mapping):
        return {name: tile_where(mask, views) for name, mask in where.items()}
    return tile(torch.as_tensor(where), views)


def average(values: Tensor, views: int) -> Tensor:
    """The mean over views, ``(batch, ...)`` from ``(views * batch, ...)``."""
    return values if views == 1 else values.unflatten(0, (views, -1)).mean(0)


def first_view(tensors: Mapping[str, Any], believe: Mapping[str, Any] | None) -> dict[str, Any]:
    """Of what is taught, the first view of each sample."""
    if not believe:
        return dict(tensors)
    batch = len(next(iter(believe.values())))
    return {name: value[:batch] for name, value in tensors.items()}


def rows_of_all(where: Any, device: torch.device) -> Any:
    """The samples that all rules are about, by what was given as ``where=``: a mask, or a slice if they are about all samples."""
    given = where.values() if isinstance(where, Mapping) else [where]
    if any(each is False for each in given):
        return slice(0)
    masks = [each for each in given if each is not None and each is not True]
    return torch.stack([torch.as_tensor(mask, device=device).bool() for mask in masks]).all(0) if masks else slice(None)
