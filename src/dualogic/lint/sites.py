"""The places of a rule that should be able to hold: alternatives, antecedents and consequents."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, Union

import z3

from dualogic.circuits.grounding import fit, positions
from dualogic.formula.connective import Cardinality, Complement, Equivalence, Formula, Implication, Junction, Level, Quantifier
from dualogic.formula.evidence import Evidence
from dualogic.formula.node import children
from dualogic.lint.encode import Encoder
from dualogic.lint.world import Entry

Path = tuple[tuple[Any, Union[Formula, None]], ...]
"""Conditions under which a part matters; each with the antecedent that it says to hold, if it does."""


@dataclasses.dataclass
class Site:
    """An operand, at all positions of the axes around it."""

    role: str  # "alternative", "antecedent" or "consequent"
    node: Formula  # the connective
    operand: Formula  # the operand itself
    # The part of the rule that must be taken as true when the operand is asked about, because it only holds where the operand
    # fails; `None` if the whole rule can be kept.
    dropped: Formula | None
    around: tuple[int, ...]  # the sites that it stands inside of
    # For each position, when it matters, and that the operand holds.
    places: list[tuple[Path, Any]] = dataclasses.field(default_factory=list)

    @functools.cached_property
    def possible(self) -> Any:
        """That the operand holds somewhere."""
        return self.possible_without(())

    @property
    def antecedents(self) -> list[Formula]:
        """Of the implications in whose consequents the operand stands, outer ones first; not that of its own one."""
        own = self.node.antecedent if isinstance(self.node, Implication) else None
        path, _ = self.places[0]
        return [formula for _, formula in path if formula is not None and not (self.role == "consequent" and formula is own)]

    def possible_without(self, left_out: Sequence[Formula]) -> Any:
        """That the operand holds somewhere, whether or not some antecedents hold there."""
        skipped = {id(formula) for formula in left_out}
        return z3.Or(
            [z3.And(*(part for part, formula in path if id(formula) not in skipped), holds) for path, holds in self.places]
        )


def find_sites(formula: Formula, encoder: Encoder) -> list[Site]:
    """All sites of a rule, outer ones first."""
    search = _Search(encoder)
    search.visit(formula, (), (), None, ())
    return list(search.sites.values())


class _Search:
    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.sites: dict[tuple[Any, ...], Site] = {}

    def visit(self, node: Formula, position: Entry, path: Path, dropped: Formula | None, around: tuple[int, ...]) -> None:
        """Look for sites in ``node``; ``path`` says when it matters."""

        def enter(part: Formula, site: Site | None, path: Path = path, dropped: Formula | None = dropped) -> None:
            inside = around if site is None else (*around, id(site))
            self.visit(part, fit(position, part.shape), path, dropped, inside)

        def record(
            place: int, role: str, operand: Formula, path: Path = path, dropped: Formula | None = dropped, around: Any = around
        ) -> Site:
            site = self.sites.setdefault((id(node), place, id(dropped), around), Site(role, node, operand, dropped, around))
            site.places.append((path, self.encoder.below(operand, position)))
            return site

        outermost = node if dropped is None else dropped
        if isinstance(node, Implication):
            antecedent = record(0, "antecedent", node.antecedent, dropped=outermost)
            enter(node.antecedent, antecedent, dropped=outermost)
            path = (*path, (self.encoder.below(node.antecedent, position), node.antecedent))
            around = (*around, id(antecedent))
            enter(node.consequent, record(1, "consequent", node.consequent, path, dropped, around), path)
        elif isinstance(node, Quantifier):
            for inner in positions(node.operand.shape, node.dims, position):
                conditions = [(condition, None) for condition in self.encoder.conditions(node, inner)]
                self.visit(node.operand, inner, (*path, *conditions), dropped, around)
        elif isinstance(node, (Evidence, Level, Junction, Complement, Equivalence, Cardinality)):
            choice = node.operation == "|" if isinstance(node, Junction) else isinstance(node, Cardinality) and node.exact
            inside = outermost if isinstance(node, (Complement, Equivalence, Cardinality)) else dropped
            for place, operand in enumerate(children(node)):
                assert isinstance(operand, Formula)
                enter(operand, record(place, "alternative", operand) if choice else None, dropped=inside)
