"""Text to statements, and these to syntax trees, by the grammar beside this file; an error tells what was expected."""

from __future__ import annotations

import functools
import importlib.resources
import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from dualogic.errors import ParseError, needs, suggest
from dualogic.text.source import Place, Source, place_of

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

KEYWORDS = ("axis", "bool", "class", "constant", "group", "let", "mask", "membership", "rule", "var")
_WORD = re.compile(r"[^\s:=,]+")
SIGNS = {"_RIGHT_ROUND": ")", "_RIGHT_SQUARE": "]", "_RIGHT_BRACE": "}", "_COMMA": ",", "_COLON": ":", "_ASSIGN": "="}
SIGNS |= {"_THEN": "then", "_MAX": "max", "_FOR": "for", "_EACH": "each", "_FROM": "from", "_OF": "of"}

HINTS = {
    "<=>": "write 'iff'",
    "<>": "write '!='",
    "=>": "write '->' or 'implies' for an implication, or '>=' for 'at least'",
    "=<": "write '<=' for 'at most'",
    "=": "write '==' to compare, and ':' in a declaration; '=' only gives a name to something, in let, constant and group",
    "&&": "write '&' or 'and'",
    "||": "write '|' or 'or'",
    **dict.fromkeys("!¬", "write 'not' or '~'"),
    "≤": "write '<='",
    "≥": "write '>='",
    "≠": "write '!='",
    "∧": "write 'and'",
    "\N{LOGICAL OR}": "write 'or'",
    **dict.fromkeys("→⇒", "write '->'"),
    "↔": "write 'iff'",
    **dict.fromkeys("“”„\u2018\u2019", 'write straight quotes: "..."'),
    **dict.fromkeys("\u2013—\u2212", "write '-'"),
    **dict.fromkeys("\u00d7·", "write '*'"),
    **dict.fromkeys("^²³", "write '**' for a power: x ** 2"),
    "//": "a comment begins with '#', and numbers are divided by '/'",
    ";": "write each statement on a line of its own",
    "else": "an 'if' has no 'else' here; write a second rule: if not ... then ...",
}
"""What people write who know another notation, and what it is called here."""

QUOTES = 'a name with other characters than letters, digits and _ stands in quotes: "semi-trailer"'
COMPARED = r"\b(is|over|above|under|below|exceeds|equals?|more|less|(great|larg|high|small|low|few)er)( than| to)?( \d+)?$"
PHRASES = {
    r"\b(If|IF|Then|THEN|And|AND|Or|OR|Not|NOT|Is|IS|In|IN)\b[^,]*$": "words such as 'if' and 'not' are written in small letters",
    r"\bwhen(ever)? \S+$| (unless|when|requires|means|only)$": "write 'if ... then ...', and 'if not ... then ...' for 'unless'",
    r"^var .*( between| from|\[|[<>]| in ?\S)": "a range is written so: var x in [0, 1]",
    r" (between( \d+)?|(and|or|not) ?[<>=!]+)$": "write 0 <= x <= 5 for 'between', and the name again in x <= 1 or x >= 5",
    r"\bone of$": "write 'in' for 'one of': pet in {cat, dog}",
    r"\bis (not )?in$": "write 'in' or 'not in', without 'is'",
    r"\bis an? \w+$": "write no article: pet is cat",
    r"\bexactly \S+$": "write ExactlyOne(a, b, c)",
    r"\b(n?either|both|none) \S+$| xor$": "write 'a or b', 'a and b', 'not (a or b)' for 'neither', and Xor(a, b) for one alone",
    r"\bno \S+$": "write 'not' for 'no'",
    COMPARED: "write '>', '<' or '==' for a number, and 'is' for a class",
    r"[^\w.][\d.]+ ?[^\W\d_]+$|[€$£]$": "a number has no unit: write 100 for 100 EUR",
    r"\bat (least|most)$": "write '>=' or '<=' for a number; AtMost(2, a, b, c) counts how many hold",
    r"^class [^{]*[,[(]$": "the names of classes stand in braces: class pet: {cat, dog}",
    r"^rule [^:]*$": QUOTES,
    r",$": "no comma stands between the parts of a rule, or in a number: 1000",
    r"\d ?%$": "write a share as a number: 0.1 for 10 %",
}
"""How a line looks up to what cannot stand where it does, for those who write as they speak."""


