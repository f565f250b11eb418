"""Where gradient descent settles when ``delta`` follows each rule: without noise, and in three units of the cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dualogic_paper.convergence.problem import make_problem

RULES = ("exact", "square", "mean")
STEP = 0.02


def measure_plateaus(
    iterations: int, scales: Sequence[float] = (0.1, 1.0, 10.0), samples: int = 32, parameters: int = 3
) -> dict[str, Any]:
    """Descend on all samples with a small constant step, and look at the gradient of the loss minimised over ``delta``.

    ``settled`` is the gradient by which the weights move, with ``delta`` as the rule sets it; where it is 0 and ``gradient`` is
    not, the iteration has come to rest at a point that is not stationary. ``ratio`` is ``delta`` over the exact minimiser, and
    ``excess`` the loss above that of the exact rule, both losses minimised over ``delta``. Scales are units of the cost; the
    loss, minimised over ``delta``, does not depend on them.
    """
    pairs = [(rule, scale) for scale in scales for rule in RULES]
    scale = torch.tensor([[scale] for _, scale in pairs], dtype=torch.float64)
    problem = make_problem(samples, parameters, seed=0, scale=scale)
    members = {rule: torch.arange(position, len(pairs), len(RULES)) for position, rule in enumerate(RULES)}
    weights = problem.start(len(pairs))
    delta = torch.ones(len(pairs), dtype=torch.float64)
    looks = sorted({round(iterations ** (position / 40)) for position in range(41)})
    curves = []
    for iteration in range(1, iterations + 1):
        weights = weights - STEP * problem.gradient(weights, delta)
        costs = problem.costs(weights)
        for rule, rows in members.items():
            delta[rows] = problem.delta(rule, costs[rows])
        if iteration in looks:
            curves.append(problem.reduced_gradient(weights).norm(dim=1).tolist())
    best = problem.delta("exact", costs)
    losses = problem.loss(weights, best)
    found = []
    for position, (rule, unit) in enumerate(pairs):
        found.append(
            {
                "delta": rule,
                "scale": unit,
                "gradient": curves[-1][position],
                "settled": problem.gradient(weights, delta)[position].norm().item(),
                "ratio": (delta[position] / best[position]).item(),
                "excess": (losses[position] - losses[position - position % len(RULES)]).item(),
                "curve": [row[position] for row in curves],
            }
        )
    return {"samples": samples, "parameters": parameters, "step": STEP, "iterations": looks, "runs": found}
