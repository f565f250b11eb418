"""Formulas and the connectives that join them."""

from __future__ import annotations

import dataclasses
import functools
import math
import numbers
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

from dualogic.errors import FormulaTypeError, OptionError, ShapeError, SizeError
from dualogic.formula.node import Node, intern, walk
from dualogic.formula.shape import broadcast, format_shape, normalize_dims
from dualogic.formula.symbol import MaskExpression, as_mask

if TYPE_CHECKING:
    import torch

EXPANSION_LIMIT = 1_000_000


def _joining(connective: str, reflected: bool = False) -> Callable[[Any, Any], Formula]:
    """A method for an operator, with the formula on its left, or on its right."""

    def join(self: Any, other: Any) -> Formula:
        from dualogic.formula import join

        operands = (other, self) if reflected else (self, other)
        return cast("Formula", getattr(join, connective)(*operands))

    return join


class Formula(Node):
    """Something that is true or false once tensors are bound.

    Formulas are immutable, hashable and compared by structure. ``& | ~ >>`` join them; ``.all()`` and ``.any()``
    quantify over declared axes. A formula whose axes are not quantified holds elementwise.

    Example:
        >>> import dualogic as dl, torch
        >>> p = dl.var("p", 2)
        >>> rule = ((p == 0) | (p == 1)).all()
        >>> rule.cost(p=torch.tensor([[0.0, 1.0], [0.25, 1.0]]))
        tensor([0.0000, 0.2500])
        >>> rule.satisfied(tol=0.01, p=torch.tensor([[0.0, 1.0], [0.25, 1.0]]))
        tensor([ True, False])
    """

    __and__, __rand__ = _joining("And"), _joining("And", True)
    __or__, __ror__ = _joining("Or"), _joining("Or", True)
    __rshift__, __rrshift__ = _joining("Implies"), _joining("Implies", True)

    def __invert__(self) -> Formula:
        from dualogic.formula.join import Not

        return Not(self)

    _instead: ClassVar[str] = "and (a <= x) & (x <= b) for the chained comparison a <= x <= b"
    _no_truth = (
        "the formula {0} has no truth value before tensors are bound. Write '&' for 'and', '|' for 'or', '~' for 'not', '>>' for "
        "'if', dl.And(...) and dl.Or(...) for all([...]) and any([...]), {1}; for values, call .satisfied(...)"
    )
    _no_loop = "a formula cannot be looped over; quantify over its axes with .all() or .any(), in {0}"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, numbers.Number):
            raise FormulaTypeError(
                f"{self.brief()} is true or false and cannot be compared with {other!r}: write it alone for 'it is true' and "
                f"{(~self).brief()} for 'it is false'"
            )
        return self is other if isinstance(other, Formula) else NotImplemented  # nodes that look the same are the same

    __hash__ = Node.__hash__

    def all(self, dim: Any = None, where: Any = None, duals: str = "each") -> Formula:
        """Hold for every entry of the axes ``dim`` (all axes by default).

        Args:
            dim: declared axes, as ints; the batch axis does not count.
            where: a mask, broadcast against this formula's axes; entries that it leaves out do not matter.
            duals: ``"each"`` gives each entry its own weights; ``"tied"`` shares the weights of the connectives below
                along these axes and weighs the entries equally, for outputs too large to keep one set each.

        Example:
            >>> import dualogic as dl
            >>> (dl.var("x", 3) <= 1).all()
            (x <= 1).all()
        """
        return self._quantify("all", dim, where, duals)

    def any(self, dim: Any = None, where: Any = None, duals: str = "each") -> Formula:
        """Hold for at least one entry of the axes ``dim``; arguments as in :meth:`all`."""
        return self._quantify("any", dim, where, duals)

    def _quantify(self, operation: str, dim: Any, where: Any, duals: str) -> Formula:
        if duals not in ("each", "tied"):
            raise OptionError(f"duals must be 'each' or 'tied' in .{operation}(); got {duals!r}")
        if isinstance(dim, MaskExpression):
            raise FormulaTypeError(f"a mask is given by name: .{operation}(where={dim}); got it as an axis, in {self.brief()}")
        dims = normalize_dims(dim, self.shape, self)
        return Quantifier(operation, self, dims, None if where is None else as_mask(where), duals == "tied")

    def __getitem__(self, key: Any) -> Formula:
        raise FormulaTypeError(f"a compound formula cannot be indexed; index the terms inside {self.brief()} instead")

    def _no_comparison(self, other: Any) -> Formula:
        raise FormulaTypeError(
            f"a formula cannot be compared as numbers are; got {self.brief()} against {other!r}: a truth value needs no "
            f"threshold, so write b for 'b is true' and ~b for 'b is false'. Compare a number first, as in dl.Iff(b, x >= 1); "
            f"for a chained comparison write (a <= x) & (x <= b), with every comparison in parentheses"
        )

    __lt__ = __le__ = __gt__ = __ge__ = _no_comparison

    def _no_number(self, *others: Any) -> Formula:
        given = [each.brief() for each in (self, *others) if isinstance(each, Formula)]
        counted = ", ".join(given if self.shape or len(given) > 1 else ("a", "b"))
        raise FormulaTypeError(
            f"{self.brief()} is true or false, and no number that can be added or multiplied. To count how many hold write "
            f"dl.AtMost(k, {counted}) for at most k, dl.ExactlyOne({counted}), or dl.Xor(a, b) for one of two; to compute with a "
            f"probability bind it to a dl.var"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = sum = _no_number
    __xor__ = __rxor__ = max = min = mean = _no_number

    def to_nnf(self) -> Formula:
        """An equivalent formula of ``&``, ``|``, quantifiers and (negated) atoms only, with the same cost.

        Example:
            >>> import dualogic as dl
            >>> x = dl.var("x")
            >>> (~((x <= 1) | (x > 3))).to_nnf()
            (x > 1) & (x <= 3)
        """
        from dualogic.normalize.nnf import to_nnf

        return to_nnf(self)

    def to_cnf(self, max_clauses: int = 10_000) -> Formula:
        """An equivalent conjunction of clauses with the same cost; refused past ``max_clauses``.

        Example:
            >>> import dualogic as dl
            >>> x, y, z = dl.var("x"), dl.var("y"), dl.var("z")
            >>> ((x <= 0) & (y <= 0) | (z <= 0)).to_cnf()
            ((x <= 0) | (z <= 0)) & ((y <= 0) | (z <= 0))
        """
        from dualogic.normalize.cnf import to_cnf

        return to_cnf(self, max_clauses)

    def cost(self, class_cost: str = "probability", **tensors: Any) -> torch.Tensor:
        """The cost at the optimal duals: maximum over ``and``, minimum over ``or`` (Theorem 1).

        Args:
            class_cost: ``"probability"`` (``1 - p``) or ``"log"`` (``-log p``) for class and Boolean atoms.
            tensors: one for each symbol, by name, with a leading batch axis.

        Returns:
            Shape ``(batch, *shape)``; differentiable.
        """
        from dualogic.compile.evaluate import optimal_cost

        return optimal_cost(self, class_cost, tensors)

    def satisfied(self, tol: float = 0.0, lead: float = 0.0, **tensors: Any) -> torch.Tensor:
        """Whether the formula holds.

        Args:
            tol: a comparison ``v <= c`` holds where ``v <= c + tol``; strict ones are complements of relaxed ones.
            lead: ``f == k`` holds where the probability of class ``k`` exceeds every other by more than this, and ``a + b == s``
                where that is so of the likeliest class of each, and these meet it.
            tensors: one for each symbol, by name, with a leading batch axis.

        Returns:
            A bool tensor of shape ``(batch, *shape)``.
        """
        from dualogic.compile.evaluate import is_satisfied

        return is_satisfied(self, tol, lead, tensors)

    @property
    def symbols(self) -> Mapping[str, Node]:
        """The symbols that tensors must be bound to, by name."""
        from dualogic.formula.inspect import collect_symbols

        return collect_symbols(walk(self))


class Junction(Formula):
    """``a & b & ...`` or ``a | b | ...``: one connective, whatever the number of operands."""

    operation: str
    operands: tuple[Formula, ...]
    _digest: ClassVar[int]  # set for each node

    def __post_init__(self) -> None:
        super().__post_init__()
        self._derive("_digest", functools.reduce(_extend_digest, self.operands, 0))

    def _key(self) -> tuple[Any, ...]:
        return (Junction, self.operation, _Chain(self._digest, self.operands))

    def grow(self, operand: Formula) -> Formula:
        """This chain with one more operand of the same shape.

        A loop that joins thousands of formulas one by one makes as many chains, so nothing here looks at every operand.
        """
        longer = object.__new__(Junction)
        longer._derive("operation", self.operation)
        longer._derive("operands", (*self.operands, operand))
        longer._derive("shape", self.shape)
        longer._derive("_digest", _extend_digest(self._digest, operand))
        return cast("Formula", intern(longer))


def _extend_digest(digest: int, operand: Formula) -> int:
    return hash((digest, id(operand)))


@dataclasses.dataclass(frozen=True)
class _Chain:
    """The operands of a chain as part of a key, with a hash that grows with them."""

    digest: int
    operands: tuple[Formula, ...]  # which, unlike terms, are compared by identity

    def __hash__(self) -> int:
        return self.digest


class Complement(Formula):
    """``~operand``."""

    operand: Formula


class Implication(Formula):
    """``antecedent >> consequent``, which is ``~antecedent | consequent`` at a level of its own."""

    antecedent: Formula
    consequent: Formula


class Equivalence(Formula):
    """``Iff(left, right)``, that is ``(left >> right) & (right >> left)``; negated, it is ``Xor``."""

    left: Formula
    right: Formula
    negated: bool


class Cardinality(Formula):
    """``AtMost(bound, *operands)``, or ``ExactlyOne(*operands)`` if ``exact``."""

    bound: int
    exact: bool
    operands: tuple[Formula, ...]

    def __post_init__(self) -> None:
        name = "ExactlyOne" if self.exact else "AtMost"
        clauses = math.comb(len(self.operands), self.bound + 1)
        if clauses > EXPANSION_LIMIT:
            raise SizeError(
                f"{name} over {len(self.operands)} formulas stands for {clauses:,} clauses (at most {EXPANSION_LIMIT:,}); "
                f"bound the sum of a real-valued term instead, as in p.sum() <= {self.bound}"
            )
        super().__post_init__()


class Quantifier(Formula):
    """``operand.all(dims, where)`` or ``operand.any(dims, where)``."""

    operation: str
    operand: Formula
    dims: tuple[int, ...]
    where: MaskExpression | None
    tied: bool

    def __post_init__(self) -> None:
        if self.where is not None and broadcast((self.operand.shape, self.where.shape), self) != self.operand.shape:
            raise ShapeError(
                f"the mask has axes {format_shape(self.where.shape)}, more than the {format_shape(self.operand.shape)} of the "
                f"formula in {self.brief()}"
            )
        super().__post_init__()


class Level(Formula):
    """``level(operand)``: keeps a connective from merging with the chain around it; otherwise means ``operand``."""

    operand: Formula


class Resting(Formula):
    """``antecedent >> consequent`` in negation normal form, for a method whose implications rest.

    Unlike ``~antecedent | consequent`` it costs nothing where the consequent is at least as believed as the antecedent; see
    :mod:`dualogic.compile.implication`.
    """

    antecedent: Formula  # what has to be believed, in normal form; a `Premise` unless it is a class or a Boolean
    consequent: Formula  # in normal form
    share: float | None  # how much of the antecedent is evidence; `None` where that is to be found out
    turned: bool = False  # it was written the other way round, `~consequent >> ~antecedent`
    firm: bool = False  # the antecedent is a fact, and alternatives in the consequent do not rest
    mutual: bool = False  # both sides teach each other: a direction of an `Iff`, or both say the same


class Premise(Formula):
    """``premise(operand)``: an antecedent that is read at the optimal duals, and whose comparisons hold or do not."""

    operand: Formula


def as_formula(value: Any, where: str) -> Formula:
    """Check that ``value`` is a formula."""
    if isinstance(value, Formula):
        return value
    if isinstance(value, bool):
        raise FormulaTypeError(
            f"a plain bool ({value}) stands where a formula is expected, in {where}: the comparison was made between Python "
            f"values, or between formulas, where '==' asks whether they are the same text. Write dl.Iff(a, b) for 'both or "
            f"neither', a for 'a is true' and ~a for 'a is false'; compare numbers and classes by symbols made by dl.var or "
            f"dl.categorical"
        )
    if isinstance(value, MaskExpression):
        raise FormulaTypeError(
            f"expected a formula in {where}; got the mask {value}, which says what exists: pass it as where= to .all() or "
            f".any(), or declare it with dl.boolean if it is something to be learned"
        )
    raise FormulaTypeError(
        f"expected a formula in {where}; got {value!r} of type {type(value).__name__}. Put comparisons in parentheses: "
        f"(x <= 1) & (y >= 0)"
    )
