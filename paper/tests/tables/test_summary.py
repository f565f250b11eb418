import dataclasses
import math
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualogic_paper import arms
from dualogic_paper.tables.branches import make_branch_table
from dualogic_paper.tables.naming import order_of
from dualogic_paper.tables.published import find_published
from dualogic_paper.tables.store import read_results
from dualogic_paper.tables.summary import Cell, make_table
from dualogic_paper.tasks import TASKS, Column, Digits
from tables.fabricate import make_result, write_runs

SEEDS = range(5)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Errors(Digits):
    """A task whose first column is better when lower."""

    name: ClassVar[str] = "errors"
    columns: ClassVar[tuple[Column, ...]] = (Column("mse", "MSE", "lower", 2), Column("seen", "seen", "neither"))
    choose_by: ClassVar[str] = "mse"


@pytest.fixture
def read(tmp_path):
    """Write results as run folders and read them."""

    def write_and_read(results, task="digits"):
        write_runs(tmp_path / "runs", results)
        return read_results(tmp_path / "runs", task)

    return write_and_read


def row_of(table, label):
    (row,) = [row for row in table.rows if row.label == label]
    return row


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=10))
def test_mean_and_deviation_are_numpys(values):
    cell = Cell(tuple(values), len(values))
    assert cell.mean == pytest.approx(np.mean(values), rel=1e-9, abs=1e-6)
    assert cell.deviation == pytest.approx(np.std(values, ddof=1), rel=1e-6, abs=1e-6)


def test_one_run_has_no_deviation():
    assert Cell((1.0,), 1).deviation is None
    assert math.isnan(Cell((), 0).mean)


@pytest.mark.parametrize("task", TASKS)
def test_every_cell_of_every_task(task, read):
    methods = [name for name in TASKS[task].arms if name != "dl2"]
    results = [make_result(task, method, seed) for method in methods for seed in SEEDS]
    table = make_table(read(results, task))
    assert [row.method for row in table.rows if row.seeds == "5"] == methods
    for row in table.rows:
        published = find_published(task, row.method, results[0]["config"]["task"])
        for column, cell in zip(table.columns, row.cells):
            if column.key not in results[0]["test"]:
                continue  # derived: the time of an epoch, which the paper has for CIFAR-100
            values = [result["test"][column.key] for result in results if result["config"]["method"] == row.method]
            assert (None if cell.published is None else cell.published.text) == (
                published[column.key].text if column.key in published else None
            )
            assert cell.decimals == column.decimals
            assert len(cell.values) == len(values)
            if values:
                assert cell.mean == pytest.approx(np.mean(values))
                assert cell.deviation == pytest.approx(np.std(values, ddof=1))


def test_rows_come_in_the_order_of_arms_and_what_the_paper_has_is_never_missing(read):
    results = [make_result(method=method, seed=0) for method in ("dual", "godel", "none", "supervised")]
    table = make_table(read(results))
    assert [row.method for row in table.rows] == [
        "none",
        "supervised",
        "semantic",
        "problog",
        "pd1",
        "pd2",
        "dl2",
        "godel",
        "dual",
    ]
    assert [row.name for row in table.rows][::8] == ["Baseline (none)", "Ours (dual)"]
    assert row_of(table, "dl2").seeds == "not run"
    assert any(note.startswith("Not run: ltn, lukasiewicz, ") for note in table.notes)


def test_order_of_an_unknown_method_is_last():
    assert order_of("removed", "removed") > order_of("dual", "dual[step=1]") > order_of("dual", "dual") > order_of("none", "none")
    assert len(arms.names(controls=True)) == order_of("removed", "removed")[0]


def test_options_have_a_row_of_their_own_and_the_papers_figures_stand_once(read, tmp_path):
    write_runs(tmp_path / "other", [make_result(seed=seed, options={"step": 0.5}) for seed in SEEDS])
    (tmp_path / "other" / "digits" / "dual").rename(tmp_path / "other" / "digits" / "dual-step")
    write_runs(tmp_path / "other", [make_result(seed=seed) for seed in SEEDS])
    table = make_table(read_results(tmp_path / "other", "digits"))
    assert [row.name for row in table.rows][-2:] == ["Ours (dual)", "Ours (dual[step=0.5])"]
    assert row_of(table, "dual").cells[0].published.text == "98.8"
    assert row_of(table, "dual[step=0.5]").cells[0].published is None


