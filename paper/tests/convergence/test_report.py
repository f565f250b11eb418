"""The report on convergence shows what was measured."""

import json
import re
from pathlib import Path

import pytest

from dualogic_paper.convergence import TABLES, run_convergence, save

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "convergence.md").read_text()
RESULTS = json.loads((ROOT / "results" / "convergence" / "results.json").read_text())


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_are_those_measured(name):
    block = re.search(rf"<!-- {name} -->\n(.*?)\n<!-- /{name} -->", TEXT, flags=re.DOTALL)
    assert block is not None
    assert block.group(1) == TABLES[name](RESULTS)


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)#]+)\)", TEXT))
def test_links_lead_somewhere(target):
    assert (ROOT / "docs" / target).exists()


@pytest.mark.parametrize("page", ["docs/how-it-works.md", "paper/docs/paper-by-section.md", "paper/docs/convergence.md"])
def test_slopes_in_sentences_are_those_of_the_table(page):
    """-0.5 is the theorem's."""
    text = (ROOT.parent / page).read_text(encoding="utf-8")
    found = set(re.findall(r"-0\.\d+", re.sub(r"<!-- (\w+) -->.*?<!-- /\1 -->", "", text, flags=re.DOTALL))) - {"-0.5"}
    assert found <= set(re.findall(r"-0\.\d+", TABLES["rate"](RESULTS)))
    assert found or page.endswith("convergence.md")


def test_the_committed_results_are_whole():
    assert RESULTS["smoke"] is False
    assert not RESULTS["commit"].endswith("+")


def test_a_smoke_run_has_the_same_form_and_is_saved(tmp_path):
    results = run_convergence(smoke=True)
    numbers, figure = save(results, tmp_path / "new")
    assert json.loads(numbers.read_text()) == results
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert set(results) == set(RESULTS)
    for table in TABLES.values():
        assert table(results).splitlines()[0].count("|") == table(RESULTS).splitlines()[0].count("|")
