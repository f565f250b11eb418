"""Rules in scikit-learn estimators: the plain loop's duals, and runs that go on exactly where they stopped."""

import importlib
import pickle

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

import dualogic as dl
from integrations.examples import assert_equal, load, run, tensors_of

X, Y = dl.var("x"), dl.var("y")


@pytest.fixture(scope="module")
def example():
    pytest.importorskip("skorch")
    return load("with_skorch")


@pytest.fixture(scope="module")
def skorch(example):
    """The integration."""
    return importlib.import_module("dualogic.integrations.skorch")


def stop_after(steps):
    """Interrupts after so many training steps, as a user would."""
    from skorch.callbacks import Callback

    class Stop(Callback):
        done = 0

        def on_batch_end(self, net, training=None, **kwargs):
            self.done += bool(training)
            if self.done == steps:
                raise KeyboardInterrupt

    return Stop()


@pytest.fixture(scope="module")
def data(example):
    features, labels = example.data()
    return (features - features.mean(0)) / features.std(0), labels


def train(example, data, **options):
    net = example.make(len(data[0]), **options)
    net.initialize()
    torch.manual_seed(5)
    net.partial_fit(*data)
    return net


def plain(example, data, rows):
    """The same training without skorch."""
    net = example.make(len(data[0])).module
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    logic = dl.LogicLoss(example.rule, num_samples=len(data[0]))
    torch.manual_seed(5)
    samples = dl.data.WithIndex(TensorDataset(*map(torch.tensor, data)))
    loader = DataLoader(Subset(samples, rows), batch_size=32, shuffle=True)
    for _ in range(3):
        for index, x, y in loader:
            output = net(x)
            optimizer.zero_grad()
            (nn.functional.cross_entropy(output, y) + logic(index, **example.tensors(None, x, output))).backward()
            optimizer.step()
    return net, logic


def test_the_example_ends_like_the_plain_loop_and_goes_on_from_any_step(example, data, skorch, tmp_path):
    whole = train(example, data)
    rows = whole.get_split_datasets(*data)[0].indices
    expected = tensors_of(whole.module_, whole.logic_)
    assert_equal(expected, tensors_of(*plain(example, data, rows)))
    path = tmp_path / "run.pt"
    for stop in (1, 4, 5, 12):
        train(example, data, callbacks=[("save", skorch.SaveRun(path)), ("stop", stop_after(stop))])
        again = example.make(len(data[0])).initialize()
        complete = again.load_run(path)
        assert complete == stop // 5
        again.set_params(max_epochs=3 - complete).partial_fit(*data)
        assert_equal(tensors_of(again.module_, again.logic_), expected)
    torch.load(path, weights_only=True)


def test_satisfaction_of_validation_samples_is_in_the_history(example, data):
    net = train(example, data, max_epochs=1)
    valid = net.get_split_datasets(*data)[1].indices
    x = torch.tensor(data[0][valid])
    with torch.no_grad():
        holds = example.rule.satisfied(**example.tensors(net, x, net.module_.eval()(x)))
    assert net.history[-1]["valid_satisfied"] == pytest.approx(holds.float().mean().item())


def test_a_pickled_net_has_its_duals_and_not_its_data(example, data):
    net = train(example, data, max_epochs=1)
    small, large = (len(pickle.dumps(one)) for one in (example.make(len(data[0])).initialize(), net))
    assert large < small + data[0].nbytes / 2
    again = pickle.loads(pickle.dumps(net))
    assert_equal(tensors_of(again.logic_), tensors_of(net.logic_))
    again.partial_fit(*data)


def test_parameters_are_saved_with_the_others(example, data, tmp_path):
    net = train(example, data, max_epochs=1)
    net.save_params(f_params=tmp_path / "module.pt", f_logic=tmp_path / "logic.pt")
    other = example.make(len(data[0])).initialize()
    other.load_params(f_params=tmp_path / "module.pt", f_logic=tmp_path / "logic.pt")
    assert_equal(tensors_of(other.logic_), tensors_of(net.logic_))
    assert np.array_equal(other.predict_proba(data[0]), net.predict_proba(data[0]))


def test_an_optimizer_with_closures_moves_the_duals_once_per_step(skorch):
    inputs = torch.linspace(0, 1, 12).unsqueeze(1)
    net = skorch.LogicRegressor(
        nn.Linear(1, 1),
        tensors=lambda net, x, output: {"x": output[:, 0], "y": x["x"][:, 0] if isinstance(x, dict) else x[:, 0]},
        logic__rules=(X <= 0.2) | (Y <= 0.1),
        logic__num_samples=12,
        logic__update="manual",
        optimizer=torch.optim.LBFGS,
        train_split=None,
        max_epochs=2,
        batch_size=4,
        verbose=0,
    ).fit(inputs, inputs * 2)
    assert int(net.logic_.state_dict()["steps"]) == 6
    assert net.predict(inputs).shape == (12, 1)


def test_inputs_by_name_reach_the_module_without_the_index(skorch):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 1)

        def forward(self, a, b):
            return self.layer(torch.cat([a, b], 1))

    inputs = {"a": np.ones((9, 1), np.float32), "b": np.arange(9, dtype=np.float32).reshape(9, 1)}
    net = skorch.LogicRegressor(
        Two,
        tensors=lambda net, x, output: {"x": output[:, 0], "y": x["b"][:, 0]},
        logic__rules=(X <= 0.2) | (Y >= 3),
        logic__num_samples=9,
        train_split=None,
        max_epochs=1,
        verbose=0,
    ).fit(inputs, np.zeros((9, 1), np.float32))
    assert bool((net.logic_.state_dict()["table"] != 0).any())
    assert net.predict(inputs).shape == (9, 1)


def test_nothing_to_save_before_training(example, tmp_path):
    with pytest.raises(dl.errors.StateError, match="nothing to save before training"):
        example.make(5).initialize().save_run(tmp_path / "run.pt")


def test_the_script_runs(capsys, example):
    run("with_skorch")
    assert "valid_satisfied" in capsys.readouterr().out