def test_what_all_runs_changed_is_said_once(read, tmp_path):
    results = [make_result(method=method, seed=seed, batch=64) for method in ("none", "dual") for seed in SEEDS]
    (file,) = write_runs(tmp_path / "runs", [make_result(seed=8, batch=64)])
    file.unlink()
    table = make_table(read(results))
    assert [row.label for row in table.rows if row.seeds.startswith("5")] == ["none", "dual"]
    assert row_of(table, "dual").seeds == "5, unfinished 1"
    assert "All runs: batch=64, otherwise than by default." in table.notes
    assert any(note.startswith("Ours (dual) against") for note in table.notes)


def test_what_one_method_alone_changed_stays_in_its_name(read):
    table = make_table(read([make_result(seed=seed, batch=64) for seed in SEEDS]))
    assert row_of(table, "dual[batch=64]").name == "Ours (dual[batch=64])"


def test_the_best_is_what_the_column_says(read, monkeypatch):
    monkeypatch.setitem(TASKS, "errors", Errors)
    levels = {"none": 30.0, "supervised": 1.0, "dl2": 9.0, "uniform": 5.0, "dual": 10.0}
    results = []
    for method, level in levels.items():
        results += [
            make_result("errors", method, seed, level=level, failure="nan" if method == "uniform" and seed else None)
            for seed in SEEDS
        ]
    table = make_table(read(results, "errors"))
    best = {row.method: [cell.best for cell in row.cells] for row in table.rows}
    # The reference does not compete, a row that diverged cannot win, and "neither" has no best.
    assert best == {method: [method == "dl2", False] for method in levels}


def test_a_single_seed_and_a_difference_within_chance_have_no_best(read, tmp_path):
    results = [make_result(method=method, seed=0, level=level) for method, level in (("none", 50.0), ("dl2", 99.0))]
    assert not any(cell.best for row in make_table(read(results)).rows for cell in row.cells)
    results = [make_result(method=method, seed=seed) for method in ("none", "dl2") for seed in SEEDS]
    for result in results:
        seed, ahead = result["config"]["seed"], result["config"]["method"] == "dl2"
        result["test"]["accuracy"] = 50.0 + ahead * (5.0 if seed == 4 else -1.0)
    write_runs(tmp_path / "chance", results)
    assert not any(row.cells[0].best for row in make_table(read_results(tmp_path / "chance", "digits")).rows)


def test_a_method_without_a_gradient_is_named_and_never_the_best(read):
    levels = {"none": 30.0, "pd1": 90.0, "pd2": 60.0, "dual": 61.0}
    results = [make_result("cifar10-stl10", method, seed, level=level) for method, level in levels.items() for seed in SEEDS]
    table = make_table(read(results, "cifar10-stl10"))
    assert [row.name for row in table.rows if not row.teaches] == ["PD1, no gradient"]
    assert not any(cell.best for row in table.rows for cell in row.cells)
    assert any("no gradient on this rule" in note for note in table.notes)


@pytest.mark.parametrize("recorded", [True, False])
def test_settings_of_a_method_are_shown_whether_recorded_or_not(recorded, read):
    results = [make_result("paths", method, seed) for method in ("dl2", "dual") for seed in SEEDS]
    for result in results:
        assert result.pop("settings")["weight"] == (0.1 if result["config"]["method"] == "dl2" else 1.0)
        if recorded:
            result["settings"] = {"weight": 0.5, "learning_rate": 1e-3, "options": {}}
    expected = "dl2 with weight 0.5 and learning rate 0.001" if recorded else "dl2 with weight 0.1."
    assert any(f"Settings of single methods: {expected}" in note for note in make_table(read(results, "paths")).notes)


def test_rows_say_whether_the_default_was_another_one(read):
    results = [make_result(method=method, seed=seed) for method in ("dual", "dual-paper", "none") for seed in SEEDS]
    for result in results:
        del result["settings"]
        result["method"] = result["method"].replace("step=0.07", "step=0.7")
    table = make_table(read(results))
    names = [row.name for row in table.rows if row.seeds == "5"]
    assert names == ["Baseline (none)", "Ours, as printed (dual-paper)", "dual (former default)"]
    assert row_of(table, "dual[former default]").cells[0].published.text == "98.8"
    assert any(note.startswith("▲ better than dual (former default)") for note in table.notes)


def test_a_lone_row_is_not_called_the_best(read):
    table = make_table(read([make_result(seed=seed) for seed in SEEDS]))
    assert not any(cell.best for row in table.rows for cell in row.cells)


