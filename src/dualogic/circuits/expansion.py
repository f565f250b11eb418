"""Relations between classes within larger rules, for methods that count: each a variable of its own, or written out.

A relation whose classes occur nowhere else in the rule is independent of all else, and a convolution gives its probability. One
that shares a class with another part is written out as decisions: which value has the first class, then the second, with equal
sums so far taken together.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import Any

import torch

from dualogic.circuits.grounding import Proposition, atoms, join, substitute
from dualogic.compile.convolution import Builder
from dualogic.constants import outside_inference
from dualogic.errors import SizeError
from dualogic.formula.atom import COMPARE
from dualogic.formula.relation import ClassRelation

DECISIONS = 20_000  # how many class atoms a relation may be written out to


def settle_relations(proposition: Proposition, exclusive: bool) -> Proposition:
    """Leave relations that are independent of all else, write out the others.

    All classes exclude each other if they are ``exclusive``; otherwise only those do that a written-out relation counts with: a
    number has one value. Atoms about classes that exclude each other become ``("value", name, entry, labels)``.
    """
    found = atoms(proposition)
    users: dict[tuple[str, int], set[int]] = defaultdict(set)
    for number, atom in enumerate(found):
        if atom[0] == "class":
            users[atom[1:3]].add(-1)
        for place in atom[2] if atom[0] == "relation" else ():
            users[place].add(number)
    bound = {atom for atom in found if atom[0] == "relation" and any(len(users[place]) > 1 for place in atom[2])}
    names = {name for atom in bound for name, _ in atom[2]}

    def replace(atom: Proposition) -> Proposition:
        if atom in bound:
            return _write_out(*atom[1:])
        return ("value", *atom[1:]) if atom[0] == "class" and (exclusive or atom[1] in names) else atom

    return substitute(proposition, replace) if bound or exclusive else proposition


@functools.lru_cache(maxsize=1024)
def _write_out(relation: ClassRelation, places: tuple[tuple[str, int], ...]) -> Proposition:
    with outside_inference(), torch.device("cpu"):
        decisions = _Decisions(relation, places)
        result = decisions.decide(0, decisions.constant)
    if isinstance(result, bool):
        raise AssertionError(f"{relation} was checked to be neither always true nor never")
    return result


class _Decisions:
    def __init__(self, relation: ClassRelation, places: tuple[tuple[str, int], ...]) -> None:
        self.relation = relation
        self.places = places
        builder = Builder(relation.steps, tuple(leaf.symbol.size for leaf in relation.leaves))
        parts, self.constant = builder.parts([(relation.sides[0], 1), (relation.sides[1], -1)])
        tables = [builder.table(part) for part in parts]
        self.tables = [
            (leaves, values.tolist(), list(zip(*(column.tolist() for column in columns)))) for leaves, values, columns in tables
        ]
        self.done: dict[tuple[int, int], Any] = {}
        self.count = 0

    def decide(self, number: int, total: int) -> Proposition | bool:
        """What the classes from part ``number`` on must be, where those before it come to ``total``."""
        if number == len(self.tables):
            return bool(COMPARE[self.relation.operation](total, 0))
        key = (number, total)
        if key not in self.done:
            self.done[key] = self._decide(number, total)
        return self.done[key]  # type: ignore[no-any-return]

    def _decide(self, number: int, total: int) -> Proposition | bool:
        leaves, values, rows = self.tables[number]
        after: dict[Any, tuple[Any, list[tuple[int, ...]]]] = {}
        for value, row in zip(values, rows):
            rest = self.decide(number + 1, total + value)
            after.setdefault(rest if isinstance(rest, bool) else id(rest), (rest, []))[1].append(row)
        if after.keys() <= {True} or after.keys() <= {False}:
            return True in after
        cases = [(self._among(leaves, chosen), rest) for rest, chosen in after.values() if rest is not False]
        return join("or", [case if rest is True else ("and", (case, rest)) for case, rest in cases])

    def _among(self, leaves: list[int], rows: list[tuple[int, ...]]) -> Proposition:
        """That the classes of a part are one of these combinations."""
        self.count += len(rows) * len(leaves) if len(leaves) > 1 else 1
        if self.count > DECISIONS:
            raise SizeError(
                f"{self.relation.brief()} shares classes with other parts of its rule, so it has to be written out, to more than "
                f"{DECISIONS:,} atoms about classes; make it a rule of its own, state it in smaller parts (a sum digit by digit, "
                f"with a carry that is a class), or use a method that does not count, such as 'dual'"
            )
        if len(leaves) == 1:
            return ("value", *self.places[leaves[0]], tuple(row[0] for row in rows))
        return join(
            "or", [("and", tuple(("value", *self.places[leaf], (label,)) for leaf, label in zip(leaves, row))) for row in rows]
        )
