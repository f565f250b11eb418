"""Whether a rule that is violated still pulls at the network when all weights are equal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from dualogic.compile.plan import compile_rules
from dualogic.duals.rules import UPDATE_RULES
from dualogic.formula.atom import Boolean, BooleanExpression, ClassEqual, ClassIn
from dualogic.formula.connective import Cardinality, Formula
from dualogic.formula.function import Application
from dualogic.formula.node import Node, walk
from dualogic.formula.relation import ClassRelation
from dualogic.formula.shape import max_shape
from dualogic.formula.symbol import Categorical, Mask
from dualogic.lint.finding import Finding, found
from dualogic.lint.samples import Ranges, as_witness, draw_inputs
from dualogic.methods.mixture import Mixture

FLAT = 1e-9
NUDGE = 1e-3
LARGEST = 20_000_000  # how many numbers an evaluation may need
MOST_CLAUSES = 20_000
"""How many clauses a count such as ``ExactlyOne`` may be written out to; more take longer to compile than to ask about."""


def check_gradient(name: str, formula: Formula, ranges: Ranges) -> list[Finding]:
    """Look for inputs that violate a rule at a cost whose gradient is zero, as ``(s == 0) | (s == 1)`` does between 0 and 1."""
    nodes = walk(formula)
    costs = ["log"]
    if any(isinstance(node, (BooleanExpression, ClassIn, ClassEqual, ClassRelation)) for node in nodes):
        costs.append("probability")
    inputs = draw_inputs(formula, ranges)
    clauses = sum(math.comb(len(node.operands), node.bound + 1) for node in nodes if isinstance(node, Cardinality))
    if len(next(iter(inputs.values()))) * _size(nodes) > LARGEST or clauses > MOST_CLAUSES:
        return [found("unknown", (name,), f"rule {name!r}: its gradient was not looked at: the rule is too large")]
    for class_cost in costs:
        try:
            places = _flat_places(formula, inputs, class_cost)
        except Exception as error:
            if not any(isinstance(node, Application) for node in nodes):
                raise
            # A user's function may refuse the inputs drawn here.
            message = f"rule {name!r}: its gradient was not looked at: {type(error).__name__}: {error}"
            return [found("unknown", (name,), message)]
        if places:
            where = "while all weights are equal: nothing moves before the weights do"
            if class_cost == "probability":
                where += '. That is so with the option class_cost="probability" only; with its default there is nothing to do'
            message = f"rule {name!r} can be violated at a cost without gradient {where}"
            return [found("zero-gradient", (name,), message, as_witness(formula, inputs, places[0]))]
    return []


def _size(nodes: Iterable[Node]) -> int:
    """About how many numbers an evaluation needs for one input."""
    total = 0
    for node in nodes:
        entries = math.prod(max_shape(node.shape))
        classes = node.operand.symbol.size if isinstance(node, ClassIn) else 1
        if isinstance(node, ClassRelation):
            classes = sum(map(len, node.ranges)) * max(map(len, node.ranges))
        total += entries * (node.left.symbol.size**2 if isinstance(node, ClassEqual) else classes)
    return total


def _flat_places(formula: Formula, inputs: Mapping[str, Tensor], class_cost: str) -> list[int]:
    """The inputs that violate the rule and have no gradient, nor have inputs close by."""
    flat = _is_flat(formula, inputs, class_cost)
    if not flat.any():
        return []
    generator = torch.Generator().manual_seed(1)
    nudged = {
        name: value if value.dtype is torch.bool else _nudge(formula.symbols[name], value, generator)
        for name, value in inputs.items()
    }
    return (flat & _is_flat(formula, nudged, class_cost)).nonzero().flatten().tolist()


def _nudge(symbol: Any, value: Tensor, generator: torch.Generator) -> Tensor:
    noise = 1 + NUDGE * (torch.rand(value.shape, generator=generator, dtype=value.dtype) - 0.5)
    if isinstance(symbol, Categorical):
        return value * noise / (value * noise).sum(-1, keepdim=True)
    return value * noise if isinstance(symbol, Boolean) else value + NUDGE * (noise - 1)


def _is_flat(formula: Formula, inputs: Mapping[str, Tensor], class_cost: str) -> Tensor:
    """For each input whether the rule is violated and its mean cost has no gradient; ``(inputs,)``."""
    leaves: list[Tensor] = []
    bound: dict[str, Tensor] = {}
    for name, symbol in formula.symbols.items():
        if isinstance(symbol, Mask):
            bound[name] = inputs[name]
            continue
        # Networks are trained through logits, in which only differences of probabilities' gradients count.
        classes, logits = isinstance(symbol, Categorical), getattr(symbol, "input", "") == "logits"
        raw = inputs[name].log() if classes else inputs[name].logit() if isinstance(symbol, Boolean) else inputs[name]
        leaf = bound[name] = raw.detach().clone().requires_grad_()
        leaves.append(leaf)
        if isinstance(symbol, (Categorical, Boolean)) and not logits:
            bound[name] = leaf.softmax(-1) if classes else leaf.sigmoid()
    plan = compile_rules([("rule", formula)], class_cost)
    with torch.enable_grad():
        costs = plan.fold(plan.evaluate(plan.bind(bound, validate=False)), Mixture(UPDATE_RULES["softmax"], None)).squeeze(1)
        total = costs.sum().requires_grad_()  # of a rule that is all evidence it has no gradient
        slopes = torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)
    largest = torch.stack([slope.abs().flatten(1).amax(1) if slope.dim() > 1 else slope.abs() for slope in slopes]).amax(0)
    flat = costs.isfinite() & (costs > FLAT) & (largest < FLAT)
    if not flat.any():
        return flat
    detached: dict[str, Any] = {name: tensor.detach() for name, tensor in bound.items()}
    return flat & ~formula.satisfied(tol=1e-6, **detached)
