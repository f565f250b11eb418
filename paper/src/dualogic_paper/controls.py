"""What people use in the place of a rule that asks for certainty, on the same unlabelled samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dualogic.errors import OptionError
from dualogic_paper.arms import FIXMATCH
from dualogic_paper.tasks.task import Problem

SURE = 0.95
"""The probability from which FixMatch takes a superclass for true."""

Control = Callable[..., Tensor]


def make_control(name: str, problem: Problem, weight: float) -> Control:
    """A loss of table rows and bound tensors, called as a :class:`~dualogic.LogicLoss` is.

    By ``"entropy"`` what the network believes is made certain, whatever it is; by ``"fixmatch"`` superclasses that are believed
    firmly are taken for labels. The problem says which symbol is bound to logits, and which classes make up a superclass.
    """
    symbol, groups = problem.beliefs, problem.groups
    if symbol is None or (name == FIXMATCH and groups is None):
        what = "superclasses" if symbol is not None else "logits"
        raise OptionError(f"the task has no {what} that --method {name} could work on; leave it out")

    def lose(rows: Tensor, *, believe: dict[str, Tensor] | None = None, **bound: Any) -> Tensor:
        taught = bound[symbol].float()
        if groups is None or name != FIXMATCH:
            return weight * entropy(taught).mean()
        believed = bound if believe is None else believe
        return weight * fixmatch(taught, believed[symbol].detach().float(), groups).mean()

    return lose


def entropy(logits: Tensor) -> Tensor:
    """Of each sample, ``(batch, classes)`` to ``(batch,)``, in nats."""
    # torch.distributions checks its arguments, for which a recorded step cannot wait.
    logarithms = torch.log_softmax(logits, -1)
    return -(logarithms.exp() * logarithms).sum(-1)


def fixmatch(taught: Tensor, believed: Tensor, groups: Tensor) -> Tensor:
    """FixMatch on superclasses (Sohn et al., 2020): cross entropy with what is believed firmly, 0 elsewhere.

    From logits ``(views * batch, classes)`` that are taught and ``(batch, classes)`` that are believed, and ``groups``
    ``(classes, superclasses)`` of 0 and 1, to ``(views * batch,)``; views are one block after the other.

    Example:
        >>> groups = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        >>> logits = torch.tensor([[0.0, 0.0, 0.0], [5.0, 5.0, 0.0]])
        >>> fixmatch(torch.zeros(2, 3), logits, groups).exp()
        tensor([1.0000, 1.5000])
    """
    views = len(taught) // len(believed)
    surest, superclass = (believed.softmax(-1) @ groups).max(-1)
    inside = groups[:, superclass.repeat(views)].t() > 0
    logarithms = torch.log_softmax(taught, -1)
    losses = -torch.where(inside, logarithms, -torch.inf).logsumexp(-1)
    return torch.where((surest >= SURE).repeat(views), losses, 0.0)
