"""The consequent of an implication where no rule asks for it."""

from __future__ import annotations

import functools
import operator
from collections.abc import Hashable, Iterable, Mapping, Sequence

import torch
from torch import Tensor

from dualogic.diagnosis.observation import Observed
from dualogic.diagnosis.outline import Connective, strip


def find_shared(parts: Iterable[Connective]) -> list[tuple[str, ...]]:
    """The paths of implications that have the same consequent, several at a time.

    What one of them asks for is not elsewhere for another: with ``dog >> animal`` and ``cat >> animal``, an animal that is a cat
    says nothing against the first rule.

    Example:
        >>> import dualogic as dl
        >>> from dualogic.diagnosis.outline import outline
        >>> dog, cat, animal = map(dl.boolean, ("dog", "cat", "animal"))
        >>> find_shared([*outline("one", dog >> animal), *outline("two", cat >> animal), *outline("three", animal >> ~dog)])
        [('one', 'two')]
    """
    found: dict[Hashable, list[str]] = {}
    for part in parts:
        if part.consequent is not None:
            found.setdefault(strip(part.consequent, True), []).append(part.path)
    return [tuple(paths) for paths in found.values() if len(paths) > 1]


def find_elsewhere(levels: Mapping[int, Observed], shared: Sequence[tuple[str, ...]]) -> dict[int, Tensor]:
    """Where the antecedent of an implication is false, and no other one with the same consequent is true.

    ``shared`` is from :func:`find_shared`. By level number, for connectives of two operands: ``(batch, lanes, units)``.
    """
    pairs = {number: each for number, each in levels.items() if each.level.order != () and each.holds.shape[-1] == 2}
    false = {number: each.decided[..., 0] & each.exists for number, each in pairs.items()}
    lanes = {path: (number, lane) for number, each in pairs.items() for lane, path in enumerate(each.level.paths)}
    asked: dict[tuple[int, int], Tensor] = {}
    for paths in shared:
        by_axes: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for path in paths:
            if path in lanes:
                by_axes.setdefault(pairs[lanes[path][0]].axes, []).append(lanes[path])
        for places in by_axes.values():
            if len(places) > 1:
                true = [~pairs[number].holds[:, lane, :, 0] & pairs[number].exists[:, lane] for number, lane in places]
                asked.update(dict.fromkeys(places, functools.reduce(operator.or_, true)))
    for number in {number for number, _ in asked}:
        rows = [asked.get((number, lane)) for lane in range(len(pairs[number].level.paths))]
        nothing = torch.zeros_like(false[number][:, 0])
        false[number] = false[number] & ~torch.stack([nothing if row is None else row for row in rows], 1)
    return false


def count_elsewhere(observed: Observed, elsewhere: Tensor) -> Tensor:
    """How often the consequent holds there: ``(batch, lanes, 2)`` of units, and units with the consequent."""
    return torch.stack([elsewhere, elsewhere & observed.decided[..., 1]], -1).sum(2)
