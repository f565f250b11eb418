"""The atom "this relation holds between these classes", as in ``a + b == s``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dualogic.errors import SymbolError
from dualogic.formula.atom import MIRRORED
from dualogic.formula.connective import Complement, Formula
from dualogic.formula.node import children, walk
from dualogic.formula.number import NumberArithmetic, NumberExpression, NumberTable, as_number, values_of
from dualogic.formula.symbol import ClassExpression
from dualogic.formula.term import Number

Step = tuple[Any, ...]
"""``("class", n)`` for the n-th class, ``("number", value)``, ``(operation, i, j)`` or ``("table", (name, function), i, ...)``,
where ``i`` and ``j`` are earlier steps."""


class ClassRelation(Formula):
    """``left operation right`` between whole numbers made of classes, for ``== <= < >= >``; ``!=`` is the complement of ``==``.

    It holds with the probability that independent classes have values for which it is true. That probability costs
    ``1 - P`` or ``-log P``, by ``class_cost``, and the negation likewise. It is satisfied where every class leads all others
    (by more than ``lead``) and the likeliest classes make it true.
    """

    operation: str
    left: NumberExpression | Number
    right: NumberExpression | Number
    leaves: ClassVar[tuple[ClassExpression, ...]]  # the distinct classes in it
    steps: ClassVar[tuple[Step, ...]]  # how the sides are computed from them
    sides: ClassVar[tuple[int, int]]  # which steps are the left and the right side
    ranges: ClassVar[tuple[Sequence[int], ...]]  # the values that each step can have

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in _linearize(self.left, self.right).items():
            self._derive(name, value)

    def rebuild(self, leaves: Sequence[ClassExpression]) -> tuple[Any, Any]:
        """The two sides with other classes in the place of these."""
        made: list[Any] = []
        for kind, *rest in self.steps:
            if kind in ("class", "number"):
                made.append(leaves[rest[0]] if kind == "class" else Number(float(rest[0])))
            elif kind == "table":
                name, function = rest[0]
                made.append(NumberTable(name, function, tuple(made[place] for place in rest[1:])))
            else:
                made.append(NumberArithmetic(kind, made[rest[0]], made[rest[1]]))
        return made[self.sides[0]], made[self.sides[1]]


def _linearize(*roots: Any) -> dict[str, tuple[Any, ...]]:
    place: dict[int, int] = {}
    ranges: list[Sequence[int]] = []
    leaves: list[ClassExpression] = []
    steps: list[Step] = []
    wanted = {id(root) for root in roots}
    for node in (nodes := walk(*roots)):
        if isinstance(node, (NumberArithmetic, NumberTable)):
            wanted.update(map(id, children(node)))
    for node in nodes:
        if id(node) not in wanted:
            continue  # the symbol below an indexed class
        place[id(node)] = len(steps)
        ranges.append(values_of(node))  # type: ignore[arg-type]
        below = [place.get(id(child)) for child in children(node)]
        if isinstance(node, ClassExpression):
            steps.append(("class", len(leaves)))
            leaves.append(node)
        elif isinstance(node, Number):
            steps.append(("number", int(node.value)))
        elif isinstance(node, NumberTable):
            steps.append(("table", (node.name, node.function), *below))
        else:
            steps.append((node.operation, *below))  # type: ignore[attr-defined]
    sides = tuple(place[id(root)] for root in roots)
    return {"leaves": tuple(leaves), "steps": tuple(steps), "sides": sides, "ranges": tuple(ranges)}


def relate(operation: str, left: Any, right: Any) -> Formula:
    """Build a relation; a lone number moves to the right, as Python's reflected operators do.

    One that holds for all classes, or for none, is refused.
    """
    if operation == "!=":
        return Complement(relate("==", left, right))
    first, second = as_number(left), as_number(right)
    if isinstance(first, Number):
        first, second, operation = second, first, MIRRORED[operation]
    _check_range(operation, first, second)
    return ClassRelation(operation, first, second)


def _check_range(operation: str, left: Any, right: Any) -> None:
    ours, theirs = values_of(left), values_of(right)
    if operation in (">", ">="):
        ours, theirs = theirs, ours
    if operation == "==":
        shorter, longer = sorted((ours, theirs), key=len)
        never, always = set(shorter).isdisjoint(longer), len(longer) == 1 and shorter[0] == longer[0]
    elif operation in ("<=", ">="):
        never, always = ours[0] > theirs[-1], ours[-1] <= theirs[0]
    else:
        never, always = ours[0] >= theirs[-1], ours[-1] < theirs[0]
    if never or always:
        sides = [(side.brief(), values_of(side)) for side in (left, right) if not isinstance(side, Number)]
        spans = [f"{text} is {values[0]}" + (f" to {values[-1]}" if len(values) > 1 else "") for text, values in sides]
        raise SymbolError(
            f"{left.brief()} {operation} {right.brief()} {'always' if always else 'never'} holds: {' and '.join(spans)}; leave "
            f"it out, or declare more classes"
        )
