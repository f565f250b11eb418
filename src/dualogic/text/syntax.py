"""Text to syntax tree, by the grammar beside this file."""

from __future__ import annotations

import functools
import importlib.resources
from typing import TYPE_CHECKING

from dualogic.errors import MissingExtraError, how_to_install
from dualogic.text.explanation import end_of, explain, explain_end
from dualogic.text.source import Place, Source, place_of

if TYPE_CHECKING:
    from lark import Lark, Token, Tree


@functools.cache
def _parser() -> Lark:
    try:
        import lark
    except ImportError as error:
        raise MissingExtraError(
            f"reading rules from text needs lark, which is not installed; {how_to_install('rules')}"
        ) from error
    grammar = importlib.resources.files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    return lark.Lark(grammar, parser="lalr", start=["expression", "statement"], propagate_positions=True)


def to_tree(source: Source, text: str, start: str) -> Tree[Token]:
    """The syntax tree of a text.

    Args:
        source: what an error shows.
        text: what is read; a part of the source, with its line numbers (blank lines stand for what comes before).
        start: ``"expression"`` or ``"statement"``.

    Raises:
        ParseError: with the place and what was expected there.
    """
    parser = _parser()
    import lark

    try:
        return parser.parse(text, start=start)
    except lark.UnexpectedCharacters as error:
        where, token, end = Place(error.line, error.column, error.column + 1), None, error.pos_in_stream
    except lark.UnexpectedToken as error:
        token = error.token
        at_end = token.type == "$END"
        where, end = (end_of(text), len(text)) if at_end else (place_of(token), token.start_pos)
    # The error's own list of what was expected is that of a merged state, with too much or too little in it.
    before = parser.parse_interactive(text[:end], start=start)
    before.exhaust_lexer()
    accepted = before.accepts()  # type: ignore[no-untyped-call]
    if token is not None and token.type == "$END":
        raise explain_end(source, where, accepted, start)
    raise explain(source, where, accepted, token)
