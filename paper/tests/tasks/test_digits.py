"""Digits: what is labelled, what the losses see, and on which images the rule is measured."""

import dataclasses

import pytest
import torch
from torch.nn import functional

import dualogic as dl
from dualogic.demo.data import SIX
from dualogic_paper.runner import Config, Machine
from dualogic_paper.runner.train import Loop
from dualogic_paper.tasks import Digits, DigitsMixed

DEVICE = torch.device("cpu")


@pytest.fixture(scope="module", params=[Digits, DigitsMixed], ids=["digits", "digits-mixed"])
def made(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    task = request.param().make_smoke(folder)
    return task, task.make_problem(0, folder, DEVICE), folder


def test_no_six_is_labelled(made):
    _, problem, _ = made
    assert not (problem.labels[problem.labelled] == SIX).any()
    assert (problem.labels[problem.unlabelled] == SIX).sum() == (problem.labels == SIX).sum() > 0
    together = torch.cat([problem.labelled, problem.unlabelled])
    assert together.sort().values.tolist() == list(range(len(problem.labels)))
    shown = set(problem.labels[problem.labelled].tolist())
    assert shown == set(range(10)) - {SIX}


def test_the_loss_of_the_task_sees_labelled_images_alone(made):
    """With other labels of the pool it is the same, and it is the cross-entropy of the labelled images."""
    task, problem, _ = made
    torch.manual_seed(0)
    network = problem.make_network()
    labelled, pool = problem.labelled[:20], problem.unlabelled[:30]
    kept = problem.labels.clone()
    try:
        losses = []
        for labels in (kept, (kept + 1) % 10):
            problem.labels = torch.where(torch.isin(torch.arange(len(kept)), problem.labelled), kept, labels)
            losses.append(problem.outputs(network, labelled, pool)[0].item())
    finally:
        problem.labels = kept
    images = (problem.images[labelled].float() / 255 - 0.1307) / 0.3081
    expected = functional.cross_entropy(network(images), kept[labelled]).item()
    assert losses == pytest.approx([expected, expected])
    alone, bound = problem.outputs(network, labelled, None)
    assert (alone.item(), bound) == (pytest.approx(expected), {})
    assert task.rule_on == "unlabelled"


@pytest.mark.parametrize("method", ["none", "dual"])
def test_no_step_of_training_is_given_a_labelled_six(made, method):
    from lightning.fabric import Fabric

    task, _, folder = made
    loop = Loop(Fabric(accelerator="cpu"), Config(task, method), Machine(accelerator="cpu", data=folder), None)
    assert not (loop.problem.labels[loop.step.labelled] == SIX).any()
    assert torch.equal(loop.step.pool, loop.problem.unlabelled)
    everything = Loop(Fabric(accelerator="cpu"), Config(task, "supervised"), Machine(accelerator="cpu", data=folder), None)
    assert (everything.problem.labels[everything.step.labelled] == SIX).any()


class Table(torch.nn.Module):
    """Reads each image by a table: its brightness is its number, and a mark in a corner says whether it is turned."""

    def __init__(self, upright, turned):
        super().__init__()
        self.readings = torch.tensor([upright, turned])

    def forward(self, images):
        values = ((images * 0.3081 + 0.1307) * 255).round()
        number = values[:, 0, 16, 16].long() // 10
        turned = (values[:, 0, 0, 0] < values[:, 0, -1, -1]).long()
        return 10.0 * functional.one_hot(self.readings[turned, number], 10).float()


def test_the_rule_is_measured_on_sixes_alone(made):
    """On four 6s and four others, of which each measure would differ if it were taken over all of them."""
    _, problem, _ = made
    labels = torch.tensor([6, 6, 6, 6, 1, 2, 6 - 1, 9])
    images = (torch.arange(8, dtype=torch.uint8) * 10)[:, None, None, None].expand(8, 1, 32, 32).clone()
    images[:, 0, 0, 0] = 255
    #                6  6  6  6  1  2  5  9
    network = Table([6, 6, 6, 0, 1, 6, 6, 9], [9, 0, 0, 9, 9, 9, 9, 9])
    kept = problem.parts
    try:
        problem.parts = {"validation": {"": (images, labels)}, "test": {"": (images, labels), "usps_": (images[:4], labels[:4])}}
        found = problem.evaluate(network, "validation")
        both = problem.evaluate(network, "test")
    finally:
        problem.parts = kept
    assert found == {"accuracy": 62.5, "q": 75.0, "not_p": 50.0, "satisfied": 75.0, "false_six": 50.0}
    assert {key: both[key] for key in found} == found
    assert both["usps_accuracy"] == both["usps_q"] == 75.0


def test_the_method_is_told_which_digit_has_no_labels(made):
    task, problem, _ = made
    method = Config(task, "dual").arm.method
    assert method.unlabelled == {"f": (SIX,)}
    assert Config(task, "dual", {"unlabelled": {}}).arm.method == dl.methods.Dual()
    logic = dl.LogicLoss(dict(problem.rules), len(problem.unlabelled), method)
    assert "known" not in logic.state_dict()


def test_exchanged_digits_are_the_same_images_under_each_others_name(made):
    task, problem, folder = made
    other = dataclasses.replace(task, exchanged=True).make_problem(0, folder, DEVICE)
    for prefix in ("", "usps_"):
        (images, labels), (same, renamed) = problem.parts["test"][prefix], other.parts["test"][prefix]
        assert torch.equal(images, same)
        assert torch.equal(renamed == SIX, labels == 9)
        assert torch.equal(renamed == 9, labels == SIX)
        assert torch.equal(renamed[(labels != 9) & (labels != SIX)], labels[(labels != 9) & (labels != SIX)])
    assert not (other.labels[other.labelled] == SIX).any()
