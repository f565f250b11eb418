"""Checks of the tensors that a caller binds to a rule's symbols."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from dualogic.errors import BindingError, SymbolError, suggest
from dualogic.formula.atom import Boolean
from dualogic.formula.connective import Formula
from dualogic.formula.inspect import INDEXED, collect_symbols, describe
from dualogic.formula.node import Node, walk
from dualogic.formula.shape import Ragged, Size, shorten
from dualogic.formula.symbol import Categorical, Mask, Variable
from dualogic.formula.term import Reduction
from dualogic.numerics import is_mapped

LARGEST_WHOLE = 2.0**24  # up to which float32 has every whole number
RANGE_TOLERANCE = 1e-2
HARMLESS = 0.5  # a number, and a probability, that hardly any rule makes something of that is not finite
FINITE = (-sys.float_info.max, sys.float_info.max)
SMALL = 10_000
"""Up to so many numbers a copy is cheaper than another look."""

Required = tuple[int, Node]
"""The least length of a ragged axis, and the node that needs it."""


@dataclasses.dataclass
class Bound:
    """Checked tensors of one call."""

    tensors: dict[str, Tensor]  # by symbol name; floating point ones share `dtype`
    batch: int  # the length of the leading axis
    dtype: torch.dtype  # float32 or wider
    device: torch.device  # where everything lives
    # Which samples the rules are about, `(batch,)`; `None` for all. The others' tensors hold copies of a selected sample,
    # through which no gradient flows.
    selected: Tensor | None = None
    ruled: Tensor | None = None  # the same for each rule, `(batch, rules)`; `None` if they do not differ
    dropped: int = 0  # how many samples were left out because none of them was selected
    predicted: tuple[str, ...] = ()  # the symbols whose tensors have a gradient

    def emptied(self) -> Bound:
        """A batch of no samples, which the tensors still have a gradient from."""
        empty = {name: tensor[:0] for name, tensor in self.tensors.items()}
        return dataclasses.replace(self, tensors=empty, batch=0, selected=None, ruled=None, dropped=self.batch)


class Binder:
    """What is known of rules before they are compiled, and the check of the tensors that are bound to them.

    Attributes:
        names: of the rules.
        symbols: to bind, by name.
    """

    def __init__(self, rules: Mapping[str, Formula]) -> None:
        nodes = walk(*rules.values())
        self.names = tuple(rules)
        self.symbols = collect_symbols(nodes)
        self._lengths = required_lengths(nodes)
        self._users = {name: frozenset(collect_symbols(walk(formula))) for name, formula in rules.items()}

    def bind(self, tensors: Mapping[str, Any], validate: bool | None, where: Any = None, whole: bool = False) -> Bound:
        """Check the tensors of a call against the declarations of the symbols, and bring them to one dtype.

        Args:
            tensors: what the caller gave.
            validate: also look at the values (which waits for the device): NaN, and probabilities that are none; ``None``
                does so on a CPU only.
            where: which samples to look at, ``(batch,)`` bool; ``None`` for all. Or a mapping from rules to what they look at.
            whole: tell large whole numbers apart also if nothing else of the values is looked at.
        """
        symbols = self.symbols
        if symbols.keys() != tensors.keys():
            _refuse_names(symbols, tensors)
        given: dict[str, Tensor] = {}
        dtype = torch.float32
        lengths: dict[str, tuple[int, str]] = {}
        batch: tuple[int, str] | None = None
        device: tuple[torch.device, str] | None = None
        for name, symbol in symbols.items():
            tensor = tensors[name] if isinstance(tensors[name], Tensor) else as_tensor(repr(name), tensors[name])
            _check_shape(name, symbol, tensor, lengths)
            if batch is None or device is None:
                batch, device = (tensor.shape[0], name), (tensor.device, name)
            elif tensor.shape[0] != batch[0]:
                raise BindingError(
                    f"all tensors must have the same batch size: {batch[1]!r} has {batch[0]} samples and {name!r} has "
                    f"{tensor.shape[0]}"
                )
            elif tensor.device != device[0]:
                raise BindingError(
                    f"all tensors must be on one device: {device[1]!r} is on {device[0]} and {name!r} is on {tensor.device}"
                )
            if tensor.dtype is dtype:
                pass  # nothing to promote
            elif tensor.is_floating_point():
                if tensor.dtype.itemsize == 1:
                    raise BindingError(f"{name!r} must have at least 16 bits per number, as in .float(); got {tensor.dtype}")
                dtype = torch.promote_types(dtype, tensor.dtype)
            elif tensor.is_complex():
                raise BindingError(f"{name!r} must be real; got {tensor.dtype}")
            elif isinstance(symbol, Variable) and (whole or validate is not False) and tensor.is_cpu and not is_mapped():
                # Whole numbers that float32 does not tell apart, such as times in seconds.
                dtype = torch.float64 if (tensor.float().abs() > LARGEST_WHOLE).any() else dtype
            given[name] = tensor
        assert batch is not None, "a rule has at least one symbol"
        assert device is not None
        for name, (length, node) in self._lengths.items():
            found, owner = lengths[name]
            if found < length:
                raise BindingError(
                    f"axis {name!r} has length {found} in {owner!r}, but {shorten(str(node))} needs at least {length}; pad the "
                    f"tensors of this batch and mark what exists with a mask"
                )
        if device[0].type == "meta":
            raise BindingError(f"{device[1]!r} is on the meta device and has no values, so there is no cost to compute")
        validate = (device[0].type == "cpu" if validate is None else validate) and not is_mapped()
        selected, ruled, masks = select(where, symbols, self._users, batch[0], device[0])
        if masks:
            given = fill_unselected(given, masks)
        looked_at: list[tuple[str, Node, Tensor]] = []
        for name, symbol in symbols.items():
            tensor = given[name]
            if isinstance(symbol, Mask):
                given[name] = _to_bool(name, tensor)
                continue
            if tensor.dtype is not dtype:
                given[name] = tensor = tensor.to(dtype)
            if validate and (selected is None or bool(masks[name].any())):
                looked_at.append((name, symbol, tensor))
        _check_values(looked_at)
        predicted = tuple([name for name, tensor in given.items() if tensor.requires_grad])
        return Bound(given, batch[0], dtype, device[0], selected, ruled, predicted=predicted)


def as_selection(where: Any, batch: int, device: torch.device, what: str = "where") -> Tensor:
    """What a user gave as ``where=``, as ``(batch,)`` bool on a device."""
    try:
        found = torch.as_tensor(where, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise BindingError(f"{what} must be a bool tensor of shape ({batch},); got {type(where).__name__}") from error
    if found.dtype is not torch.bool:
        raise BindingError(f"{what} must be a bool tensor, as from a comparison: where=label < 0; got {found.dtype}")
    if found.shape != (batch,):
        raise BindingError(f"{what} must have shape ({batch},), one entry per sample of the batch; got {tuple(found.shape)}")
    return found


def select(
    where: Any, symbols: Iterable[str], users: Mapping[str, Collection[str]], batch: int, device: torch.device
) -> tuple[Tensor | None, Tensor | None, dict[str, Tensor]]:
    """Which samples the rules are about, the same for each rule if they differ, and what of each symbol counts for any."""
    if where is None:
        return None, None, {}
    if not isinstance(where, Mapping):
        selected = as_selection(where, batch, device)
        return selected, None, dict.fromkeys(symbols, selected)
    ruled = select_for_rules(where, tuple(users), batch, device)
    columns = list(zip(users.values(), ruled.unbind(1)))
    masks = {name: torch.stack([column for used, column in columns if name in used]).any(0) for name in symbols}
    return ruled.any(1), ruled, masks


def select_for_rules(where: Mapping[str, Any], rules: tuple[str, ...], batch: int, device: torch.device) -> Tensor:
    """Which samples each rule is about, ``(batch, rules)``; all, for a rule that is not named, and none for ``False``."""
    for name in where:
        if name not in rules:
            known = ", ".join(map(repr, rules))
            raise SymbolError(f"where names the rule {name!r}, but the rules are {known}{suggest(str(name), rules)}")
    masks = []
    for name in rules:
        if (mask := where.get(name)) is None or isinstance(mask, bool):
            masks.append(torch.full((batch,), mask is not False, device=device))
        else:
            masks.append(as_selection(mask, batch, device, f"where[{name!r}]"))
    return torch.stack(masks, 1)


def fill_unselected(tensors: Mapping[str, Tensor], masks: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors whose samples that are not selected are copies of the first that is (or :data:`HARMLESS`, if none is).

    Whatever stood there, NaN included, reaches no cost, and their gradient is exactly 0. A copy is as harmless as what it is a
    copy of, which no fixed number would be for every rule.
    """
    if not all(len(tensor) for tensor in tensors.values()):
        return dict(tensors)
    firsts = {id(mask): (mask.to(torch.int8).argmax(0, keepdim=True), mask.any()) for mask in masks.values()}
    found = {}
    for name, tensor in tensors.items():
        mask, (first, some) = masks[name], firsts[id(masks[name])]
        copy = tensor.detach().index_select(0, first)
        if tensor.is_floating_point():
            copy = torch.where(some, copy, HARMLESS)
        found[name] = torch.where(mask.view(-1, *(1,) * (tensor.dim() - 1)), tensor, copy)
    return found


