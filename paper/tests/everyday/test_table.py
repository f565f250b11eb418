import pytest

from dualogic.errors import DataError
from dualogic_paper.everyday.problems import PROBLEMS
from dualogic_paper.everyday.table import NO_RUNS, make_problem_table, make_short_table, make_tables, update_page
from everyday.fabricate import make_run

RUNS = [
    *(make_run("loans", "none", seed, figure, held=70.0) for seed, figure in enumerate([1.0, 1.2, 1.1])),
    *(make_run("loans", "dual", seed, figure, held=95.0) for seed, figure in enumerate([0.9, 1.0, 1.0])),
    *(make_run("loans", "hard", seed, figure, held=96.0) for seed, figure in enumerate([1.0, 1.1, 1.3])),
    *(make_run("loans", "semantic", seed, 0.0, failure="FormulaTypeError: no") for seed in range(3)),
    *(make_run("shop", "none", seed, figure) for seed, figure in enumerate([80.0, 82.0])),
    *(make_run("shop", "dual:share=0.02", seed, figure) for seed, figure in enumerate([85.0, 86.0])),
]


def test_a_row_for_each_method_with_differences_whose_plus_is_better():
    lines = make_problem_table(PROBLEMS["loans"], RUNS).splitlines()
    assert lines[0].split(" | ")[1] == "RMSE of the rate"
    assert lines[2] == "| no rule | 1.10 | 70.0 |  | -0.13 [-0.28, 0.01] | 3 |"
    assert lines[3] == "| `dual` | 0.97 | 95.0 | +0.13 [-0.01, 0.28] |  | 3 |"
    assert lines[4].startswith("| `hard` | 1.13 | 96.0 | -0.03 [")
    assert lines[5] == "| `semantic` | refuses such rules |  |  |  | 0 |"


def test_an_interval_without_0_is_bold():
    runs = [make_run("shop", "none", seed, 80.0) for seed in range(3)]
    runs += [make_run("shop", "dual", seed, figure) for seed, figure in enumerate([81.0, 81.1, 81.2])]
    assert "**+1.1 [0.9, 1.3]**" in make_problem_table(PROBLEMS["shop"], runs)


def test_the_short_table_has_the_best_other_method():
    lines = make_short_table(RUNS).splitlines()
    assert lines[2] == (
        "| `loans` | RMSE of the rate, lower is better | 1.10 (70.0) | 0.97 (95.0) | `hard` 1.13 (96.0) | +0.13 [-0.01, 0.28] |"
    )
    assert lines[3] == "| `shop` | F1, % | 81.0 (90.0) |  |  |  |"
    assert len(lines) == 4


def test_a_method_that_fails_with_some_seeds_is_not_the_best():
    runs = [make_run("loans", "hard", 0, 1.0), make_run("loans", "pd1", 0, 0.5)]
    runs += [make_run("loans", "hard", 1, 1.0), make_run("loans", "pd1", 1, 0.0, failure="OptionError: no")]
    assert "| `pd1` | 0.50 | 90.0 |  |  | 1 of 2 |" in make_problem_table(PROBLEMS["loans"], runs)
    assert "`hard` 1.00" in make_short_table(runs)


def test_all_tables():
    text = make_tables(RUNS)
    assert text.index("### loans") < text.index("### shop")
    assert "| `dual:share=0.02` | 85.5 | 90.0 | +4.5 [-1.9, 10.9] |" in text
    assert make_tables([]) == NO_RUNS


def test_pages_keep_what_is_outside_of_the_markers():
    page = "Top.\n<!-- everyday -->\nold\n<!-- /everyday -->\nMiddle.\n"
    page += "<!-- everyday problems -->\n\n<!-- /everyday problems -->\nEnd.\n"
    made = update_page(page, RUNS)
    assert made.startswith("Top.\n<!-- everyday -->\n\n| problem |")
    assert "\nMiddle.\n" in made
    assert made.endswith("<!-- /everyday problems -->\nEnd.\n")
    assert all(f"| `{name}` |" in made for name in PROBLEMS)
    assert "old" not in made
    assert update_page(made, RUNS) == made


@pytest.mark.parametrize(
    ("page", "message"), [("nothing", "no marker to put a table at"), ("<!-- everyday -->\n", "has no partner")]
)
def test_a_page_without_markers_is_an_error(page, message):
    with pytest.raises(DataError, match=message):
        update_page(page, RUNS)
