"""What the labels say about rules, their antecedents and their consequents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from dualogic.compile.binding import Bound
from dualogic.compile.evaluate import is_satisfied
from dualogic.diagnosis.observation import Observed
from dualogic.diagnosis.outline import Connective
from dualogic.errors import BindingError, SymbolError
from dualogic.formula.atom import Boolean
from dualogic.formula.connective import Formula
from dualogic.formula.inspect import describe
from dualogic.formula.node import Node
from dualogic.formula.symbol import Categorical, Mask, Variable

SURE = 50.0  # the logit of a class or a Boolean that is known


def check_truths(labels: Mapping[Any, Any], symbols: Mapping[str, Node], bound: Bound) -> dict[str, Tensor]:
    """The true values of symbols as tensors, after checks.

    By name: classes ``(batch, *shape)`` as integers for a categorical, 0 and 1 for a Boolean (where a negative one means that it
    is not known), numbers for a variable (where NaN means the same).
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
            raise BindingError(
                f"the labels of {name!r}, declared as {describe(symbol)}, must be {'integers' if classes else 'numbers'} of "
                f"shape {tuple(shape)}; got {truth.dtype} of shape {tuple(truth.shape)}"
            )
        count = symbol.size if isinstance(symbol, Categorical) else 2
        wrong = truth[truth >= count]
        if len(wrong) and not isinstance(symbol, Variable):
            raise BindingError(
                f"the labels of {name!r} must be below {count}, and negative where they are not known; got {wrong[0].item():g}"
            )
        truths[name] = truth
    return truths


def find_classes(truths: Mapping[str, Tensor], symbols: Mapping[str, Node]) -> tuple[Tensor | None, tuple[str, ...] | None]:
    """The classes by which a report is divided, with their names: those of the first labelled categorical without axes."""
    known = ((truth, symbols[name]) for name, truth in truths.items() if truth.dim() == 1)
    return next(((truth.long(), symbol.classes) for truth, symbol in known if isinstance(symbol, Categorical)), (None, None))


def read_labels(
    formula: Formula, truths: Mapping[str, Tensor], bound: Bound, tol: float, axes: tuple[int, ...] = ()
) -> tuple[Tensor, Tensor] | None:
    """Whether a formula is true by the labels of its symbols, for units of some axes; masks are as the model has them.

    Returns:
        Which samples have all labels, ``(batch,)``, and the truth, ``(batch, units)``; ``None`` if the labels of some symbol are
        missing.
    """
    symbols = formula.symbols
    if any(name not in truths for name, symbol in symbols.items() if not isinstance(symbol, Mask)):
        return None
    known = torch.ones(bound.batch, dtype=torch.bool, device=bound.device)
    tensors: dict[str, Tensor] = {}
    for name, symbol in symbols.items():
        if isinstance(symbol, Mask):
            tensors[name] = bound.tensors[name]
            continue
        truth = truths[name]
        there = ~truth.isnan() if isinstance(symbol, Variable) else truth >= 0
        known = known & there.flatten(1).all(1) if truth.dim() > 1 else known & there
        truth = torch.where(there, truth, 0)
        if isinstance(symbol, Categorical):
            truth = torch.nn.functional.one_hot(truth.long(), symbol.size)
        truth = truth.to(bound.dtype)
        logits = isinstance(symbol, (Categorical, Boolean)) and symbol.input == "logits"
        tensors[name] = (2 * truth - 1) * SURE if logits else truth
    found = is_satisfied(formula, tol, 0.0, tensors)
    while found.dim() < 1 + len(axes):
        found = found.unsqueeze(1)
    return known, found.expand(bound.batch, *axes).reshape(bound.batch, -1)


def count_labels(
    part: Connective, truths: Mapping[str, Tensor], bound: Bound, tol: float, observed: Observed, elsewhere: Tensor
) -> Iterator[tuple[str, Tensor]]:
    """What the labels say of an implication, as far as they are there; nothing of another connective.

    Yields:
        Names and sums over units. ``"labels"``, ``(batch, 3)``: units known, those whose antecedent is true by the labels, and of
        these those that the model reads so. ``"rule labels"``, ``(batch, 2)``: units whose antecedent is true by the labels and
        whose consequent is known, and of these those whose consequent is false. ``"consequent labels"``, ``(batch, 4)``: of the
        known units elsewhere: all, those with the consequent by the model, by the labels, and by both.
    """
    if part.antecedent is None or part.consequent is None:
        return
    antecedent = read_labels(part.antecedent, truths, bound, tol, observed.axes)
    consequent = read_labels(part.consequent, truths, bound, tol, observed.axes)
    if antecedent is not None:
        known, truth = antecedent
        units = observed.exists & known.unsqueeze(1)
        asked = truth & units
        yield "labels", torch.stack([units, asked, asked & ~observed.holds[..., 0]], -1).sum(1)
        if consequent is not None:
            asked = asked & consequent[0].unsqueeze(1)
            yield "rule labels", torch.stack([asked, asked & ~consequent[1]], -1).sum(1)
    if consequent is not None:
        known, truth = consequent
        units = elsewhere & known.unsqueeze(1)
        says = units & observed.decided[..., 1]
        yield "consequent labels", torch.stack([units, says, units & truth, says & truth], -1).sum(1)
