"""A lone formula from text."""

from __future__ import annotations

from typing import Any

from dualogic.errors import FormulaTypeError
from dualogic.formula.connective import Formula
from dualogic.text.expression import Reader
from dualogic.text.names import collect_names
from dualogic.text.source import Place, Source
from dualogic.text.syntax import to_tree

TOO_DEEP = "this text is nested too deeply; name its parts with let"


def parse(text: str, symbols: Any = None) -> Formula:
    """Read one formula; ``parse(str(formula), formula)`` is the same object as ``formula``.

    The text has Python's meaning wherever Python can read it. Beyond that, comparisons need no parentheses beside a
    connective and may be chained (``0 <= x <= 1``), and ``and``, ``or``, ``not``, ``implies`` (or ``->``), ``iff`` and ``if ...
    then ...`` may be written as words. Classes may be compared by their bare names. See ``docs/rule-files.md``.

    Args:
        text: the formula.
        symbols: a mapping from names to symbols, constants, numbers, arrays, terms or functions of tensors (as in
            ``dl.apply``); a sequence of symbols, constants and functions; a formula, for all names in it; or the rules of
            a file, for all names declared there.

    Raises:
        ParseError: with the line, a mark under the place and what was expected there.
        MissingExtraError: without lark (``pip install -e '.[rules]'``).

    Example:
        >>> import dualogic as dl
        >>> f, g = dl.categorical("f", 10), dl.categorical("g", 10)
        >>> dl.parse("if g is 9 then f is 6", [f, g])
        (g == 9) >> (f == 6)
        >>> dl.parse("0 <= x <= 1 and not y > 2", [dl.var("x"), dl.var("y")])
        (x >= 0) & (x <= 1) & ~(y > 2)
        >>> dl.parse("if h is 9 then f is 6", [f, g])
        Traceback (most recent call last):
            ...
        dualogic.errors.ParseError: line 1, column 4: 'h' is not declared
          1 | if h is 9 then f is 6
            |    ^
        known names: f, g
    """
    if not isinstance(text, str):
        raise FormulaTypeError(f"dl.parse reads text; got {text!r} of type {type(text).__name__}")
    names = collect_names(symbols)
    source = Source(text)
    tree = to_tree(source, text, "expression")
    try:
        return Reader(source, names).read_formula(tree, "here")
    except RecursionError:
        raise source.error(Place(1, 1, 2), TOO_DEEP) from None
