"""What a recorder costs a training."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import dualogic as dl
from dualogic.report import recorder
from dualogic.report.journal import Journal
from operations import count_calls
from report.points import train

MOST_CALLS = 50
"""Of functions, of Python and of C, that noting a step may take: what the loss saw, and the loss of the task."""


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


def test_a_step_is_noted_by_few_calls(tmp_path):
    """Counted, because a share of the time depends on what else the machine does."""
    f = dl.categorical("f", 10, input="logits")
    alone, watched = (dl.LogicLoss((f == 1) | (f == 2), num_samples=128) for _ in range(2))
    made = dl.Recorder(tmp_path, watched).open()
    scores, task = torch.randn(64, 10, requires_grad=True), torch.tensor(1.0)

    def step(logic, note):
        for index in torch.randperm(128).split(64):
            logic(index, f=scores)
            note()

    pairs = ((alone, lambda: None), (watched, lambda: made.step(task_loss=task)))
    for logic, note in 2 * pairs:
        step(logic, note)  # what is loaded and recorded once
    without, recorded = (count_calls(partial(step, *pair)) for pair in pairs)
    made.close()
    assert 0 < recorded - without <= 2 * MOST_CALLS


def test_looks_and_files_keep_to_their_share_of_the_time(tmp_path, monkeypatch):
    """With a clock on which a look takes 0.02 s, a file 0.01 s, and what the training does in an epoch 0.5 s."""
    now, looks, files = 0.0, [], []
    monkeypatch.setattr(recorder, "time", SimpleNamespace(perf_counter=lambda: now))

    def taking(seconds, noted, function):
        def call(*args, **options):
            nonlocal now
            now += seconds
            noted.append(now)
            return function(*args, **options)

        return call

    monkeypatch.setattr(recorder, "summarize", taking(0.02, looks, recorder.summarize))
    monkeypatch.setattr(Journal, "write", taking(0.01, files, Journal.write))
    x = dl.var("x")
    logic = dl.LogicLoss(x <= 0, num_samples=4)
    with dl.Recorder(tmp_path, logic) as made:
        for _ in range(200):
            logic(torch.arange(4)[torch.randperm(4)], x=torch.rand(4, requires_grad=True))
            now += 0.5
            made.epoch()
        for noted, each, free in ((looks, 0.02, recorder.GRACE), (files, 0.01, 0.0)):
            assert len(noted) > 10
            spent = [each * (place + 1) for place in range(len(noted))]
            assert all(most <= free + recorder.SHARE * when + 1e-9 for most, when in zip(spent, noted))


def test_the_whole_is_small(tmp_path):
    made = train(tmp_path / "one", "dual", epochs=2)
    assert sum(file.stat().st_size for file in made.folder.iterdir()) < 60_000
