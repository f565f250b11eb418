"""The loop: what it chooses by, what each process computes, and what a failure leaves."""

import dataclasses
import datetime as dt
import functools
import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dualogic.errors import OptionError
from dualogic_paper.arms import make_arm, names, parse_options
from dualogic_paper.runner import Config, Machine, RunFolder, train
from dualogic_paper.runner.batches import Batches, count_steps, mix_seed
from dualogic_paper.tasks import TASKS, Digits
from dualogic_paper.tasks.digits import DigitsProblem


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    return Digits().make_smoke(data), Machine(accelerator="cpu", data=data)


@given(labelled=st.integers(1, 300), pool=st.integers(1, 300), batch=st.integers(1, 64), epoch=st.integers(0, 5))
def test_batches(labelled, pool, batch, epoch):
    steps = count_steps(labelled, pool, batch)
    drawn = Batches(labelled, pool, batch, steps, seed=3).epoch(epoch)
    for count, part in zip((labelled, pool), drawn):
        assert len(part) == steps
        assert part.shape[1] <= batch
        flat = part.flatten()
        assert len(flat.unique()) == len(flat)
        assert int(flat.min()) >= 0
        assert int(flat.max()) < count
    shorter = min(labelled, pool)
    left_out = shorter - min(part.numel() for part in drawn)
    assert left_out < steps
    again = Batches(labelled, 2 * pool, batch, steps, seed=3).epoch(epoch)
    torch.testing.assert_close(drawn[0], again[0])


def test_the_pool_has_an_order_of_its_own():
    """Equally long lists are not drawn by the same numbers: a labelled sample would always meet the same one of the pool."""
    for epoch in range(3):
        labelled, pool = Batches(64, 64, 16, 4, seed=0).epoch(epoch)
        assert (labelled == pool).double().mean() < 0.2
    first, second = (Batches(64, 64, 16, 4, seed=0).epoch(epoch) for epoch in range(2))
    assert all(not torch.equal(one, other) for one, other in zip(first, second))


@given(st.lists(st.integers(0, 20), min_size=1, max_size=3), st.lists(st.integers(0, 20), min_size=1, max_size=3))
def test_seeds_differ(one, other):
    assert (mix_seed(*one) == mix_seed(*other)) == (one == other)
    assert 0 <= mix_seed(*one) < 2**63


def test_the_model_is_chosen_on_validation(small, monkeypatch):
    """The test figures are those of the epoch whose validation figure was best, whatever the test says."""
    task, machine = small
    figures = iter([50.0, 90.0, 70.0])
    weights = []

    def evaluate(self, network, part):
        now = torch.cat([parameter.detach().flatten() for parameter in network.parameters()]).double().sum().item()
        if part == "validation":
            weights.append(now)
            return {"accuracy": next(figures)}
        return {"accuracy": now}

    monkeypatch.setattr(DigitsProblem, "evaluate", evaluate)
    result = train(Config(dataclasses.replace(task, epochs=3)), machine)
    assert result.chosen_epoch == 2
    assert result.test["accuracy"] == pytest.approx(weights[1])
    assert result.last["accuracy"] == pytest.approx(weights[2])


def test_a_compiled_network_learns_what_a_plain_one_does(small, monkeypatch):
    """Measuring is not compiled; with a backend that changes nothing, neither are the figures."""
    task, machine = small
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module.forward

    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=backend))
    config = Config(dataclasses.replace(task, epochs=2, measure_every=1))
    plain = train(config, machine)
    assert not graphs
    compiled = train(config, dataclasses.replace(machine, compile=True))
    assert len(graphs) == 1
    assert compiled.test == plain.test
    assert [row["task_loss"] for row in compiled.history] == pytest.approx([row["task_loss"] for row in plain.history])


def test_a_result_says_what_was_in_force_and_when(small):
    """Semantic loss has a weight and a learning rate of its own on the digits; the configuration does not name them."""
    task, machine = small
    result = train(Config(dataclasses.replace(task, epochs=1), "semantic"), machine)
    assert result.config["weight"] is None
    assert result.settings == {"weight": 0.5, "learning_rate": 5e-4, "options": {}}
    assert abs(dt.date.fromisoformat(result.date) - dt.datetime.now(dt.timezone.utc).date()) <= dt.timedelta(days=1)


