"""The README and the page of everyday problems show what the committed runs give."""

from pathlib import Path

import pytest

from dualogic_paper.everyday.page import update_page
from dualogic_paper.everyday.setting import METHODS
from dualogic_paper.everyday.store import Store

PAPER = Path(__file__).parents[1]


@pytest.mark.parametrize("page", ["../README.md", "docs/everyday.md"])
def test_the_everyday_figures_are_those_measured(page):
    runs = [run for run in Store(PAPER / "results" / "everyday").read() if run.seed < 8 and run.weight == 1]
    text = (PAPER / page).read_text(encoding="utf-8")
    assert update_page(text, [run for run in runs if run.method in METHODS]) == text
