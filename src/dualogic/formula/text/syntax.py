"""Text to syntax tree, by the grammar beside this file; and what a syntax error tells its reader."""

from __future__ import annotations

import functools
import importlib.resources
import re
from typing import TYPE_CHECKING, Any

from dualogic.errors import MissingExtraError, ParseError
from dualogic.formula.text.source import Place, Source, place_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from lark import Lark, Token, Tree

COMPARATORS = {
    "LESS_EQUAL": "<=",
    "LESS": "<",
    "GREATER_EQUAL": ">=",
    "GREATER": ">",
    "EQUAL": "==",
    "UNEQUAL": "!=",
    "IN": "in",
    "IS": "is",
}
SIGNS = {"PLUS": "+", "MINUS": "-", "STAR": "*", "SLASH": "/", "AT": "@", "POWER": "**", "_DOT": ".", "_LEFT_SQUARE": "["}
CONNECTIVES = {
    "_AND": "and",
    "_OR": "or",
    "_ARROW": "->",
    "_IMPLIES": "implies",
    "_IFF": "iff",
    "_DOUBLE_ARROW": "<->",
    "_AMPERSAND": "&",
    "_BAR": "|",
    "_SHIFT": ">>",
}
CLOSING = {"_RIGHT_ROUND": ")", "_RIGHT_SQUARE": "]", "_RIGHT_BRACE": "}", "_COMMA": ",", "_COLON": ":", "_ASSIGN": "="}
WORDS = {"_THEN": "then", "_MAX": "max", "_FOR": "for", "_EACH": "each", "_FROM": "from", "_OF": "of"}

HINTS = {
    "=>": "write '->' or 'implies' for an implication, or '>=' for 'at least'",
    "=<": "write '<=' for 'at most'",
    "=": "write '==' to compare; '=' only gives a name to something, in let, constant and group",
    "&&": "write '&' or 'and'",
    "||": "write '|' or 'or'",
    "!": "write 'not' or '~'",
    "≤": "write '<='",
    "≥": "write '>='",
    "≠": "write '!='",
    "∧": "write 'and'",
    "\N{LOGICAL OR}": "write 'or'",
    "¬": "write 'not'",
    "→": "write '->'",
    "⇒": "write '->'",
    "↔": "write 'iff'",
    "“": 'write straight quotes: "..."',
    "”": 'write straight quotes: "..."',
    ";": "write each statement on a line of its own",
    "else": "an 'if' has no 'else' here; write a second rule: if not ... then ...",
}
"""What people write who know another notation, and what it is called here."""


