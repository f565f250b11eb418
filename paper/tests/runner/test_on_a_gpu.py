"""Recorded steps, on a GPU: each arm of each task can be recorded, and computes what plain steps compute."""

import dataclasses

import pytest
import torch

import dualogic as dl
from dualogic_paper.arms import names
from dualogic_paper.runner import Config, Machine, RunFolder, train
from dualogic_paper.tasks import TASKS

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("name", list(TASKS))
@pytest.mark.parametrize("method", names())
def test_recorded_steps_compute_what_plain_ones_do(tmp_path, name, method):
    try:
        task = dataclasses.replace(TASKS[name]().make_smoke(tmp_path), epochs=2, measure_every=1)
    except dl.errors.MissingExtraError as missing:  # scikit-learn, whose digits stand in for larger ones
        pytest.skip(str(missing))
    if method not in task.arms:
        pytest.skip("does not apply")
    results = [
        train(Config(task, method), Machine(accelerator="cuda", capture=capture, data=tmp_path)) for capture in (False, True)
    ]
    plain, recorded = ([row["task_loss"] for row in result.history] for result in results)
    assert recorded == pytest.approx(plain, rel=0.05)


def test_a_run_that_is_stopped_ends_as_one_that_is_not(tmp_path):
    task = dataclasses.replace(TASKS["cifar100"]().make_smoke(tmp_path), epochs=30, measure_every=1)
    config, machine = Config(task, "none"), Machine(accelerator="cuda", data=tmp_path, checkpoint_seconds=0.0)
    whole = train(config, machine)

    def stop(epoch, measures):
        if epoch == 6:
            raise KeyboardInterrupt

    folder = RunFolder(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        train(config, machine, folder, stop)
    resumed = train(config, machine, folder)
    assert [row["task_loss"] for row in resumed.history[-5:]] == pytest.approx(
        [row["task_loss"] for row in whole.history[-5:]], rel=0.3
    )
