import json
from pathlib import Path

import pytest

from dualogic.errors import DataError, MissingDataError, OptionError
from dualogic_paper.tables.runs import make_label
from dualogic_paper.tables.store import _file_name, collect, find_tasks, read_results
from dualogic_paper.tasks import TASKS
from tables.fabricate import make_result, write_runs


def numbers(results):
    """What tables are made of, free of where it was read."""
    return [(run.label, run.seed, run.diverged, run.values["test"], run.values["pool"]) for run in results.runs]


@pytest.fixture
def runs(tmp_path):
    made = [make_result(method=method, seed=seed) for method in ("none", "dual") for seed in (3, 0, 10)]
    made.append(make_result(method="dl2", seed=1, failure="the loss is nan"))
    write_runs(tmp_path / "runs", made)
    return tmp_path / "runs"


def test_collected_results_read_back_as_the_runs_do(runs, tmp_path):
    results = tmp_path / "new" / "results"
    files = collect(runs, "digits", results)
    assert [file.name for file in files] == ["dl2.json", "dual.json", "none.json"]
    ours, theirs = read_results(runs, "digits"), read_results(results, "digits")
    assert numbers(ours) == numbers(theirs)
    assert [run.seed for run in theirs.runs if run.label == "dual"] == [0, 3, 10]
    for one, other in zip(ours.runs, theirs.runs):
        assert [row["epoch"] for row in one.curve] == [row["epoch"] for row in other.curve]
        for row, row_of_file in zip(one.curve, other.curve):
            assert row.keys() == row_of_file.keys()
            assert row == pytest.approx(row_of_file, rel=1e-3)
    assert find_tasks(runs) == find_tasks(results) == ["digits"]


def test_files_have_the_documented_form_and_are_smaller(runs, tmp_path):
    (file,) = [file for file in collect(runs, "digits", tmp_path / "results") if file.stem == "dual"]
    content = json.loads(file.read_text())
    assert (content["task"], content["method"], content["label"]) == ("digits", "dual", "dual")
    assert [run["config"]["seed"] for run in content["runs"]] == [0, 3, 10]
    assert content["runs"][0]["commit"] == "0000000"
    assert file.stat().st_size < 0.7 * sum(part.stat().st_size for part in runs.glob("digits/dual/*/result.json"))
    assert list(file.parent.glob(".*")) == []


def test_collecting_twice_changes_nothing_and_a_new_run_of_a_seed_replaces_the_old(runs, tmp_path):
    results = tmp_path / "results"
    before = {file: file.read_bytes() for file in collect(runs, "digits", results)}
    assert {file: file.read_bytes() for file in collect(runs, "digits", results)} == before
    again = [make_result(seed=3, level=12.0), make_result(seed=11)]
    write_runs(tmp_path / "later", again)
    collect(tmp_path / "later", "digits", results)
    found = {run.seed: run.values["test"] for run in read_results(results, "digits").runs if run.label == "dual"}
    assert sorted(found) == [0, 3, 10, 11]
    assert found[3] == again[0]["test"]
    assert results / "digits" / "none.json" in before


def test_a_figure_that_is_not_a_number_survives_as_such(tmp_path):
    result = make_result()
    result["test"]["q"] = float("nan")
    write_runs(tmp_path / "runs", [result])
    collect(tmp_path / "runs", "digits", tmp_path / "results")
    (run,) = read_results(tmp_path / "results", "digits").runs
    assert run.values["test"]["q"] != run.values["test"]["q"]


def test_options_hyper_parameters_and_precision_make_labels_of_their_own(tmp_path):
    variants = [
        make_result(),
        make_result(options={"step": 0.5}),
        make_result(options={"delta": "exact", "step": 0.5}),
        make_result(batch=64, learning_rate=0.01),
    ]
    variants.append(make_result())
    variants[-1]["config"] |= {"weight": 2.0, "precision": "bf16-mixed"}
    labels = ["dual", "dual[step=0.5]", "dual[delta=exact, step=0.5]", "dual[batch=64, learning_rate=0.01]"]
    assert [make_label(result["config"]) for result in variants] == [*labels, "dual[weight=2.0, precision=bf16-mixed]"]
    for number, result in enumerate(variants):
        write_runs(tmp_path / str(number), [result])
        collect(tmp_path / str(number), "digits", tmp_path / "results")
    assert len(list((tmp_path / "results" / "digits").iterdir())) == 5
    assert {run.label for run in read_results(tmp_path / "results", "digits").runs} == {
        *labels,
        "dual[weight=2.0, precision=bf16-mixed]",
    }


def test_a_hyper_parameter_of_a_later_version_had_its_default(tmp_path):
    earlier, later = make_result(seed=0), make_result(seed=1)
    del earlier["config"]["task"]["weight_decay"]
    for number, result in enumerate((earlier, later)):
        write_runs(tmp_path / str(number), [result])
        collect(tmp_path / str(number), "digits", tmp_path / "results")
    runs = read_results(tmp_path / "results", "digits").runs
    assert [run.hyper["weight_decay"] for run in runs] == [0.0, 0.0]


