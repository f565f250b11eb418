"""Divide samples at random, class by class."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from dualogic.errors import OptionError


def divide_by_class(labels: Tensor, classes: int, sizes: Callable[[int], Sequence[int]], seed: int) -> list[Tensor]:
    """Disjoint sets of samples in which every class has its part.

    Args:
        labels: the class of each sample, ``(n,)``.
        classes: how many there are.
        sizes: from the number of samples of a class to how many of them go into each set but the last, which takes the rest.
        seed: of the division.

    Returns:
        The numbers of the samples in each set, class after class.

    Example:
        >>> labels = torch.tensor([0, 1, 0, 1, 0, 0])
        >>> half, rest = divide_by_class(labels, 2, lambda count: [count // 2], seed=0)
        >>> labels[half].tolist(), labels[rest].tolist()
        ([0, 0, 1], [0, 0, 1])
    """
    generator = torch.Generator().manual_seed(seed)
    sets: list[list[Tensor]] = []
    for number in range(classes):
        members = (labels == number).nonzero().squeeze(1)
        members = members[torch.randperm(len(members), generator=generator)]
        wanted = list(sizes(len(members)))
        if sum(wanted) > len(members) or min(wanted, default=0) < 0:
            asked = ", ".join(map(str, wanted))
            raise OptionError(f"class {number} has {len(members)} samples, too few for sets of {asked}; choose smaller sets")
        parts = members.split([*wanted, len(members) - sum(wanted)])
        sets = sets or [[] for _ in parts]
        for chosen, part in zip(sets, parts):
            chosen.append(part)
    return [torch.cat(chosen) for chosen in sets]
