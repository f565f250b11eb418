"""What a report is made of: sums over samples, in total and per class."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence

import torch
from torch import Tensor

from dualogic.diagnosis.observation import Observed
from dualogic.diagnosis.outline import Connective, strip

CHOICE_MARGIN = 0.01  # a weight counts as the duals' choice where it exceeds every other of its connective by more than this


class Tally:
    """Sums of columns, by key, in total and for each label; in float64, so that counts stay exact up to 2^53.

    Each sum is brought to the host by one that is ``waiting``; otherwise those without labels stay on their device.
    """

    def __init__(self, waiting: bool = True) -> None:
        self._waiting = waiting
        self.total: dict[Hashable, Tensor] = {}
        self.by_label: dict[int, dict[Hashable, Tensor]] = {}

    def add(self, key: Hashable, columns: Tensor, labels: Tensor | None) -> None:
        """Add columns ``(batch, ...)``; ``labels`` ``(batch,)`` below 0 count in the total alone."""
        columns = columns.double()
        total = columns.sum(0)
        _accumulate(self.total, key, total.cpu() if self._waiting else total)
        if labels is None or not len(labels):
            return
        found, place = labels.unique(return_inverse=True)
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
    """How the operands of ``and`` and ``or`` hold; ``(batch, lanes, 5 + 2 k)``.

    An ``or`` is *hit* by the operands that hold (decidedly), an ``and`` by those that fail. Columns: units, hit by several, hit
    by none, the antecedent holds, the antecedent and the consequent hold (both of meaning for an implication), then for each
    operand: hits, hits alone.
    """
    exists = observed.exists.unsqueeze(-1)
    hits = find_hits(observed) & exists
    number = hits.sum(-1)
    antecedent = ~observed.holds[..., 0] & observed.exists
    units = [observed.exists, number >= 2, (number == 0) & observed.exists, antecedent, antecedent & observed.holds[..., 1]]
    alone = hits & (number == 1).unsqueeze(-1)
    return torch.cat([torch.stack(units, -1).sum(2), hits.sum(2), alone.sum(2)], dim=-1)


def find_hits(observed: Observed) -> Tensor:
    """The operands by which an ``or`` holds, or an ``and`` fails."""
    return observed.decided if observed.level.operation == "|" else ~observed.holds


def count_entries(observed: Observed) -> Tensor:
    """How the entries of a quantifier hold: ``(batch, lanes, 4)`` of units, units without an entry, entries, holding entries."""
    entries = observed.exists.unsqueeze(-1).expand_as(observed.holds)
    if observed.mask is not None:
        entries = entries & observed.mask
    units = torch.stack([observed.exists, observed.exists & ~entries.any(-1)], -1).sum(2)
    held = torch.stack([entries.sum((2, 3)), (entries & observed.holds).sum((2, 3))], -1)
    return torch.cat([units, held], dim=-1)


def count_weights(hits: Tensor, exists: Tensor, weights: Tensor) -> Tensor:
    """How the duals weigh the operands of one connective: ``(batch, units, k)``, as ``(batch, 3 + 5 k)``.

    Columns: units, normalised entropy, units that are hit and have a choice; then for each operand: weight, hits alone,
    weight where it hits alone, chosen, chosen and hits.
    """
    there = exists.unsqueeze(-1)
    hits = hits & there
    weights = torch.where(there, weights.double(), 0.0)
    entropy = -torch.xlogy(weights, weights).sum(-1) / math.log(weights.shape[-1])
    best = weights.topk(2, dim=-1)
    made = exists & (best.values[..., 0] - best.values[..., 1] > CHOICE_MARGIN)
    chosen = torch.nn.functional.one_hot(best.indices[..., 0], weights.shape[-1]).bool() & made.unsqueeze(-1)
    alone = hits & (hits.sum(-1, keepdim=True) == 1)
    units = torch.stack([exists.double(), entropy, (made & hits.any(-1)).double()], -1).sum(1)
    operands = [weights, alone.double(), weights * alone, chosen.double(), (chosen & hits).double()]
    return torch.cat([units, *(column.sum(1) for column in operands)], dim=-1)


def find_shared(parts: Iterable[Connective]) -> list[tuple[str, ...]]:
    """The paths of implications that have the same consequent, several at a time.

    What one of them asks for is not elsewhere for another: with ``dog >> animal`` and ``cat >> animal``, an animal that is a cat
    says nothing against the first rule.
    """
    found: defaultdict[Hashable, list[str]] = defaultdict(list)
    for part in parts:
        if part.consequent is not None:
            found[strip(part.consequent, True)].append(part.path)
    return [tuple(paths) for paths in found.values() if len(paths) > 1]


def find_elsewhere(levels: Mapping[int, Observed], shared: Sequence[tuple[str, ...]]) -> dict[int, Tensor]:
    """Where the antecedent of an implication is false, and no other one with the same consequent is true.

    ``shared`` is from :func:`find_shared`. By level number, for connectives of two operands: ``(batch, lanes, units)``.
    """
    pairs = {number: each for number, each in levels.items() if each.level.order != () and each.holds.shape[-1] == 2}
    elsewhere = {number: each.decided[..., 0] & each.exists for number, each in pairs.items()}
    lanes = {path: (number, lane) for number, each in pairs.items() for lane, path in enumerate(each.level.paths)}
    for paths in shared:
        by_axes: defaultdict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
        for number, lane in [lanes[path] for path in paths if path in lanes]:
            by_axes[pairs[number].axes].append((number, lane))
        for places in by_axes.values():
            true = [~pairs[number].holds[:, lane, :, 0] & pairs[number].exists[:, lane] for number, lane in places]
            for number, lane in places:
                elsewhere[number][:, lane] &= ~torch.stack(true).any(0)
    return elsewhere
