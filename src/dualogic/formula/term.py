"""Real-valued terms: what stands on either side of a comparison.

A term is a frozen value with a ``shape`` (the axes after the batch axis). Arithmetic builds larger terms and
comparisons build atoms; nothing is computed before tensors are bound.
"""

from __future__ import annotations

import array
import math
import operator
from collections.abc import Callable
from typing import Any

from dualogic.errors import FormulaTypeError, ShapeError
from dualogic.formula.indexing import items_to_key, resolve_index
from dualogic.formula.node import Node, Operators, arithmetic
from dualogic.formula.shape import Item, check_name, format_shape, normalize_dims

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
}
"""What the signs mean; whole numbers made of classes have all but ``/``."""


class Term(Operators["Term"]):
    """Base of all real-valued terms.

    Supports ``+ - * / **``, ``abs``, numpy-style indexing of the declared axes, ``.sum(dim)``, ``.max(dim)``,
    ``.min(dim)``, ``@ constant`` and the six comparisons, which give formulas.

    Example:
        >>> import dualogic as dl
        >>> x = dl.var("x", 3)
        >>> x[1:] + x[:-1] <= 1
        x[1:3] + x[:2] <= 1
    """

    def _calculate(self, operation: str, left: Any, right: Any) -> Term:
        return Arithmetic(operation, as_term(left), as_term(right))

    __truediv__, __rtruediv__ = arithmetic("/"), arithmetic("/", True)

    def __matmul__(self, other: Any) -> Term:
        right = as_term(other)
        if not isinstance(right, Constant):
            raise FormulaTypeError(f"the right side of @ must be a constant matrix or vector, in {self} @ {right}")
        return MatrixProduct(self, right)

    def __rmatmul__(self, other: Any) -> Term:
        raise FormulaTypeError(f"the constant stands on the right of @: write {self} @ matrix, transposed where needed")

    def __neg__(self) -> Term:
        return Number(-self.value) if isinstance(self, Number) else Negation(self)

    def __abs__(self) -> Term:
        return Absolute(self)

    def __getitem__(self, key: Any) -> Term:
        return self._index(Index, key)  # type: ignore[no-any-return]

    def _reduce(self, operation: str, dim: Any) -> Term:
        return Reduction(operation, self, normalize_dims(dim, self.shape, self))

    def sum(self, dim: Any = None) -> Term:
        """Sum over declared axes (all of them by default)."""
        return self._reduce("sum", dim)

    def max(self, dim: Any = None) -> Term:
        """Maximum over declared axes (all of them by default)."""
        return self._reduce("max", dim)

    def min(self, dim: Any = None) -> Term:
        """Minimum over declared axes (all of them by default)."""
        return self._reduce("min", dim)

    def _no_function(self, *_: Any, **__: Any) -> Any:
        raise FormulaTypeError(
            f"{self.brief()} has + - * / **, abs, .sum(), .max(), .min() and @ a constant; for anything else write "
            f"dl.apply(function, {self.brief()}), where the function gets a tensor with the batch first"
        )

    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __xor__ = __round__ = __float__ = __int__ = _no_function
    mean = prod = std = exp = log = sqrt = _no_function

    _no_loop = "a term cannot be looped over; index it ({0}[0]), sum it with .sum(), or quantify with .all() or .any()"
    _no_truth = "the term {0} has no truth value before tensors are bound; compare it with a number"
    _no_formula = (
        "'&', '|', '~' and '>>' join formulas, but {} is a term; comparisons bind less tightly than these in Python, so put each "
        "one in parentheses, as in (x <= 1) & (y >= 0)"
    )


class Number(Term):
    """A single constant."""

    value: float

    def __post_init__(self) -> None:
        value = float(self.value) + 0.0
        if not math.isfinite(value):
            raise FormulaTypeError(f"a constant in a rule must be finite; got {self.value!r}")
        self._derive("value", value)
        self._derive("shape", ())


