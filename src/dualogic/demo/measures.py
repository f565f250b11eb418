"""The rule, and what is measured on held-out images."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor, nn

from dualogic.demo.data import CLASSES, SIX, Split, rotate
from dualogic.formula.symbol import categorical
from dualogic.loss import LogicLoss

LEAD = 0.1
"""By how much a class must lead to count, as in the paper's digit tables."""

upright = categorical("f", CLASSES, input="logits")
turned = categorical("g", CLASSES, input="logits")

P = turned == 9
Q = upright == SIX
RULE = P >> Q

# The paper's reading of not-P: some other class leads 9 by 0.1. `turned != 9` is the complement of P instead: it also
# holds where 9 leads by less than 0.1, so undecided images would count as denials.
NOT_P = turned.isin([digit for digit in range(CLASSES) if digit != 9])


@dataclasses.dataclass(frozen=True)
class Measures:
    """What a network does, in percent; weights in [0, 1]."""

    accuracy: float  # on all held-out images
    satisfied: float  # held-out 6s on which not-P or Q holds
    p: float  # held-out 6s that read as a 9 after half a turn
    not_p: float  # held-out 6s on which some other class leads 9 after half a turn; undecided ones are in neither
    q: float  # held-out 6s called a 6
    false_six: float  # held-out images of other classes called a 6
    weight_sixes: float | None  # the mean dual weight on Q over the 6s of the pool; `None` for a method without such weights
    weight_others: float | None  # the same over the rest of the pool; `None` also if there is no rest


@torch.no_grad()
def measure(network: nn.Module, split: Split, logic: LogicLoss | None) -> Measures:
    """Measure a network on the held-out images, and the duals on the pool."""
    predicted = network(split.held_out).argmax(1)
    is_six = split.held_out_labels == SIX
    sixes = split.held_out_sixes
    f, g = network(sixes), network(rotate(sixes))
    weight_sixes, weight_others = _weights_on_q(logic, split)
    return Measures(
        accuracy=_percent(predicted == split.held_out_labels),
        satisfied=_percent((NOT_P | Q).satisfied(lead=LEAD, f=f, g=g)),
        p=_percent(P.satisfied(lead=LEAD, g=g)),
        not_p=_percent(NOT_P.satisfied(lead=LEAD, g=g)),
        q=_percent(Q.satisfied(lead=LEAD, f=f)),
        false_six=_percent(predicted[~is_six] == SIX),
        weight_sixes=weight_sixes,
        weight_others=weight_others,
    )


def _percent(holds: Tensor) -> float:
    return 100 * holds.double().mean().item()


def _weights_on_q(logic: LogicLoss | None, split: Split) -> tuple[float | None, float | None]:
    """Mean weights on Q, the second operand of ``not P or Q``, for the pool's 6s and for its other images."""
    weights = None if logic is None else logic.weights(torch.arange(len(split.pool))).get("rule")
    if weights is None:
        return None, None
    on_q = weights[:, 1]
    sixes, others = on_q[split.pool_is_six], on_q[~split.pool_is_six]
    return sixes.mean().item(), others.mean().item() if len(others) else None
