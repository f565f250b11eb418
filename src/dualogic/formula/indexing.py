"""Numpy-style indexing of declared axes: keys become normalised items, one for each axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dualogic.errors import FormulaTypeError, ShapeError
from dualogic.formula.shape import WHOLE, Item, Ragged, Shape, Size, as_int, format_shape, max_size

if TYPE_CHECKING:
    from dualogic.formula.node import Node

_KEYS: dict[str, Callable[..., Any]] = {"range": slice, "take": list, "at": int, "new": lambda: None}
"""What an item is in Python's index, by its kind."""


def resolve_index(shape: Shape, key: Any, where: Node) -> tuple[tuple[Item, ...], Shape]:
    """A numpy-style index as items, one for each axis in order (plus one for each ``None``), and the resulting shape."""
    given = key if isinstance(key, tuple) else (key,)
    entries = [entry.tolist() if hasattr(entry, "tolist") else entry for entry in given]  # of arrays and tensors
    consumed = sum(entry is not None and entry is not Ellipsis for entry in entries)
    if consumed > len(shape):
        raise ShapeError(
            f"{where.brief()} has {len(shape)} declared axes {format_shape(shape)}, but {consumed} are indexed; "
            f"the batch axis is not indexed"
        )
    if sum(entry is Ellipsis for entry in entries) > 1:
        raise ShapeError(f"an index may contain one '...' only, in {where.brief()}")
    if not any(entry is Ellipsis for entry in entries):
        entries.append(Ellipsis)
    place = next(position for position, entry in enumerate(entries) if entry is Ellipsis)
    entries[place : place + 1] = [slice(None)] * (len(shape) - consumed)

    items: list[Item] = []
    result: list[Size] = []
    sizes = iter(shape)
    for entry in entries:
        item, left = (("new",), 1) if entry is None else _resolve_entry(entry, next(sizes), where)
        items.append(item)
        result += [] if left is None else [left]
    lists = sum(item[0] == "take" for item in items)
    if lists > 1:
        raise ShapeError(f"only one list of positions is allowed in an index, in {where.brief()}; index in two steps")
    advanced = [number for number, item in enumerate(items) if item[0] in ("at", "take")]
    # Also a '...' that stands for no axis keeps them apart.
    apart = lists and consumed == len(shape) and advanced[0] < place <= advanced[-1]
    if lists and (apart or advanced[-1] - advanced[0] >= len(advanced)):
        raise ShapeError(
            f"numpy moves the axis of a list of positions (here a backwards slice is one too) to the front when a slice, None or "
            f"'...' stands between it and an int, in {where.brief()}; index in two steps to say which order is meant"
        )
    return tuple(items), tuple(result)


def _resolve_entry(entry: Any, size: Size, where: Node) -> tuple[Item, Size | None]:
    """The item for one axis, and how long it leaves it; ``None`` for one that is gone."""
    entry = _as_positions(entry, size, where)
    if isinstance(entry, slice):
        return _resolve_slice(entry, size, where)
    if not isinstance(entry, (list, range)):
        return ("at", _resolve_position(entry, size, where)), None
    if not entry:
        raise ShapeError(f"an empty list of positions selects nothing in {where.brief()}")
    return ("take", tuple(_resolve_position(pick, size, where) for pick in entry)), len(entry)


def _as_positions(entry: Any, size: Size, where: Node) -> Any:
    """A backwards slice, or one bool for each entry, of an axis of fixed size as the positions that it selects."""
    if not isinstance(size, int):
        return entry
    if isinstance(entry, slice) and (as_int(entry.step) or 1) < 0:
        return range(size)[entry]
    if isinstance(entry, list) and entry and all(isinstance(each, bool) for each in entry):
        if len(entry) != size:
            raise ShapeError(
                f"{len(entry)} bools cannot select from an axis of size {size} in {where.brief()}; give one for each entry"
            )
        return [place for place, chosen in enumerate(entry) if chosen]
    return entry


def _resolve_position(entry: Any, size: Size, where: Node) -> int:
    number = as_int(entry)
    if number is None:
        remedy = f"; keep places by name in a dictionary: {where.brief()}[place[{entry!r}]]" if isinstance(entry, str) else ""
        raise FormulaTypeError(
            f"an index of {where.brief()} must be made of ints, slices, lists of ints, None and '...'; got {entry!r}{remedy}"
        )
    limit = max_size(size)
    if not -limit <= number < limit:
        raise ShapeError(f"position {number} is outside of an axis of size {size!r} in {where.brief()}")
    # On a ragged axis a negative position depends on the bound length, so it is kept as it is.
    return number % limit if isinstance(size, int) else number


def _resolve_slice(entry: slice, size: Size, where: Node) -> tuple[Item, Size]:
    bounds = (entry.start, entry.stop, entry.step)
    start, stop, step = (as_int(bound) for bound in bounds)
    if bounds != (start, stop, step):
        raise FormulaTypeError(f"slice bounds must be ints in {where.brief()}; got {entry!r}")
    if step is not None and step < 1:
        raise ShapeError(f"a slice needs a positive step in {where.brief()}; got {entry!r}")
    if isinstance(size, int):
        first, last, stride = entry.indices(size)
        length = len(range(first, last, stride))
        if length == 0:
            raise ShapeError(f"the slice {format_slice(start, stop, step)} of an axis of size {size} is empty in {where.brief()}")
        if length == size:
            return WHOLE, size
        stride = stride if length > 1 else 1
        return ("range", first, first + (length - 1) * stride + 1, stride), length
    if (start or 0) < 0 or (stop is not None and stop >= 0) or step not in (None, 1):
        raise ShapeError(
            f"the slice {format_slice(start, stop, step)} of the ragged axis {size!r} in {where.brief()} has a length that "
            f"depends on the bound tensor; use slices such as [1:] or [:-1], which cut a fixed number of entries from its ends"
        )
    trimmed = (start or 0) + -(stop or 0)
    if trimmed >= size.max:
        raise ShapeError(f"the slice {format_slice(start, stop, step)} leaves nothing of axis {size!r} in {where.brief()}")
    return ("range", start or None, stop, None), Ragged(size.axis, size.trim + trimmed)


def format_slice(start: int | None, stop: int | None, step: int | None) -> str:
    """``1:``-style text of a slice."""
    text = f"{start or ''}:{'' if stop is None else stop}"
    return text if step in (None, 1) else f"{text}:{step}"


def format_items(items: tuple[Item, ...]) -> str:
    """``[1:, None, 3]``-style text of normalised index items."""
    parts = (format_slice(*item[1:]) if item[0] == "range" else str(key) for item, key in zip(items, items_to_key(items)))
    return f"[{', '.join(parts)}]"


def items_to_key(items: tuple[Item, ...]) -> tuple[Any, ...]:
    """The Python index that normalised items stand for."""
    return tuple([_KEYS[item[0]](*item[1:]) for item in items])
