"""The variables of a compiled rule, and the logarithms of their weights.

Each variable is true with some probability, independently of all others: a Boolean; one class of a categorical (for methods
that treat classes as independent); a *switch* (for methods that treat them as exclusive); a relation between classes that occur
nowhere else; a mask or the length of a ragged axis (probability 0 or 1). The switches of a categorical with value groups ``0 .. m
- 1`` ask "is it group 0? if not, is it group 1? ...", so that ``m - 1`` independent variables give exactly its distribution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from dualogic.circuits.grounding import Proposition, atoms, join, settle_relations, substitute
from dualogic.compile.binding import Bound
from dualogic.compile.convolution import program_of
from dualogic.constants import Constants
from dualogic.formula.relation import ClassRelation
from dualogic.formula.shape import Ragged, max_shape
from dualogic.numerics import negative_log

ABSENT = -1e30
"""The logarithm of what cannot be: so far below that of every probability that what a mask leaves out is never taught."""

FIXED = ("mask", "axis")

Key = tuple[Any, ...]  # what a variable means: an atom, or `(kind, name, entry, number)` for a class or switch


class Relation:
    """A relation that is a variable at one or several places, each with an entry for every class in it."""

    def __init__(self, relation: ClassRelation, places: list[tuple[tuple[str, int], ...]]) -> None:
        self.holds, self.fails = (program_of(relation, negated) for negated in (False, True))
        self.classes = [(column[0][0], torch.tensor([entry for _, entry in column])) for column in zip(*places)]


class Vocabulary:
    """Numbers the variables of ground formulas and computes their weights.

    Classes of a categorical that are ``exclusive`` exclude each other, instead of being independent; so do those that a relation
    counts. For independent ones, ``exactly_one`` adds to each proposition that every categorical in it has exactly one class.
    """

    def __init__(
        self, propositions: Sequence[Proposition], symbols: Mapping[str, Any], exclusive: bool, exactly_one: bool
    ) -> None:
        self.symbols = symbols
        self.exactly_one = exactly_one
        propositions = [settle_relations(proposition, exclusive) for proposition in propositions]
        found = atoms(*propositions)
        counted = dict.fromkeys(atom[1] for atom in found if atom[0] == "value")
        self.groups = {name: self._partition(name, found) for name in counted}
        orders = {name: [label for group in groups for label in group] for name, groups in self.groups.items()}
        self._class_order = {name: torch.tensor(order) for name, order in orders.items() if order != sorted(order)}
        self._numbers: dict[Key, int] = {}
        for atom in found:
            for key in self._keys(atom):
                self._numbers.setdefault(key, len(self._numbers))
        self.propositions = [self._translate(proposition) for proposition in propositions]
        self.count = len(self._numbers)
        # The variables that are true or false for sure.
        self.fixed = frozenset(number for key, number in self._numbers.items() if key[0] in FIXED)
        self._on_device: Constants[Tensor] = Constants()
        self._blocks = self._plan_blocks()
        # Whether something may be impossible whatever the network says: what a mask leaves out, or a relation.
        self.can_fail = bool(self.fixed) or bool(self._relations)

    def _partition(self, name: str, found: list[Proposition]) -> list[tuple[int, ...]]:
        """The classes that no atom tells apart, together; those of no atom last."""
        sets = list(dict.fromkeys(atom[3] for atom in found if atom[0] == "value" and atom[1] == name))
        alike: dict[tuple[bool, ...], list[int]] = {}
        for label in range(self.symbols[name].size):
            alike.setdefault(tuple(label in labels for labels in sets), []).append(label)
        return [tuple(labels) for _, labels in sorted(alike.items(), key=lambda entry: (not any(entry[0]), entry[1]))]

    def _keys(self, atom: Proposition) -> list[Key]:
        if atom[0] not in ("class", "value"):
            return [atom]
        _, name, entry, labels = atom
        if atom[0] == "value":
            return [("switch", name, entry, number) for number in range(len(self.groups[name]) - 1)]
        chosen = range(self.symbols[name].size) if self.exactly_one else labels
        return [("class", name, entry, label) for label in chosen]

    def _variable(self, key: Key) -> Proposition:
        return ("variable", self._numbers[key] + 1)

    def _translate(self, proposition: Proposition) -> Proposition:
        translated = substitute(proposition, self._literal)
        if not self.exactly_one:
            return translated
        constraints = [
            ("count", 1, True, tuple(self._variable(("class", *place, label)) for label in range(self.symbols[place[0]].size)))
            for place in dict.fromkeys(atom[1:3] for atom in atoms(proposition) if atom[0] == "class")
        ]
        return join("and", [*constraints, translated])

    def _literal(self, atom: Proposition) -> Proposition:
        if atom[0] not in ("class", "value"):
            return self._variable(atom)
        kind, name, entry, labels = atom
        if kind == "class":
            return join("or", [self._variable(("class", name, entry, label)) for label in labels])
        groups = enumerate(self.groups[name])
        return join("or", [self._group(name, entry, number) for number, group in groups if group[0] in labels])

    def _group(self, name: str, entry: int, number: int) -> Proposition:
        last = len(self.groups[name]) - 1
        switches = [self._variable(("switch", name, entry, place)) for place in range(min(number + 1, last))]
        parts = [("not", switch) for switch in switches[:number]] + (switches[number:] if number < last else [])
        return join("and", parts)

    def _plan_blocks(self) -> list[tuple[str, Any, Tensor]]:
        """For each kind and symbol: which columns of its flattened weights are variables, in order."""
        places: dict[ClassRelation, list[tuple[tuple[str, int], ...]]] = {}
        blocks: dict[tuple[str, Any], list[tuple[int, int]]] = {}
        for key, number in self._numbers.items():
            kind, name, entry = key[:3]
            if kind == "relation":
                known = places.setdefault(name, [])
                known.append(entry)
                name, entry = list(places).index(name), len(known) - 1  # a compiler may know no dictionary of nodes
            elif kind == "class":
                entry = entry * self.symbols[name].size + key[3]
            elif kind == "switch":
                entry = entry * (len(self.groups[name]) - 1) + key[3]
            blocks.setdefault((kind, name), []).append((entry, number))
        self._relations = [Relation(relation, found) for relation, found in places.items()]
        joined = [number for block in blocks.values() for _, number in block]
        # Column i of the joined blocks is variable joined[i]; this puts them in the order of the variables.
        inverse = sorted(range(len(joined)), key=joined.__getitem__)
        self._order = None if joined == sorted(joined) else torch.tensor(inverse)
        columns = {key: [entry for entry, _ in block] for key, block in blocks.items()}
        self._whole = {key: block == list(range(len(block))) for key, block in columns.items()}
        return [(kind, name, torch.tensor(block)) for (kind, name), block in columns.items()]

    @property
    def plain(self) -> bool:
        """Whether every weight is a bound probability."""
        return all(self._from_probabilities(kind, name) for kind, name, _ in self._blocks)

    def _from_probabilities(self, kind: str, name: str) -> bool:
        return kind in ("boolean", "class") and self.symbols[name].input == "probs"

    def probabilities(self, bound: Bound) -> Tensor:
        """The variables' probabilities ``(batch, variables)``, for a :attr:`plain` vocabulary."""
        return self._arrange([self._pick(kind, name, self._padded(name, bound), columns) for kind, name, columns in self._blocks])

    def weights(self, bound: Bound) -> tuple[Tensor, Tensor]:
        """Logarithms of the probabilities that each variable is true, and false; ``(batch, variables)`` each, finite."""
        sides: tuple[list[Tensor], list[Tensor]] = ([], [])
        for kind, name, columns in self._blocks:
            for side, value in zip(sides, self._logarithms(kind, name, bound)):
                side.append(self._pick(kind, name, value, columns))
        return self._arrange(sides[0]), self._arrange(sides[1])

    def _pick(self, kind: str, name: str, value: Tensor, columns: Tensor) -> Tensor:
        value = value.flatten(1) if value.dim() > 1 else value.unsqueeze(1)
        if self._whole[kind, name] and columns.numel() == value.shape[1]:
            return value
        return value.index_select(1, self._index((kind, name), columns, value.device))

    def _index(self, key: Any, index: Tensor, device: torch.device) -> Tensor:
        """A constant on a device, moved there once."""
        return self._on_device.get((key, device), lambda: index.to(device))

    def _arrange(self, parts: list[Tensor]) -> Tensor:
        joined = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
        return joined if self._order is None else joined.index_select(1, self._index("order", self._order, joined.device))

    def _logarithms(self, kind: str, name: Any, bound: Bound) -> tuple[Tensor, Tensor]:
        if kind in FIXED:
            holds = self._exists(name, bound) if kind == "axis" else self._padded(name, bound)
            absent = torch.full((), ABSENT, dtype=bound.dtype, device=bound.device)
            return torch.where(holds, 0.0, absent), torch.where(holds, absent, 0.0)
        if kind == "relation":
            return self._of_relation(name, bound)
        value = self._padded(name, bound)
        if self._from_probabilities(kind, name):
            return -negative_log(value), -negative_log(1.0 - value)
        if kind == "boolean":
            return torch.nn.functional.logsigmoid(value), torch.nn.functional.logsigmoid(-value)
        if kind == "class":
            return log_softmax_and_rest(value)
        logarithms = -negative_log(value) if self.symbols[name].input == "probs" else value.log_softmax(-1)
        return switch_weights(self._by_group(name, logarithms))

    def _of_relation(self, number: int, bound: Bound) -> tuple[Tensor, Tensor]:
        """Logarithms of the probabilities that a relation holds and fails, ``(batch, places)`` each."""
        relation = self._relations[number]
        classes = []
        for place, (name, entries) in enumerate(relation.classes):
            value = self._padded(name, bound)
            value = value.flatten(1, -2) if value.dim() > 2 else value.unsqueeze(1)
            chosen = value.index_select(1, self._index(("relation", number, place), entries, value.device))
            logarithms = chosen if self.symbols[name].input == "logits" else -negative_log(chosen)
            classes.append(logarithms.log_softmax(-1))
        return relation.holds(classes).clamp(ABSENT, 0.0), relation.fails(classes).clamp(ABSENT, 0.0)

    def _by_group(self, name: str, logarithms: Tensor) -> Tensor:
        """Logarithms of the groups' probabilities, from those of the classes along the last dimension."""
        groups = self.groups[name]
        if name in self._class_order:
            logarithms = logarithms.index_select(-1, self._index(("groups", name), self._class_order[name], logarithms.device))
        if all(len(group) == 1 for group in groups):
            return logarithms
        parts = logarithms.split([len(group) for group in groups], dim=-1)
        return torch.cat([part if part.shape[-1] == 1 else part.logsumexp(-1, keepdim=True) for part in parts], dim=-1)

    def _padded(self, name: str, bound: Bound) -> Tensor:
        """A symbol's tensor with ragged axes filled up to their largest size; the entries added never count."""
        symbol, tensor = self.symbols[name], bound.tensors[name]
        sizes = max_shape(symbol.shape)
        missing = [full - actual for full, actual in zip(sizes, tensor.shape[1:])]
        if not any(missing):
            return tensor
        padding = [0, 0] * (tensor.dim() - 1 - len(sizes)) + [number for size in reversed(missing) for number in (0, size)]
        return torch.nn.functional.pad(tensor, padding, value=0.5 if tensor.is_floating_point() else False)

    def _exists(self, axis: str, bound: Bound) -> Tensor:
        for name, symbol in self.symbols.items():
            for dim, size in enumerate(symbol.shape):
                if isinstance(size, Ragged) and size.axis.name == axis:
                    length = bound.tensors[name].shape[1 + dim] + size.trim
                    return (torch.arange(size.axis.max, device=bound.device) < length).expand(bound.batch, -1)
        raise AssertionError(f"axis {axis!r} belongs to no symbol")


