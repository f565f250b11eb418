"""Whole numbers made of classes: a class without a name counts as its index, so that ``a + b == s`` can be said of digits."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from dualogic.errors import FormulaTypeError, SizeError
from dualogic.formula.node import Operators
from dualogic.formula.shape import as_int
from dualogic.formula.term import ARITHMETIC, Number, Term

PAIRS = 1_000_000  # how many combinations of its parts' values one operation may have
LARGEST = 2**53  # whole numbers up to here are exact, also as floating point numbers
LARGEST_POWER = 53


class NumberExpression(Operators["NumberExpression"]):
    """A whole number: a class, or ``+ - * **``, ``abs`` and ``dl.apply`` of such numbers.

    The six comparisons give formulas, which say that the relation holds between the classes.

    Example:
        >>> import dualogic as dl
        >>> a, b, s = dl.categorical("a", 10), dl.categorical("b", 10), dl.categorical("s", 19)
        >>> a + b == s, a < b, a * 10 + b != 42
        (a + b == s, a < b, a * 10 + b != 42)
    """

    values: ClassVar[Sequence[int]]  # the numbers that it can be, in order; set for each node

    def _calculate(self, operation: str, left: Any, right: Any) -> NumberExpression:
        return NumberArithmetic(operation, as_number(left), as_number(right))

    def __radd__(self, other: Any) -> NumberExpression:
        # 0 is where Python's sum() starts.
        return self if as_int(other) == 0 else super().__radd__(other)

    def __neg__(self) -> NumberExpression:
        return NumberArithmetic("-", Number(0.0), as_number(self))

    def __abs__(self) -> NumberExpression:
        return NumberTable("abs", operator.abs, (as_number(self),))

    def _no_fraction(self, other: Any) -> NumberExpression:
        raise FormulaTypeError(
            f"{self.brief()} is a whole number made of classes, which has + - * ** and abs: for a quotient, multiply the other "
            f"side; for anything else use a table, as in dl.apply(lambda n: n % 10, {self.brief()}, name='last_digit')"
        )

    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _no_fraction
    __matmul__ = __rmatmul__ = __xor__ = _no_fraction

    def __getitem__(self, key: Any) -> NumberExpression:
        raise FormulaTypeError(f"index the classes inside {self.brief()} instead of the whole, as in a[0] + b[0]")

    _no_loop = "{0} cannot be looped over; index its classes instead"
    _no_truth = "the number {0} has no truth value; compare it, as in {0} == 0"
    _no_formula = (
        "'&', '|', '~' and '>>' join formulas, but {} is a number; put each comparison in parentheses, as in "
        "(a + b == 3) & (a < b)"
    )


class NumberArithmetic(NumberExpression):
    """``left op right`` for ``+ - * **`` between whole numbers, broadcasting."""

    operation: str
    left: NumberExpression | Number
    right: NumberExpression | Number

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.operation == "**" and not 0 <= values_of(self.right)[0] <= values_of(self.right)[-1] <= LARGEST_POWER:
            raise FormulaTypeError(f"a power of a whole number must be one from 0 to {LARGEST_POWER}, in {self.brief()}")
        if isinstance(self.left, Number) and isinstance(self.right, Number):
            raise FormulaTypeError(f"{self.brief()} has no class in it; write the number itself")
        function = ARITHMETIC[self.operation]
        self._derive("values", _combine(self, lambda pairs: [function(*pair) for pair in pairs], (self.left, self.right)))


class NumberTable(NumberExpression):
    """``function(*operands)`` for a function of whole numbers, read out once for all values; made by ``dl.apply`` and ``abs``."""

    name: str
    function: Callable[..., Any]
    operands: tuple[NumberExpression | Number, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._derive("values", _combine(self, self._look_up, self.operands))

    def _look_up(self, rows: list[tuple[int, ...]]) -> list[int]:
        import torch

        found: list[int] = look_up(self.name, self.function, *(torch.tensor(column) for column in zip(*rows))).tolist()
        return found


def look_up(name: str, function: Callable[..., Any], *columns: Any) -> Any:
    """A table's values for integer tensors of one shape; refused unless they are as many whole numbers."""
    import torch

    result = function(*columns)
    if not isinstance(result, torch.Tensor) or result.shape != columns[0].shape:
        got = f"one of shape {tuple(result.shape)}" if isinstance(result, torch.Tensor) else repr(result)
        raise FormulaTypeError(
            f"the table {name} gets integer tensors of one shape and must return one of that shape; for "
            f"{tuple(columns[0].shape)} it returned {got}"
        )
    whole: torch.Tensor = result.long()
    if not bool((whole == result).all()):
        raise FormulaTypeError(f"the table {name} must return whole numbers; it returned {result[whole != result][0].item()!r}")
    return whole


def values_of(number: NumberExpression | Number) -> Sequence[int]:
    """The values that a number can have, in order."""
    return (int(number.value),) if isinstance(number, Number) else number.values


def _combine(
    whole: NumberExpression, function: Callable[[Any], Any], parts: tuple[NumberExpression | Number, ...]
) -> tuple[int, ...]:
    ranges = list(map(values_of, parts))
    count = math.prod(map(len, ranges))
    if count > PAIRS:
        raise SizeError(
            f"{whole.brief()} has {count:,} combinations of values, more than {PAIRS:,}; state it in smaller parts, as in a sum "
            f"digit by digit with a carry that is a class of its own"
        )
    found = sorted(set(function(list(itertools.product(*ranges)))))
    largest = max(abs(found[0]), abs(found[-1]))
    if largest > LARGEST:
        raise SizeError(f"{whole.brief()} can be as large as {largest:.3g}, more than {LARGEST:.3g}")
    return tuple(found)


def as_number(value: Any) -> NumberExpression | Number:
    """Check that ``value`` is a class without names, a number made of such classes, or a plain whole number."""
    if isinstance(value, NumberExpression):
        symbol = getattr(value, "symbol", None)
        if symbol is not None and symbol.classes is not None:
            raise FormulaTypeError(
                f"the classes of {value} have names ({', '.join(symbol.classes[:3])}{', ...' if symbol.size > 3 else ''}), which "
                f"are no numbers and have no order or arithmetic: use ==, != or .isin([...]), or declare {symbol.name!r} without "
                f"classes= if its classes are the numbers 0 to {symbol.size - 1}"
            )
        return value
    if isinstance(value, Term) and not isinstance(value, Number):
        raise FormulaTypeError(
            f"{value.brief()} is a real-valued term, and classes are counted with whole numbers only; for the classes' "
            f"probabilities as real numbers write .probabilities behind the class"
        )
    plain = value.value if isinstance(value, Number) else value
    if as_int(plain) is None and not (isinstance(plain, float) and plain.is_integer()):
        raise FormulaTypeError(
            f"a class counts as a whole number, and can be joined with whole numbers and classes; got {plain!r}"
        )
    return Number(float(plain))
