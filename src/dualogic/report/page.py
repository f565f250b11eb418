"""One HTML file with everything in it."""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.resources
import json
from collections.abc import Mapping
from typing import Any


def make_page(model: Mapping[str, Any]) -> str:
    """The page of a model: it works from disk, asks the network for nothing, and runs no script but its own.

    Whatever comes from files reaches the page in two ways: as escaped text, or as JSON that cannot end its own element and that
    the script shows as text only. A content security policy names the script and the style by their hashes, so that the browser
    refuses anything else.
    """
    style, script = _read("page.css"), "\n".join(_read(name) for name in ("charts.js", "page.js"))
    own = f"script-src {_hash(script)}; style-src {_hash(style)}"
    policy = f"default-src 'none'; {own}; img-src data:; base-uri 'none'; form-action 'none'"
    values = {
        "policy": html.escape(policy),
        "title": html.escape(model["title"]),
        "task": html.escape(model["task"]),
        "kicker": html.escape("dualogic report" + (f" · {model['task']}" if model["task"] != model["title"] else "")),
        "tone": html.escape(_class(model["tone"])),
        "verdict": _prose(model["verdict"]),
        "runs": "".join(map(_show_run, model["runs"])),
        "style": style,
        "script": script,
        "data": to_safe_json(model),
    }
    # In one pass, so that a value that looks like a placeholder stays what it is.
    parts = _read("page.html").split("@@")
    return "".join(part if position % 2 == 0 else values[part] for position, part in enumerate(parts))


def to_safe_json(value: Any) -> str:
    """JSON that can stand inside of a script element."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _show_run(run: Mapping[str, Any]) -> str:
    """A run's verdict, which stands there without any script."""
    tone = html.escape(_class(run["tone"]))
    against = f'<p class="against">Compared with {html.escape(run["against"])}.</p>' if run["against"] else ""
    missing = "".join(f"<li>{html.escape(entry)}</li>" for entry in run["missing"])
    details = "".join(f"<li>{_prose(entry)}</li>" for entry in run["details"])
    return (
        f'<article class="card {tone}"><h3>{html.escape(run["name"])}</h3>'
        f'<p class="tone">{html.escape(run["tone"])}</p><p>{_prose(run["sentence"])}</p>{against}'
        + (f"<details><summary>All findings</summary><ul>{details}</ul></details>" if details else "")
        + (f'<div class="missing"><p>Missing:</p><ul>{missing}</ul></div>' if missing else "")
        + "</article>"
    )


def _prose(text: str) -> str:
    """Escaped, with no line break between a number and its percent sign."""
    return html.escape(text).replace(" %", "&nbsp;%")


def _class(tone: str) -> str:
    return "tone-" + tone.replace(" ", "-")


def _read(name: str) -> str:
    return importlib.resources.files(__package__).joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
