"""Where something stands in a text, errors that show the place, and numbers and quoted texts as Python reads them."""

from __future__ import annotations

import dataclasses
import operator
import re
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Union

from dualogic.errors import FormulaTypeError, ParseError
from dualogic.formula.term import ARITHMETIC

if TYPE_CHECKING:
    from lark import Token, Tree

    Located = Union[Tree[Token], Token]

WINDOW = 100  # how much of a long line an error shows
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "\\": "\\", '"': '"', "'": "'"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|.)")
_EXACT = 2.0**53
_OPERATIONS = {**ARITHMETIC, "@": operator.matmul}


@dataclasses.dataclass(frozen=True)
class Place:
    """A line and a range of columns in it, all counted from 1; the end is exclusive."""

    line: int
    column: int
    end_column: int


def place_of(located: Located) -> Place:
    """Where a token or a tree begins, with a range as long as its first line."""
    meta = getattr(located, "meta", located)
    line, column = getattr(meta, "line", None) or 1, getattr(meta, "column", None) or 1
    end = getattr(meta, "end_column", None) or column + 1
    return Place(line, column, max(end, column + 1) if getattr(meta, "end_line", line) == line else 1_000_000)


@dataclasses.dataclass(frozen=True)
class Source:
    """A text with the path it was read from."""

    text: str
    path: str | None = None

    def error(self, where: Place | Located, reason: str, *notes: str) -> ParseError:
        """An error that shows a place, or that of a token or a tree; what was expected, or what to do, is a line each.

        Example:
            >>> print(Source("x <= yy").error(Place(1, 6, 8), "'yy' is not declared", "known names: x, y"))
            line 1, column 6: 'yy' is not declared
              1 | x <= yy
                |      ^^
            known names: x, y
        """
        place = where if isinstance(where, Place) else place_of(where)
        origin = f"{self.path}, " if self.path is not None else ""
        head = f"{origin}line {place.line}, column {place.column}: {reason}"
        error = ParseError("\n".join([head, *self._excerpt(place), *notes]))
        error.path, error.line, error.column, error.reason = self.path, place.line, place.column, reason
        return error

    def _excerpt(self, place: Place) -> list[str]:
        # Not splitlines(), which would break lines at characters that a quoted class name may contain.
        line = self.text.split("\n")[place.line - 1]
        first, last = place.column - 1, min(place.end_column - 1, max(len(line), place.column))
        start = max(0, first - WINDOW // 2)
        shown = line[start : start + WINDOW]
        cut_left, cut_right = "..." if start else "", "..." if len(line) > start + WINDOW else ""
        before = line[start:first]
        # Tabs stay tabs and wide characters count twice, so that the mark stands where the reader looks.
        padding = "".join(character if character == "\t" else " " * _width(character) for character in before)
        marked = sum(map(_width, line[first : min(last, start + WINDOW)])) or 1
        number = str(place.line)
        return [
            f"  {number} | {cut_left}{shown}{cut_right}",
            f"  {' ' * len(number)} | {' ' * len(cut_left)}{padding}{'^' * marked}",
        ]


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def listed(names: Iterable[str], limit: int = 20) -> str:
    """Names in a row, cut off where they would drown the message."""
    shown = list(names)
    more = f" and {len(shown) - limit} more" if len(shown) > limit else ""
    return ", ".join(shown[:limit]) + more


def read_string(text: str) -> str:
    """The characters between quotes."""
    return _ESCAPE.sub(_unescape, text[1:-1])


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) > 1:
        return chr(int(code[1:], 16))
    if code not in _ESCAPES:
        raise FormulaTypeError(f"\\{code} has no meaning in quotes; write \\\\ for a backslash")
    return _ESCAPES[code]


def read_number(text: str) -> int | float:
    """An ``int`` where Python would have one."""
    return int(text) if text.replace("_", "").isdigit() else float(text)


def calculate(sign: str, left: Any, right: Any) -> Any:
    """``left sign right`` for numbers and terms, with Python's meaning."""
    if sign != "**":
        return _OPERATIONS[sign](left, right)
    if not (isinstance(left, (int, float)) and isinstance(right, (int, float))):
        return left**right
    # Powers of whole numbers grow without bound in Python; a rule has no use for more digits than a float has.
    try:
        power = float(left) ** float(right)
    except OverflowError:
        raise FormulaTypeError(f"{left} ** {right} is too large a number") from None
    if isinstance(power, complex):
        raise FormulaTypeError(f"{left} ** {right} is not a real number")
    whole = isinstance(left, int) and isinstance(right, int) and right >= 0 and abs(power) < _EXACT
    return int(power) if whole else power
