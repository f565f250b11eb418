"""A hook of mkdocs: the pages of ``paper/docs`` join the site under ``paper/``.

Links between the two folders are written as they work in the repository; here they become links inside the site.
"""

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

FOLDER = Path(__file__).parents[1] / "paper" / "docs"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and their pictures."""
    for path in sorted(FOLDER.rglob("*")):
        if path.suffix in (".md", ".png"):
            files.append(File.generated(config, f"paper/{path.relative_to(FOLDER).as_posix()}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links from one folder to the other."""
    if page.file.src_uri.startswith("paper/"):
        return markdown.replace("](../../docs/", "](../")
    return markdown.replace("](../paper/docs/", "](paper/")
