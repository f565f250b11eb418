"""Three ways to move the weights of a connective, in closed form.

A level with operand costs ``c``, weights ``w`` and combined cost ``m = sum(w c)`` gets the upstream derivative ``u`` of the
loss. Its weights ascend (``and``) or descend (``or``) on ``u m``. What a table stores differs by rule, but 0 always means
equal weights, so that a new table is all zeros.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dualogic import numerics


class UpdateRule:
    """How stored columns become weights, and how they move; operands are along dimension 1."""

    name: str
    stored: str
    shrinks = False
    """A step is proportional to the weight that moves, so that it shrinks with the number of operands."""
    rests = True
    """Where there is no slope there is no move, to the bit."""

    def weights(self, columns: Tensor, mask: Tensor | None) -> Tensor:
        """Weights ``(batch, k, *rest)`` that sum to 1 over the operands that exist."""
        raise NotImplementedError

    def move(self, columns: Tensor, weights: Tensor, slope: Tensor, centred: Tensor, mask: Tensor | None) -> Tensor:
        """What to add to the stored columns.

        ``slope`` is the step size times ``u``, to be broadcast over the operands; ``centred`` is ``c - m`` for an ``and``, ``m -
        c`` for an ``or``, and 0 where ``mask``, which operands exist, is false.
        """
        raise NotImplementedError

    def share(self, columns: Tensor, share: float, mask: Tensor | None) -> Tensor:
        """Columns whose weights are ``(1 - share) w + share / k``, for the weights ``w`` of these (Herbster and Warmuth 1998).

        The columns of operands that do not exist are left as they are. ``share`` is above 0.
        """
        raise NotImplementedError


class SoftmaxStep(UpdateRule):
    """A gradient step on softmax logits: ``logits += step * u * w * (c - m)`` (the default)."""

    name = "softmax"
    stored = "logits of weights"
    shrinks = True

    def weights(self, columns: Tensor, mask: Tensor | None) -> Tensor:
        if mask is not None:
            return numerics.masked_softmax(columns, mask, 1)
        if columns.dim() > 2 and columns.shape[2:].numel() == 1:
            # The same numbers along a last axis: several times faster on a CPU.
            return torch.softmax(columns.flatten(1), 1).view(columns.shape)
        if columns.shape[1] == 2 and columns.dim() > 2 and columns.device.type == "cpu":
            # Of two weights each is a sigmoid, which takes two thirds of the time where there are many.
            ahead = columns[:, :1] - columns[:, 1:]
            return torch.sigmoid(torch.cat([ahead, -ahead], 1))
        return torch.softmax(columns, 1)

    def move(self, columns: Tensor, weights: Tensor, slope: Tensor, centred: Tensor, mask: Tensor | None) -> Tensor:
        return slope * weights * centred

    def share(self, columns: Tensor, share: float, mask: Tensor | None) -> Tensor:
        weights = self.weights(columns, mask)
        if mask is None:
            logits = (weights + share / ((1.0 - share) * columns.shape[1])).log()
            return logits - logits.mean(1, keepdim=True)
        count = mask.sum(1, keepdim=True).clamp_min(1).to(weights.dtype)
        logits = (weights + share / ((1.0 - share) * count)).log().masked_fill(~mask, 0.0)
        return torch.where(mask, logits - logits.sum(1, keepdim=True) / count, columns)


class ExponentiatedStep(SoftmaxStep):
    """The exponentiated gradient: ``log w += step * u * (c - m)``, renormalised. Settled weights still move."""

    name = "exponentiated"
    shrinks = False

    def move(self, columns: Tensor, weights: Tensor, slope: Tensor, centred: Tensor, mask: Tensor | None) -> Tensor:
        return slope * centred


class ProjectedStep(UpdateRule):
    """A gradient step on the weights, projected back onto the simplex, as Algorithm 1 prints it.

    The table stores the weights' difference from equal ones.
    """

    name = "projected"
    stored = "differences from equal weights"
    rests = False

    def weights(self, columns: Tensor, mask: Tensor | None) -> Tensor:
        return numerics.project_to_simplex(columns + self._equal(columns, mask), 1, mask)

    def move(self, columns: Tensor, weights: Tensor, slope: Tensor, centred: Tensor, mask: Tensor | None) -> Tensor:
        target = numerics.project_to_simplex(weights + slope * centred, 1, mask)
        moved = target - self._equal(columns, mask) - columns
        return moved if mask is None else moved.masked_fill(~mask, 0.0)

    def share(self, columns: Tensor, share: float, mask: Tensor | None) -> Tensor:
        equal = self._equal(columns, mask)
        shared = (1.0 - share) * (self.weights(columns, mask) - equal)
        return shared if mask is None else torch.where(mask, shared, columns)

    @staticmethod
    def _equal(columns: Tensor, mask: Tensor | None) -> Tensor | float:
        if mask is None:
            return 1.0 / columns.shape[1]
        return mask.to(columns.dtype) / mask.sum(1, keepdim=True).clamp_min(1)


UPDATE_RULES: dict[str, UpdateRule] = {rule.name: rule for rule in (SoftmaxStep(), ExponentiatedStep(), ProjectedStep())}
