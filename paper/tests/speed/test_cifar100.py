"""The benchmark of CIFAR-100's step: the runner's own step, time by kind of work, and a file that the tables read."""

import json
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from dualogic_paper.models.convolutional import NETWORKS
from dualogic_paper.speed import cifar100, kernels
from dualogic_paper.tables.times import read_times

pytestmark = pytest.mark.filterwarnings("ignore:.*Profiler clears events")  # torch 2.11 says so of each profile


def make_tiny(classes):
    parts = (nn.Conv2d(3, 4, 3, stride=4), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(256, classes))
    return nn.Sequential(*parts)


@pytest.fixture
def measure(tmp_path, monkeypatch):
    """Call the benchmark on tiny networks; returns what it wrote and the folder of results."""
    for name in ("vgg16", "resnet50"):
        monkeypatch.setitem(NETWORKS, name, make_tiny)
    file = tmp_path / "benchmarks" / "cifar100.json"
    threads = torch.get_num_threads()
    small = ["--smoke", "--device", "cpu", "--rounds", "2", "--block", "2", "--precision", "32-true", "--out", str(file)]

    def call(*words):
        assert cifar100.main([*small, *words]) == 0
        return json.loads(file.read_text()), tmp_path

    yield call
    torch.set_num_threads(threads)


def test_times_and_profile_are_written_where_tables_read_them(measure, capsys):
    content, folder = measure("--networks", "vgg16", "resnet50", "--arms", "none", "dl2", "dual")
    printed = capsys.readouterr().out
    assert "ResNet50, eager: ms / step" in printed
    assert "bound by " in printed
    variant = content["variants"]["eager"]
    assert str(folder) not in variant["machine"]["command"]
    assert variant["machine"]["command"].startswith(
        "python -m dualogic_paper.speed.cifar100 --networks vgg16 resnet50 --arms none dl2 dual"
    )
    for network in variant["networks"].values():
        assert list(network["times"]) == ["none", "dl2", "dual"]
        assert all(found["lowest"] <= found["ms"] <= found["highest"] for found in network["times"].values())
        shares = network["profile"]["share"]
        assert sum(shares.values()) == pytest.approx(1, abs=1e-4)
        assert {"convolution", "batch norm", "optimizer", "elementwise and memory", "dualogic rule"} <= set(shares)
        assert network["profile"]["convolution_flops"] > 0
    (times,) = read_times(folder, "cifar100")
    assert times.steps == 5
    assert times.timings["resnet50"]["dual"].count == 4
    assert times.bounds["vgg16"].startswith("bound by ")


def test_a_profile_that_fails_leaves_the_times_and_its_error(measure, monkeypatch, capsys):
    def fail(*_):
        raise RuntimeError("no counters")

    monkeypatch.setattr(kernels, "group", fail)
    content, folder = measure("--networks", "vgg16", "--arms", "none", "dual")
    assert content["variants"]["eager"]["networks"]["vgg16"]["profile"] == {"error": "RuntimeError: no counters"}
    assert "profile failed: RuntimeError: no counters" in capsys.readouterr().out
    (variant,) = read_times(folder, "cifar100")
    assert variant.bounds == {}
    assert set(variant.timings["vgg16"]) == {"none", "dual"}


def test_networks_are_added_only_to_what_the_same_commit_measured(measure, monkeypatch):

    monkeypatch.setattr(cifar100, "find_commit", lambda: "one")
    measure("--networks", "resnet50", "--arms", "none", "--no-profile")
    content, _ = measure("--networks", "vgg16", "--arms", "none", "--no-profile")
    assert list(content["variants"]["eager"]["networks"]) == ["vgg16", "resnet50"]
    assert "profile" not in content["variants"]["eager"]["networks"]["vgg16"]
    monkeypatch.setattr(cifar100, "find_commit", lambda: "two")
    content, _ = measure("--networks", "vgg16", "--arms", "none", "--no-profile")
    assert list(content["variants"]["eager"]["networks"]) == ["vgg16"]


def test_work_of_the_rule_is_told_apart_in_both_directions():

    weight = torch.randn(300, 300, requires_grad=True)
    image = torch.randn(2, 3, 16, 16)
    network = nn.Conv2d(3, 4, 3)

    def step(rule):
        def run(number):
            outputs = network(image)
            (rule(weight) + outputs.square().mean()).backward()

        return run

    def multiply(weight):
        return (weight @ weight).mean()

    plain, _ = kernels.group(step(multiply), "cpu", 2)
    marked, _ = kernels.group(step(kernels.mark(multiply)), "cpu", 2)
    assert plain[kernels.PRODUCT] > 0
    assert kernels.RULE not in plain
    # Forward and backward products all belong to the rule; the network's own backward pass does not.
    assert kernels.PRODUCT not in marked
    assert marked[kernels.RULE] > 0
    assert marked[kernels.CONVOLUTION] > 0


def test_kernels_belong_to_what_launched_them():

    def event(name, parent=None, scope=0, number=-1, **launched):
        made = [SimpleNamespace(name=kernel, duration=duration) for kernel, duration in launched.items()]
        return SimpleNamespace(name=name, cpu_parent=parent, scope=scope, sequence_nr=number, kernels=made)

    rule = event(kernels.RULE, **{kernels.RULE: 1000.0})  # the range as the device sees it is no work
    step = event("Optimizer.step#SGD.step")
    backward = event("MulBackward0", scope=1, number=8)
    events = [
        *(rule, step, backward),
        event("aten::cudnn_convolution", number=3, sm90_xmma_fprop=10.0),
        event("aten::mul", rule, number=7, vectorized=1.0),
        event("_TwoLevelStep", rule, number=9, kernel=2.0),
        event("aten::mul", backward, vectorized=4.0),
        event("aten::mul", event("MulBackward0", scope=1, number=2), vectorized=8.0),
        event("aten::cudnn_batch_norm", bn_fw=16.0),
        event("aten::_fused_sgd_", step, multi_tensor_apply_kernel=32.0),
        event("aten::addmm", nvjet=64.0),
    ]
    found, count = kernels.attribute(events, "cuda")
    assert found == {
        kernels.CONVOLUTION: 10.0,
        kernels.RULE: 7.0,
        kernels.REST: 8.0,
        kernels.BATCH_NORM: 16.0,
        kernels.OPTIMIZER: 32.0,
        kernels.PRODUCT: 64.0,
    }
    assert count == 8


@pytest.mark.parametrize(
    ("busy", "memory", "convolution", "expected"),
    [(0.5, 0.7, 0.2, "launches"), (0.95, 0.7, 0.2, "memory traffic"), (0.95, 0.2, 0.7, "convolutions")],
)
def test_what_bounds_a_step_is_said_in_words(busy, memory, convolution, expected):

    raw = {"ms": {kernels.REST: memory, kernels.CONVOLUTION: convolution, kernels.RULE: 0.1}, "eager_ms": 2.0, "kernels": 3.0}
    found = kernels.summarise(raw, captured=(1.0, busy))
    assert found["bound"].startswith(f"bound by {expected}: ")
    assert found["captured_busy"] == busy
    assert found["memory_bound_share"] == pytest.approx(memory)
