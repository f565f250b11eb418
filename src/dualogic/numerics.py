"""Delicate arithmetic in one place: logarithms, Gaussian tails and softmaxes at the extremes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import TransformType
from torch.autograd import forward_ad

SQRT_HALF = math.sqrt(0.5)
INVERSE_SQRT_TWO_PI = 1.0 / math.sqrt(2.0 * math.pi)
MANY = 1024
"""From so many numbers on, several quick operations on a CPU take less time than a slow one."""
_LARGEST = {dtype: torch.finfo(dtype).max for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16)}
LARGEST_ROOTS = {dtype: math.pow(largest, 0.4) for dtype, largest in _LARGEST.items()}
"""Bounds for costs, such that their squares are finite with room to be divided by small scales."""


def wide(mask: Tensor) -> Tensor:
    """A mask of samples ``(batch,)`` as ``(batch, 1)``; one of more is left alone."""
    return mask if mask.dim() > 1 else mask.unsqueeze(1)


def is_transformed() -> bool:
    """Whether a transformation of torch's is at work that knows neither custom functions nor a tensor's numbers."""
    return torch.compiler.is_compiling() or is_followed()


def is_followed() -> bool:
    """Whether derivatives may be taken of tensors that do not say so: in a transformation of torch's, or forward in its tape."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def is_mapped() -> bool:
    """Whether ``torch.vmap`` is at work, in which no tensor can be read."""
    stack = not torch.compiler.is_compiling() and torch._C._functorch.get_interpreter_stack()
    return any(each.key() == TransformType.Vmap for each in stack or ())


def negative_log(probability: Tensor) -> Tensor:
    """``-log p`` of any shape, never negative and finite at 0: at most ``-log`` of the smallest normal number (87 in float32)."""
    if is_transformed() or not probability.requires_grad:
        return _negative_log(probability)
    return _NegativeLog.apply(probability)  # type: ignore[no-any-return, no-untyped-call]


def _negative_log(probability: Tensor) -> Tensor:
    return -torch.log(probability.clamp(torch.finfo(probability.dtype).tiny, 1.0))


class _NegativeLog(torch.autograd.Function):
    """The same, with a derivative of fewer operations: ``-1/p``, and 0 where ``p`` is clamped at its lower end."""

    @staticmethod
    def forward(ctx: Any, probability: Tensor) -> Tensor:
        ctx.save_for_backward(probability)
        return _negative_log(probability)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (probability,) = ctx.saved_tensors
        slope: Tensor = -gradients[0] / probability
        return slope.masked_fill(probability < torch.finfo(probability.dtype).tiny, 0.0)


def tame(function: Callable[[Any, Any], Tensor], left: Any, right: Any) -> Tensor:
    """A quotient or a power, through which no gradient passes where it or its slope is infinite: times 0 that would be NaN."""
    result = function(left, right)
    if not (result.requires_grad or is_transformed()):
        return result
    wild = ~torch.isfinite(result.detach()) | (function is operator.pow and (left == 0) & (right < 1))
    sides = [torch.where(wild, 1.0, side) if isinstance(side, Tensor) else side for side in (left, right)]
    return torch.where(wild, result.detach(), function(*sides))


def hold_back(value: Tensor, share: float, believed: Tensor | None = None) -> Tensor:
    """The same value, or by its share what is believed, with a gradient that is smaller by this share: at 1 nothing passes."""
    if believed is None:
        believed = value
    if share == 1.0:
        return believed.detach()
    if believed is value and not (value.requires_grad or is_transformed()):
        return value
    # Between a number and itself: exact, in one operation that every transformation of torch knows. Between infinities it is NaN.
    between, mean = torch.lerp(value, believed.detach(), share), value * (1.0 - share) + believed.detach() * share
    return torch.where(mean.isinf(), mean, between)


def log_normal_cdf(x: Tensor) -> Tensor:
    """``log Phi(x)`` for ``x >= 0``, accurate to the last digits where ``Phi`` is close to 1."""
    if x.device.type == "cpu" and x.numel() >= MANY and not torch.compiler.is_compiling():
        # As accurate, and of vectorised operations.
        return torch.log1p(torch.erfc(x * SQRT_HALF) * -0.5)
    result: Tensor = torch.special.log_ndtr(x)
    return result


def inverse_mills(x: Tensor) -> Tensor:
    """``phi(x) / Phi(x)`` for ``x >= 0``: the derivative of :func:`log_normal_cdf`."""
    return INVERSE_SQRT_TWO_PI * torch.exp(-0.5 * x * x) / (1.0 - 0.5 * torch.erfc(x * SQRT_HALF))


def narrower(one: torch.dtype, other: torch.dtype) -> torch.dtype:
    """Of two floating point types the one whose numbers end first."""
    return one if one is other or _LARGEST[one] <= _LARGEST[other] else other


def largest_move(dtype: torch.dtype) -> float:
    """A bound for what a step adds to a stored number, such that a million of them in a row stay finite."""
    return math.ldexp(_LARGEST[dtype], -20)


def masked_softmax(logits: Tensor, mask: Tensor, dim: int) -> Tensor:
    """Softmax over the entries where ``mask`` holds; zeros elsewhere, and everywhere if no entry is left."""
    return torch.softmax(logits.masked_fill(~mask, -torch.inf), dim).masked_fill(~mask, 0.0)


def project_to_simplex(point: Tensor, dim: int, mask: Tensor | None = None) -> Tensor:
    """The nearest point of the probability simplex along ``dim`` (Duchi et al. 2008), within ``mask``.

    Example:
        >>> import torch
        >>> project_to_simplex(torch.tensor([0.5, 0.7, -0.4]), dim=0)
        tensor([0.4000, 0.6000, 0.0000])
    """
    values = point.movedim(dim, -1)
    if values.shape[-1] == 0:
        return point
    if mask is not None:
        # Far below every other entry, so that it ends at 0; infinities would spoil the running sum.
        low = values.amin(-1, keepdim=True) - 2.0
        values = torch.where(mask.movedim(dim, -1), values, low)
    ordered = values.sort(-1, descending=True).values
    count = torch.arange(1, values.shape[-1] + 1, device=values.device, dtype=values.dtype)
    shift = (ordered.cumsum(-1) - 1.0) / count
    active = (ordered > shift).to(values.dtype).sum(-1, keepdim=True).clamp_min(1.0)
    threshold = shift.gather(-1, active.long() - 1)
    projected = torch.relu(values - threshold)
    if mask is not None:
        projected = projected * mask.movedim(dim, -1)
    return projected.movedim(-1, dim)


def product(values: Tensor) -> Tensor:
    """The product of ``(batch, k, ...)`` along axis 1, by multiplying halves; ones if ``k`` is 0.

    The same as ``values.prod(1)``, whose backward pass looks for zeros and so waits for the device at every step, which also
    forbids recording it in a CUDA graph.
    """
    count = values.shape[1]
    if not count:
        return values.prod(1)
    while count > 2:
        half = count // 2
        paired = values.narrow(1, 0, half) * values.narrow(1, half, half)
        values = paired if count == 2 * half else torch.cat([paired, values.narrow(1, count - 1, 1)], dim=1)
        count = values.shape[1]
    return torch.mul(*values.unbind(1)) if count == 2 else values.squeeze(1)
