"""Rules with accelerate: the plain loop's duals, and runs that go on exactly where they stopped."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

import dualogic as dl
from integrations.examples import assert_equal, load, run, tensors_of


@pytest.fixture(scope="module")
def example():
    pytest.importorskip("accelerate")
    return load("with_accelerate")


def plain(example):
    """The same training without accelerate."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2), nn.Tanh(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(net.parameters(), 0.01)
    samples = dl.data.WithIndex(example.data())
    loader = DataLoader(samples, batch_size=8, shuffle=True)
    logic = dl.LogicLoss(example.rule, num_samples=len(samples))
    for _ in range(example.EPOCHS):
        for index, x, y, known in loader:
            output = net(x)
            task = ((output - y).square().mean(1) * known).sum() / known.sum().clamp_min(1)
            optimizer.zero_grad()
            (task + logic(index, p=output[:, 0], q=output[:, 1])).backward()
            optimizer.step()
    return net, logic


def test_the_example_ends_like_the_plain_loop_and_goes_on_from_any_step(example, tmp_path):
    whole = tensors_of(*example.train(tmp_path / "whole"))
    assert_equal(whole, tensors_of(*plain(example)))
    for stop in (1, 7, 8, 13):
        folder = tmp_path / f"stop{stop}"
        stopped = tensors_of(*example.train(folder, stop=stop))
        assert not all(torch.equal(one, two) for one, two in zip(stopped, whole))
        assert_equal(tensors_of(*example.train(folder)), whole)
    torch.load(folder / "checkpoint" / "logic.pt", weights_only=True)
    assert not list((folder / "checkpoint").glob(".*.part"))


def test_the_script_runs(capsys, example):
    run("with_accelerate")
    assert capsys.readouterr().out.startswith("tensor([")


def test_what_is_refused(example, tmp_path):
    accelerator = example.Accelerator(cpu=True)
    accelerator.prepare(nn.Linear(2, 2))
    logic = dl.LogicLoss(example.rule, num_samples=5)
    accelerator.save_state(str(tmp_path / "without"))
    example.attach(accelerator, logic)
    with pytest.raises(FileNotFoundError, match=r"has no logic.pt: it was saved by a run without dualogic's attach"):
        accelerator.load_state(str(tmp_path / "without"))
    accelerator.save_state(str(tmp_path / "with"))
    other = example.Accelerator(cpu=True)
    other.prepare(nn.Linear(2, 2))
    example.attach(other, dl.LogicLoss(example.rule, num_samples=6))
    with pytest.raises(RuntimeError, match="num_samples is 5 in the checkpoint and 6 here"):
        other.load_state(str(tmp_path / "with"))
    example.attach(accelerator, logic, file="other.pt", ids=dl.data.IdMap(3), loader=dl.data.Resumable([1]))
    accelerator.save_state(str(tmp_path / "more"))
    accelerator.load_state(str(tmp_path / "more"))
    example.attach(accelerator, logic, file="other.pt", words=dl.data.IdMap(3))
    with pytest.raises(ValueError, match="has no state of 'words'; it was saved with ids, loader attached"):
        accelerator.load_state(str(tmp_path / "more"))


def test_several_processes_need_a_group(example, monkeypatch):
    accelerator = example.Accelerator(cpu=True)
    monkeypatch.setattr(type(accelerator), "num_processes", property(lambda self: 4))
    with pytest.raises(ValueError, match=r"runs in 4 processes, .* process_group='world'"):
        example.attach(accelerator, dl.LogicLoss(example.rule, num_samples=5))
    example.attach(accelerator, dl.LogicLoss(example.rule, num_samples=5, process_group="world"))
