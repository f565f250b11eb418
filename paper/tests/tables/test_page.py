from pathlib import Path

import pytest

from dualogic.errors import DataError, MissingDataError
from dualogic_paper.tables import collect, find_tasks, make_page, make_table, read_results, to_markdown
from dualogic_paper.tables.page import HEADER
from tables.fabricate import make_result, write_runs

ROOT = Path(__file__).parents[2]


@pytest.fixture
def results(tmp_path):
    for task in ("digits-mixed", "digits"):
        write_runs(tmp_path / "runs", [make_result(task, method, seed) for method in ("none", "dual") for seed in range(3)])
        collect(tmp_path / "runs", task, tmp_path / "results")
    return tmp_path / "results"


def test_the_committed_page_is_made_from_the_committed_results():
    page, results = ROOT / "docs" / "results.md", ROOT / "results"
    if not page.exists():
        assert find_tasks(results) == [], "results/ has runs but docs/results.md was not made: see dualogic table all --help"
        return
    text = page.read_text(encoding="utf-8")
    assert make_page(results, text) == text, "run: dualogic table all --format markdown --out docs/results.md"


def test_a_new_page_has_every_task_with_results_in_order(results):
    page = make_page(results)
    assert page.startswith(HEADER)
    assert page.index("<!-- begin digits -->") < page.index("<!-- end digits -->") < page.index("<!-- begin digits-mixed -->")
    assert to_markdown(make_table(read_results(results, "digits"))) in page
    assert page.count("### Duals read as probabilities") == 2
    assert make_page(results, page) == page


def test_prose_stays_and_blocks_are_made_anew(results, tmp_path):
    page = make_page(results).replace("<!-- end digits -->\n", "<!-- end digits -->\nWhy the baseline differs.\n")
    page += "\nThe end.\n"
    write_runs(tmp_path / "more", [make_result("digits", "dual", 7)])
    collect(tmp_path / "more", "digits", results)
    new = make_page(results, page)
    assert new != page
    assert "Why the baseline differs.\n" in new
    assert new.endswith("\nThe end.\n")
    assert to_markdown(make_table(read_results(results, "digits"))) in new
    mixed = page[page.index("<!-- begin digits-mixed -->") :]
    assert new.endswith(mixed)


def test_a_task_without_a_block_is_added_at_the_end(results):
    whole = make_page(results)
    head = whole[: whole.index("<!-- begin digits-mixed -->")].rstrip("\n") + "\n"
    assert make_page(results, head) == whole


@pytest.mark.parametrize("lost", ["<!-- begin digits -->", "<!-- end digits -->"])
def test_a_marker_without_its_partner_is_refused(results, lost):
    with pytest.raises(DataError, match=r"has no partner"):
        make_page(results, make_page(results).replace(lost, ""))


def test_a_block_without_results_is_refused(results):
    page = make_page(results) + "<!-- begin gone -->\nold\n<!-- end gone -->\n"
    with pytest.raises(MissingDataError, match="has a block for gone"):
        make_page(results, page)


def test_no_results_at_all_says_where_it_looked(tmp_path):
    with pytest.raises(MissingDataError, match=r"no results in .*TASK/LABEL.json.*`dualogic run TASK --runs runs`"):
        make_page(tmp_path)
