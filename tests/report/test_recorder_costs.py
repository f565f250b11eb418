"""What a recorder costs a training."""

import time

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import dualogic as dl
from dualogic.report import recorder
from dualogic.report.journal import Journal
from report.points import train


class Waiting(TorchDispatchMode):
    """Names operations that would wait for a device: those that read numbers, or whose result has a size that they decide."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if any(word in str(function) for word in ("local_scalar", "nonzero", "unique", "is_nonzero", "masked_select")):
            self.found.append(str(function))
        return function(*args, **(kwargs or {}))


def test_a_step_waits_for_no_device_and_touches_no_file(tmp_path, monkeypatch):
    x, y = dl.var("x"), dl.var("y")
    logic = dl.LogicLoss({"low": x <= 0, "order": (x >= 1) >> (y >= 1)}, num_samples=8)
    with dl.Recorder(tmp_path, logic) as made:
        monkeypatch.setattr(Journal, "write", lambda self: pytest.fail("written in a step"))
        tensors = {"x": torch.rand(4, requires_grad=True), "y": torch.rand(4, requires_grad=True)}
        with Waiting() as waiting:
            for _ in range(3):
                made._see((torch.arange(4),), {**tensors, "where": torch.ones(4, dtype=torch.bool)}, tensors["x"].sum())
                made.step(task_loss=tensors["y"].sum(), accuracy=tensors["x"].detach().mean())
        assert waiting.found == []
        with Waiting() as waiting:
            made._look(force=True)
        assert waiting.found, "reading the numbers does wait, so that the check above can fail"
        monkeypatch.undo()


@pytest.mark.slow
def test_a_step_costs_at_most_four_percent(tmp_path):
    """The recorder's share of processor time, looks and files included, at best of five; a step is that of a small network."""
    features, labels = torch.randn(4096, 64), torch.randint(0, 10, (4096,))
    f = dl.categorical("f", 10, input="logits")
    net = torch.nn.Sequential(
        torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)
    )
    optimizer = torch.optim.Adam(net.parameters())
    logic = dl.LogicLoss((f == 1) | (f == 2), num_samples=4096)
    made = dl.Recorder(tmp_path, logic).open()
    spent = 0.0

    def timed(function):
        def call(*args, **options):
            nonlocal spent
            started = time.process_time()
            try:
                return function(*args, **options)
            finally:
                spent += time.process_time() - started

        return call

    made._handle.remove()
    made._handle = logic.register_forward_hook(timed(recorder.Hook(made._see)), with_kwargs=True)
    step, epoch = timed(made.step), timed(made.epoch)
    shares = []
    for _ in range(5):
        spent, started = 0.0, time.process_time()
        while time.process_time() - started < 2:
            for index in torch.randperm(4096).split(128):
                scores = net(features[index])
                task = torch.nn.functional.cross_entropy(scores, labels[index])
                optimizer.zero_grad()
                (task + logic(index, f=scores)).backward()
                optimizer.step()
                step(task_loss=task)
            epoch()
        shares.append(spent / (time.process_time() - started))
    made.close()
    print("recording:", ", ".join(f"{100 * share:.2f} %" for share in shares))
    assert len(made._journal.rows) > 3
    assert min(shares) < 0.04  # less than two on a quiet machine; what else runs shares its caches


def test_the_whole_is_small(tmp_path):
    made = train(tmp_path / "one", "dual", epochs=2)
    assert sum(file.stat().st_size for file in made.folder.iterdir()) < 60_000
