"""The README is true: its code runs, and its figures are those in the committed results."""

import json
import re
from pathlib import Path

import pytest

from dualogic.demo.table import to_markdown

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
    results = json.loads((ROOT / "paper" / "results" / "demo" / "results.json").read_text())
    block = re.search(r"<!-- demo -->\n(.*?)\n<!-- /demo -->", TEXT, flags=re.DOTALL)
    assert block is not None
    assert block.group(1) == to_markdown(results, "mixed")


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)#]+)\)", TEXT))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists()
