"""A hook of mkdocs: the notebooks of ``examples/`` become pages, with the outputs that are stored in them."""

import base64
import json
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"
SOURCE = "notebooks"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each notebook, and its figures."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        text, figures = to_markdown(json.loads(path.read_text(encoding="utf-8")), path.stem)
        files.append(File.generated(config, f"{SOURCE}/{path.stem}.md", content=text))
        for name, content in figures.items():
            files.append(File.generated(config, f"{SOURCE}/{name}", content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links to notebooks, written as they work in the repository, become links to their pages."""
    return re.sub(r"\]\(\.\./examples/notebooks/(\w+)\.ipynb\)", rf"]({SOURCE}/\1.md)", markdown)


def to_markdown(notebook: dict[str, Any], stem: str) -> tuple[str, dict[str, bytes]]:
    """The text of a page, and its figures by file name."""
    parts: list[str] = []
    figures: dict[str, bytes] = {}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                name = f"{stem}_{len(figures) + 1}.png"
                figures[name] = base64.b64decode(data["image/png"])
                parts.append(f"![What the cell above draws]({name})")
            else:
                shown = "".join(output.get("text", data.get("text/plain", "")))
                parts.append(f"```text\n{shown.rstrip()}\n```")
        if cell is notebook["cells"][1]:
            parts.append(f"This page is the notebook `examples/notebooks/{stem}.ipynb`, with the outputs of a full run.")
    return "\n\n".join(parts) + "\n", figures