def log_softmax_and_rest(logits: Tensor) -> tuple[Tensor, Tensor]:
    """``log p`` and ``log(1 - p)`` of every class along the last dimension, accurate where ``p`` is close to 0 or 1."""
    logarithms = logits.log_softmax(-1)
    top = logits.detach().argmax(-1, keepdim=True)
    # 1 - p is exact enough for every class but the likeliest, whose rest is the sum of the others.
    rest = logarithms.scatter(-1, top, -torch.inf).logsumexp(-1, keepdim=True)
    others = torch.log1p(-logarithms.exp().clamp(max=0.75))
    return _floor(logarithms), _floor(others.scatter(-1, top, rest))


def switch_weights(logarithms: Tensor) -> tuple[Tensor, Tensor]:
    """Weights of the switches of groups with probabilities ``exp(logarithms)`` along the last dimension.

    Switch ``v`` is on with probability ``p_v / (p_v + p_{v+1} + ...)``.
    """
    tails = _floor(logarithms).flip(-1).logcumsumexp(-1).flip(-1)
    on = _floor(logarithms)[..., :-1] - tails[..., :-1]
    return _floor(on), _floor(tails[..., 1:] - tails[..., :-1])


def _floor(logarithms: Tensor) -> Tensor:
    """Finite, at most 0: what is impossible for sure counts as a probability that was rounded to 0."""
    return logarithms.clamp(max=0.0).nan_to_num(nan=torch.nan, neginf=math.log(torch.finfo(logarithms.dtype).tiny))
