"""The README is true: its code runs, and its figures are those in the committed results."""

import json
import re
from pathlib import Path

import pytest

from dualogic.experiments.demo.table import to_markdown

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()


def test_code_runs_as_it_stands():
    blocks = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    assert blocks
    scope = {}
    for block in blocks:
        exec(block, scope)
    assert scope["rule"].shape == ()
    assert scope["logic"].weights(scope["index"])["rule"].shape == (64, 2)


def test_the_demo_figures_are_those_measured():
    results = json.loads((ROOT / "results" / "demo" / "results.json").read_text())
    block = re.search(r"<!-- demo -->\n(.*?)\n<!-- /demo -->", TEXT, flags=re.DOTALL)
    assert block is not None
    assert block.group(1) == to_markdown(results, "mixed")


@pytest.mark.parametrize("page", ["README.md", "docs/everyday.md"])
def test_the_everyday_figures_are_those_measured(page):
    from dualogic.experiments.everyday.page import update_page
    from dualogic.experiments.everyday.setting import METHODS
    from dualogic.experiments.everyday.store import Store

    runs = [run for run in Store(ROOT / "results" / "everyday").read() if run.seed < 8 and run.weight == 1]
    text = (ROOT / page).read_text(encoding="utf-8")
    assert update_page(text, [run for run in runs if run.method in METHODS]) == text


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)#]+)\)", TEXT))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists()