def required_lengths(nodes: Iterable[Node]) -> dict[str, Required]:
    """How long each ragged axis must be for the positions and extremes that ``nodes`` ask for, and which node asks."""
    required: dict[str, Required] = {}

    def require(size: Size, entries: int, node: Node) -> None:
        if isinstance(size, Ragged) and entries > 0 and entries + size.trim > required.get(size.axis.name, (1, node))[0]:
            required[size.axis.name] = (entries + size.trim, node)

    for node in nodes:
        if isinstance(node, INDEXED):
            sizes = iter(node.operand.shape)
            for kind, *arguments in node.items:
                size = 1 if kind == "new" else next(sizes)
                for place in {"at": arguments, "take": arguments[0] if arguments else ()}.get(kind, ()):
                    require(size, place + 1 if place >= 0 else -place, node)
        elif isinstance(node, Reduction) and node.operation != "sum":
            for dim in node.dims:
                require(node.operand.shape[dim], 1, node)
    return required


def _refuse_names(symbols: Mapping[str, Node], tensors: Mapping[str, Any]) -> None:
    missing = [name for name in symbols if name not in tensors]
    unknown = [name for name in tensors if name not in symbols]
    parts, near = [], ""
    if missing:
        parts.append(f"no tensor was given for {', '.join(map(repr, missing))}")
    if unknown:
        near = suggest(str(unknown[0]), missing or symbols)
        parts.append(f"{', '.join(map(repr, unknown))} is not a symbol of the rule{near}")
    wanted = ", ".join(f"{name}={describe(symbol)}" for name, symbol in list(symbols.items())[:20])
    choose = "" if missing else ". Of more tensors, give **{name: tensors[name] for name in rule.symbols}, or logic.symbols"
    raise SymbolError(f"{'; '.join(parts).removesuffix('?')}{'?' if near else '.'} The rule needs: {wanted}{choose}")


