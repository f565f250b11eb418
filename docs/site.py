"""A hook of mkdocs: formulas become MathML, which browsers draw by themselves, so that pages need no script and no network.

The bars that are escaped in tables become bars, as on GitHub, and pictures open in full size.
"""

import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', flags=re.DOTALL)
CELL = re.compile(r"<t[dh]\b.*?</t[dh]>", flags=re.DOTALL)
PICTURE = re.compile(r'(<img [^>]*?src="([^"]*)"[^>]*>)')
ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">"}


def on_page_content(html: str, **_: Any) -> str:
    """Replace what arithmatex marked as formulas in the HTML of a page."""
    html = CELL.sub(lambda found: found[0].replace(r"\|", "|"), html)
    html = PICTURE.sub(r'<a href="\2">\1</a>', html)
    return FORMULA.sub(_to_mathml, html)


def _to_mathml(found: re.Match[str]) -> str:
    latex = found.group(2)
    for entity, sign in ENTITIES.items():
        latex = latex.replace(entity, sign)
    return convert(latex, display="block" if found.group(1) == "div" else "inline")
