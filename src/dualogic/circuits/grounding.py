"""Formulas over classes and Booleans as propositions: quantifiers written out, every atom a ground literal.

A proposition is a nested tuple, compared by value: ``("boolean", name, entry)``, ``("class", name, entry, labels)``,
``("relation", node, ((name, entry), ...))`` with a place for each class in it, ``("mask", name, entry)``, ``("axis", name,
position)`` (whether a ragged axis is that long), ``("not", a)``, ``("and", operands)``, ``("or", operands)`` and ``("count",
bound, exact, operands)``. An *entry* is the flat position within the symbol's axes at their largest sizes.

A relation whose classes occur nowhere else in the rule is independent of all else, and a convolution gives its probability. One
that shares a class with another part is written out as decisions: which value has the first class, then the second, with equal
sums so far taken together.
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from dualogic.compile.convolution import Builder, program_of
from dualogic.compile.number import check_independent, find_entries
from dualogic.constants import outside_inference
from dualogic.errors import FormulaTypeError, SizeError
from dualogic.formula.atom import COMPARE, Boolean, BooleanIndex, ClassEqual, ClassIn, Comparison
from dualogic.formula.connective import Cardinality, Complement, Equivalence, Formula, Implication, Junction, Level, Quantifier
from dualogic.formula.evidence import Evidence
from dualogic.formula.relation import ClassRelation
from dualogic.formula.shape import Ragged, Shape, max_shape, shorten
from dualogic.formula.symbol import Mask, MaskComplement, MaskIndex, MaskJunction
from dualogic.normalize.nnf import check_depth

Proposition = tuple[Any, ...]
Position = tuple[int, ...]
GROUND_LIMIT = 200_000
DECISIONS = 20_000  # how many class atoms a relation may be written out to
SIGNS = {"&": "and", "|": "or", "all": "and", "any": "or"}
JOINING = ("not", "and", "or", "count")
ATOMS = ("boolean", "class", "value", "relation", "mask", "axis")


def ground(formula: Formula, method: str) -> Proposition:
    """A formula without free axes as a proposition; ``method`` is the one that asks, for messages.

    Comparisons of real-valued terms are refused, and so is what has too many ground formulas or is nested too deeply.
    """
    check_depth(formula)
    return _Grounder(formula, method).ground(formula, ())


class _Grounder:
    def __init__(self, formula: Formula, method: str) -> None:
        self.formula = formula
        self.method = method
        self.done: dict[tuple[int, Position], Proposition] = {}
        self.entries: dict[int, Tensor] = {}

    def ground(self, node: Any, position: Position) -> Proposition:
        """The proposition that a formula or mask stands for at a position of its axes."""
        if (key := (id(node), position)) not in self.done:
            if len(self.done) >= GROUND_LIMIT:
                raise SizeError(
                    f"method {self.method!r} writes out every quantifier, and {shorten(str(self.formula), 120)} stands for "
                    f"more than {GROUND_LIMIT:,} ground formulas; use a method that works on whole tensors, such as 'dual'"
                )
            self.done[key] = self._ground(node, position)
        return self.done[key]

    def _ground(self, node: Any, position: Position) -> Proposition:
        below = functools.partial(self._operand, position=position)
        if isinstance(node, Comparison):
            raise FormulaTypeError(
                f"method {self.method!r} counts the satisfying assignments of variables with finitely many values, and cannot be "
                f"compiled for the real-valued comparison {node}; use 'dual', 'dl2', 'pd2' or a fuzzy method for this rule, or "
                f"state it about classes (dl.categorical) and Booleans (dl.boolean)"
            )
        if isinstance(node, ClassIn):
            return ("class", node.operand.symbol.name, self._entry(node.operand, position), node.classes)
        if isinstance(node, (Boolean, BooleanIndex)):
            return ("boolean", node.symbol.name, self._entry(node, position))
        if isinstance(node, (Mask, MaskIndex)):
            return ("mask", _mask_name(node), self._entry(node, position))
        if isinstance(node, ClassEqual):
            entries = [self._entry(side, fit(position, side.shape)) for side in (node.left, node.right)]
            names = (node.left.symbol.name, node.right.symbol.name)
            labels = range(node.left.symbol.size)
            return join("or", [join("and", [("class", *pair, (label,)) for pair in zip(names, entries)]) for label in labels])
        if isinstance(node, ClassRelation):
            check_independent(node)
            program_of(node, False)  # refuses one that always holds or never
            places = [(leaf.symbol.name, self._entry(leaf, fit(position, leaf.shape))) for leaf in node.leaves]
            return ("relation", node, tuple(places))
        if isinstance(node, (Complement, MaskComplement)):
            return _negate(below(node.operand))
        if isinstance(node, Evidence) and node.share:
            raise FormulaTypeError(
                f"method {self.method!r} takes the probability of the rule as a whole, in which a part that is evidence cannot "
                f"be told from the rest, so it cannot honour {node.brief()}; use 'dual' or another method on costs or degrees of "
                f"truth, or leave the marker out"
            )
        if isinstance(node, (Level, Evidence)):
            return below(node.operand)
        if isinstance(node, Junction):
            return join(SIGNS[node.operation], [below(operand) for operand in node.operands])
        if isinstance(node, MaskJunction):
            return join(SIGNS[node.operation], [below(node.left), below(node.right)])
        if isinstance(node, Implication):
            return join("or", [_negate(below(node.antecedent)), below(node.consequent)])
        if isinstance(node, Equivalence):
            left, right = below(node.left), below(node.right)
            same = join("or", [join("and", [left, right]), join("and", [_negate(left), _negate(right)])])
            return _negate(same) if node.negated else same
        if isinstance(node, Cardinality):
            return ("count", node.bound, node.exact, tuple(below(operand) for operand in node.operands))
        if isinstance(node, Quantifier):
            return self._quantifier(node, position)
        raise FormulaTypeError(f"method {self.method!r} cannot compile {node}")

    def _operand(self, operand: Any, position: Position) -> Proposition:
        return self.ground(operand, fit(position, operand.shape))

    def _quantifier(self, node: Quantifier, position: Position) -> Proposition:
        shape = node.operand.shape
        parts = []
        for inner in positions(shape, node.dims, position):
            body = self.ground(node.operand, inner)
            ragged = [(shape[dim], inner[dim]) for dim in node.dims]
            conditions = [("axis", size.axis.name, place + size.trim) for size, place in ragged if isinstance(size, Ragged)]
            if node.where is not None:
                conditions.append(self._operand(node.where, inner))
            excused = map(_negate, conditions) if node.operation == "all" else conditions
            parts.append(join("or" if node.operation == "all" else "and", [*excused, body]))
        return join(SIGNS[node.operation], parts)

    def _entry(self, node: Any, position: Position) -> int:
        """The flat entry of a symbol that an (indexed) expression means at a position."""
        if id(node) not in self.entries:
            self.entries[id(node)] = find_entries(
                node,
                f"and method {self.method!r} writes every entry out before tensors are bound; count from its start, or mark the "
                f"last entry with a mask",
            )
        return int(self.entries[id(node)][position])


def fit(position: Position, shape: Shape) -> Position:
    """The position within a part that is broadcast to the whole from the right."""
    return tuple(0 if size == 1 else place for place, size in zip(position[len(position) - len(shape) :], shape))


def positions(shape: Shape, dims: tuple[int, ...], kept: Position) -> Iterator[Position]:
    """All positions of ``shape`` that agree with ``kept`` outside of ``dims``."""
    sizes = max_shape(shape)
    for chosen in itertools.product(*(range(sizes[dim]) for dim in dims)):
        fixed, free = iter(kept), dict(zip(dims, chosen))
        yield tuple(free[dim] if dim in free else next(fixed) for dim in range(len(shape)))


def _mask_name(node: Any) -> str:
    while isinstance(node, MaskIndex):
        node = node.operand
    if not isinstance(node, Mask):
        raise FormulaTypeError(f"index the masks inside {node} instead of the whole")
    return node.name


def _negate(proposition: Proposition) -> Proposition:
    return proposition[1] if proposition[0] == "not" else ("not", proposition)


def join(operation: str, operands: Iterable[Proposition]) -> Proposition:
    """``("and", operands)`` or ``("or", operands)``, each of them once; a lone operand by itself."""
    # By identity: a tuple's hash looks at all of it, every time, and parts are shared. What is equal is mostly one object.
    unique = tuple({id(operand) if operand[0] in JOINING else operand: operand for operand in operands}.values())
    return unique[0] if len(unique) == 1 else (operation, unique)


def atoms(*propositions: Proposition) -> list[Proposition]:
    """The distinct ground atoms, in order of first occurrence."""
    found: dict[Proposition, None] = {}
    seen: set[int] = set()
    stack = list(reversed(propositions))
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node[0] in ATOMS:
            found[node] = None
        elif node[0] == "not":
            stack.append(node[1])
        else:
            stack.extend(reversed(node[-1]))
    return list(found)


def substitute(proposition: Proposition, replace: Callable[[Proposition], Proposition]) -> Proposition:
    """The proposition with every atom replaced."""
    done: dict[int, Proposition] = {}

    def visit(node: Proposition) -> Proposition:
        if id(node) not in done:
            if node[0] in ATOMS:
                done[id(node)] = replace(node)
            elif node[0] == "not":
                done[id(node)] = _negate(visit(node[1]))
            else:
                done[id(node)] = (*node[:-1], tuple(visit(operand) for operand in node[-1]))
        return done[id(node)]

    return visit(proposition)


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
        self.decide = functools.cache(self._decide)
        self.count = 0

    def _decide(self, number: int, total: int) -> Proposition | bool:
        """What the classes from part ``number`` on must be, where those before it come to ``total``."""
        if number == len(self.tables):
            return bool(COMPARE[self.relation.operation](total, 0))
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