BEGINNINGS = dict.fromkeys(("number", "int", "float", "real", "variable"), "'var' declares a number: var age")
BEGINNINGS["if"] = "a rule has a name: rule NAME: if ... then ..."

_CODE = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^#])*""")
"""A line up to its comment; a ``#`` in quotes begins none."""


def split(source: Source) -> Iterator[tuple[int, str]]:
    r"""The statements of a rule file: their first lines, counted from 1, and texts after as many empty lines as come before.

    A statement begins at the left margin and goes on in the indented lines below it; a line that begins with a closing
    bracket belongs to what it closes. The margin is that of the least indented line.
    """
    lines = source.text.split("\n")
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip() and not line.lstrip().startswith("#")]
    margin = min(indents, default=0)
    at_margin = [line[margin:] if not line[:margin].strip() else "" for line in lines]
    starts = [number for number, rest in enumerate(at_margin) if rest.strip() and rest[0] not in " \t\u00a0#)]}"]
    for start, end in zip(starts, [*starts[1:], len(lines)]):
        match = _WORD.match(lines[start], margin)
        word = match[0] if match else lines[start][margin : margin + 1]
        if word not in KEYWORDS:
            raise source.error(
                Place(start + 1, margin + 1, margin + 1 + len(word)),
                f"a statement cannot begin with {word!r}{suggest(word, KEYWORDS)}",
                *filter(None, [BEGINNINGS.get(word.lower())]),
                f"expected one of {', '.join(KEYWORDS)}; indent the line if it goes on with the statement above",
            )
        yield start + 1, "\n" * start + "\n".join(lines[start:end])


@functools.cache
def _parser() -> Lark:
    with needs("rules", "reading rules from text needs lark, which is not installed"):
        import lark
    grammar = importlib.resources.files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    return lark.Lark(grammar, parser="lalr", start=["expression", "statement"], propagate_positions=True)


