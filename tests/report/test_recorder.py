"""A training recorded in a few lines: what is written, and what a kill leaves."""

import copy
import json
import math
import pickle
import signal
import subprocess
import sys
import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dualogic as dl
from dualogic.report import make_model, read_runs, recorder
from dualogic.report.journal import Journal
from dualogic.report.seen import BYTES, SAMPLES, Mean, Seen

x, y = dl.var("x"), dl.var("y")


@pytest.fixture
def plenty(monkeypatch):
    """Time for every look, however busy the machine is."""
    monkeypatch.setattr(recorder, "GRACE", 600.0)


def make_logic(**options):
    return dl.LogicLoss({"low": x <= 0, "order": (x >= 1) >> (y >= 1)}, num_samples=8, **options)


def call(logic, size=4):
    return logic(torch.arange(size), x=torch.rand(size, requires_grad=True), y=torch.rand(size, requires_grad=True))


# ---------------------------------------------------------------------- what is written


@pytest.mark.filterwarnings("ignore:the index was 0, 1, 2")  # one batch, again and again
def test_losses_measures_and_delta_are_means_over_each_epoch(tmp_path):
    logic = make_logic()
    expected = []
    with dl.Recorder(tmp_path / "one", logic) as made:
        for _ in range(3):
            rules = []
            for step in range(4):
                loss = call(logic)
                task = torch.tensor(float(step))
                made.step(task_loss=task, speed=2.0 * step)
                task += 100  # what happens to the tensor afterwards is not recorded
                rules.append(loss.item())
            made.epoch(accuracy=torch.tensor(0.5))
            expected.append((sum(rules) / 4, logic.delta.tolist()))
    (record,) = read_runs([tmp_path / "one"])
    assert [row["epoch"] for row in record.history] == [1, 2, 3]
    for row, (rule, delta) in zip(record.history, expected):
        assert row["task_loss"] == 1.5
        assert row["rule_loss"] == pytest.approx(rule)
        assert [row["delta/low"], row["delta/order"]] == pytest.approx(delta)
        assert (row["measure/speed"], row["measure/accuracy"]) == (3.0, 0.5)
    assert record.result is not None
    assert ["steps", "12"] in record.result["facts"]


@pytest.mark.usefixtures("plenty")
def test_weights_and_satisfaction_of_the_training_are_seen_by_themselves(tmp_path):
    logic = make_logic()
    with dl.Recorder(tmp_path, logic) as made:
        for _ in range(3):
            call(logic)
            made.step()
            made.epoch()
    kept = json.loads((tmp_path / "diagnosis.json").read_text())
    last = kept["history"][-1]["pool"]["order"]["all"]
    assert last["samples"] == 4
    weights = logic.weights(torch.arange(4))["order"].mean(0)
    assert last["parts"]["order"]["weights"] == pytest.approx(weights.tolist(), abs=1e-3)
    assert {tuple(found) for found in kept["history"][-1]["findings"]} >= {("low", "violated")}
    (record,) = read_runs([tmp_path])
    assert list(record.reports) == ["pool"]
    assert "the verdict is about samples of the training" in record.missing[0]


@pytest.mark.usefixtures("plenty")
def test_outputs_that_are_nan_do_not_stop_the_recorder(tmp_path):
    logic = dl.LogicLoss(x <= 0)
    with dl.Recorder(tmp_path, logic) as made:
        made._see((), {"x": torch.tensor([math.nan])}, torch.tensor(math.nan))
        made.epoch()
        logic(x=torch.ones(4, requires_grad=True))
        made.epoch()
    (record,) = read_runs([tmp_path])
    assert math.isnan(record.history[0]["rule_loss"])
    assert [step["epoch"] for step in record.points] == [2]
    assert make_model([record])["runs"][0]["curves"]["rule_loss"][0] == [1.0, None]


def test_a_recorder_that_is_opened_again_begins_anew(tmp_path):
    logic = make_logic()
    made = dl.Recorder(tmp_path, logic, labels=torch.arange(8))
    for size in (8, 12):
        with made:
            call(logic, size)
            made.step(task_loss=1.0)
        logic.extend(12)  # labels of new samples are not known
    (record,) = read_runs([tmp_path])
    assert [row["epoch"] for row in record.history] == [1]
    assert sorted(record.reports["pool"].rules["low"].classes) == list(range(8))
    assert record.reports["pool"].samples == 12
    with pytest.raises(dl.errors.OptionError, match=r"labels must be one for each .*num_samples=12; got shape \(8,\)"):
        dl.Recorder(tmp_path, logic, labels=torch.arange(8))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_an_index_of_few_bits_finds_its_labels(tmp_path, dtype):
    """As of what is recorded, so of a monitor."""
    logic = make_logic()
    monitor = dl.Monitor(logic, every=1, labels={"x": torch.arange(8.0)})
    with dl.Recorder(tmp_path, logic, labels=torch.arange(8), monitor=monitor) as made:
        logic(torch.tensor([5, 1], dtype=dtype), x=torch.ones(2, requires_grad=True), y=torch.ones(2))
        made.epoch()
    assert len(monitor.history) == 1
    (record,) = read_runs([tmp_path])
    assert sorted(record.reports["pool"].rules["low"].classes) == [1, 5]