@functools.cache
def _parser() -> Lark:
    try:
        import lark
    except ImportError as error:
        raise MissingExtraError(
            "reading rules from text needs lark, which is not installed; type: pip install 'dualogic[rules]'"
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
        at_end = error.token.type == "$END"
        where, token = _end_of(text) if at_end else place_of(error.token), error.token
        end = len(text) if at_end else error.token.start_pos
    # The error's own list is that of a merged state, with too much or too little in it.
    before = parser.parse_interactive(text[:end], start=start)
    before.exhaust_lexer()
    raise _explain(source, text, where, before.accepts(), token)  # type: ignore[no-untyped-call]


def _end_of(text: str) -> Place:
    """Just behind the last character that is not white space or a comment."""
    lines = text.split("\n")
    for number in range(len(lines), 0, -1):
        line = _without_comment(lines[number - 1]).rstrip()
        if line:
            return Place(number, len(line) + 1, len(line) + 2)
    return Place(1, 1, 2)


def _without_comment(line: str) -> str:
    quote = ""
    for position, character in enumerate(line):
        if quote:
            if character == quote and line[position - 1] != "\\":
                quote = ""
        elif character in "\"'":
            quote = character
        elif character == "#":
            return line[:position]
    return line


def _explain(source: Source, text: str, where: Place, accepted: Collection[str], token: Any = None) -> ParseError:
    rest = text.split("\n")[where.line - 1][where.column - 1 :]
    kind = "" if token is None else token.type
    if kind == "$END":
        # An open bracket is the likelier mistake than anything that could stand inside it.
        brackets = {"_RIGHT_ROUND", "_RIGHT_SQUARE", "_RIGHT_BRACE"} & set(accepted)
        accepted = brackets | ({"_COMMA"} & set(accepted)) if brackets else accepted
        return source.error(where, f"the text ends here, but {expected(accepted)} was expected", *_continuation(source))
    found = rest[:1] if token is None else str(token)
    notes = [f"expected {expected(accepted)}"]
    before = text.split("\n")[where.line - 1][: where.column - 1].rstrip()
    hint = None if kind in ("EQUAL", "UNEQUAL") else next((HINTS[sign] for sign in HINTS if _begins(rest, sign)), None)
    quotable = "STRING" in accepted and "NAME" in accepted and "_LEFT_ROUND" not in accepted
    if hint is None and quotable and found.isidentifier():
        hint = f'{found!r} has a meaning already; as the name of a class it stands in quotes: "{found}"'
    elif hint is None and kind in ("_ARROW", "_IMPLIES", "_IFF", "_DOUBLE_ARROW", "_IF"):
        hint = "several of '->', 'implies', 'iff' and 'if' need parentheses to say what belongs together: a -> (b -> c)"
    elif hint is None and kind == "NOT":
        hint = "'not' binds looser than signs such as '&': write 'and not', or put it in parentheses"
    elif hint is None and before.endswith(found) and found in ("&", "|"):
        hint = HINTS[found * 2]
    elif hint is None and re.search(r"\b(forall|exists|all|any|some)$", before):
        hint = "write (...).all() for 'every', and (...).any() for 'some'"
    elif hint is None and rest[:1] in "\"'" and token is None:
        hint = "the quotes that open here are not closed on this line"
    elif hint is None and kind == "MINUS" and "_RIGHT_BRACE" in accepted:
        hint = 'a name with other characters than letters, digits and _ stands in quotes: "semi-trailer"'
    return source.error(where, f"{found!r} cannot stand here", *([hint] if hint else []), *notes)


def _begins(rest: str, sign: str) -> bool:
    return rest.startswith(sign) and not (sign.isalpha() and rest[len(sign) : len(sign) + 1].isalnum())


def _continuation(source: Source) -> list[str]:
    return ["a statement goes on in the lines below it only if they are indented"] if "\n" in source.text.strip() else []


def expected(accepted: Collection[str]) -> str:
    """What may stand at a place, in words, from the grammar's terminals.

    Example:
        >>> expected({"NAME", "NUMBER", "_LEFT_ROUND"})
        "a name, a number or '('"
        >>> expected({"_RIGHT_ROUND", "_COMMA"})
        "')' or ','"
    """
    parts: list[str] = []
    if {"NAME", "NUMBER", "_LEFT_ROUND"} <= set(accepted):
        parts += ["a name", "a number", "'('"]
    else:
        kinds = {"NAME": "a name", "NUMBER": "a whole number", "STRING": "a name in quotes", "_LEFT_BRACE": "'{'"}
        parts += [kinds[kind] for kind in kinds if kind in accepted]
        parts += ["'('"] if "_LEFT_ROUND" in accepted and "_DOT" not in accepted else []
    parts += [repr(CLOSING[kind]) for kind in CLOSING if kind in accepted]
    parts += [repr(WORDS[kind]) for kind in WORDS if kind in accepted]
    if "INPUT" in accepted:
        parts += ["'logits'", "'probs'"]
    if "EQUAL" in accepted:
        parts += ["a comparison such as '<=' or '=='"]
    if "PLUS" in accepted and "NAME" not in accepted:
        parts += ["an operation such as '+'"]
    if "_AND" in accepted:
        parts += ["a connective such as 'and' or '->'"]
    elif "_AMPERSAND" in accepted:
        parts += ["a connective such as '&'"]
    if "$END" in accepted:
        parts += ["the end of the statement"]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}" if parts else "something else"
