"""The pages of everyday problems show what the committed runs give, and conclude what their tables say."""

import re
from pathlib import Path

import pytest

from dualogic_paper.everyday.setting import METHODS
from dualogic_paper.everyday.store import Store
from dualogic_paper.everyday.table import update_page

PAPER = Path(__file__).parents[1]


@pytest.mark.parametrize("page", ["../docs/what-everyday-problems-show.md", "docs/everyday.md"])
def test_the_everyday_figures_are_those_measured(page):
    runs = [run for run in Store(PAPER / "results" / "everyday").read() if run.seed < 8 and run.weight == 1]
    text = (PAPER / page).read_text(encoding="utf-8")
    assert update_page(text, [run for run in runs if run.method in METHODS]) == text


def test_the_conclusions_are_those_of_the_tables():
    """Counted from the intervals in the tables: those in bold leave out 0."""
    tables = (PAPER / "docs" / "everyday.md").read_text(encoding="utf-8").partition("## All methods")[2].split("\n### ")[1:]
    rows = [
        {
            cells[0].strip("`"): cells
            for cells in re.findall(r"^\| (.+?) \|.*? \|.*? \| (.*?) \| (.*?) \| \d+ \|$", table, flags=re.MULTILINE)
        }
        for table in tables
    ]
    counts = {
        "better than no rule": sum(row["dual"][1].startswith("**+") for row in rows),
        "worse": sum(row["dual"][1].startswith("**-") for row in rows),
        "some other method": sum(
            any(cells[2].startswith("**+") for name, cells in row.items() if name not in ("dual", "no rule")) for row in rows
        ),
        "uniform": sum(row["uniform"][1].startswith("**-") for row in rows),
    }
    text = (PAPER.parent / "docs" / "what-everyday-problems-show.md").read_text(encoding="utf-8")
    said = [(int(part), int(whole)) for part, whole in re.findall(r"\*\*(\d+) of (\d+)\*\*", text)]
    assert said == [(count, len(rows)) for count in counts.values()]
