"""CIFAR-100: divisions, the rule, controls, and a rule that starts late."""

import dataclasses

import pytest
import torch
from lightning.fabric import Fabric
from torch import nn
from torch.nn import functional

from dualogic.errors import OptionError
from dualogic_paper.arms import fixmatch
from dualogic_paper.models.convolutional import NETWORKS
from dualogic_paper.runner import Config, Machine, train
from dualogic_paper.runner.step import Teacher
from dualogic_paper.tasks import CIFAR100, Digits, Transfer

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cifar100")
    return CIFAR100().make_smoke(folder), folder


@pytest.fixture(scope="module")
def problem(small):
    task, folder = small
    return task.make_problem(0, folder, CPU)


def test_the_parts_are_balanced_and_disjoint(small):
    task, folder = small
    problem = task.make_problem(1, folder, CPU)
    counts = problem.labels[problem.labelled].bincount(minlength=100)
    assert counts.tolist() == [1] * 100
    assert not set(problem.labelled.tolist()) & set(problem.unlabelled.tolist())
    assert len(problem.parts["validation"][1]) == 100
    other = task.make_problem(2, folder, CPU)
    assert not torch.equal(problem.images, other.images)


def test_the_rule_is_the_papers(problem):
    logits = torch.full((3, 100), -50.0)
    logits[0, 7] = 50.0  # certain of a class
    members = (problem.superclass == 4).nonzero().squeeze(1)
    logits[1, members] = 50.0  # certain of a superclass, not of a class
    logits[2, [int((problem.superclass == 1).nonzero()[0]), int((problem.superclass == 2).nonzero()[0])]] = 50.0
    assert problem.rules["rule"].satisfied(tol=0.01, p=logits).tolist() == [True, True, False]


@pytest.mark.parametrize("form", ["one", "each"])
def test_every_form_of_the_rule_holds_where_the_papers_does(small, problem, form):
    task, folder = small
    rules = dataclasses.replace(task, form=form).make_problem(0, folder, CPU).rules
    scales = torch.tensor([0.1, 1.0, 10.0, 100.0]).repeat_interleave(50).unsqueeze(1)
    logits = scales * torch.randn(200, 100, generator=torch.Generator().manual_seed(0))
    held = torch.stack([rule.satisfied(tol=0.01, p=logits) for rule in rules.values()]).all(0)
    assert 0.1 < held.float().mean() < 0.9
    assert torch.equal(held, problem.rules["rule"].satisfied(tol=0.01, p=logits))
    if form != "one":
        costs = torch.stack([rule.cost(p=logits) for rule in rules.values()]).amax(0)
        torch.testing.assert_close(costs, problem.rules["rule"].cost(p=logits))


def test_sharpening_changes_no_prediction_but_satisfaction(problem):
    class Fixed(nn.Module):
        def forward(self, images):
            torch.manual_seed(0)
            return torch.randn(len(images), 100)

    found = problem.evaluate(Fixed(), "test")
    satisfied = [found["satisfied"], found["satisfied_t0.25"], found["satisfied_t0.06"]]
    assert satisfied == sorted(satisfied)
    assert found["entropy"] > found["entropy_t0.5"] > found["entropy_t0.06"]


