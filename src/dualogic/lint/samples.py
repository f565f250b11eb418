"""Example inputs of a rule, at which its cost and its gradient are looked at."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from dualogic.formula.atom import Boolean
from dualogic.formula.connective import Formula
from dualogic.formula.node import walk
from dualogic.formula.shape import max_shape
from dualogic.formula.symbol import Categorical, Mask
from dualogic.formula.term import Constant, Number

Ranges = Mapping[str, tuple[float | None, float | None]]
MOST_INTERVALS = 12
RANDOM = 8
LARGE = 20_000  # symbols with more entries than this get fewer inputs


def draw_inputs(formula: Formula, ranges: Ranges) -> dict[str, Tensor]:
    """Tensors for all symbols, in float64: variables, probabilities (also where the rule takes logits) and masks.

    Variables lie between the rule's constants: first all entries in the middle of one interval, then at random within it or
    summing to 1. Classes are undecided first, then random. Ragged axes have their full length, and masks leave all in.
    """
    shapes = [max_shape(symbol.shape) for symbol in formula.symbols.values()]
    large = sum(math.prod(shape) for shape in shapes) > LARGE
    intervals = _intervals(formula)[: 2 if large else None]
    repeats = 1 if large else RANDOM
    count = len(intervals) * (1 + repeats) + 2 * repeats
    generator = torch.Generator().manual_seed(0)
    inputs: dict[str, Tensor] = {}
    for name, symbol in formula.symbols.items():
        sizes = max_shape(symbol.shape)
        if isinstance(symbol, Mask):
            inputs[name] = torch.ones(count, *sizes, dtype=torch.bool)
        elif isinstance(symbol, Categorical):
            inputs[name] = _probabilities(count, (*sizes, symbol.size), len(intervals), generator)
        elif isinstance(symbol, Boolean):
            inputs[name] = torch.rand(count, *sizes, generator=generator, dtype=torch.float64) * 0.9 + 0.05
        else:
            inputs[name] = _numbers(intervals, repeats, sizes, ranges.get(name, (None, None)), generator)
    return inputs


def _intervals(formula: Formula) -> list[tuple[float, float]]:
    """Between neighbouring constants of the rule, then outside of them."""
    numbers: set[float] = set()
    for node in walk(formula):
        if isinstance(node, Number):
            numbers.add(node.value)
        elif isinstance(node, Constant):
            numbers.update(itertools.islice(node.numbers(), 1000))
    marks = sorted(numbers) or [0.0]
    return [*list(itertools.pairwise(marks))[:MOST_INTERVALS], (marks[0] - 2, marks[0]), (marks[-1], marks[-1] + 2)]


def _numbers(
    intervals: list[tuple[float, float]],
    repeats: int,
    sizes: tuple[int, ...],
    limits: tuple[float | None, float | None],
    generator: torch.Generator,
) -> Tensor:
    low, high = torch.tensor(intervals, dtype=torch.float64).unbind(1)
    shape = (-1, *(1 for _ in sizes))
    parts = [((low + high) / 2).reshape(shape).expand(-1, *sizes)]
    for _ in range(repeats):
        share = torch.rand(len(intervals), *sizes, generator=generator, dtype=torch.float64)
        parts.append(low.reshape(shape) + share * (high - low).reshape(shape))
    wide = torch.rand(repeats, *sizes, generator=generator, dtype=torch.float64)
    parts.append(low.min() + wide * (high.max() - low.min()))
    weights = -torch.rand(repeats, *sizes, generator=generator, dtype=torch.float64).log()
    parts.append(weights / weights.sum(-1, keepdim=True) if sizes else weights)
    return torch.cat(parts).clamp(*limits) if limits != (None, None) else torch.cat(parts)


def _probabilities(count: int, sizes: tuple[int, ...], undecided: int, generator: torch.Generator) -> Tensor:
    weights = -torch.rand(count, *sizes, generator=generator, dtype=torch.float64).log()
    weights[:undecided] = 1.0
    return weights / weights.sum(-1, keepdim=True)


def as_witness(formula: Formula, inputs: Mapping[str, Tensor], place: int) -> dict[str, Any]:
    """One of the inputs as a finding shows it."""
    witness: dict[str, Any] = {}
    for name, symbol in formula.symbols.items():
        witness[name] = inputs[name][place].tolist()
        if isinstance(symbol, Categorical):
            witness[name] = _label(witness[name], symbol.classes or range(symbol.size))
    return witness


def _label(values: list[Any], labels: Sequence[Any]) -> Any:
    """Probabilities by class, also in nested lists."""
    return [_label(row, labels) for row in values] if isinstance(values[0], list) else dict(zip(labels, values))
