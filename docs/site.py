"""A hook of mkdocs: formulas become MathML, which browsers draw by themselves, so that pages need no script and no network."""

import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', flags=re.DOTALL)
ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">"}


def on_page_content(html: str, **_: Any) -> str:
    """Replace what arithmatex marked as formulas in the HTML of a page."""
    return FORMULA.sub(_to_mathml, html)


def _to_mathml(found: re.Match[str]) -> str:
    latex = found.group(2)
    for entity, sign in ENTITIES.items():
        latex = latex.replace(entity, sign)
    return convert(latex, display="block" if found.group(1) == "div" else "inline")