class Tiny(nn.Module):
    """A network quick enough for tests, with batch norm."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.AvgPool2d(8), nn.Flatten(), nn.BatchNorm1d(48), nn.Linear(48, 100))
        self.batches = []

    def forward(self, images):
        if self.training:
            self.batches.append(len(images))
        return self.layers(images)


@pytest.fixture
def tiny(monkeypatch):
    made = []

    def make(classes):
        made.append(Tiny())
        return made[-1]

    monkeypatch.setitem(NETWORKS, "vgg16", make)
    return made


@pytest.mark.parametrize("method", ["none", "entropy", "dual"])
def test_every_arm_sees_the_same_images(small, tiny, method):
    task, folder = small
    train(Config(task, method), Machine(accelerator="cpu", data=folder))
    assert set(tiny[0].batches) == {40}


@pytest.mark.parametrize("method", ["dual", "hard", "dl2", "fixmatch"])
@pytest.mark.parametrize(("view", "seen"), [("teacher", 40), ("another", 60), ("both", 60)])
def test_another_view_is_taught_and_a_teacher_believed(small, tiny, method, view, seen):
    task, folder = small
    result = train(Config(dataclasses.replace(task, view=view), method), Machine(accelerator="cpu", data=folder))
    assert result.failure is None
    assert set(tiny[0].batches) == {seen}


@pytest.mark.parametrize(("view", "blocks"), [("teacher", 1), ("another", 1), ("both", 2)])
def test_what_is_believed_and_what_is_taught(small, tiny, view, blocks):
    task, folder = small
    problem = dataclasses.replace(task, view=view).make_problem(0, folder, CPU)
    network = problem.make_network()
    teacher = Teacher(network, Fabric(accelerator="cpu"))
    before = {key: value.clone() for key, value in teacher.copy.state_dict().items() if "running" in key}
    _, bound = problem.outputs(network, problem.labelled[:6], problem.unlabelled[:5], teacher)
    assert bound["p"].shape == (5 * blocks, 100)
    assert bound["believe"]["p"].shape == (5, 100)
    assert bound["p"].requires_grad
    assert not bound["believe"]["p"].requires_grad
    after = teacher.copy.state_dict()
    assert all(torch.equal(value, after[key]) for key, value in before.items())
    teacher.follow()
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(teacher.copy.parameters(), network.parameters()))


def test_a_view_that_the_task_does_not_know_is_refused():
    with pytest.raises(OptionError, match="--view must be one of same"):
        Config(Transfer(view="another"))


def test_fixmatch_teaches_what_is_believed_firmly(problem):
    generator = torch.Generator().manual_seed(0)
    believed = torch.randn(40, 100, generator=generator) * 4
    taught = torch.randn(80, 100, generator=generator, dtype=torch.float64, requires_grad=True)
    losses = fixmatch(taught, believed, problem.groups)
    masses = believed.softmax(-1) @ problem.groups
    sure = (masses.amax(-1) >= 0.95).repeat(2)
    assert 0 < sure.sum() < 80
    target = masses.argmax(-1).repeat(2)
    expected = functional.nll_loss((taught.softmax(-1) @ problem.groups.double()).log(), target, reduction="none")
    torch.testing.assert_close(losses, torch.where(sure, expected, 0.0))
    (slope,) = torch.autograd.grad(losses.sum(), taught)
    assert slope.isfinite().all()
    assert (slope[~sure] == 0).all()


def test_a_rule_that_starts_late(small, tiny):
    task, folder = small
    task = dataclasses.replace(task, epochs=4, rule_from=0.5)
    result = train(Config(task, "entropy"), Machine(accelerator="cpu", data=folder))
    started = [row["rule_loss"] != 0 for row in result.history]
    assert started == [False, False, True, True]
    late = train(Config(dataclasses.replace(task, rule_from=1.0), "dual"), Machine(accelerator="cpu", data=folder))
    never = train(Config(task, "none"), Machine(accelerator="cpu", data=folder))
    assert late.test == never.test


def test_entropy_makes_certain(small, tiny):
    task, folder = small
    task = dataclasses.replace(task, epochs=20, measure_every=20)
    machine = Machine(accelerator="cpu", data=folder)
    plain, certain = (train(Config(task, method), machine).last["entropy"] for method in ("none", "entropy"))
    assert certain < plain


def test_entropy_needs_logits(tmp_path):
    task = Digits().make_smoke(tmp_path)
    with pytest.raises(OptionError, match="no logits that --method entropy"):
        train(Config(task, "entropy"), Machine(accelerator="cpu", data=tmp_path))


def test_transfer_maps_classes(tmp_path):
    task = Transfer().make_smoke(tmp_path)
    problem = task.make_problem(0, tmp_path, CPU)
    images, labels = problem.parts["test"]["stl10_"]
    assert len(images) == len(labels)
    assert 6 not in labels.tolist()  # STL-10 has no frog
