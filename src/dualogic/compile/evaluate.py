"""Values of a formula without any learned state: the cost at the optimal duals, and whether it holds."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from dualogic.arguments import check_choice, check_named, check_tolerances
from dualogic.compile.extreme import take_extreme
from dualogic.compile.plan import compile_rules
from dualogic.compile.tree import Level
from dualogic.formula.connective import Formula

CLASS_COSTS = ("probability", "log")


def optimal_cost(formula: Formula, class_cost: str, tensors: Mapping[str, Any]) -> Tensor:
    """Maximum over ``and``, minimum over ``or``; ``(batch, *formula.shape)``."""
    check_named("cost", class_cost)
    check_choice("class_cost", class_cost, CLASS_COSTS)
    plan = compile_rules([("rule", formula)], class_cost)
    bound = plan.bind(tensors, validate=True)
    with autocast_off(bound.device):
        return plan.fold(plan.evaluate(bound), take_extreme).squeeze(1)


def is_satisfied(formula: Formula, tol: float, lead: float, tensors: Mapping[str, Any]) -> Tensor:
    """Whether the formula holds; a bool tensor ``(batch, *formula.shape)``."""
    check_named("satisfied", tol)
    return are_satisfied({"rule": formula}, tol, lead, tensors).squeeze(1)


def are_satisfied(rules: Mapping[str, Formula], tol: float, lead: float, tensors: Mapping[str, Any]) -> Tensor:
    """Whether formulas of one shape hold; a bool tensor ``(batch, rules, *shape)``."""
    tol, lead = check_tolerances(tol, lead)
    plan = compile_rules(rules.items(), "truth")
    bound = plan.bind(tensors, validate=True)
    with torch.no_grad(), autocast_off(bound.device):
        return plan.fold(plan.evaluate(bound, tol, lead), decide)


def decide(level: Level, values: Tensor, mask: Tensor | None, extent: tuple[int, ...]) -> Tensor:
    """Plain logic."""
    if level.operation == "&":
        return (values if mask is None else values | ~mask).all(1)
    return (values if mask is None else values & mask).any(1)


def autocast_off(device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """Costs need full precision whatever the network runs in."""
    if torch.is_autocast_enabled(device.type):
        return torch.autocast(device.type, enabled=False)
    return contextlib.nullcontext()
