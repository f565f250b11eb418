"""On a GPU a step that is recorded waits for nothing."""

import pytest
import torch

import dualogic as dl
from dualogic.report import read_runs

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_steps_do_not_wait(tmp_path):
    features = torch.randn(256, 16, device="cuda")
    f = dl.categorical("f", 10, input="logits")
    net = torch.nn.Linear(16, 10).cuda()
    logic = dl.LogicLoss((f == 1) | (f == 2), num_samples=256).cuda()

    def epoch():
        for index in torch.arange(256, device="cuda").split(64):
            scores = net(features[index])
            task = scores.square().mean()
            (task + logic(index, f=scores)).backward()
            recorder.step(task_loss=task, accuracy=task)

    with dl.Recorder(tmp_path, logic) as recorder:
        epoch()
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        try:
            epoch()
        finally:
            torch.cuda.set_sync_debug_mode("default")
        recorder.epoch()
    (record,) = read_runs([tmp_path])
    assert record.points[-1]["pool"]["rule"]["all"]["samples"] == 2 * 256  # of both epochs