def test_runs_that_were_not_finished_are_counted(runs):
    (runs / "digits" / "dual" / "10" / "result.json").unlink()
    (runs / "digits" / "dual" / "10" / ".result.json.7.part").write_text('{"half')
    found = read_results(runs, "digits")
    assert found.unfinished == (("dual", 10),)
    assert [run.seed for run in found.runs if run.label == "dual"] == [0, 3]


def test_no_results_says_where_it_looked_and_what_makes_them(runs, tmp_path):
    with pytest.raises(MissingDataError, match=r"no results of 'digits' in .*nowhere.digits .*`dualogic run digits --runs runs`"):
        read_results(tmp_path / "nowhere", "digits")
    for file in runs.glob("digits/*/*/result.json"):
        file.unlink()
    with pytest.raises(MissingDataError, match="7 runs there have not ended"):
        read_results(runs, "digits")
    with pytest.raises(OptionError, match=r"must be one of digits, .*got 'magic'"):
        read_results(runs, "magic")


def spoil(content, name):
    """Make a good file bad in one way."""
    run = content["runs"][0]
    if name == "no runs":
        content["runs"] = []
    elif name == "task":
        content["task"] = "paths"
    elif name == "method":
        content["method"] = "dl2"
    elif name == "config of another task":
        run["config"]["task"]["name"] = "digits-mixed"
    elif name == "no seed":
        del run["config"]["seed"]
    elif name == "seed":
        run["config"]["seed"] = "zero"
    elif name == "no test":
        del run["test"]
    elif name == "test":
        run["test"]["q"] = "high"
    elif name == "pool":
        run["pool"] = [1]
    elif name == "ragged":
        run["history"]["epoch"].pop()
    elif name == "twice":
        content["runs"].append(run)
    elif name == "epochs":
        run["config"]["task"]["epochs"] = 7
    elif name == "defaults of the method":
        for number, other in enumerate(content["runs"]):
            other["method"] = f"Dual(step={number})"
    return content


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no runs", "with one run at least"),
        ("task", "in the folder of 'digits' but says task 'paths'"),
        ("method", "says method 'dl2' but holds a run of 'dual'"),
        ("config of another task", "but holds a run of 'digits-mixed'"),
        ("no seed", "lacks seed"),
        ("seed", "a whole number as seed"),
        ("no test", "lacks test"),
        ("test", "q of test in .* must be a number; got 'high'"),
        ("pool", "pool in .* must be numbers by name; got list"),
        ("ragged", "must be lists of one length"),
        ("twice", "seed 0 of dual .* is both in"),
        ("defaults of the method", r"differ in the method \(Dual\(step=1\) and Dual\(step=0\)\): they"),
        ("epochs", "differ in epochs: they cannot be averaged"),
    ],
)
def test_a_malformed_file_is_named(name, message, runs, tmp_path):
    results = tmp_path / "results"
    collect(runs, "digits", results)
    file = results / "digits" / "dual.json"
    file.write_text(json.dumps(spoil(json.loads(file.read_text()), name)))
    with pytest.raises(DataError, match=message) as caught:
        read_results(results, "digits")
    assert "dual.json" in str(caught.value)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_half_a_file_is_refused_and_named(share, runs, tmp_path):
    results = tmp_path / "results"
    collect(runs, "digits", results)
    for file in (results / "digits" / "dual.json", runs / "digits" / "dual" / "0" / "result.json"):
        whole = file.read_bytes()
        file.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(DataError, match=rf"{file.name} is not whole JSON"):
            read_results(file.parents[1] if file.name == "dual.json" else runs, "digits")


def test_a_list_in_place_of_an_object_is_refused(runs):
    (runs / "digits" / "dual" / "0" / "result.json").write_text("[]")
    with pytest.raises(DataError, match=r"result.json must hold a JSON object; got list"):
        read_results(runs, "digits")


def test_two_labels_never_share_a_file(tmp_path):
    write_runs(tmp_path / "runs", [make_result(options={"step": 0.5})])
    (file,) = collect(tmp_path / "runs", "digits", tmp_path / "results")
    content = json.loads(file.read_text())
    file.write_text(json.dumps(content | {"label": "another"}))
    with pytest.raises(DataError, match=r"holds another, which cannot be kept together with dual\[step=0.5\]"):
        collect(tmp_path / "runs", "digits", tmp_path / "results")


def test_runs_of_changed_source_are_not_collected(tmp_path):
    write_runs(tmp_path / "runs", [make_result() | {"commit": "abc1234+"}])
    with pytest.raises(DataError, match="had changes since commit abc1234, so nobody can make it again"):
        collect(tmp_path / "runs", "digits", tmp_path / "results")


def test_committed_runs_are_of_clean_commits_and_lie_in_the_file_of_their_label():
    results = Path(__file__).parents[2] / "results"
    for task in find_tasks(results):
        for run in read_results(results, task).runs:
            assert not run.values["commit"].endswith("+")
            assert run.path.stem == _file_name(run.label)


def test_a_hyper_parameter_that_is_gone_does_not_stop_a_table(tmp_path):
    result = make_result()
    result["config"]["task"]["former"] = 3
    write_runs(tmp_path, [result])
    (run,) = read_results(tmp_path, "digits").runs
    assert run.label == "dual[former=3]"
    assert run.settled_task == TASKS["digits"]()
