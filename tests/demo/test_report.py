import io
import itertools
import json

import pytest

from dualogic import methods
from dualogic.demo import Measures, Run, Study, choose_methods, choose_pools, run_study, study
from dualogic.demo.figure import save_figure, spread
from dualogic.demo.table import describe_pool, describe_run, make_table
from dualogic.errors import MissingExtraError, OptionError


def _run(method, accuracy=90.0, satisfied=0.0, not_p=0.0, q=0.0, false_six=0.0, weights=(None, None), failure=None, pool="mixed"):
    final = Measures(accuracy, satisfied, 100 - not_p, not_p, q, false_six, *weights)
    return Run(pool, method, "", (final, final), 1.0, failure)


BASELINE = _run("none", accuracy=88.0)


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (BASELINE, "no rule: did not learn the 6 (Q 0 %); accuracy 88.0."),
        (
            _run("hard", 86.0, satisfied=100, not_p=100),
            "hard: took the shortcut, the rule met on 100 % of 6s but Q on 0 %; accuracy 86.0, 2.0 below no rule.",
        ),
        (
            _run("dual", 97.0, satisfied=100, not_p=10, q=99),
            "dual: learned the 6 without a label (Q 99 %); accuracy 97.0, 9.0 above no rule.",
        ),
        (
            _run("uniform", 60.0, satisfied=100, not_p=96, q=100, false_six=40),
            "uniform: calls 100 % of 6s a 6, but also 40 % of the other digits; accuracy 60.0, 28.0 below no rule. "
            "It met the rule both ways: 96 % of turned 6s no longer read as a 9.",
        ),
        (_run("dl2", 88.0, satisfied=20), "dl2: did not meet the rule (on 20 % of 6s); accuracy 88.0, 0.0 above no rule."),
        (_run("dual", failure="a cost is NaN"), "dual: stopped in epoch 2. a cost is NaN"),
    ],
)
def test_the_sentence_follows_the_numbers(run, said):
    assert describe_run(run, BASELINE) == said


def _study(*runs):
    return Study(1, 0, runs, {}, {}, 1.0)


def _text(table):
    from rich.console import Console

    console = Console(width=80, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


def test_the_table_shows_every_number_within_80_columns():
    runs = (BASELINE, _run("lukasiewicz", 12.3, 45.6, 78.9, 10.1), _run("dual", weights=(0.25, 0.75)))
    text = _text(make_table(_study(*runs)))
    assert "…" not in text
    for word in ("no rule", "lukasiewicz", "12.3", "45.6", "78.9", "10.1", "0.25 / 0.75"):
        assert word in text


def test_the_table_says_what_its_letters_mean():
    text = " ".join(_text(make_table(_study(BASELINE))).split())
    assert "what reads as a 9 after half a turn (P) is a 6 (Q)" in text
    assert "The shortcut is not-P: turned 6s are no longer read as a 9" in text


def test_the_end_of_every_run_is_told(monkeypatch):
    monkeypatch.setattr(study, "train", lambda split, pool, method, *rest: _run(method or "none", pool=pool))
    told = []
    run_study(["none", "dual"], ["sixes", "mixed"], 1, 0, on_end=lambda run: told.append((run.pool, run.method, run.seconds)))
    assert told == [(pool, method, 1.0) for pool in ("sixes", "mixed") for method in ("none", "dual")]


def test_the_table_says_where_a_run_diverged():
    assert "diverged" in _text(make_table(_study(_run("dual", failure="NaN"))))


def test_each_pool_is_compared_with_its_own_baseline():
    found = _study(_run("none", 80.0, pool="sixes"), _run("dual", 85.0, pool="sixes"), _run("none", 90.0), _run("dual", 85.0))
    assert "5.0 above" in describe_pool(found, "sixes")[1]
    assert "5.0 below" in describe_pool(found, "mixed")[1]


def test_methods_are_read_from_the_registry_when_asked(monkeypatch):
    monkeypatch.setitem(methods.METHODS, "newcomer", methods.Hard)
    chosen = choose_methods(["all"])
    assert set(chosen) == {"none", *methods.METHODS}
    assert (chosen[0], chosen[-1]) == ("none", "dual")


def test_the_run_without_the_rule_comes_first_and_dual_last():
    assert choose_methods([]) == ("none", "hard", "uniform", "dual")
    assert choose_methods(["dual", "hard"]) == ("none", "hard", "dual")
    assert choose_pools("both") == ("sixes", "mixed")


def test_unknown_choices_are_refused():
    with pytest.raises(OptionError, match=r"--method must be all, none or one of .*dual.*; got 'magic'"):
        choose_methods(["dual", "magic"])
    with pytest.raises(OptionError, match="--pool must be both or one of sixes, mixed; got 'nines'"):
        choose_pools("nines")
    with pytest.raises(OptionError, match="--epochs must be at least 1; got 0"):
        run_study(["none"], ["sixes"], epochs=0, seed=0)


def test_a_method_without_its_extra_is_left_out_only_on_request(monkeypatch):
    def train(split, pool, method, *rest):
        if method == "semantic":
            raise MissingExtraError("pip install -e '.[counting]'")
        return _run(method or "none", pool=pool)

    monkeypatch.setattr(study, "train", train)
    found = run_study(["none", "semantic", "dual"], ["sixes", "mixed"], 1, 0, skip_missing=True)
    assert [run.method for run in found.runs] == ["none", "dual"] * 2
    assert found.skipped == {"semantic": "pip install -e '.[counting]'"}
    with pytest.raises(MissingExtraError):
        run_study(["semantic"], ["sixes"], 1, 0)


def test_the_json_holds_all_numbers(tmp_path):
    _study(BASELINE, _run("dual", 97.0, weights=(0.5, None))).save(tmp_path / "results.json")
    read = json.loads((tmp_path / "results.json").read_text())
    assert read["rule"] == "(g == 9) >> (f == 6)"
    assert [run["final"]["accuracy"] for run in read["runs"]] == [88.0, 97.0]
    assert read["runs"][1]["history"][0]["weight_sixes"] == 0.5


@pytest.mark.parametrize("methods", [["none"], ["none", "hard", "uniform", "dual"], [f"method{k}" for k in range(14)]])
def test_a_figure_is_drawn_for_any_number_of_methods(tmp_path, methods):
    save_figure(_study(*[_run(method, weights=(0.4, 0.1)) for method in methods]), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_pip_line_is_given(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install -e '.\[demo\]'"):
        save_figure(_study(BASELINE), tmp_path / "figure.png")


@pytest.mark.parametrize("places", [[0.0] * 5, [1.0] * 5, [0.0, 0.5, 0.52, 1.0], [0.98, 1.0, 0.97, 0.02, 0.0]])
def test_labels_are_moved_apart_and_stay_in_the_panel(places):
    moved = spread(places, gap=0.1)
    ordered = sorted(moved)
    assert all(after - before >= 0.1 - 1e-9 for before, after in itertools.pairwise(ordered))
    assert min(moved) >= -1e-9
    assert max(moved) <= 1 + 1e-9
