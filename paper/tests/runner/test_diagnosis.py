"""What a run keeps about how its rules are satisfied."""

import base64
import dataclasses
import io
import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from dualogic.diagnosis import ShortcutReport
from dualogic.report import WORST, to_png
from dualogic_paper.runner import Config, Machine, RunFolder, train
from dualogic_paper.runner.diagnosis import diagnose_samples, fingerprint
from dualogic_paper.tasks import TASKS, Digits
from dualogic_paper.tasks.measures import MOST_SAMPLES, spread


@given(channels=st.sampled_from([1, 3]), height=st.integers(1, 9), width=st.integers(1, 9), seed=st.integers(0, 99))
def test_png_is_read_back(channels, height, width, seed):
    image = torch.randint(0, 256, (channels, height, width), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
    read = Image.open(io.BytesIO(base64.b64decode(to_png(image))))
    assert (read.width, read.height, read.mode) == (width, height, "L" if channels == 1 else "RGB")
    assert list(read.tobytes()) == image.permute(1, 2, 0).flatten().tolist()


@given(st.integers(0, 20_000))
def test_spread(count):
    positions = spread(count)
    assert len(positions) <= MOST_SAMPLES
    assert len(positions) >= min(count, MOST_SAMPLES // 2)
    assert len(positions.diff().unique()) <= 1
    assert not count or int(positions[0]) == 0
    assert not count or int(positions[-1]) < count


@pytest.mark.parametrize("name", ["digits", "digits-mixed", "hwf", "paths", "cifar10-stl10", "cifar100"])
def test_every_task_shows_its_samples(name, tmp_path):
    torch.manual_seed(0)
    device = torch.device("cpu")
    problem = TASKS[name]().make_smoke(tmp_path).make_problem(0, tmp_path, device)
    network = problem.make_network().eval()
    pool = torch.cat([problem.labelled, problem.unlabelled])
    for rows in (None, pool):
        report, samples = diagnose_samples(problem, network, None, rows, worst=3)
        assert report.samples == len(samples.inputs)
        assert report.samples == len(pool) or rows is None
        for name, rule in problem.rules.items():
            holds = rule.satisfied(tol=samples.tol, lead=samples.lead, **samples.tensors)
            assert report.rules[name].satisfied == pytest.approx(holds.double().mean().item())
            for sample in report.rules[name].worst:
                assert samples.caption(sample.position)
                if samples.picture is not None:
                    image = samples.picture(sample.position)
                    assert image.dtype == torch.uint8
                    assert image.shape[0] in (1, 3)
        texts = {operand.text for rule in report.rules.values() for part in rule.connectives for operand in part.operands}
        texts |= {rule.antecedent.text for rule in report.rules.values() if rule.antecedent is not None}
        assert texts >= samples.words.keys() != set()
        assert ShortcutReport.from_dict(json.loads(json.dumps(report.to_dict()))) == report
        assert fingerprint(samples) == fingerprint(diagnose_samples(problem, network, None, rows)[1])
    assert (samples.picture is None) == (name == "rule" and "d" in samples.tensors)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    return Digits().make_smoke(data), Machine(accelerator="cpu", data=data)


def test_it_changes_nothing_and_is_the_same_after_a_stop(small, tmp_path):
    task, machine = small
    config = Config(dataclasses.replace(task, epochs=3), "dual")
    machine = dataclasses.replace(machine, checkpoint_seconds=0.0)

    class Stop(Exception):
        pass

    def stop(epoch, measures):
        if epoch == 2:
            raise Stop

    without = train(config, machine)
    whole = train(config, machine, RunFolder(tmp_path / "whole"))
    with pytest.raises(Stop):
        train(config, machine, RunFolder(tmp_path / "stopped"), stop)
    train(config, machine, RunFolder(tmp_path / "stopped"))
    for kept in ("validation", "test", "last", "pool", "history"):
        assert getattr(without, kept) == getattr(whole, kept)
    texts = [(tmp_path / name / "diagnosis.json").read_text() for name in ("whole", "stopped")]
    assert texts[0] == texts[1]
    kept = json.loads(texts[0])
    assert [row["epoch"] for row in kept["history"]] == [1, 2, 3]
    assert len(kept["validation"]["report"]["rules"]["rule"]["worst"]) == WORST
    assert len(texts[0]) < 200_000


def test_the_seed_decides_which_samples_are_compared(small, tmp_path):
    task, machine = small
    found = {}
    for method, seed in (("none", 0), ("dl2", 0), ("none", 1)):
        folder = tmp_path / method / str(seed)
        train(Config(task, method, seed=seed), machine, RunFolder(folder))
        found[method, seed] = json.loads((folder / "diagnosis.json").read_text())["validation"]["samples"]
    assert found["none", 0] == found["dl2", 0] != found["none", 1]
