"""Witnesses of lint as tensors, so that the library itself can judge them."""

import torch

from dualogic.formula.atom import Boolean
from dualogic.formula.symbol import Categorical, Mask


def to_tensors(symbols, witness):
    """Tensors with one sample for all symbols: bools for masks, otherwise float64."""
    return {name: _to_tensor(symbol, witness[name]) for name, symbol in symbols.items()}


def _to_tensor(symbol, value):
    if isinstance(symbol, Mask):
        return torch.tensor([value], dtype=torch.bool)
    numbers = torch.tensor([_numbers(symbol, value)], dtype=torch.float64)
    if getattr(symbol, "input", "probs") == "probs":
        return numbers
    return numbers.logit(1e-9) if isinstance(symbol, Boolean) else numbers.clamp_min(1e-30).log()


def _numbers(symbol, value):
    if isinstance(value, list):
        return [_numbers(symbol, item) for item in value]
    if not isinstance(symbol, Categorical):
        return float(value)
    labels = list(symbol.classes or range(symbol.size))
    if not isinstance(value, dict):
        value = {value: 1.0}
    return [value.get(label, 0.0) for label in labels]


def holds_at(formula, witness):
    """Whether a formula is satisfied there; exactly, or up to the rounding of the solver's fractions."""
    tensors = to_tensors(formula.symbols, witness)
    return bool(formula.satisfied(**tensors)) or bool(formula.satisfied(tol=1e-6, **tensors))
