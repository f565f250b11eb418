"""A run that is stopped goes on where it was; one of another configuration is refused."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from lightning.fabric import Fabric

from dualogic.errors import StateError
from dualogic_paper.origin import find_commit
from dualogic_paper.runner import Config, Machine, RunFolder, run_all, train
from dualogic_paper.runner.folder import CHECKPOINT, CONFIG
from dualogic_paper.runner.sweep import folder_of
from dualogic_paper.runner.train import Loop
from dualogic_paper.tasks import Digits

KILLS = 4
"""`make attack` has 50."""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    return Digits().make_smoke(data), Machine(accelerator="cpu", data=data, checkpoint_seconds=0.0)


@pytest.fixture(autouse=True)
def fixed_commit(monkeypatch):
    """Results name the commit, which may change while two of them are made to be compared."""
    monkeypatch.setenv("DUALOGIC_COMMIT", "abc1234")
    find_commit.cache_clear()
    yield
    find_commit.cache_clear()


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path):
    script = Path(__file__).parents[1] / "attacks" / "kills.py"
    call = [sys.executable, str(script), str(tmp_path), str(KILLS), "0"]
    done = subprocess.run(call, capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout.splitlines()[-1])
    assert counts["same"] == counts["clean"] == KILLS, done.stderr
    assert counts["killed"] >= KILLS // 2


@pytest.mark.parametrize(("method", "view"), [("none", "same"), ("dual", "same"), ("pd2", "same"), ("dual", "teacher")])
def test_stopped_after_an_epoch(small, tmp_path, method, view):
    task, machine = small
    config = Config(dataclasses.replace(task, epochs=3, view=view), method)
    whole = train(config, machine)

    class Stop(Exception):
        pass

    def stop(epoch, measures):
        if epoch == 2:
            raise Stop

    folder = RunFolder(tmp_path)
    with pytest.raises(Stop):
        train(config, machine, folder, stop)
    assert (tmp_path / CHECKPOINT).exists()
    resumed = train(config, machine, folder)
    assert dataclasses.replace(resumed, seconds=0.0) == dataclasses.replace(whole, seconds=0.0)
    assert not (tmp_path / CHECKPOINT).exists()


def test_a_recorded_step_keeps_reading_the_rate_that_the_schedule_sets(small, tmp_path):
    task, machine = small
    config, fabric = Config(dataclasses.replace(task, optimizer="sgd", decay="cosine"), "none"), Fabric(accelerator="cpu")
    folder = RunFolder(tmp_path)
    Loop(fabric, config, machine, folder).save()
    resumed = Loop(fabric, config, dataclasses.replace(machine, capture=True), folder)
    rates = [group["lr"] for group in resumed.optimizer.param_groups]
    resumed.resume()
    assert all(isinstance(rate, torch.Tensor) for rate in rates)
    assert all(group["lr"] is rate for group, rate in zip(resumed.optimizer.param_groups, rates))


def test_other_configuration_is_refused(small, tmp_path):
    task, _ = small
    folder = RunFolder(tmp_path)
    folder.open(Config(task, seed=0))
    folder.open(Config(task, seed=0))
    with pytest.raises(StateError, match=r"seed: 0 there, 1 here"):
        folder.open(Config(task, seed=1))


def test_a_hyper_parameter_of_a_later_version_had_its_default(small, tmp_path):
    task, _ = small
    earlier = Config(task).as_dict()
    del earlier["task"]["view"]
    (tmp_path / CONFIG).write_text(json.dumps(earlier))
    RunFolder(tmp_path).open(Config(task))
    with pytest.raises(StateError, match=r"view: 'same' there, 'teacher' here"):
        RunFolder(tmp_path).open(Config(dataclasses.replace(task, view="teacher")))


def test_a_hyper_parameter_that_is_gone_may_have_done_nothing(small, tmp_path):
    task, _ = small
    earlier = Config(task).as_dict()
    earlier["task"]["decayed"] = "all"
    (tmp_path / CONFIG).write_text(json.dumps(earlier))
    RunFolder(tmp_path).open(Config(task))
    earlier["task"]["decayed"] = "weights"
    (tmp_path / CONFIG).write_text(json.dumps(earlier))
    with pytest.raises(StateError, match=r"decayed: 'weights' there, 'absent' here"):
        RunFolder(tmp_path).open(Config(task))


def test_half_written_files_are_never_read(small, tmp_path):
    folder = RunFolder(tmp_path)
    folder.save("model.pt", {"weight": torch.ones(3)})
    (tmp_path / ".model.pt.123.part").write_bytes(b"half")
    assert folder.load("model.pt")["weight"].tolist() == [1, 1, 1]
    assert folder.load("duals.pt") is None


def test_a_run_that_has_ended_is_not_computed_again(small, tmp_path):
    task, machine = small
    configs = [Config(task, "none", seed=seed) for seed in (0, 1)]
    started = []
    run_all(configs, machine, tmp_path, on_start=lambda config: started.append(config.seed))
    run_all(configs, machine, tmp_path, on_start=lambda config: started.append(config.seed))
    assert started == [0, 1]
    results = [folder_of(tmp_path, config).result for config in configs]
    assert results[0]["test"] != results[1]["test"]


@pytest.mark.slow
def test_jobs_give_the_same_results(small, tmp_path):
    task, machine = small
    configs = [Config(task, method) for method in ("none", "dual")]
    run_all(configs, machine, tmp_path / "one")
    run_all(configs, machine, tmp_path / "two", jobs=2)
    for config in configs:
        one, two = (folder_of(tmp_path / name, config).result for name in ("one", "two"))
        assert {**one, "seconds": 0} == {**two, "seconds": 0}
