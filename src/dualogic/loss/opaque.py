"""A copy that a compiler can neither drop nor compute again.

``torch.compile`` may compute in the backward pass, from a graph's inputs, what it did not save in the forward pass, even when
the same graph has changed those inputs in the meantime: the gradient is then silently that of the *new* duals and delta. A copy
made by an operator that the compiler cannot look into is always saved.
"""

from __future__ import annotations

import torch
from torch import Tensor


@torch.library.custom_op("dualogic::snapshot", mutates_args=())
def snapshot(values: list[Tensor]) -> list[Tensor]:
    """Copies of the tensors, as they are at this moment of a compiled graph."""
    return [value.clone() for value in values]


@snapshot.register_fake
def _(values: list[Tensor]) -> list[Tensor]:
    return [torch.empty_like(value) for value in values]
