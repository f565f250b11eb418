"""The README is true: its code runs and its links lead somewhere. So are the figures of the demo, on the page of shortcuts."""

import json
import re
from pathlib import Path

import pytest

from dualogic.demo.table import row_label

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()


def to_markdown(results, pool):
    """The runs on one pool as a Markdown table, from what ``dualogic demo`` saves in ``results.json``."""
    lines = ["| method | accuracy | rule satisfied | not-P | Q | dual weight on Q: 6s / others |", "|---|---|---|---|---|---|"]
    for run in results["runs"]:
        if run["pool"] == pool:
            final = run["final"]
            numbers = [f"{final[key]:.1f}" for key in ("accuracy", "satisfied", "not_p", "q")]
            weights = "" if final["weight_sixes"] is None else f"{final['weight_sixes']:.2f} / {final['weight_others']:.2f}"
            lines.append(f"| {row_label(run['method'])} | {' | '.join(numbers)} | {weights} |")
    return "\n".join(lines)


def test_code_runs_as_it_stands():
    blocks = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    assert blocks
    scope = {}
    for block in blocks:
        exec(block, scope)
    assert scope["rule"].shape == ()
    assert scope["logic"].weights(scope["index"])["rule"].shape == (64, 2)


def test_it_stays_short():
    """What it is, a figure, two commands, ten lines of use, three figures of cost, links."""
    code = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)[1]
    assert len([line for line in code.splitlines() if line and not line.startswith("import")]) <= 10
    assert len(TEXT.splitlines()) <= 90


def test_the_example_shows_what_the_rule_does(capsys):
    block = "".join(re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL))
    without = block.replace(" + logic(index, f=net(x), g=net(x.flip(-1)))", "")
    assert without != block
    for code, words in ((block, "100% of the 6s are found"), (without, "0% of the 6s are found")):
        exec(code, {})
        assert capsys.readouterr().out.startswith(words)


def test_the_demo_figures_are_those_measured():
    results = json.loads((ROOT / "paper" / "results" / "demo" / "results.json").read_text())
    page = (ROOT / "docs" / "shortcuts.md").read_text()
    block = re.search(r"<!-- demo -->\n(.*?)\n<!-- /demo -->", page, flags=re.DOTALL)
    assert block is not None
    assert block.group(1) == to_markdown(results, "mixed")


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)#]+)\)", TEXT))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists()
