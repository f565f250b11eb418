"""An extension of griffe, which reads docstrings for the API page: roles become links, ``Example:`` a section of code."""

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|mod|data|attr):`(~?)([\w.]+)`")
EXAMPLE = re.compile(r"^( *)Example:$", flags=re.MULTILINE)


class HouseStyle(griffe.Extension):
    """Translates the docstrings of this library, which follow Sphinx, into what mkdocstrings knows."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of an object when it is loaded."""
        if obj.docstring is not None:
            text = ROLE.sub(_to_link, obj.docstring.value)
            obj.docstring.value = EXAMPLE.sub(r"\1Examples:", text)


def _to_link(found: re.Match[str]) -> str:
    short, target = found.groups()
    shown = target.rpartition(".")[2] if short else target
    # Optional: an object that has no entry on the API page is shown as code.
    return f'<autoref optional identifier="{target}"><code>{shown}</code></autoref>'
