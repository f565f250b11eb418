"""How fast the weights of a connective settle at fixed costs, and how long they take to change their mind."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from dualogic.duals import UPDATE_RULES, UpdateRule
from dualogic.losses import truncated_normal_slope

CLOSE = 0.01  # how near to the optimum is near enough, as a share of the range of the costs
STEP = 0.2  # of the curves
CURVE = 10_000  # visits that curves show at most


def visit(rule: UpdateRule, columns: Tensor, costs: Tensor, step: Tensor, sign: Tensor) -> tuple[Tensor, Tensor]:
    """The new columns and weights ``(settings, operands)`` after one visit of a sample, with ``delta = 1``; a sign is 1 for
    ``and``, which ascends, and -1 for ``or``.
    """
    weights = rule.weights(columns, None)
    combined = (weights * costs).sum(1, keepdim=True)
    slope = step * truncated_normal_slope(combined, torch.ones_like(combined))
    columns = columns + rule.move(columns, weights, slope, sign * (costs - combined), None)
    return columns, rule.weights(columns, None)


def measure_dual_steps(limit: int, steps: Sequence[float] = (0.05, 0.2, 1.0, 5.0)) -> dict[str, Any]:
    """Count visits under each update rule, for some sizes of the dual step; counting ends at a limit."""
    settle = [row for name in UPDATE_RULES for row in _settle(name, limit, steps)]
    reverse = [row for name in UPDATE_RULES for row in _reverse(name, limit, steps)]
    return {"limit": limit, "close": CLOSE, "delta": 1.0, "settle": settle, "reverse": reverse, **_curves(min(limit, CURVE))}


def _count_visits(
    name: str, columns: Tensor, costs: Tensor, step: Tensor, sign: Tensor, limit: int, reached: Callable[[Tensor], Tensor]
) -> list[int | None]:
    """Visits until the weights ``(settings, operands)`` of each setting have reached something; ``None`` past the limit."""
    visits = torch.zeros(len(costs), dtype=torch.long)
    for number in range(1, limit + 1):
        columns, weights = visit(UPDATE_RULES[name], columns, costs, step, sign)
        visits = torch.where((visits == 0) & reached(weights), number, visits)
        if visits.all():
            break
    return [count or None for count in visits.tolist()]


def _settle(name: str, limit: int, steps: Sequence[float]) -> list[dict[str, Any]]:
    """From equal weights, with costs evenly spaced on [0, 1], until the combined cost is near the optimum."""
    found = []
    for operands in (2, 5):
        settings = list(itertools.product("&|", steps))
        costs = torch.linspace(0, 1, operands, dtype=torch.float64).expand(len(settings), -1)
        sign = _columns([1.0 if operation == "&" else -1.0 for operation, _ in settings])
        step = _columns([size for _, size in settings])

        def is_close(weights: Tensor, costs: Tensor = costs, sign: Tensor = sign) -> Tensor:
            combined = (weights * costs).sum(1)
            return torch.where(sign.squeeze(1) > 0, 1 - combined, combined) <= CLOSE

        visits = _count_visits(name, torch.zeros_like(costs), costs, step, sign, limit, is_close)
        for (operation, size), count in zip(settings, visits):
            found.append({"rule": name, "operation": operation, "operands": operands, "step": size, "visits": count})
    return found


def _reverse(name: str, limit: int, steps: Sequence[float]) -> list[dict[str, Any]]:
    """From a weight on the wrong one of two operands (costs 0 and 1) until the other has more."""
    settings = list(itertools.product("&|", steps, (0.9, 0.98, 0.9997)))
    sign = _columns([1.0 if operation == "&" else -1.0 for operation, _, _ in settings])
    step, start = _columns([size for _, size, _ in settings]), _columns([weight for _, _, weight in settings])
    weights = torch.cat([start, 1 - start], dim=1)
    columns = weights - 0.5 if name == "projected" else weights.log()
    # An `and` should weigh the larger cost, an `or` the smaller one.
    costs = torch.where(sign > 0, torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0]])).double()
    visits = _count_visits(name, columns, costs, step, sign, limit, lambda weights: weights[:, 1] > 0.5)
    return [
        {"rule": name, "operation": operation, "step": size, "start": weight, "visits": count}
        for (operation, size, weight), count in zip(settings, visits)
    ]


def _curves(limit: int) -> dict[str, Any]:
    """The distance from the optimum over visits, for an ``and`` of two operands and steps of ``STEP``."""
    looks = sorted({round(limit ** (position / 60)) for position in range(61)})
    costs = torch.tensor([[0.0, 1.0]], dtype=torch.float64)
    one = torch.ones(1, 1, dtype=torch.float64)
    curves = {}
    for name, rule in UPDATE_RULES.items():
        columns, distances = torch.zeros_like(costs), []
        for number in range(1, limit + 1):
            columns, weights = visit(rule, columns, costs, STEP * one, one)
            if number in looks:
                distances.append(weights[0, 0].item())
        curves[name] = distances
    return {"looks": looks, "curves": curves}


def _columns(numbers: Sequence[float]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64).unsqueeze(1)