def to_tree(source: Source, text: str, start: str) -> Tree[Token]:
    """The syntax tree of a text, a part of the source with its line numbers (blank lines stand for what comes before).

    It starts as ``"expression"`` or as ``"statement"``. An error shows the place and what was expected there.
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
        where, end = (_end_of(text), len(text)) if at_end else (place_of(token), token.start_pos)
    # The error's own list of what was expected is that of a merged state, with too much or too little in it.
    before = parser.parse_interactive(text[:end], start=start)
    before.exhaust_lexer()
    accepted = before.accepts()  # type: ignore[no-untyped-call]
    if token is not None and token.type == "$END":
        raise _explain_end(source, where, accepted, start)
    raise _explain(source, where, accepted, token)


def _end_of(text: str) -> Place:
    """Just behind the last character that is not white space or a comment."""
    lines = text.split("\n")
    for number in range(len(lines), 0, -1):
        match = _CODE.match(lines[number - 1])
        line = match[0].rstrip() if match else ""
        if line:
            return Place(number, len(line) + 1, len(line) + 2)
    return Place(1, 1, 2)


def _explain_end(source: Source, where: Place, accepted: Collection[str], start: str) -> ParseError:
    """An error about a text that ends too early."""
    # An open bracket is the likelier mistake than anything that could stand inside it.
    brackets = {"_RIGHT_ROUND", "_RIGHT_SQUARE", "_RIGHT_BRACE"} & set(accepted)
    wanted = expected(brackets | ({"_COMMA"} & set(accepted)) if brackets else accepted)
    layout = ["a statement goes on in the lines below it only if they are indented"] if start == "statement" else []
    if source.text.split("\n")[where.line - 1][: where.column - 1].endswith("."):
        layout = ["no full stop stands at the end of a rule"]
    return source.error(where, f"the text ends here, but {wanted} was expected", *layout)


def _explain(source: Source, where: Place, accepted: Collection[str], token: Token | None) -> ParseError:
    """An error about something that cannot stand where it does; ``None`` for a character that begins nothing.

    ``accepted`` are the grammar's terminals that could stand there.
    """
    line = source.text.split("\n")[where.line - 1]
    before, rest = line[: where.column - 1].rstrip(), line[where.column - 1 :]
    found = rest[:1] if token is None else str(token)
    if not before and found in KEYWORDS and "$END" in accepted:
        reason = "this line is indented, so it goes on with the statement above it"
        return source.error(where, reason, f"if {found!r} begins a statement of its own, move it to the left margin")
    hint = _hint(before, rest, found, "" if token is None else token.type, set(accepted))
    return source.error(where, f"{found!r} cannot stand here", *([hint] if hint else []), f"expected {expected(accepted)}")


def _hint(before: str, rest: str, found: str, kind: str, accepted: set[str]) -> str | None:
    for sign in HINTS if kind not in ("EQUAL", "UNEQUAL") else ():
        begun = not sign.isalpha() and before.endswith(sign[:-1]) and rest.startswith(sign[-1])
        if begun or (rest.startswith(sign) and not (sign.isalpha() and rest[len(sign) : len(sign) + 1].isalnum())):
            return HINTS[sign]
    if "NAME" in accepted and "_LEFT_ROUND" not in accepted and found.isidentifier():
        other = f'as the name of a class it stands in quotes: "{found}"' if "STRING" in accepted else "choose another name"
        return f"{found!r} has a meaning already; {other}"
    if kind == "_IF" and "EQUAL" in accepted:
        return "the condition comes first: if ... then ..."
    if kind in ("_ARROW", "_IMPLIES", "_IFF", "_DOUBLE_ARROW", "_GIVEN", "_IF"):
        return "several of '->', 'implies', 'iff', 'given' and 'if' need parentheses to say what belongs together: a -> (b -> c)"
    if kind == "NOT":
        return "'not' binds looser than signs such as '&': write 'and not', or put it in parentheses"
    if re.search(r"\b(forall|exists|all|any|some)$", before):
        return "write (...).all() for 'every', and (...).any() for 'some'"
    if not kind and found in ('"', "'"):
        return "the quotes that open here are not closed on this line"
    if (kind in ("MINUS", "NAME") and "_RIGHT_BRACE" in accepted) or (kind == "MINUS" and "STRING" in accepted):
        return QUOTES
    line = f"{before} {found}" if found.isalnum() else f"{before}{found}"
    return next((hint for pattern, hint in PHRASES.items() if re.search(pattern, line)), None)


def expected(accepted: Collection[str]) -> str:
    """What may stand at a place, in words, from the grammar's terminals."""
    parts: list[str] = []
    if {"NAME", "NUMBER", "_LEFT_ROUND"} <= set(accepted):
        parts += ["a name", "a number", "'('"]
    else:
        kinds = {"NAME": "a name", "NUMBER": "a whole number", "STRING": "a name in quotes", "_LEFT_BRACE": "'{'"}
        parts += [kinds[kind] for kind in kinds if kind in accepted]
        opening = {"_LEFT_ROUND": "'('", "_LEFT_SQUARE": "'['"} if "_DOT" not in accepted else {}
        parts += [opening[kind] for kind in opening if kind in accepted]
    parts += [repr(SIGNS[kind]) for kind in SIGNS if kind in accepted]
    parts += ["'logits'", "'probs'"] if "INPUT" in accepted else []
    parts += ["a comparison such as '<=' or '=='"] if "EQUAL" in accepted else ["'in'"] if "IN" in accepted else []
    parts += ["an operation such as '+'"] if "PLUS" in accepted and "NAME" not in accepted else []
    if {"_AND", "_AMPERSAND"} & set(accepted):
        parts += ["a connective such as 'and' or '->'" if "_AND" in accepted else "a connective such as '&'"]
    parts += ["the end of the statement"] if "$END" in accepted else []
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}" if parts else "something else"
