"""What the labels say about the antecedents of rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from dualogic.compile.binding import Bound
from dualogic.compile.evaluate import is_satisfied
from dualogic.diagnosis.observation import Observed
from dualogic.errors import BindingError, SymbolError
from dualogic.formula.atom import Boolean
from dualogic.formula.connective import Formula
from dualogic.formula.inspect import describe
from dualogic.formula.node import Node
from dualogic.formula.symbol import Categorical, Mask, Variable

SURE = 50.0
"""The logit of a class or a Boolean that is known."""


def check_truths(labels: Mapping[Any, Any], symbols: Mapping[str, Node], bound: Bound) -> dict[str, Tensor]:
    """The true values of symbols as tensors, after checks.

    Args:
        labels: by the name of a symbol: classes ``(batch, *shape)`` as integers for a categorical (a negative one means that it
            is not known), 0 and 1 for a Boolean, numbers for a variable.
        symbols: of the rules.
        bound: what the model says.
    """
    truths: dict[str, Tensor] = {}
    for name, values in labels.items():
        symbol = symbols.get(name)
        if not isinstance(symbol, (Categorical, Boolean, Variable)):
            known = ", ".join(key for key, node in symbols.items() if not isinstance(node, Mask))
            raise SymbolError(f"labels names {name!r}, but the symbols whose true values can be given are {known}")
        try:
            truth = torch.as_tensor(values, device=bound.device)
        except (TypeError, ValueError, RuntimeError) as error:
            raise BindingError(f"the labels of {name!r} must be a tensor; got {type(values).__name__}") from error
        classes = isinstance(symbol, Categorical)
        shape = bound.tensors[name].shape[:-1] if classes else bound.tensors[name].shape
        whole = not (truth.is_floating_point() or truth.is_complex() or truth.dtype is torch.bool)
        if truth.shape != shape or (classes and not whole):
            kind = "integers" if classes else "numbers"
            raise BindingError(
                f"the labels of {name!r}, declared as {describe(symbol)}, must be {kind} of shape {tuple(shape)}; got "
                f"{truth.dtype} of shape {tuple(truth.shape)}"
            )
        if isinstance(symbol, Categorical) and truth.numel() and int(truth.max()) >= symbol.size:
            raise BindingError(f"the labels of {name!r} must be classes below {symbol.size}; got {int(truth.max())}")
        truths[name] = truth
    return truths


def find_classes(truths: Mapping[str, Tensor], symbols: Mapping[str, Node]) -> Tensor | None:
    """The class of each sample, by which a report is divided: the first labelled categorical that has no axes."""
    return next(
        (truth.long() for name, truth in truths.items() if truth.dim() == 1 and isinstance(symbols[name], Categorical)), None
    )


def count_expected(
    condition: Formula, truths: Mapping[str, Tensor], bound: Bound, tol: float, observed: Observed, lane: int
) -> Tensor | None:
    """How often an antecedent is true by the labels, and read so: ``(batch, 3)`` of units known, true, true and read.

    Returns ``None`` if the labels of some symbol of the antecedent are missing.
    """
    symbols = condition.symbols
    if any(name not in truths for name, symbol in symbols.items() if not isinstance(symbol, Mask)):
        return None
    known = torch.ones(bound.batch, dtype=torch.bool, device=bound.device)
    tensors: dict[str, Tensor] = {}
    for name, symbol in symbols.items():
        if isinstance(symbol, Mask):
            tensors[name] = bound.tensors[name]
            continue
        truth = truths[name]
        if isinstance(symbol, Categorical):
            known = known & (truth >= 0).flatten(1).all(1) if truth.dim() > 1 else known & (truth >= 0)
            truth = torch.nn.functional.one_hot(truth.long().clamp_min(0), symbol.size)
        truth = truth.to(bound.dtype)
        logits = isinstance(symbol, (Categorical, Boolean)) and symbol.input == "logits"
        tensors[name] = (2 * truth - 1) * SURE if logits else truth
    truth = is_satisfied(condition, tol, 0.0, tensors)
    while truth.dim() < 1 + len(observed.axes):
        truth = truth.unsqueeze(1)
    expected = truth.expand(bound.batch, *observed.axes).reshape(bound.batch, -1)
    units = observed.exists[:, lane] & known.unsqueeze(1)
    expected = expected & units
    read = expected & ~observed.holds[:, lane, :, 0]
    return torch.stack([units, expected, read], -1).sum(1)
