"""Rules in Lightning: the plain loop's duals, runs that go on exactly where they stopped, several processes."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader

import dualogic as dl
from dualogic.report import read_runs
from integrations.examples import assert_equal, load, run, tensors_of

pytestmark = [
    # Lightning's own doing, or advice about a machine for real training.
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
    pytest.mark.filterwarnings("ignore:.*the number of training batches"),
    pytest.mark.filterwarnings("ignore:Checkpoint directory .* exists and is not empty"),
    pytest.mark.filterwarnings("ignore:Be aware that when using `ckpt_path`"),
]
SEED = 3


@pytest.fixture(scope="module")
def example():
    pytest.importorskip("lightning")
    return load("with_lightning")


@pytest.fixture(scope="module")
def lightning(example):
    return importlib.import_module("lightning.pytorch")


def make(example, **options):
    torch.manual_seed(0)
    return example.Digits(300, **options)


def plain(example, epochs):
    """The same training without Lightning."""
    model = make(example)
    optimizer = model.configure_optimizers()
    torch.manual_seed(SEED)
    loader = DataLoader(dl.data.WithIndex(example.data()[0]), batch_size=64, shuffle=True)
    for _ in range(epochs):
        for number, batch in enumerate(loader):
            optimizer.zero_grad()
            model.training_step(batch, number).backward()
            optimizer.step()
    return model


def test_the_example_ends_like_the_plain_loop_and_goes_on_from_any_step(example, lightning, tmp_path):
    whole = make(example)
    torch.manual_seed(SEED)
    keep = lightning.callbacks.ModelCheckpoint(tmp_path, filename="{step}", every_n_train_steps=1, save_top_k=-1)
    trainer = example.make_trainer(callbacks=[keep], enable_checkpointing=True)
    trainer.fit(whole, *example.loaders())
    expected = tensors_of(whole)
    assert_equal(expected, tensors_of(plain(example, epochs=3)))
    for stop in (1, 4, 5, 12):
        again = make(example)
        torch.manual_seed(99)
        example.make_trainer().fit(again, *example.loaders(), ckpt_path=tmp_path / f"step={stop}.ckpt", weights_only=True)
        assert_equal(tensors_of(again), expected)
    with pytest.raises(RuntimeError, match="num_samples is 300 in the checkpoint and 301 here"):
        example.make_trainer().fit(example.Digits(301), *example.loaders(), ckpt_path=tmp_path / "step=4.ckpt")


@pytest.mark.parametrize("options", [{}, {"save_on_train_epoch_end": True}])
def test_a_run_goes_on_from_the_end_of_an_epoch(example, lightning, tmp_path, options):
    whole = make(example)
    torch.manual_seed(SEED)
    keep = lightning.callbacks.ModelCheckpoint(tmp_path, filename="{epoch}", save_top_k=-1, **options)
    example.make_trainer(callbacks=[keep], enable_checkpointing=True).fit(whole, *example.loaders())
    again = make(example)
    torch.manual_seed(99)
    example.make_trainer().fit(again, *example.loaders(), ckpt_path=tmp_path / "epoch=0.ckpt", weights_only=True)
    assert_equal(tensors_of(again), tensors_of(whole))


def test_satisfaction_costs_and_events_are_written(example, tmp_path):
    model = make(example)
    callback = example.LogicCallback("rules", lead=0.1, events=tmp_path)
    trainer = example.make_trainer(max_epochs=1, callbacks=[callback])
    trainer.fit(model, *example.loaders())
    images, labels = example.data()[1].tensors
    model.eval()
    with torch.no_grad():
        tensors = {"f": model.net(images[labels == 6]), "g": model.net(images[labels == 6].flip(-1, -2))}
    logged = trainer.callback_metrics
    assert float(logged["rules/satisfied/rule"]) == pytest.approx(
        example.rule.satisfied(lead=0.1, **tensors).float().mean().item()
    )
    assert float(logged["logic/satisfied/rule"]) == pytest.approx(example.rule.satisfied(**tensors).float().mean().item())
    assert float(logged["logic/delta/rule"]) == pytest.approx(model.logic.delta.item())
    assert float(logged["logic/cost/rule"]) > 0
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(tmp_path)).Reload()
    assert set(found.Tags()["scalars"]) == {"rules/satisfied/rule", "rules/delta/rule"}
    assert found.Tags()["histograms"] == ["weights/rule/operand_0", "weights/rule/operand_1"]


def test_a_folder_is_recorded_for_the_report(example, tmp_path):
    model = make(example)
    callback = example.LogicCallback(record=tmp_path / "run")
    trainer = example.make_trainer(max_epochs=2, callbacks=[callback])
    trainer.fit(model, *example.loaders())
    (record,) = read_runs([tmp_path / "run"])
    assert [row["epoch"] for row in record.history] == [1, 2]
    assert all({"total_loss", "rule_loss", "delta/rule"} <= row.keys() for row in record.history)
    images, labels = example.data()[1].tensors
    model.eval()
    with torch.no_grad():
        tensors = {"f": model.net(images[labels == 6]), "g": model.net(images[labels == 6].flip(-1, -2))}
    assert record.report.samples == int((labels == 6).sum())
    assert record.report.satisfied == pytest.approx(example.rule.satisfied(**tensors).float().mean().item())
    assert record.points[-1]["pool"]["rule"]["all"]["parts"]["rule"]["weights"]
    assert record.result is not None
    (recorder,) = callback.recorders.values()
    assert recorder.diagnose(pictures=images[labels == 6], **tensors).samples == len(tensors["f"])
    assert read_runs([tmp_path / "run"])[0].kept["pictures"]


def test_a_training_that_fails_has_not_ended(example, tmp_path):
    class Fails(example.Digits):
        def training_step(self, batch, number):
            raise RuntimeError("stop")

    model = Fails(300)
    callback = example.LogicCallback(record=tmp_path / "run")
    with pytest.raises(RuntimeError, match="stop"):
        example.make_trainer(max_epochs=1, callbacks=[callback]).fit(model, *example.loaders())
    assert read_runs([tmp_path / "run"])[0].result is None
    assert not callback.recorders["logic"].is_open


@pytest.fixture(scope="module")
def pair(lightning):
    return importlib.import_module("integrations.pair")


def test_two_processes_learn_what_one_learns(pair, tmp_path):
    paths = os.pathsep.join([str(Path(dl.__file__).parents[1]), str(Path(pair.__file__).parents[1])])
    subprocess.run(
        [sys.executable, pair.__file__, str(tmp_path / "two.pt")],
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        check=True,
        timeout=900,
        capture_output=True,
    )
    two, one = torch.load(tmp_path / "two.pt", weights_only=True), pair.fit(1)
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, rtol=1e-9, atol=1e-12)
    assert int(one["logic.steps"]) == 9
    assert 0 < one["satisfied"] < 1


def test_what_is_refused(example, lightning, pair):
    class Without(pair.Pair):
        def __init__(self):
            super().__init__()
            self.logic = None

    with pytest.raises(dl.errors.StateError, match="LogicCallback found no LogicLoss in Without"):
        example.make_trainer(max_epochs=1).fit(Without(), pair.loader(), pair.loader())
    trainer = example.make_trainer(max_epochs=1, strategy=lightning.strategies.DDPStrategy(start_method="fork"), devices=2)
    with pytest.raises(ValueError, match=r"runs in 2 processes, .* process_group='world'"):
        trainer.callbacks[0].setup(trainer, pair.Pair(), "fit")


def test_the_script_runs(capsys, example):
    run("with_lightning")
    assert "logic/satisfied/rule" in capsys.readouterr().out
