import re
from pathlib import Path

import pytest

from dualogic.errors import DataError, MissingDataError
from dualogic_paper.tables.formats import to_markdown
from dualogic_paper.tables.page import FIGURE, HEADER, MINUS, fill, make_page, make_tables
from dualogic_paper.tables.store import collect, find_tasks, read_results
from dualogic_paper.tables.summary import make_table
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


SETTINGS = {"0.05", "95 %", "2 %", "5 %"}
"""Numbers of the prose that were not measured: of tests and of tasks."""


def prose_of(page):
    """What is written by hand: without blocks, figures that are filled in, and code."""
    return re.sub(r"`[^`]*`", "", FIGURE.sub("", re.sub(r"<!-- begin (\S+) -->.*?<!-- end \1 -->", "", page, flags=re.DOTALL)))


def test_no_sentence_of_the_committed_page_has_a_figure_that_is_not_filled_in():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert page.count("<!-- figure ") > 60
    found = set(re.findall(r"\d+\.\d+|\d+ (?:%|points)", prose_of(page)))
    assert found <= SETTINGS, "write them as <!-- figure TABLE; ROW; COLUMN -->; see dualogic_paper/tables/prose.py"
    assert not re.search(r"^\s*<!-- figure", page, flags=re.MULTILINE), "at the start of a line a comment ends the paragraph"


@pytest.fixture
def tables(results):
    return {table.name: table for task in find_tasks(results) for table in make_tables(read_results(results, task))}


def cell_of(tables, label, key):
    (row,) = [row for row in tables["digits"].rows if row.label == label]
    return row.cells[[column.key for column in tables["digits"].columns].index(key)]


def test_figures_in_sentences_are_filled_in_and_follow_the_results(results, tables, tmp_path):
    own, plain = (cell_of(tables, label, "accuracy") for label in ("dual", "none"))
    expected = {
        "digits; dual; accuracy": f"{own.mean:.1f}",
        "digits; dual; accuracy; deviation": f"{own.deviation:.1f}",
        "digits; dual; accuracy; lowest": f"{min(own.values):.1f}",
        "digits; dual; accuracy; published": "98.8",
        "digits; dual; accuracy; minus none": f"{own.mean - plain.mean:+.1f}".replace("-", MINUS),
        "digits; dual; accuracy; minus dual": "+0.0",
        f"digits; {plain.mark}; accuracy": "`none`",
    }
    text = "".join(f"It is <!-- figure {what} -->?<!-- /figure -->.\n" for what in expected)
    found = re.findall(r"<!-- figure (.*?) -->(.*?)<!-- /figure -->", fill(text, tables))
    assert dict(found) == expected
    page = make_page(results) + text
    assert make_page(results, page).endswith(fill(text, tables))
    write_runs(tmp_path / "more", [make_result("digits", "dual", 7, level=0.0)])
    collect(tmp_path / "more", "digits", results)
    assert not make_page(results, page).endswith(fill(text, tables))


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("paths; dual; accuracy", "names the table 'paths'; there are 'digits'"),
        ("digits; godel; accuracy", "names the row 'godel'; there are 'none'"),
        ("digits; dual; speed", "names the column 'speed'; there are 'accuracy'"),
        ("digits; dual; accuracy; median", "names the kind 'median'"),
        ("digits; dl2; accuracy", "was not measured"),
        ("digits-mixed; dual; accuracy; published", "is not in the paper"),
    ],
)
def test_a_figure_of_no_table_is_refused(what, message, tables):
    with pytest.raises(DataError, match=message):
        fill(f"<!-- figure {what} -->1<!-- /figure -->", tables)


def test_what_another_page_says_of_the_tables_is_so():
    """``docs/methods.md`` names rows without figures."""
    tables = {table.name: table for table in make_tables(read_results(ROOT / "results", "paths"))}
    said = re.search(r"Shortest distances\.\*\* .*?\. (`.*?) have a", (ROOT.parent / "docs" / "methods.md").read_text())
    better = [row.label for row in tables["paths"].rows if row.cells[0].mark == "better"]
    assert sorted(re.findall(r"`(\w+)`", said[1])) == sorted(better)
