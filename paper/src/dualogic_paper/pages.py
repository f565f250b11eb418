"""Markdown pages: tables, and blocks between markers that are made anew while everything else stays."""

from collections.abc import Iterable, Sequence

from dualogic.errors import DataError


def pipe_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in (heads, *rows)]
    return "\n".join([lines[0], "|---" * len(heads) + "|", *lines[1:]])


def replace_block(page: str, name: str, new: str) -> str:
    """A page with what stands between ``<!-- name -->`` and ``<!-- /name -->`` replaced."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise DataError(f"the marker {begin} of the page is absent or has no partner; what is made goes between it and {end}")
    # Blank lines, because a comment right after a table would be taken for a row of it.
    return f"{page[: page.index(begin)]}{begin}\n\n{new}\n\n{page[page.index(end) :]}"