class Constant(Term):
    """An array of constants: its size and its bytes (float64, row by row), so that it is hashable and holds no tensor."""

    name: str | None
    sizes: tuple[int, ...]
    data: bytes

    def __getitem__(self, key: Any) -> Term:
        if self.name is not None:
            return super().__getitem__(key)
        # Without a name there is nothing to print an index after, so the entries are looked up at once.
        import torch

        items, _ = resolve_index(self.shape, key, self)
        return as_term(torch.tensor(self.rows(), dtype=torch.float64, device="cpu")[items_to_key(items)])

    def numbers(self) -> array.array[float]:
        """The entries, row by row."""
        numbers = array.array("d")
        numbers.frombytes(self.data)
        return numbers

    def rows(self) -> Any:
        """The entries as nested lists (a number, if there are no axes)."""
        rows: Any = self.numbers().tolist()
        for size in reversed(self.sizes[1:]):
            rows = [rows[start : start + size] for start in range(0, len(rows), size)]
        return rows if self.sizes else rows[0]


class Arithmetic(Term):
    """``left op right`` for ``+ - * / **``, broadcasting."""

    operation: str
    left: Term
    right: Term


class Negation(Term):
    """``-operand``."""

    operand: Term


class Absolute(Term):
    """``abs(operand)``."""

    operand: Term


class Index(Term):
    """``operand[items]``; see :func:`dualogic.formula.indexing.resolve_index` for the items."""

    operand: Term
    items: tuple[Item, ...]


class Reduction(Term):
    """``operand.sum(dims)``, ``.max(dims)`` or ``.min(dims)``."""

    operation: str
    operand: Term
    dims: tuple[int, ...]


class MatrixProduct(Term):
    """``left @ right`` with a constant vector or matrix on the right."""

    left: Term
    right: Constant

    def __post_init__(self) -> None:
        left, right = self.left.shape, self.right.shape
        if not left or len(right) not in (1, 2) or left[-1] != right[0]:
            raise ShapeError(
                f"@ needs a term whose last axis is as long as the constant's first: got axes {format_shape(left)} @ "
                f"{format_shape(right)} in {self.left} @ constant"
            )
        self._derive("shape", (*left[:-1], *right[1:]))


def as_term(value: Any) -> Term:
    """Turn a number, a (nested) list, an array or a tensor into a constant; leave terms alone."""
    if isinstance(value, Term):
        return value
    if isinstance(value, bool):
        raise FormulaTypeError(f"a plain bool ({value}) stands where a number or a term is expected")
    if isinstance(value, Node):
        kind = type(value).__name__
        raise FormulaTypeError(f"{value} is a {kind}, not a real-valued term; compare it by itself and join with '&'")
    rows = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(rows, (int, float)) and not isinstance(rows, bool):
        return Number(float(rows))
    if not isinstance(rows, (list, tuple)):
        raise FormulaTypeError(f"expected a term, a number or an array of numbers; got {value!r} of type {type(value).__name__}")
    sizes, flat = _flatten(rows)
    if not all(map(math.isfinite, flat)):
        raise FormulaTypeError("a constant array in a rule must be finite; it contains an infinity or a NaN")
    return Constant(None, sizes, array.array("d", [number + 0.0 for number in flat]).tobytes())


def _flatten(rows: Any) -> tuple[tuple[int, ...], list[float]]:
    if not isinstance(rows, (list, tuple)):
        if isinstance(rows, (int, float)):
            return (), [float(rows)]
        raise FormulaTypeError(f"a constant array must hold numbers; it contains {rows!r}")
    parts = [_flatten(row) for row in rows]
    if not parts or any(part[0] != parts[0][0] for part in parts):
        raise ShapeError("a constant array must be rectangular and not empty; its rows have different lengths")
    return (len(parts), *parts[0][0]), [number for part in parts for number in part[1]]


def constant(name: str, values: Any) -> Term:
    """Name a constant array, so that rules print its name instead of its numbers.

    Args:
        name: an identifier.
        values: a number, a nested list, a numpy array or a tensor.

    Example:
        >>> import dualogic as dl
        >>> membership = dl.constant("membership", [[1, 0], [1, 0], [0, 1]])
        >>> dl.var("p", 3) @ membership <= 1
        p @ membership <= 1
    """
    name = check_name(name, "constant")
    term = as_term(values)
    if isinstance(term, Number):
        return Constant(name, (), array.array("d", [term.value]).tobytes())
    if not isinstance(term, Constant):
        raise FormulaTypeError(f"constant {name!r} must be made of numbers; got the term {term}")
    return Constant(name, term.sizes, term.data)
