"""Numbers and quoted texts, as Python reads them."""

from __future__ import annotations

import operator
import re
from typing import Any

from dualogic.errors import FormulaTypeError
from dualogic.formula.term import ARITHMETIC

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "\\": "\\", '"': '"', "'": "'"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|.)")
_EXACT = 2.0**53
_OPERATIONS = {**ARITHMETIC, "@": operator.matmul}


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
