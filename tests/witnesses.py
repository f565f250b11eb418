"""Witnesses of lint as tensors, so that the library itself can judge them."""

import torch

from dualogic.formula.atom import Boolean
from dualogic.formula.symbol import Categorical, Mask


def to_tensors(symbols, witness):
    """Tensors with one sample for all symbols."""
    return {name: torch.tensor([_numbers(symbol, witness[name])]) for name, symbol in symbols.items()}


def _numbers(symbol, value):
    if isinstance(value, list):
        return [_numbers(symbol, item) for item in value]
    if isinstance(symbol, Mask):
        return value
    if isinstance(symbol, Boolean):
        return float(value)
    if not isinstance(symbol, Categorical):
        return value
    labels = list(symbol.classes or range(symbol.size))
    if not isinstance(value, dict):
        value = {value: 1.0}
    return [value.get(label, 0.0) for label in labels]


def holds_at(formula, witness, tol=1e-6):
    """Whether a formula is satisfied there."""
    tensors = to_tensors(formula.symbols, witness)
    doubles = {name: tensor if tensor.dtype is torch.bool else tensor.double() for name, tensor in tensors.items()}
    return bool(formula.satisfied(tol=tol, **doubles))
