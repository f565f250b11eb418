"""How the gradient of the whole loss falls with the iterations (Theorem 3), and where it settles, for each rule for ``delta``."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dualogic_paper.convergence.problem import SmoothProblem, make_problem

GAMMA = 0.5  # factor of the step sizes
LOOKS = 64  # iterates of a run whose gradient is measured; the theorem's output is one drawn at random


@dataclasses.dataclass(frozen=True)
class Variant:
    """How a run is made."""

    delta: str  # the rule for the scale
    costs: str = "all"  # from which it is computed: all samples' (as the theorem assumes) or a ``"batch"``'s (as in training)
    steps: str = "constant"  # ``gamma / sqrt(T + 1)`` as in the theorem, or ``"decreasing"``, ``gamma / sqrt(t + 1)``
    scale: float = 1.0  # the unit of the costs


VARIANTS = (
    Variant("exact"),
    Variant("exact", steps="decreasing"),
    Variant("exact", costs="batch"),
    Variant("square"),
    Variant("mean"),
    Variant("mean", scale=0.1),
)


def measure_rates(horizons: Sequence[int], seeds: int, batch: int = 8, samples: int = 32, parameters: int = 3) -> dict[str, Any]:
    """Run each variant for each number of iterations, and fit the slope on logarithmic scales.

    Theorem 3 bounds the expected squared gradient of a Moreau envelope at an iterate drawn at random by a multiple of
    ``1 / sqrt(T + 1)``: a slope of -1/2. Of a smooth loss the gradient itself is within a constant factor, and is measured.
    """
    runner = Chains(VARIANTS, seeds, batch, samples, parameters)
    squares = torch.stack([runner.run(horizon) for horizon in horizons])
    found = []
    for variant, measured in zip(VARIANTS, squares.unbind(1)):
        slopes = fit_slopes(horizons, measured)
        fit = {"slope": slopes.mean().item(), "slope_error": (slopes.std() / len(slopes) ** 0.5).item()}
        found.append({**dataclasses.asdict(variant), "mean_square": measured.mean(1).tolist(), **fit})
    settings = {"samples": samples, "parameters": parameters, "batch": batch, "gamma": GAMMA, "seeds": seeds}
    return {**settings, "horizons": list(horizons), "runs": found}


class Chains:
    """Stochastic gradient descent for several variants and seeds at a time; all variants of a seed see the same batches."""

    def __init__(self, variants: Sequence[Variant], seeds: int, batch: int, samples: int, parameters: int) -> None:
        self.variants, self.seeds, self.batch = variants, seeds, batch
        scale = self._spread(lambda variant: variant.scale)
        self.problem: SmoothProblem = make_problem(samples, parameters, seed=0, scale=scale)
        self.decreasing = self._spread(lambda variant: variant.steps == "decreasing")
        self.by_batch = self._spread(lambda variant: variant.costs == "batch").bool().squeeze(1)
        rules = [variant.delta for variant in variants for _ in range(seeds)]
        self.members = {rule: torch.tensor([rule == other for other in rules]).nonzero().squeeze(1) for rule in set(rules)}

    def _spread(self, value: Any) -> Tensor:
        """A number for each chain, ``(variants * seeds, 1)``."""
        return torch.tensor([[float(value(one))] for one in self.variants for _ in range(self.seeds)], dtype=torch.float64)

    def run(self, horizon: int) -> Tensor:
        """The mean squared gradient of the whole loss over iterates, ``(variants, seeds)``."""
        problem, samples, repeat = self.problem, len(self.problem.labels), (len(self.variants), 1)
        generator = torch.Generator().manual_seed(horizon)
        weights = problem.start(len(self.decreasing))
        delta = torch.ones(len(weights), dtype=torch.float64)
        total, looks = torch.zeros_like(delta), 0
        for iteration in range(horizon):
            if iteration % max(1, horizon // LOOKS) == 0:
                total += problem.reduced_gradient(weights).square().sum(1)
                looks += 1
            drawn, other = torch.randint(samples, (2, self.seeds, self.batch), generator=generator)
            shares = torch.zeros(self.seeds, samples, dtype=torch.float64)
            shares.scatter_add_(1, drawn, torch.full(drawn.shape, 1 / self.batch, dtype=torch.float64))
            done = self.decreasing * iteration + (1 - self.decreasing) * horizon
            weights = weights - GAMMA / (done + 1).sqrt() * problem.gradient(weights, delta, shares.repeat(repeat))
            delta = self._next_delta(problem.costs(weights), other.repeat(repeat))
        return (total / looks).view(len(self.variants), self.seeds)

    def _next_delta(self, costs: Tensor, batch: Tensor) -> Tensor:
        # A batch's costs, repeated as often as fills the row, have the batch's own scale.
        repeated = costs.gather(1, batch.repeat(1, costs.shape[1] // self.batch))
        costs = torch.where(self.by_batch.unsqueeze(1), repeated, costs)
        delta = torch.empty(len(costs), dtype=torch.float64)
        for rule, members in self.members.items():
            delta[members] = self.problem.delta(rule, costs[members])
        return delta


def fit_slopes(horizons: Sequence[int], squares: Tensor) -> Tensor:
    """Slopes of ``log squares`` ``(horizons, seeds)`` over ``log(T + 1)``, by least squares on the upper half of the horizons."""
    upper = 0 if len(horizons) < 4 else len(horizons) // 2
    x = torch.tensor(horizons[upper:], dtype=torch.float64).add(1).log()
    y = squares[upper:].log()
    x = x - x.mean()
    return (x.unsqueeze(1) * (y - y.mean(0))).sum(0) / x.square().sum()


RULES = ("exact", "square", "mean")
STEP = 0.02


def measure_plateaus(
    iterations: int, scales: Sequence[float] = (0.1, 1.0, 10.0), samples: int = 32, parameters: int = 3
) -> dict[str, Any]:
    """Descend on all samples with a small constant step, and look at the gradient of the loss minimised over ``delta``.

    ``settled`` is the gradient by which the weights move, with ``delta`` as the rule sets it; where it is 0 and ``gradient`` is
    not, the iteration rests at a point that is not stationary. ``ratio`` is ``delta`` over the exact minimiser, ``excess`` the
    loss above that of the exact rule.
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
    found = [
        {
            "delta": rule,
            "scale": unit,
            "gradient": curves[-1][position],
            "settled": problem.gradient(weights, delta)[position].norm().item(),
            "ratio": (delta[position] / best[position]).item(),
            "excess": (losses[position] - losses[position - position % len(RULES)]).item(),
            "curve": [row[position] for row in curves],
        }
        for position, (rule, unit) in enumerate(pairs)
    ]
    return {"samples": samples, "parameters": parameters, "step": STEP, "iterations": looks, "runs": found}