def test_a_loss_for_each_sample_is_averaged(tmp_path):
    logic = make_logic(reduction="none")
    with dl.Recorder(tmp_path, logic) as made:
        loss = call(logic)
        made.epoch()
    (row,) = (json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines())
    assert row["rule_loss"] == pytest.approx(loss.mean().item())


def test_rows_of_where_alone_are_looked_at(tmp_path):
    logic = make_logic()
    with dl.Recorder(tmp_path, logic) as made:
        where = torch.tensor([True, False, True, False])
        logic(torch.arange(4), where=where, x=torch.ones(4, requires_grad=True), y=torch.zeros(4, requires_grad=True))
        made.epoch()
    kept = json.loads((tmp_path / "diagnosis.json").read_text())
    assert kept["pool"]["report"]["samples"] == 2


@pytest.mark.parametrize(
    ("rows", "options", "samples"),
    [
        (4, {"where": {"low": torch.tensor([True, False, True, True])}}, 3),
        (4, {"where": {}}, 4),
        (4, {"where": {"low": torch.tensor([True, False, True, True]), "order": True}}, 3),
        (4, {"where": {"low": True, "order": None}}, 4),
        (8, {"believe": {"x": torch.ones(4), "y": torch.zeros(4)}}, 4),
        (8, {"believe": {"x": torch.ones(4)}, "where": torch.tensor([True, False, True, False])}, 2),
    ],
)
def test_a_mask_for_each_rule_and_several_views_are_looked_at(tmp_path, rows, options, samples):
    """As by a monitor: what all rules are about, in the first view."""
    logic = make_logic()
    taught = {"x": rows, "y": rows if "y" in options.get("believe", "y") else 4}
    with dl.Recorder(tmp_path, logic) as made:
        logic(torch.arange(4), **options, **{name: torch.ones(count, requires_grad=True) for name, count in taught.items()})
        made.epoch()
    assert json.loads((tmp_path / "diagnosis.json").read_text())["pool"]["report"]["samples"] == samples


@pytest.mark.parametrize("labels", [[0, 1, 0, 1], {"x": [0.0, 1.0, 0.0, 1.0]}])
@pytest.mark.parametrize("named", [False, True])
def test_held_out_samples_that_the_rules_are_about(tmp_path, labels, named):
    where = torch.tensor([True, False, True, True])
    with dl.Recorder(tmp_path, make_logic()) as made:
        made.held_out(labels, where={"low": where} if named else where, x=torch.ones(4), y=torch.zeros(4))
        made.epoch()
    (point,) = json.loads((tmp_path / "diagnosis.json").read_text())["history"]
    assert point["validation"]["low"]["all"]["samples"] == 3


def test_a_shortcut_is_named_against_the_run_without_the_rule(runs):
    model = make_model(read_runs([runs]))
    none, dual, hard = model["runs"]
    assert [run["name"] for run in model["runs"]] == ["none", "dual", "hard"]
    assert [run["tone"] for run in model["runs"]] == ["no rule", "learned", "shortcut"]
    assert model["title"] == "Points"
    assert model["verdict"].startswith("1 of 3 runs took a shortcut: in hard, the rule is satisfied by ")
    assert hard["against"] == "the run without a rule, none"
    assert not dual["missing"]
    assert set(dual["curves"]) >= {"task_loss", "rule_loss", "measure/accuracy"}
    assert set(none["curves"]) == {"task_loss", "measure/accuracy"}
    assert [step["epoch"] for step in dual["steps"]] == list(range(1, 31))
    assert all("validation" in step for step in dual["steps"])
    failures = none["failures"]["rule"]
    assert failures
    assert all(one["picture"].startswith("iVBORw0KGgo") and one["caption"].startswith("x ") for one in failures)
    assert dual["findings"][-1]["epochs"][-1][1] == 30
    (alone,) = make_model(read_runs([runs / "hard"]))["runs"]
    assert alone["against"] == hard["against"]