def test_diverged_and_unfinished_runs_are_shown(read, tmp_path):
    results = [make_result(seed=seed, failure="the loss is nan" if seed < 2 else None) for seed in SEEDS]
    results += [make_result(method="ste", seed=seed, failure="nan") for seed in SEEDS]
    (file,) = write_runs(tmp_path / "runs", [make_result(seed=8)])
    file.unlink()
    table = make_table(read(results))
    row = row_of(table, "dual")
    assert row.seeds == "5, diverged 2 of 5, unfinished 1"
    assert row.cells[0].mean == pytest.approx(np.mean([result["test"]["accuracy"] for result in results[2:5]]))
    assert (row.cells[0].runs, row.cells[0].diverged, row.cells[0].lacking) == (5, 2, 0)
    assert row_of(table, "ste").seeds == "5, diverged 5 of 5"
    assert row_of(table, "ste").cells[0].values == ()
    assert any("Diverged runs are counted" in note for note in table.notes)


def test_what_is_not_finite_is_counted(read):
    results = [make_result(seed=seed) for seed in SEEDS]
    results[1]["test"]["q"] = float("inf")
    del results[2]["test"]["q"]
    table = make_table(read(results))
    cell = row_of(table, "dual").cells[3]
    assert (len(cell.values), cell.lacking) == (3, 2)
    assert any("only these have it" in note for note in table.notes)


def test_the_verdict_compares_with_the_paper(read):
    results = [make_result(seed=seed) for seed in SEEDS]
    figures = {"accuracy": (98.5, 99.3), "satisfied": (99.5, 99.6), "q": (90.0, 90.2)}
    for result in results:
        for key, (low, high) in figures.items():
            result["test"][key] = low if result["config"]["seed"] % 2 else high
    (verdict,) = [note for note in make_table(read(results)).notes if note.startswith("Ours (dual) against")]
    assert "better: sat. by 0.7" in verdict
    assert "within one deviation: MNIST acc.;" in verdict
    assert "worse: Q by 7.6" in verdict
    assert "not-P" not in verdict


def test_the_origin_is_named(read):
    results = [make_result(seed=seed) | {"commit": "abc" if seed else "def"} for seed in SEEDS]
    note = make_table(read(results)).notes[-1]
    assert note == "5 runs on a test, 2026-01-31, 0.05 h of training in all, at commits abc, def."


def test_weights_stand_beside_what_holds(read):
    results = [make_result(method=method, seed=seed) for method in ("none", "uniform", "dual") for seed in SEEDS]
    table = make_branch_table(read(results))
    assert [row.method for row in table.rows] == ["uniform", "dual"]
    assert [column.label for column in table.columns[:4]] == ["not-P, sixes: weight", "holds", "Q, sixes: weight", "holds"]
    pools = [result["pool"] for result in results if result["config"]["method"] == "dual"]
    cells = dict(zip((column.key for column in table.columns), table.rows[-1].cells))
    names = [(branch, group) for group in ("sixes", "others") for branch in ("not_p", "q")]
    gaps = []
    for branch, group in names:
        weights = np.array([pool[f"{branch}_weight_{group}"] for pool in pools])
        shares = np.array([pool[f"{branch}_holds_{group}"] for pool in pools]) / 100
        assert cells[f"{branch}_weight_{group}"].mean == pytest.approx(weights.mean())
        assert cells[f"{branch}_holds_{group}"].deviation == pytest.approx(shares.std(ddof=1))
        gaps.append(abs(weights - shares))
    assert cells["gap"].mean == pytest.approx(np.max(gaps, axis=0).mean())


def test_branches_without_groups_pair_up_and_without_weights_there_is_no_table(read):
    results = [make_result(seed=seed) for seed in SEEDS]
    for result in results:
        result["pool"] = {"two_digits_holds": 80.0, "two_digits_weight": 0.7, "q_weight": 0.3, "q_holds": 10.0}
        result["pool"] |= {"lonely_weight": 0.1, "alone_weight_here": 0.1, "alone_holds_here": 0.1}
    found = read(results)
    table = make_branch_table(found)
    assert [column.label for column in table.columns] == ["two digits: weight", "holds", "Q: weight", "holds", "largest gap"]
    assert [cell.mean for cell in table.rows[0].cells] == pytest.approx([0.7, 0.8, 0.3, 0.1, 0.2])
    for result in results:
        result["pool"] = {"q_holds_sixes": 80.0}
    for run, result in zip(found.runs, results):
        run.values["pool"] = result["pool"]
    assert make_branch_table(found) is None
