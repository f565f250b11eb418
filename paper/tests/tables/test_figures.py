import dataclasses
import itertools
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualogic.errors import OptionError
from dualogic_paper import arms
from dualogic_paper.tables.figures import curve_keys, draw_comparison, draw_curves, draw_rule, make_curve, save_figures
from dualogic_paper.tables.store import read_results
from dualogic_paper.tables.style import choose_colours, spread
from dualogic_paper.tasks import TASKS, Column, Digits
from tables.fabricate import make_result, write_runs


@dataclasses.dataclass(frozen=True, kw_only=True)
class Errors(Digits):
    """A task whose measure falls."""

    name: ClassVar[str] = "errors"
    title: ClassVar[str] = "Errors"
    columns: ClassVar[tuple[Column, ...]] = (Column("mse", "MSE", "lower", 2),)
    choose_by: ClassVar[str] = "mse"


def make(folder, task="digits", methods=("none", "dl2", "dual"), **options):
    write_runs(folder, [make_result(task, method, seed, **options) for method in methods for seed in range(3)])
    return read_results(folder, task)


def test_a_curve_is_mean_and_deviation_at_each_epoch(tmp_path):
    runs = make(tmp_path, methods=["dual"]).runs
    curve = make_curve(runs, "q")
    values = np.array([[row["q"] for row in run.curve] for run in runs])
    assert curve.epochs == tuple(range(1, 21))
    np.testing.assert_allclose(curve.means, values.mean(0))
    np.testing.assert_allclose(curve.deviations, values.std(0, ddof=1))
    assert make_curve(runs, "no such measure") is None
    weights = make_curve(runs, "pool/q_weight_sixes")
    assert weights.epochs == tuple(range(2, 21, 2))


def test_a_curve_marks_where_runs_diverged(tmp_path):
    results = [make_result(seed=seed, failure="nan" if seed == 0 else None) for seed in range(3)]
    write_runs(tmp_path, results)
    runs = read_results(tmp_path, "digits").runs
    curve = make_curve(runs, "accuracy")
    assert curve.ends == ((10.0, results[0]["history"][-1]["accuracy"]),)
    assert curve.epochs[-1] == 20
    assert curve.means[-1] == pytest.approx(np.mean([result["history"][-1]["accuracy"] for result in results[1:]]))


def test_all_figures_are_written(tmp_path):
    results = make(tmp_path / "runs", methods=arms.names())
    files = save_figures(results, tmp_path / "new" / "digits.png")
    assert [file.name for file in files] == ["digits-comparison.png", "digits-curves.png", "digits-rule.png"]
    for file in files:
        content = file.read_bytes()
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        assert len(content) > 20_000


def test_the_comparison_draws_measured_and_published(tmp_path):
    results = make(tmp_path)
    figure = draw_comparison(results)
    assert [axes.get_title() for axes in figure.axes][3] == "Q, higher is better"
    axes = figure.axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    place = names.index("Ours (dual)")
    points = [
        tuple(map(float, (line.get_xdata()[0], line.get_ydata()[0]))) for line in axes.lines if line.get_marker() in ("D", "o")
    ]
    measured = np.mean([run.values["test"]["accuracy"] for run in results.runs if run.label == "dual"])
    assert (98.8, place) in points
    assert any(point == pytest.approx((measured, place)) for point in points)


def test_learning_curves_show_training_validation_and_satisfaction(tmp_path):
    results = make(tmp_path)
    assert curve_keys(results) == ["train_accuracy", "accuracy", "satisfied"]
    figure = draw_curves(results)
    assert [axes.get_title() for axes in figure.axes] == ["MNIST acc. (training)", "MNIST acc. (validation)", "sat. (validation)"]
    assert {text.get_text() for text in figure.axes[1].texts} == {"Baseline", "DL2", "Ours"}


def test_errors_are_drawn_on_a_logarithmic_axis(tmp_path, monkeypatch):
    monkeypatch.setitem(TASKS, "errors", Errors)
    results = make(tmp_path, "errors")
    scales = {axes.get_title(): axes.get_yscale() for axes in draw_curves(results).axes}
    assert scales == {"MSE (training)": "log", "MSE (validation)": "log", "satisfied (validation)": "linear"}
    assert len(save_figures(results, tmp_path / "errors.svg")) == 2


def test_the_rule_figure_draws_the_weights_of_dual(tmp_path):
    results = make(tmp_path)
    figure = draw_rule(results)
    assert [axes.get_title() for axes in figure.axes][1:] == ["not-P (% of held-out samples)", "Q (% of held-out samples)"]
    dashed = [line for line in figure.axes[2].lines if line.get_linestyle() == "--"]
    own = [run for run in results.runs if run.label == "dual"]
    assert len(dashed) == 1
    expected = 100 * np.array(make_curve(own, "pool/q_weight_sixes").means)
    np.testing.assert_allclose(dashed[0].get_ydata(), expected)
    for run in results.runs:
        run.values["pool"] = {}
    assert draw_rule(results) is None


def test_an_ending_that_is_no_format_is_refused(tmp_path):
    with pytest.raises(OptionError, match=r"must end in one of .*\.png.*got 'digits-comparison.docx'"):
        save_figures(make(tmp_path), tmp_path / "digits.docx")


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.01, 0.09))
def test_labels_keep_their_order_their_distance_and_the_panel(places, gap):
    moved = spread(places, gap)
    ordered = sorted(moved)
    assert all(high - low >= gap - 1e-9 for low, high in itertools.pairwise(ordered))
    assert ordered[0] >= -1e-9
    assert ordered[-1] <= 1 + 1e-9
    assert all((a < b) == (x < y) for a, x in zip(places, moved) for b, y in zip(places, moved) if a != b)
    if all(abs(a - b) >= gap for i, a in enumerate(places) for b in places[:i]):
        assert moved == pytest.approx(places)


def test_every_row_has_a_colour_of_its_own():
    rows = [(name, name) for name in arms.names()] + [("dual", "dual[step=1]")]
    assert len(set(choose_colours(rows).values())) == len(rows)