def as_tensor(what: str, value: Any) -> Tensor:
    """What a user gave for a tensor, as one."""
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise BindingError(f"{what} must be bound to a tensor; got {type(value).__name__}: {error}") from error


def _check_shape(name: str, symbol: Any, tensor: Tensor, lengths: dict[str, tuple[int, str]]) -> None:
    if tensor.is_nested or tensor.layout is not torch.strided:
        wanted = "torch.nested.to_padded_tensor(x, 0.0)" if tensor.is_nested else ".to_dense()"
        raise BindingError(f"{name!r} must be bound to a dense tensor, as from {wanted}; got layout {tensor.layout}")
    declared = symbol.shape
    if isinstance(symbol, Categorical):
        declared = (*declared, symbol.size)
    fits = tensor.dim() == len(declared) + 1
    if fits:
        for size, actual in zip(declared, tensor.shape[1:]):
            if isinstance(size, Ragged):
                known, owner = lengths.setdefault(size.axis.name, (actual + size.trim, name))
                if actual + size.trim != known:
                    raise BindingError(
                        f"axis {size.axis.name!r} has length {known} in {owner!r} and {actual + size.trim} in {name!r}"
                    )
                fits = fits and 1 <= actual <= size.max
            else:
                fits = fits and size == actual
    if not fits:
        expected = ", ".join(
            f"{size!r} (1 to {size.max})" if isinstance(size, Ragged) else str(size) for size in ("batch", *declared)
        )
        remedy = ""
        if tensor.dim() == len(declared) + 2 and tensor.shape[-1] == 1:
            remedy = "; drop the last axis with .squeeze(-1)"
        elif isinstance(symbol, Categorical) and tensor.dim() == len(declared) and not tensor.is_floating_point():
            remedy = f"; give known classes as torch.nn.functional.one_hot(classes, {symbol.size})"
        raise BindingError(
            f"{name!r} is declared as {describe(symbol)} and needs a tensor of shape ({expected}); got {tuple(tensor.shape)}"
            f"{remedy}"
        )


