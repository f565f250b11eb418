"""Whether gradient steps on the weights and on ``delta`` in turn come to rest, cycle or run away, for a grid of step sizes."""

import collections
from typing import Any

import torch
from torch import Tensor

from dualogic_paper.convergence.problem import SmoothProblem, make_problem

CONVERGED, CYCLE, WANDERING, DIVERGED = "converged", "cycle", "wandering", "diverged"
CLASSES = (CONVERGED, CYCLE, WANDERING, DIVERGED)
TAIL = 256  # last iterates, by which a run is judged
LONGEST = 64  # the longest period looked for
FAR = 1e6
FLOOR = 0.1  # the least ``delta`` here; the paper's variance of 0.01


def scan_steps(points: int, iterations: int, problems: int, samples: int = 16, parameters: int = 3) -> dict[str, Any]:
    """Alternate ``w <- w - a grad_w`` and ``delta <- max(floor, delta - b grad_delta)`` for a grid of ``a`` and ``b``.

    ``stable`` says whether the iteration, linearised at the minimum, contracts. The same steps ``a`` are also taken with
    ``delta`` at its exact minimum after each (``exact``).
    """
    weight_steps = torch.logspace(-2, 1, points, dtype=torch.float64)
    delta_steps = torch.logspace(-3, 1, points, dtype=torch.float64)
    a, b = (side.flatten() for side in torch.meshgrid(weight_steps, delta_steps, indexing="ij"))
    found = []
    for seed in range(problems):
        problem = make_problem(samples, parameters, seed, floor=FLOOR)
        kinds, periods = zip(*(classify(tail) for tail in _descend(problem, a, b, iterations)))
        stable = (contraction(problem, a, b, *find_minimum(problem)) < 1).tolist()
        exact = [classify(tail)[0] for tail in _descend(problem, weight_steps, None, iterations // 2)]
        seen = collections.Counter(zip(stable, kinds))
        halves = {"stable": True, "unstable": False}
        count = {label: {kind: seen[wanted, kind] for kind in CLASSES} for label, wanted in halves.items()}
        flat = {"kinds": kinds, "periods": periods, "stable": stable}
        grids = {name: [list(side[row : row + points]) for row in range(0, len(side), points)] for name, side in flat.items()}
        found.append({"seed": seed, **grids, "exact": exact, "count": count})
    settings = {"samples": samples, "parameters": parameters, "iterations": iterations, "floor": FLOOR}
    return {**settings, "weight_steps": weight_steps.tolist(), "delta_steps": delta_steps.tolist(), "problems": found}


def _descend(problem: SmoothProblem, a: Tensor, b: Tensor | None, iterations: int) -> Tensor:
    """The last iterates ``(chains, TAIL, parameters + 1)``; without ``b`` of the weights alone, ``delta`` at its minimum."""
    weights, delta = problem.start(len(a)), torch.ones(len(a), dtype=torch.float64)
    tail = []
    for iteration in range(iterations):
        slope = problem.reduced_gradient(weights) if b is None else problem.gradient(weights, delta)
        weights = weights - a.unsqueeze(1) * slope
        if b is not None:
            delta = (delta - b * problem.delta_gradient(problem.costs(weights), delta)).clamp_min(FLOOR)
        if iteration >= iterations - TAIL:
            tail.append(weights if b is None else torch.cat([weights, delta.unsqueeze(1)], dim=1))
    return torch.stack(tail, dim=1)


def classify(tail: Tensor) -> tuple[str, int]:
    """What the end of a run ``(iterates, numbers)`` looks like, and its period (1 where it rests, 0 where there is none)."""
    if not bool(torch.isfinite(tail).all()) or tail.abs().max() > FAR:
        return DIVERGED, 0
    size = 1 + tail.abs().max().item()
    if (tail - tail[-1]).abs().max() < 1e-6 * size:
        return CONVERGED, 1
    for period in range(2, min(LONGEST, len(tail) // 2) + 1):
        if (tail[period:] - tail[:-period]).abs().max() < 1e-6 * size:
            return CYCLE, period
    return WANDERING, 0


def find_minimum(problem: SmoothProblem) -> tuple[Tensor, Tensor]:
    """The weights ``(parameters,)`` and ``delta`` that small steps end at."""
    weights = problem.start(1)
    for _ in range(600):
        weights = weights - 0.05 * problem.reduced_gradient(weights)
    return weights[0], problem.delta("exact", problem.costs(weights))[0]


def contraction(problem: SmoothProblem, a: Tensor, b: Tensor, weights: Tensor, delta: Tensor) -> Tensor:
    """The largest modulus ``(chains,)`` of an eigenvalue of the iteration, linearised at a point; below 1 it contracts."""

    def loss(point: Tensor) -> Tensor:
        return problem.loss(point[:-1].unsqueeze(0), point[-1:])[0]

    hessian: Tensor = torch.autograd.functional.hessian(loss, torch.cat([weights, delta.view(1)]))
    size = len(hessian)
    identity = torch.eye(size, dtype=torch.float64)
    on_weights, on_delta = torch.ones(size, 1, dtype=torch.float64), torch.zeros(size, 1, dtype=torch.float64)
    on_weights[-1], on_delta[-1] = 0, 1
    first = identity - a.view(-1, 1, 1) * on_weights * hessian
    second = identity - b.view(-1, 1, 1) * on_delta * hessian
    largest: Tensor = torch.linalg.eigvals(second @ first).abs().amax(1)
    return largest
