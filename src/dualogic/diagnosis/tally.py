"""What a report is made of: sums over samples, in total and per class."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping

import torch
from torch import Tensor

from dualogic.diagnosis.observation import Observed
from dualogic.diagnosis.outline import Connective, strip

CHOICE_MARGIN = 0.01  # a weight counts as the duals' choice where it exceeds every other of its connective by more than this

Groups = tuple[Tensor, Tensor]  # the labels that occur, and the place of each sample's among them


class Tally:
    """Sums of columns, by key, in total and for each label; in float64, so that counts stay exact up to 2^53.

    Each sum is brought to the host by one that is ``waiting``; otherwise those without labels stay on their device.
    """

    def __init__(self, waiting: bool = True) -> None:
        self._waiting = waiting
        self.total: dict[Hashable, Tensor] = {}
        self.by_label: dict[int, dict[Hashable, Tensor]] = {}

    def add(self, key: Hashable, columns: Tensor, groups: Groups | None) -> None:
        """Add columns ``(batch, ...)``, in total and for each group of samples whose label is not below 0."""
        columns = columns.double()
        total = columns.sum(0)
        _accumulate(self.total, key, total.cpu() if self._waiting else total)
        if groups is None:
            return
        found, place = groups
        sums = columns.new_zeros(len(found), *columns.shape[1:]).index_add_(0, place, columns).cpu()
        for label, row in zip(found.tolist(), sums):
            if label >= 0:
                _accumulate(self.by_label.setdefault(label, {}), key, row)

    def merge_(self, other: Tally) -> None:
        """Add the sums of another tally of the same rules."""
        pairs = [(self.total, other.total)]
        pairs += [(self.by_label.setdefault(label, {}), rows) for label, rows in other.by_label.items()]
        for mine, theirs in pairs:
            for key, sums in theirs.items():
                _accumulate(mine, key, sums)


def _accumulate(sums: dict[Hashable, Tensor], key: Hashable, value: Tensor) -> None:
    sums[key] = sums[key] + value if key in sums else value


def count_junctions(observed: Observed) -> Tensor:
    """How the operands of an ``and`` or an ``or`` hold; ``(batch, 5 + 2 k)``.

    An ``or`` is *hit* by the operands that hold (decidedly), an ``and`` by those that fail. Columns: units, hit by several, hit
    by none, the antecedent holds, the antecedent and the consequent hold (both of meaning for an implication), then for each
    operand: hits, hits alone.
    """
    there, holds = observed.exists, observed.holds
    hits = find_hits(observed)
    number = hits.sum(-1)
    antecedent = ~holds[..., 0] & there
    units = [there, number >= 2, (number == 0) & there, antecedent, antecedent & holds[..., 1]]
    return torch.cat([torch.stack(units, -1), hits, hits & (number == 1).unsqueeze(-1)], -1).sum(1)


def find_hits(observed: Observed) -> Tensor:
    """The operands by which an ``or`` holds, or an ``and`` fails, in units that exist."""
    hits = observed.decided if observed.level.operation == "|" else ~observed.holds
    return hits & observed.exists.unsqueeze(-1)


def count_entries(observed: Observed) -> Tensor:
    """How the entries of a quantifier hold: ``(batch, 4)`` of units, units without an entry, entries, holding entries."""
    entries = observed.exists.unsqueeze(-1).expand_as(observed.holds)
    if observed.mask is not None:
        entries = entries & observed.mask
    units = [observed.exists, observed.exists & ~entries.any(-1)]
    return torch.stack([each.flatten(1).sum(1) for each in (*units, entries, entries & observed.holds)], -1)


def count_weights(observed: Observed, weights: Tensor) -> Tensor:
    """How the duals weigh the operands of a connective: ``(batch, units, k)``, as ``(batch, 3 + 5 k)``.

    Columns: units, normalised entropy, units that are hit and have a choice; then for each operand: weight, hits alone,
    weight where it hits alone, chosen, chosen and hits.
    """
    exists, hits = observed.exists, find_hits(observed)
    weights = torch.where(exists.unsqueeze(-1), weights.double(), 0.0)
    entropy = -torch.xlogy(weights, weights).sum(-1) / math.log(weights.shape[-1])
    best = weights.topk(2, dim=-1)
    made = exists & (best.values[..., 0] - best.values[..., 1] > CHOICE_MARGIN)
    chosen = torch.nn.functional.one_hot(best.indices[..., 0], weights.shape[-1]).bool() & made.unsqueeze(-1)
    alone = hits & (hits.sum(-1, keepdim=True) == 1)
    units = torch.stack([exists.double(), entropy, (made & hits.any(-1)).double()], -1).sum(1)
    operands = [weights, alone.double(), weights * alone, chosen.double(), (chosen & hits).double()]
    return torch.cat([units, *(column.sum(1) for column in operands)], dim=-1)


def number_consequents(parts: Iterable[Connective]) -> dict[str, int]:
    """For each implication, by path, a number of its consequent: the same for the same one."""
    known: dict[Hashable, int] = {}
    consequents = {part.path: strip(part.consequent, True) for part in parts if part.consequent is not None}
    return {path: known.setdefault(consequent, len(known)) for path, consequent in consequents.items()}


def find_elsewhere(consequents: Mapping[str, int], seen: Mapping[str, Observed]) -> dict[str, Tensor]:
    """Where the antecedent of an implication is false, and no other one with the same consequent is true; ``(batch, units)``.

    What one of them asks for is not elsewhere for another: with ``dog >> animal`` and ``cat >> animal``, an animal that is a cat
    says nothing against the first rule. ``consequents`` are from :func:`number_consequents`.
    """
    asked: dict[Hashable, Tensor] = {}
    for path, number in consequents.items():
        true, key = ~seen[path].holds[..., 0] & seen[path].exists, (number, seen[path].axes)
        asked[key] = asked[key] | true if key in asked else true
    return {
        path: seen[path].decided[..., 0] & seen[path].exists & ~asked[number, seen[path].axes]
        for path, number in consequents.items()
    }
