"""The probability of a rule under independent annotated disjunctions, as in DeepProbLog."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from dualogic.methods.counting import CountingMethod


@dataclasses.dataclass(frozen=True)
class ProbLog(CountingMethod):
    """Maximise the probability of the rule, with classes that exclude each other.

    ``L = -log P(rule)``, where each categorical is one annotated disjunction ``p_1 :: f = 1; ...; p_k :: f = k`` that is drawn
    independently of all others, and each Boolean a probabilistic fact. This is what DeepProbLog's exact engine computes for a
    query that is the rule; here by a circuit compiled once and evaluated for a whole batch. Probabilities that do not sum to
    1 are normalised. Real-valued comparisons cannot be compiled.

    Source: Manhaeve, Dumancic, Kimmig, Demeester, De Raedt, "DeepProbLog: neural probabilistic logic programming", NeurIPS 2018.
    Needs ``pip install -e '.[sdd]'``. The arguments are those of :class:`~dualogic.methods.counting.CountingMethod`.

    Example:
        >>> import dualogic as dl, torch
        >>> f, g = dl.categorical("f", 3), dl.categorical("g", 3)
        >>> p = torch.tensor([[0.5, 0.25, 0.25]])
        >>> dl.LogicLoss(f == g, method="problog")(f=p, g=p).neg().exp()  # 0.25 + 0.0625 + 0.0625
        tensor(0.3750)
    """

    name: ClassVar[str] = "problog"
    exclusive: ClassVar[bool] = True
