import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualogic_paper import arms
from dualogic_paper.tables.branches import make_branch_table
from dualogic_paper.tables.formats import escape_latex, show_cell, to_latex, to_markdown, to_text
from dualogic_paper.tables.published import Published
from dualogic_paper.tables.store import read_results
from dualogic_paper.tables.summary import Cell, make_table
from tables.fabricate import make_result, write_runs

SIGNS = {r"$\pm$": "±", r"$\uparrow$": "▲", r"$\approx$": "≈", r"$\downarrow$": "▼"}


@pytest.fixture(params=["main", "branches"])
def table(request, tmp_path):
    methods = [name for name in arms.names() if name != "problog"]
    results = [
        make_result("digits", method, seed, failure="nan" if method == "ltn" and seed < 2 else None)
        for method in methods
        for seed in range(3)
    ]
    write_runs(tmp_path, results)
    found = read_results(tmp_path, "digits")
    return make_table(found) if request.param == "main" else make_branch_table(found)


def cells_of(text, start, separator, end):
    lines = [line for line in text.splitlines() if line.startswith(start) and line.endswith(end)]
    return [[cell.strip() for cell in line.removeprefix(start).removesuffix(end).split(separator)] for line in lines]


def bare(text):
    return text.replace("**", "")


def test_markdown_is_one_table_of_equal_rows(table):
    head, rule, *rows = cells_of(to_markdown(table), "|", "|", "|")
    assert set(rule) == {"---"}
    assert {len(row) for row in (head, rule, *rows)} == {len(table.columns) + 2}
    assert [row[0] for row in rows] == [row.name for row in table.rows]
    assert [row[-1] for row in rows] == [row.seeds for row in table.rows]
    for shown, row in zip(rows, table.rows):
        assert [bare(cell) for cell in shown[1:-1]] == [show_cell(cell) for cell in row.cells]
        assert ["**" in cell for cell in shown[1:-1]] == [cell.best for cell in row.cells]
    assert all(note in to_markdown(table) for note in table.notes)


def test_latex_is_balanced_escaped_and_has_every_cell(table):
    text = to_latex(table)
    opened, closed = re.findall(r"\\begin\{(\w+)\}", text), re.findall(r"\\end\{(\w+)\}", text)
    assert opened == closed[::-1] == ["table", "tabular"]
    plain = re.sub(r"\\[{}$%&#_]", "", text)
    assert plain.count("{") == plain.count("}")
    assert plain.count("$") % 2 == 0
    assert not re.search(r"[%#]", plain)
    assert all(ord(sign) < 128 for sign in text)
    (columns,) = re.findall(r"\\begin\{tabular\}\{(l?r*)\}", text)
    rows = [line.split(" & ") for line in text.splitlines() if line.endswith(r"\\")]
    assert {len(row) for row in rows} == {len(columns)} == {len(table.columns) + 2}
    assert text.count(r"\textbf{") == sum(cell.best for row in table.rows for cell in row.cells)
    for line, row in zip(rows[1:], table.rows):
        shown = [re.sub(r"\\textbf\{([^{}]*)\}", r"\1", cell) for cell in line[1:-1]]
        shown = [re.sub(r"\$[^$]*\$", lambda found: SIGNS[found[0]], cell) for cell in shown]
        assert shown == [show_cell(cell) for cell in row.cells]


def test_text_has_every_row_and_cell_on_one_line(table):
    lines = to_text(table).splitlines()
    for row in table.rows:
        (line,) = [line for line in lines if line.strip().startswith(row.name + "  ")]
        assert all(show_cell(cell) in line for cell in row.cells)
        assert line.endswith(row.seeds)


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"])))
def test_escaped_text_has_no_sign_that_latex_would_act_on(text):
    left = escape_latex(text)
    for word in (
        r"\textbackslash{}",
        r"\textasciitilde{}",
        r"\textasciicircum{}",
        *(rf"\{sign}" for sign in "&%$#_{}"),
        "$<$",
        "$>$",
        "$|$",
    ):
        left = left.replace(word, "")
    assert not set(left) & set("\\&%$#_{}~^<>|")


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (Cell((98.64, 98.84), 2, published=Published.parse("98.8", "")), "98.7 ± 0.1 (98.8)"),
        (Cell((7.123,), 1, decimals=2, published=Published.parse("7.09", "")), "7.12 (7.09)"),
        (Cell((50.0, 50.0), 2, published=Published.parse("56.0 ± 1.78", "")), "50.0 ± 0.0 (56.0 ± 1.78)"),
        (Cell((), 0, published=Published.parse("0.0", "")), "- (0.0)"),
        (Cell((), 5, 5, published=Published.parse("89.3", "")), "diverged (89.3)"),
        (Cell((1.0, 1.0), 5, 2), "1.0 ± 0.0 [2 of 3 runs]"),
        (Cell((1.0, 1.0, 1.0), 5, 2), "1.0 ± 0.0"),
        (Cell((-0.01,), 1), "0.0"),
        (Cell((-0.06,), 1), "-0.1"),
    ],
)
def test_cells(cell, text):
    assert show_cell(cell) == text