def test_a_rule_that_is_satisfied_too_widely_is_not_said_to_be_broken(tmp_path):
    rare = (torch.arange(100) < 10).float()
    for name, what, high in (("none", (x >= 1) >> (y >= 1), rare), ("wide", dl.LogicLoss((x >= 1) >> (y >= 1)), torch.ones(100))):
        with dl.Recorder(tmp_path / name, what) as made:
            made.diagnose(x=rare, y=high)
    verdict = make_model(read_runs([tmp_path]))["verdict"]
    assert verdict.startswith("1 of 2 runs went wrong: in wide, the antecedent x >= 1 does not hold on 90.0 %")
    assert verdict.endswith("holds on 100.0 % of them, 0.0 % before: the rule is applied too widely.")


def test_a_baseline_has_the_same_samples_and_the_same_rules(tmp_path):
    def run(name, rules, **tensors):
        with dl.Recorder(tmp_path / name, rules) as made:
            made.diagnose(**tensors)

    run("one", make_logic(), x=torch.zeros(3), y=torch.zeros(3))
    run("other samples", make_logic().rules, x=torch.zeros(4), y=torch.zeros(4))
    assert make_model(read_runs([tmp_path / "one"]))["runs"][0]["against"] is None
    run("same", make_logic().rules, x=torch.ones(3), y=torch.zeros(3))
    assert make_model(read_runs([tmp_path / "one"]))["runs"][0]["against"].endswith(", same")


def test_seeds_are_told_apart_and_compared_with_their_own_baseline(tmp_path):
    for seed in (0, 1):
        for name, rules in (("none", make_logic().rules), ("dual", make_logic())):
            with dl.Recorder(tmp_path / f"{name}-{seed}", rules, name=name, seed=seed) as made:
                made.diagnose(x=torch.ones(3), y=torch.zeros(3))
    model = make_model(read_runs([tmp_path]))
    assert [run["name"] for run in model["runs"]] == ["none, seed 0", "none, seed 1", "dual, seed 0", "dual, seed 1"]
    assert [run["against"] and run["against"][-12:] for run in model["runs"]] == [None, None, "none, seed 0", "none, seed 1"]


@pytest.mark.usefixtures("plenty")
def test_alarms_of_a_monitor_are_among_the_findings(tmp_path):
    logic = dl.LogicLoss((x == 0) | (x == 1), method="uniform")
    with dl.Recorder(tmp_path, logic, monitor=dl.Monitor(logic, every=1, warn=False)) as made:
        for _ in range(5):
            logic(x=torch.rand(8, requires_grad=True))
            made.epoch()
    (run,) = make_model(read_runs([tmp_path]))["runs"]
    assert "no gradient from the rule" in {found["kind"] for found in run["findings"]}
    with pytest.raises(dl.errors.OptionError, match="must watch the loss that is recorded"):
        dl.Recorder(tmp_path, logic, monitor=dl.Monitor(make_logic()))


@settings(deadline=None)
@given(st.lists(st.one_of(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3).map(torch.tensor)), min_size=1, max_size=50))
def test_a_mean_of_numbers_and_tensors(values):
    mean = Mean()
    for value in values:
        mean.add(value)
    assert mean.read() == pytest.approx(math.fsum(map(float, values)) / len(values), abs=1e-2)


@settings(deadline=None)
@given(st.lists(st.integers(1, 2 * SAMPLES), min_size=1, max_size=20), st.integers(1, BYTES))
def test_what_is_remembered_is_bounded_and_the_latest(sizes, width):
    seen = Seen()
    for number, size in enumerate(sizes):
        seen.add(
            None, None, {"x": torch.empty(size, width, device="meta") if number % 2 else torch.full((1,), number).expand(size)}
        )
        taken = list(seen._batches)
        assert len(taken) == 1 or (sum(one[0] for one in taken) <= SAMPLES and sum(one[1] for one in taken) <= BYTES)
        assert taken[-1][0] == size


# ---------------------------------------------------------------------- folders


def test_a_recorder_replaces_its_own_run_and_no_other(tmp_path):
    for epochs in (3, 1):
        logic = make_logic()
        with dl.Recorder(tmp_path / "one", logic) as made:
            for _ in range(epochs):
                call(logic)
                made.step()
                made.epoch()
    (record,) = read_runs([tmp_path / "one"])
    assert len(record.history) == 1
    config = json.loads((tmp_path / "one" / "config.json").read_text())
    del config["writer"]
    (tmp_path / "one" / "config.json").write_text(json.dumps(config))
    with pytest.raises(dl.errors.StateError, match="holds a run that no recorder wrote; choose another folder"):
        dl.Recorder(tmp_path / "one", make_logic()).open()


