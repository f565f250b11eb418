"""What is said of several tasks alike: how a rule is met, and what a network reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from dualogic_paper.tasks.task import percent


def compare_branches(
    holds: Mapping[str, Tensor], weights: Mapping[str, Tensor], groups: Mapping[str, Tensor]
) -> dict[str, float]:
    """The share of samples where each branch of a rule holds and the mean weight on it, for each group that is not empty.

    Example:
        >>> import torch
        >>> holds, weights = torch.tensor([True, False]), torch.tensor([0.75, 0.5])
        >>> compare_branches({"q": holds}, {"q": weights}, {"sixes": holds, "none": holds < 0})
        {'q_holds_sixes': 100.0, 'q_weight_sixes': 0.75}
    """
    found: dict[str, float] = {}
    for group, members in groups.items():
        for key, value in holds.items() if bool(members.any()) else ():
            found[f"{key}_holds_{group}"] = percent(value[members])
            if key in weights:
                found[f"{key}_weight_{group}"] = weights[key][members].mean().item()
    return found


def describe_reading(shares: Tensor, names: Sequence[str]) -> str:
    """The two names of the largest shares.

    Example:
        >>> import torch
        >>> describe_reading(torch.tensor([0.1, 0.7, 0.2]), ("cat", "dog", "bird"))
        'read as dog 70%, bird 20%'
    """
    largest, numbers = shares.topk(2)
    return "read as " + ", ".join(f"{names[number]} {share:.0%}" for share, number in zip(largest.tolist(), numbers.tolist()))