@pytest.mark.parametrize(
    ("figures", "higher", "chosen"),
    [([50, 90, 90], True, 2), ([90, 90, 90], True, 1), ([3, 1, 1], False, 2), ([1, 1, 1], False, 1), ([5, 7, 6], False, 1)],
)
def test_of_equal_epochs_the_first_is_chosen(figures, higher, chosen, small, monkeypatch):
    task, machine = small
    waiting = iter(map(float, figures))
    monkeypatch.setattr(DigitsProblem, "evaluate", lambda self, network, part: {"accuracy": next(waiting, 0.0)})
    monkeypatch.setattr(Digits, "choose_higher", higher)
    assert train(Config(dataclasses.replace(task, epochs=3), "none"), machine).chosen_epoch == chosen


def test_supervised_sees_all_labels_and_takes_as_many_steps(small):
    task, machine = small
    results = [train(Config(task, method), machine) for method in ("none", "supervised")]
    assert results[0].steps == results[1].steps
    assert results[0].test != results[1].test


def test_divergence_is_a_result(small, tmp_path, monkeypatch):
    task, machine = small

    def outputs(self, network, labelled, pool, teacher=None):
        loss = sum(parameter.sum() for parameter in network.parameters())
        return loss * math.nan, {}

    monkeypatch.setattr(DigitsProblem, "outputs", outputs)
    folder = RunFolder(tmp_path)
    result = train(Config(task, "none"), machine, folder)
    assert "nan" in result.failure
    assert folder.result["failure"] == result.failure
    assert result.test == {}


@pytest.mark.slow
def test_two_processes_compute_what_one_does(small, tmp_path):
    """Without random turns, which are drawn in each process, and with halves of equal size for the task's mean."""
    task, machine = small
    config = Config(dataclasses.replace(task, epochs=1, angle=0.0, batch=20), "dual", precision="64-true")
    alone = train(config, machine, RunFolder(tmp_path / "one"))
    together = train(config, dataclasses.replace(machine, devices=2), RunFolder(tmp_path / "two"))
    assert together.test == pytest.approx(alone.test)
    assert together.pool == pytest.approx(alone.pool)
    weights, expected = (RunFolder(path).load("model.pt") for path in (tmp_path / "two", tmp_path / "one"))
    torch.testing.assert_close(weights, expected, rtol=1e-6, atol=1e-9)


def test_options_of_methods():
    assert make_arm("dual", parse_options(["step=0.5", "delta=exact"])).method.delta == "exact"
    with pytest.raises(OptionError, match="name=value"):
        parse_options(["step"])
    with pytest.raises(OptionError, match="has the options"):
        make_arm("dual", {"stepp": 1})
    with pytest.raises(OptionError, match="must be one of none, supervised"):
        make_arm("dule")
    with pytest.raises(OptionError, match="teaches no rule"):
        make_arm("none", {"step": 1})


def test_epochs_are_checked():
    with pytest.raises(OptionError, match="--epochs must be at least 1"):
        Config(Digits(epochs=0))


@pytest.mark.parametrize("name", list(TASKS))
def test_every_task_is_described(name):
    task = TASKS[name]()
    assert task.name == name
    assert task.title
    assert set(task.arms) <= set(names(controls=True))
    assert {"none", "dual", "uniform", "hard"} <= set(task.arms)
    kept = Config(task).as_dict()["task"]
    assert TASKS[kept.pop("name")](**kept) == task
    keys = [column.key for column in task.columns]
    assert len(set(keys)) == len(keys)


def test_learning_rate_falls_along_a_cosine(small):
    task, machine = small
    rates = []
    from dualogic_paper.runner.train import Loop

    original = Loop._set_learning_rate

    def record(self):
        original(self)
        rates.append(self.optimizer.param_groups[0]["lr"])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "_set_learning_rate", record)
        train(Config(dataclasses.replace(task, epochs=20, decay="cosine", measure_every=20), "none"), machine)
    assert max(rates) == pytest.approx(1e-3)
    # A tenth of 20 epochs is the rise: the first has half of the highest, not nothing.
    assert rates[:2] == pytest.approx([0.5e-3, 1e-3])
    assert min(rates) > 0
    assert rates[-1] < 0.05 * max(rates)
    assert rates.index(max(rates)) <= 2
    assert all(before >= after for before, after in itertools.pairwise(rates[2:]))