def _to_bool(name: str, tensor: Tensor) -> Tensor:
    if tensor.dtype is torch.bool:
        return tensor
    if tensor.is_floating_point():
        raise BindingError(f"the mask {name!r} must be bound to a bool tensor; got {tensor.dtype}; compare it, as in mask > 0")
    return tensor != 0


def watch(symbols: Mapping[str, Node], tensors: Mapping[str, Tensor]) -> list[tuple[Tensor, float, float]]:
    """Numbers that are not read yet, each with the bounds that it is within if no value of checked tensors is suspicious: sums
    are finite, the least and the largest probability within 0 and 1.
    """
    given = [(name, symbol, tensors[name].detach()) for name, symbol in symbols.items() if not isinstance(symbol, Mask)]
    found: list[tuple[Tensor, float, float]] = []
    for (probabilities, shape), group in _alike(given).items():
        each = [tensor for _, _, tensor in group]
        for values in [torch.stack(each, 1)] if len(each) > 2 and shape.numel() <= SMALL else each:
            if probabilities:
                low, high = torch.aminmax(values)
                found += [(low, -RANGE_TOLERANCE, math.inf), (high, -math.inf, 1 + RANGE_TOLERANCE)]
            else:
                found.append((values.sum(), *FINITE))
    return found


def watch_whole(
    symbols: Mapping[str, Node], given: Mapping[str, Tensor], bound: Mapping[str, Tensor]
) -> list[tuple[Tensor, float, float]]:
    """The same for whole numbers that are bound to variables, where float32 is to tell them apart."""
    wide = (torch.int32, torch.int64)
    whole = [bound[name] for name, symbol in symbols.items() if isinstance(symbol, Variable) and given[name].dtype in wide]
    return [(each.abs().amax(), -math.inf, LARGEST_WHOLE) for each in whole if each.dtype is torch.float32 and each.numel()]


def _alike(given: Sequence[tuple[str, Node, Tensor]]) -> dict[tuple[bool, torch.Size], list[tuple[str, Node, Tensor]]]:
    alike: dict[tuple[bool, torch.Size], list[tuple[str, Node, Tensor]]] = {}
    for name, symbol, tensor in given:
        probabilities = isinstance(symbol, (Categorical, Boolean)) and symbol.input == "probs"
        alike.setdefault((probabilities, tensor.shape), []).append((name, symbol, tensor))
    return alike


def _check_values(given: Sequence[tuple[str, Node, Tensor]]) -> None:
    """Refuse NaN, and probabilities that are none. Small tensors of one shape are looked at together first."""
    with torch.no_grad():
        for (probabilities, shape), group in _alike(given).items():
            together = len(group) > 1 and 0 < shape.numel() <= SMALL
            if together and not _look(torch.stack([tensor for _, _, tensor in group]), probabilities)[0]:
                continue
            for name, _, tensor in group:
                if tensor.numel():
                    _check_one(name, tensor.detach(), probabilities)


def _look(values: Tensor, probabilities: bool) -> tuple[bool, float, float]:
    """Whether some value is suspicious, in one fast pass; for probabilities also the least and the largest."""
    if not probabilities:
        return not math.isfinite(values.sum().item()), 0.0, 0.0
    least, most = torch.aminmax(values)
    low, high = least.item(), most.item()
    return not (low >= -RANGE_TOLERANCE and high <= 1 + RANGE_TOLERANCE), low, high


def _check_one(name: str, values: Tensor, probabilities: bool) -> None:
    suspicious, low, high = _look(values, probabilities)
    if not suspicious:
        return
    if torch.isnan(values).any():
        position = torch.isnan(values).nonzero()[0].tolist()
        raise BindingError(
            f"the tensor bound to {name!r} contains NaN, first at position {position}; a rule cannot be evaluated on it: look "
            f"for a diverged network, or give padded entries any finite number and leave them out with where="
        )
    if probabilities:
        raise BindingError(
            f"{name!r} is declared with input='probs', but its values lie between {low:.4g} and {high:.4g}; apply softmax or "
            f"sigmoid first, or declare it with input='logits'"
        )
