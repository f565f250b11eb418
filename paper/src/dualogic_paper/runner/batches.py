"""Which samples each step sees."""

import dataclasses
import math

import torch
from torch import Tensor


@dataclasses.dataclass(frozen=True)
class Batches:
    """The order of samples: a pure function of the seed and the epoch, so that a run can go on from any epoch.

    All steps have the same size, so that a step can be recorded; an epoch leaves out some samples, other ones each time.

    >>> batches = Batches(labelled=10, pool=7, batch=4, steps=count_steps(10, 7, 4), seed=0)
    >>> [tuple(part.shape) for part in batches.epoch(0)]
    [(2, 4), (2, 3)]
    """

    labelled: int  # how many labelled samples there are
    pool: int  # how many samples the rule sees, if there is a rule
    batch: int  # the largest number of either in a step
    steps: int  # in an epoch; see :func:`count_steps`
    seed: int  # of the order

    def epoch(self, epoch: int) -> tuple[Tensor, Tensor]:
        """Positions in the two lists, ``(steps, batch)`` each, on the CPU."""
        # Two generators: the labelled samples come in the same order with and without a rule.
        return tuple(  # type: ignore[return-value]
            self._draw(count, mix_seed(self.seed, epoch, stream)) for stream, count in enumerate((self.labelled, self.pool))
        )

    def _draw(self, count: int, seed: int) -> Tensor:
        size = min(self.batch, count // self.steps)
        order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
        return order[: self.steps * size].view(self.steps, size)


def count_steps(labelled: int, pool: int, batch: int) -> int:
    """The steps of an epoch, which ends with the shorter list."""
    return math.ceil(min(labelled, pool) / batch)


def mix_seed(*numbers: int) -> int:
    """One seed from several numbers, such that neighbours have nothing in common."""
    state = 0x9E3779B97F4A7C15
    for number in numbers:
        state = ((state ^ (number + 0x9E3779B97F4A7C15)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        state ^= state >> 31
    return state >> 1
