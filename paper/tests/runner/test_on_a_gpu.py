"""Recorded steps, on a GPU: each arm of each task can be recorded, and computes what plain steps compute."""

import dataclasses

import pytest
import torch
from lightning.fabric import Fabric

from dualogic_paper.arms import names
from dualogic_paper.runner import Config, Machine, RunFolder, train
from dualogic_paper.runner.step import WARM_UP
from dualogic_paper.runner.train import Loop
from dualogic_paper.tasks import TASKS

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("name", list(TASKS))
@pytest.mark.parametrize("method", names())
def test_recorded_steps_compute_what_plain_ones_do(tmp_path, name, method):
    try:
        task = dataclasses.replace(TASKS[name]().make_smoke(tmp_path), epochs=2, measure_every=1)
    except ImportError as missing:  # scikit-learn, whose digits stand in for larger ones
        pytest.skip(str(missing))
    if method not in task.arms:
        pytest.skip("does not apply")
    results = [
        train(Config(task, method), Machine(accelerator="cuda", capture=capture, data=tmp_path)) for capture in (False, True)
    ]
    plain, recorded = ([row["task_loss"] for row in result.history] for result in results)
    assert recorded == pytest.approx(plain, rel=0.05)


def test_a_resumed_run_that_is_recorded_reads_the_rate_of_its_schedule(tmp_path):
    """A rate of 0 moves no weight, also in a step that was recorded after the run was resumed."""
    task = dataclasses.replace(TASKS["cifar100"]().make_smoke(tmp_path), epochs=30, measure_every=1)
    config, machine = Config(task, "none"), Machine(accelerator="cuda", data=tmp_path)
    fabric, folder = Fabric(accelerator="cuda", devices=1), RunFolder(tmp_path / "run")
    fabric.launch()
    Loop(fabric, config, machine, folder).save()
    loop = Loop(fabric, config, machine, folder)
    loop.resume()
    loop.network.train()
    chosen, rows = (part.to("cuda") for part in loop.batches.epoch(0))

    def moved():
        before = [parameter.detach().clone() for parameter in loop.network.parameters()]
        loop.step(chosen[0], rows[0])
        return any((parameter != old).any().item() for parameter, old in zip(loop.network.parameters(), before))

    assert all(moved() for _ in range(WARM_UP + 2))
    for group in loop.optimizer.param_groups:
        group["lr"].fill_(0.0)
    assert not moved()
