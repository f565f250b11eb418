"""The page of conclusions from the paper's tasks: its figures are those of the tables."""

import re
from pathlib import Path

from dualogic_paper.tables.page import FIGURE, fill, make_tables
from dualogic_paper.tables.store import find_tasks, read_results

PAPER = Path(__file__).parents[2]
PAGE = PAPER.parent / "docs" / "what-the-paper-shows.md"


def make_conclusions(text):
    """The page with its figures from the committed results."""
    results = PAPER / "results"
    return fill(text, {table.name: table for task in find_tasks(results) for table in make_tables(read_results(results, task))})


def test_figures_are_those_of_the_tables():
    text = PAGE.read_text(encoding="utf-8")
    assert text.count("<!-- figure ") > 10
    assert make_conclusions(text) == text, "run: python paper/tests/tables/test_conclusions.py"


def test_no_figure_is_written_by_hand():
    prose = re.sub(r"`[^`]*`", "", FIGURE.sub("", PAGE.read_text(encoding="utf-8")))
    assert set(re.findall(r"\d+\.\d+|\d+ %|\d+ points", prose)) == {"5 %", "2 %"}, "only what tasks are called"
    assert not re.search(r"^\s*<!-- figure", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE), (
        "a comment there ends a paragraph"
    )


if __name__ == "__main__":
    PAGE.write_text(make_conclusions(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
