"""How large the plan of a formula would be, found on the graph of its shared parts before anything is built.

A plan is a tree: each place where a connective stands has weights of its own, so a part that is used twice is there twice.
``Iff`` and ``Xor`` use each of their sides twice, and nested ones double at every step.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from dualogic.compile.signature import Signatures
from dualogic.errors import SizeError
from dualogic.formula.connective import Formula, Junction, Premise, Quantifier, Resting
from dualogic.formula.node import children, walk
from dualogic.formula.shape import format_count
from dualogic.normalize.nnf import strip_levels

PLACES = 100_000
"""Of connectives and atoms in a plan that is mostly copies."""
LEVELS = 5_000
"""Of tensor operations in such a plan, for the connectives of one signature at one place."""
COPIES = 10
"""A plan this many times larger than its formula is mostly copies; one that is not may be of any size."""
DIMENSIONS = 60
"""Of a tensor: PyTorch has at most 64, of which three are for the batch, the operands and the rules."""


@dataclasses.dataclass(frozen=True)
class Size:
    """Of the plan of one formula."""

    places: int  # of connectives and atoms, each copy counted
    levels: int  # of connectives that are computed together
    depth: int  # of nested connectives
    parts: int  # distinct nodes that the places are copies of
    rank: int  # the most axes that a part has


def find_size(formula: Formula) -> Size:
    """The size of the plan of a formula in negation normal form, in a time that is linear in the distinct parts.

    Example:
        >>> import dualogic as dl
        >>> a, b = dl.boolean("a"), dl.boolean("b")
        >>> find_size(dl.Iff(a, b).to_nnf())
        Size(places=7, levels=2, depth=2, parts=7, rank=0)
    """
    signatures = Signatures()
    signatures.add(formula)
    places: dict[int, int] = {}
    depths: dict[int, int] = {}
    levels: dict[int, int] = {}  # by signature: nodes of one signature have the same levels below them
    rank = parts = 0
    for node in walk(formula):
        rank = max(rank, len(node.shape))
        if not isinstance(node, Formula):
            continue
        parts += 1
        below = [strip_levels(child) for child in _operands(node)]
        joins = isinstance(node, (Junction, Resting, Quantifier))
        places[id(node)] = (joins or not below) + sum(places[id(child)] for child in below)
        deeper = isinstance(node, (Junction, Resting))  # each adds a dimension; a quantifier takes one away
        depths[id(node)] = deeper + max((depths[id(child)] for child in below), default=0)
        if signatures[node] not in levels:
            distinct = {signatures[child] for child in below}
            levels[signatures[node]] = joins + sum(levels[signature] for signature in distinct)
    return Size(places[id(formula)], levels[signatures[formula]], depths[id(formula)], parts, rank)


def check_size(rules: Iterable[tuple[str, Formula]], normal: Mapping[str, Formula]) -> None:
    """Refuse rules whose plan would be far larger than they are, or too deep for a tensor."""
    for name, formula in rules:
        size = find_size(normal[name])
        if size.depth + size.rank > DIMENSIONS:
            raise SizeError(
                f"rule {name!r} nests {size.depth} connectives, each of which takes a dimension of a tensor, beside {size.rank} "
                f"axes (at most {DIMENSIONS} together): {formula.brief()}. Write a chain of one connective without levels, as in "
                f"a & b & c; or give an inner part a Boolean of its own, c = dl.boolean('c'), which the network says too, with "
                f"the rule dl.Iff(c, inner), and use c in its place"
            )
        copied = max(size.places, size.levels) > COPIES * size.parts
        if copied and (size.places > PLACES or size.levels > LEVELS):
            raise SizeError(
                f"rule {name!r} has {size.parts:,} parts, but written out {format_count(size.places)} places with weights or "
                f"atoms, in {format_count(size.levels)} operations (at most {PLACES:,} and {LEVELS:,}): {formula.brief()}. Each "
                f"Iff or Xor needs both of its sides twice, and so does whatever uses a part several times, so that nesting them "
                f"doubles at every step. Give an inner part a Boolean of its own, c = dl.boolean('c'), which the network says "
                f"too, with the rule dl.Iff(c, inner), and use c in its place; or count, as in a sum of numbers that is 0 or 1"
            )


def _operands(node: Formula) -> tuple[Formula, ...]:
    """The formulas below a connective; none below a literal, perhaps marked as evidence."""
    if isinstance(node, Quantifier):
        return (node.operand,)
    if isinstance(node, (Junction, Resting, Premise)):
        return tuple(child for child in children(node) if isinstance(child, Formula))
    # A Level means what it holds; the atom of a literal counts for nothing of its own.
    stripped = strip_levels(node)
    return () if stripped is node else (stripped,)
