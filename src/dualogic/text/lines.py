"""A rule file's text cut into statements."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dualogic.errors import suggest
from dualogic.text.source import Place, Source

KEYWORDS = ("axis", "bool", "class", "constant", "group", "let", "mask", "membership", "rule", "var")
_WORD = re.compile(r"[^\s:=,]+")


def split(source: Source) -> Iterator[tuple[int, str]]:
    r"""The statements of a rule file: their first lines, counted from 1, and texts after as many empty lines as come before.

    A statement begins at the left margin and goes on in the indented lines below it; a line that begins with a closing
    bracket belongs to what it closes. The margin is that of the least indented line.

    Example:
        >>> [text.strip() for _, text in split(Source("var x\nrule r:  # a comment\n    x <= 1"))]
        ['var x', 'rule r:  # a comment\n    x <= 1']
    """
    lines = source.text.split("\n")
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip() and not line.lstrip().startswith("#")]
    margin = min(indents, default=0)
    starts = [number for number, line in enumerate(lines) if _begins(line, margin)]
    for start, end in zip(starts, [*starts[1:], len(lines)]):
        _check_keyword(source, lines[start], start, margin)
        yield start + 1, "\n" * start + "\n".join(lines[start:end])


def _begins(line: str, margin: int) -> bool:
    rest = line[margin:]
    return bool(rest.strip()) and not line[:margin].strip() and rest[0] not in " \t#)]}"


def _check_keyword(source: Source, line: str, number: int, margin: int) -> None:
    match = _WORD.match(line, margin)
    word = match[0] if match else line[margin : margin + 1]
    if word in KEYWORDS:
        return
    place = Place(number + 1, margin + 1, margin + 1 + len(word))
    raise source.error(
        place,
        f"a statement cannot begin with {word!r}{suggest(word, KEYWORDS)}",
        f"expected one of {', '.join(KEYWORDS)}; indent the line if it goes on with the statement above",
    )
