"""A small smooth problem that meets the assumptions of Theorem 3, with its gradients in closed form."""

import dataclasses

import torch
from torch import Tensor

from dualogic.losses import DELTA_RULES, truncated_normal_loss, truncated_normal_slope


@dataclasses.dataclass(frozen=True)
class SmoothProblem:
    """Logistic regression under a rule that no weights can meet.

    The rule says ``v <= 0`` for ``v = scale r^2 / (1 + r^2)`` with ``r`` a linear function of the weights, different for each
    sample: its cost is smooth, not convex, bounded, and cannot vanish. Many chains are run at a time, in float64.
    """

    inputs: Tensor  # of the task ``(samples, parameters)``
    labels: Tensor  # 0 or 1 ``(samples,)``
    directions: Tensor  # of the rule ``(samples, parameters)``
    offsets: Tensor  # of the rule ``(samples,)``
    scale: float | Tensor = 1.0  # the unit of the cost; one number, or one for each chain ``(chains, 1)``
    floor: float = 0.01  # the least ``delta``

    def residuals(self, weights: Tensor) -> Tensor:
        """``r`` for weights ``(chains, parameters)``: ``(chains, samples)``."""
        return weights @ self.directions.T - self.offsets

    def costs(self, weights: Tensor) -> Tensor:
        """``mu`` for weights ``(chains, parameters)``: ``(chains, samples)``."""
        squares = self.residuals(weights).square()
        return self.scale * squares / (1 + squares)

    def delta(self, rule: str, costs: Tensor) -> Tensor:
        """The scale by one of dualogic's rules from costs ``(chains, samples)``: ``(chains,)``."""
        return DELTA_RULES[rule](costs.T, torch.tensor(float(costs.shape[1]))).clamp_min(self.floor)

    def gradient(self, weights: Tensor, delta: Tensor, shares: Tensor | None = None) -> Tensor:
        """The derivative of the loss by the weights; ``shares`` are the samples' ``(chains, samples)``, equal by default."""
        share = 1 / len(self.labels) if shares is None else shares
        task = torch.sigmoid(weights @ self.inputs.T) - self.labels
        residuals = self.residuals(weights)
        denominator = 1 + residuals.square()
        costs = self.scale * residuals.square() / denominator
        bend = self.scale * 2 * residuals / denominator.square()
        rule = truncated_normal_slope(costs, delta.unsqueeze(1)) * bend
        return (share * task) @ self.inputs + (share * rule) @ self.directions

    def delta_gradient(self, costs: Tensor, delta: Tensor) -> Tensor:
        """The derivative of the loss with respect to ``delta``: ``(chains,)``."""
        delta = delta.unsqueeze(1)
        return ((1 - costs * truncated_normal_slope(costs, delta)) / delta).mean(1)

    def loss(self, weights: Tensor, delta: Tensor) -> Tensor:
        """Of the task and the rule, averaged over samples: ``(chains,)``."""
        scores = weights @ self.inputs.T
        task = torch.nn.functional.softplus(scores) - self.labels * scores
        return (task + truncated_normal_loss(self.costs(weights), delta.unsqueeze(1))).mean(1)

    def reduced_gradient(self, weights: Tensor) -> Tensor:
        """The gradient of ``min over delta`` of the loss, which Theorem 3 is about: ``(chains, parameters)``."""
        return self.gradient(weights, self.delta("exact", self.costs(weights)))

    def start(self, chains: int) -> Tensor:
        """The same first weights for each chain."""
        return torch.ones(chains, self.inputs.shape[1], dtype=torch.float64)


def make_problem(samples: int, parameters: int, seed: int, scale: float | Tensor = 1.0, floor: float = 0.01) -> SmoothProblem:
    """Draw a problem; see :class:`SmoothProblem`."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    inputs, directions = normal(samples, parameters), normal(samples, parameters)
    labels = (inputs @ normal(parameters) + normal(samples) > 0).double()
    return SmoothProblem(inputs, labels, directions, 0.5 * normal(samples), scale, floor)
