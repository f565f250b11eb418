"""Declared axes: fixed or ragged sizes, and broadcasting.

A *shape* here never includes the batch axis. Each entry is an ``int`` or a :class:`Ragged` size, whose actual length is
known only when a tensor is bound.
"""

from __future__ import annotations

import dataclasses
import keyword
import math
import operator
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Union

from dualogic.errors import FormulaTypeError, ShapeError, SymbolError

if TYPE_CHECKING:
    from dualogic.formula.node import Node

RESERVED_NAMES = frozenset({"index", "where", "believe", "tol", "lead", "class_cost", "labels", "rules", "self", "true", "false"})


BRIEF = 200  # how many characters of a text an error message shows


def shorten(text: str, limit: int = BRIEF) -> str:
    """``text``, cut off where it would drown an error message."""
    return text if len(text) <= limit else f"{text[:limit]}..."


def format_count(number: int) -> str:
    """A number of things; of a huge one only how many digits it has, which is more than Python would write out."""
    if number < 10**15:
        return f"{number:,}"
    return f"about 10^{int(number.bit_length() * math.log10(2.0))}"


def check_name(name: object, what: str) -> str:
    """Return ``name`` if a symbol may have it, and say why not otherwise."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise SymbolError(
            f"the name of a {what} must be a Python identifier, because tensors are bound to it by keyword; got {name!r}"
        )
    if name != (read := unicodedata.normalize("NFKC", name)):
        raise SymbolError(f"Python reads {name!r} as {read!r} where a tensor is bound by keyword; write {read!r} for the {what}")
    if name in RESERVED_NAMES:
        raise SymbolError(
            f"{name!r} cannot name a {what}: it is an argument of dualogic's own calls "
            f"(reserved: {', '.join(sorted(RESERVED_NAMES))}); choose another name, such as {name + '_'!r}"
        )
    return str.__str__(name)  # also of numpy, or of an enumeration


@dataclasses.dataclass(frozen=True)
class Axis:
    """A named axis whose length differs between batches, up to ``max``; made by :func:`axis`."""

    name: str
    max: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", check_name(self.name, "axis"))
        size = as_int(self.max)
        if size is None or size < 1:
            raise ShapeError(f"axis {self.name!r} needs a maximal length of at least 1; got max={self.max!r}")
        object.__setattr__(self, "max", size)

    def __repr__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True)
class Ragged:
    """The length of an axis, less ``trim`` entries cut off by slicing: ``x[1:]`` has length ``n - 1``."""

    axis: Axis
    trim: int = 0

    @property
    def max(self) -> int:
        """The largest length that can occur."""
        return self.axis.max - self.trim

    def __repr__(self) -> str:
        return f"{self.axis.name} - {self.trim}" if self.trim else self.axis.name


Size = Union[int, Ragged]
Shape = tuple[Size, ...]
Item = tuple[Any, ...]  # one index item: `("at", i)`, `("range", start, stop, step)`, `("new",)` or `("take", (i, ...))`


WHOLE: Item = ("range", None, None, None)  # the item that keeps an axis as it is


def axis(name: str, max: int) -> Axis:
    """Declare an axis whose length differs between batches, up to ``max``; :func:`mask` shows how to use it."""
    return Axis(name, max)


def as_int(value: Any) -> int | None:
    """``value`` as a plain ``int`` if it is an integer (of Python, numpy or a 0-d tensor), else ``None``."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def declare_shape(sizes: Iterable[Any], name: str) -> Shape:
    """Check the sizes that a user gives to a symbol."""
    declared: list[Size] = []
    for size in sizes:
        found = Ragged(size) if isinstance(size, Axis) else size if isinstance(size, Ragged) else as_int(size)
        if found is None or (isinstance(found, int) and found < 1):
            remedy = f"; give each size by itself: {', '.join(map(str, size))}" if isinstance(size, (tuple, list)) else ""
            raise ShapeError(
                f"the axes of {name!r} must be positive sizes or dl.axis(...) objects; got {size!r} "
                f"(the batch axis is implied and not declared){remedy}"
            )
        declared.append(found)
    return tuple(declared)


def as_axes(shape: Any) -> Sequence[Any]:
    """``shape`` as a sequence, where a lone size is one axis."""
    return shape if isinstance(shape, (tuple, list)) else (shape,)


def max_size(size: Size) -> int:
    """The number of entries to reserve for an axis of this size."""
    return size if isinstance(size, int) else size.max


def max_shape(shape: Shape) -> tuple[int, ...]:
    """``shape`` with every ragged size at its maximum."""
    return tuple(map(max_size, shape))


def broadcast(shapes: Sequence[Shape], where: Node) -> Shape:
    """Broadcast shapes as numpy does, aligned at the last axis; ``where`` is the expression, for the error message."""
    if len(set(shapes)) == 1:
        return shapes[0]
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Size] = [1] * rank
    for shape in shapes:
        for position, size in enumerate(shape, start=rank - len(shape)):
            if result[position] == 1:
                result[position] = size
            elif size not in (1, result[position]):
                raise ShapeError(
                    f"the axes {' and '.join(format_shape(shape) for shape in shapes)} cannot be broadcast together "
                    f"in {where.brief()}; index with None to line axes up, as in d[None, :] <= d[:, None]"
                )
    return tuple(result)


def format_shape(shape: Shape) -> str:
    """``(20,)``-style text of a shape."""
    return repr(tuple(shape))


def normalize_dims(dim: Any, shape: Shape, where: Node) -> tuple[int, ...]:
    """Turn ``dim`` (``None``, an int or several) into sorted non-negative positions within ``shape``."""
    dims = []
    for item in range(len(shape)) if dim is None else as_axes(dim):
        number = as_int(item)
        if number is None:
            raise FormulaTypeError(f"dim must be an int, a tuple of ints or None in {where.brief()}; got {dim!r}")
        if not -len(shape) <= number < len(shape):
            raise ShapeError(
                f"dim {number} does not exist in {where.brief()}, whose declared axes are {format_shape(shape)}; "
                f"the batch axis does not count"
            )
        dims.append(number % len(shape))
    if len(set(dims)) < len(dims):
        raise ShapeError(f"dim {dim!r} names an axis twice in {where.brief()}")
    if not dims:
        raise ShapeError(f"{where.brief()} has no axis to reduce: its declared axes are {format_shape(shape)}")
    return tuple(sorted(dims))


def remove_dims(shape: Shape, dims: tuple[int, ...]) -> Shape:
    """``shape`` without the axes at ``dims``."""
    return tuple(size for position, size in enumerate(shape) if position not in dims)
