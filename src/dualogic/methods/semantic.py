"""The semantic loss: minus the logarithm of the probability that independent variables satisfy the rule."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from dualogic.methods.counting import CountingMethod


@dataclasses.dataclass(frozen=True)
class Semantic(CountingMethod):
    """The semantic loss, by exact weighted model counting.

    ``L = -log sum over x |= rule of prod over x_i = 1 of p_i prod over x_i = 0 of (1 - p_i)``: all variables are independent
    Bernoullis. A Boolean is one variable; a categorical is one for each class that the rule names, with that class's
    probability, so classes do not exclude each other here (``problog`` is the method where they do). The source conjoins nothing
    to the user's sentence; its classifier example has "exactly one class" as the sentence itself. ``exactly_one=True`` adds that
    sentence for every categorical in the rule. A class that is counted with, as in ``a + b == s``, has one value, so its classes
    exclude each other here too. Real-valued comparisons cannot be compiled.

    Source: Xu, Zhang, Friedman, Liang, Van den Broeck, "A semantic loss function for deep learning with symbolic knowledge",
    ICML 2018, definition 1. Needs ``pip install -e '.[sdd]'``.

    Args:
        exactly_one: require exactly one class of every categorical that the rule mentions.

    The other arguments are those of :class:`~dualogic.methods.counting.CountingMethod`.

    Example:
        >>> import dualogic as dl, torch
        >>> f = dl.categorical("f", 3)
        >>> p = torch.tensor([[0.5, 0.25, 0.25]])
        >>> dl.LogicLoss(f.isin([0, 1]), method="semantic")(f=p).neg().exp()  # 1 - 0.5 * 0.75
        tensor(0.6250)
        >>> dl.LogicLoss(f.isin([0, 1]), method="problog")(f=p).neg().exp()  # 0.5 + 0.25
        tensor(0.7500)
    """

    name: ClassVar[str] = "semantic"
    exclusive: ClassVar[bool] = False

    exactly_one: bool = False