def test_a_resumed_training_goes_on_after_its_checkpoint(tmp_path):
    for done, epochs in ((0, 5), (3, 4)):
        logic = make_logic()
        with dl.Recorder(tmp_path, logic, epochs_done=done) as made:
            for _ in range(epochs):
                made.step(task_loss=float(done))
                made.epoch(x=torch.zeros(2), y=torch.zeros(2))
    (record,) = read_runs([tmp_path])
    assert [(row["epoch"], row["task_loss"]) for row in record.history] == [
        (1, 0),
        (2, 0),
        (3, 0),
        (4, 3),
        (5, 3),
        (6, 3),
        (7, 3),
    ]
    assert [step["epoch"] for step in record.points] == list(range(1, 8))
    with pytest.raises(dl.errors.StateError, match="holds a run with another rules"):
        dl.Recorder(tmp_path, dl.LogicLoss(x <= 0), epochs_done=3).open()


def test_a_failed_training_has_not_ended_and_keeps_its_epochs(tmp_path):
    def fail():
        with dl.Recorder(tmp_path, make_logic()) as made:
            made.step(task_loss=1.0)
            made.epoch()
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    (record,) = read_runs([tmp_path])
    assert record.result is None
    assert len(record.history) == 1
    assert "the run has not ended" in record.missing[0]


KILLED = """
import sys, torch
import dualogic as dl
from dualogic.report import recorder
recorder.SHARE = 1.0  # so that it is nearly always writing
x = dl.var("x")
logic = dl.LogicLoss({f"r{k}": (x <= k) >> (x <= k + 1) for k in range(20)})
with dl.Recorder(sys.argv[1], logic) as made:
    print("begun", flush=True)
    while True:
        logic(x=torch.randn(4, requires_grad=True))
        made.step(task_loss=1.0)
        made.epoch()
"""


def test_a_kill_at_any_moment_leaves_whole_files(tmp_path):
    seen = []
    for number in range(3):
        child = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "begun\n"
        time.sleep(0.05 + 0.37 * number)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        (record,) = read_runs([tmp_path])
        assert record.result is None
        assert [row["epoch"] for row in record.history] == list(range(1, len(record.history) + 1))
        make_model([record])
        seen.append(len(record.history))
    assert max(seen) > 1
    with dl.Recorder(tmp_path, make_logic()) as made:
        made.epoch()
    assert {file.name for file in tmp_path.iterdir()} <= {"config.json", "metrics.jsonl", "diagnosis.json", "result.json"}


def test_a_full_disk_is_said_once_and_training_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "SHARE", 1e9)
    with dl.Recorder(tmp_path, make_logic()) as made:

        def fail(self):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(Journal, "write", fail)
            with pytest.warns(RuntimeWarning, match="No space left on device.*training goes on"):
                made.epoch()
            made.epoch()
    (record,) = read_runs([tmp_path])
    assert len(record.history) == 2


def test_other_processes_write_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    logic = make_logic()
    with dl.Recorder(tmp_path / "one", logic) as made:
        call(logic)
        made.step(task_loss=1.0)
        made.epoch()
        assert made.diagnose(x=torch.zeros(2), y=torch.zeros(2)).samples == 2
    assert not (tmp_path / "one").exists()


def test_a_copy_of_the_loss_is_not_recorded(tmp_path):
    logic = make_logic()
    with dl.Recorder(tmp_path, logic) as made:
        for other in (copy.deepcopy(logic), pickle.loads(pickle.dumps(logic))):
            call(other)
        assert not made._seen
        with torch.no_grad():
            call(logic)
        logic.eval()
        call(logic)
        assert not made._seen
    call(logic.train())
    assert not made._seen


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (
            lambda made: made.epoch(accuracy="high"),
            dl.errors.SymbolError,
            "'accuracy' is no symbol of the rules, so it must",
        ),
        (lambda made: made.step(task_loss=torch.ones(3)), dl.errors.BindingError, r"one number; got a tensor of shape \(3,\)"),
        (lambda made: made.epoch(x=torch.ones(2)), dl.errors.SymbolError, "no tensor was given for 'y'"),
        (
            lambda made: made.diagnose(x=torch.ones(2), y=torch.ones(2), texts=["a"]),
            dl.errors.BindingError,
            "texts must be one for each of 2 samples; got 1",
        ),
        (
            lambda made: made.diagnose(x=torch.ones(2), y=torch.ones(2), pictures=torch.ones(2, 2, 5, 5)),
            dl.errors.BindingError,
            r"a picture must have the shape .*; got \(2, 5, 5\)",
        ),
    ],
)
def test_mistakes_are_named(tmp_path, act, error, message):
    with dl.Recorder(tmp_path, make_logic()) as made, pytest.raises(error, match=message):
        act(made)
    for name in ("words", "measures"):
        with pytest.raises(dl.errors.SymbolError, match=f"a symbol named '{name}' cannot be recorded"):
            dl.Recorder(tmp_path, dl.var(name) <= 0)
    with pytest.raises(dl.errors.StateError, match="record a training first"):
        dl.Recorder(tmp_path / "new", x <= 0).diagnose(x=torch.zeros(1))
