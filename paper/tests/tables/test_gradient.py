import pytest
import torch

from dualogic import methods
from dualogic.errors import MissingExtraError
from dualogic_paper import arms
from dualogic_paper.tables import gradient
from dualogic_paper.tables.gradient import teaches
from dualogic_paper.tables.runs import read_method
from dualogic_paper.tasks import CIFAR100, HWF, TASKS, Digits, Paths, Transfer

SILENT = {("cifar10-stl10", "pd1"), ("cifar10-stl10", "uniform"), ("cifar100", "pd1"), ("cifar100", "uniform")}


@pytest.mark.parametrize("task", [Digits(), HWF(), Paths(), Transfer(), CIFAR100()], ids=lambda task: task.name)
def test_which_methods_teach_nothing(task):
    """By hand: on sums of probabilities ``min(1, (1 - s) + s)`` is 1, and ``(1 - s) / 2 + s / 2`` is 1/2, whatever ``s`` is."""
    made = {name: arms.make_arm(name).method for name in task.arms}
    silent = {(task.name, name) for name, method in made.items() if method is not None and not teaches(task, method)}
    assert silent == {pair for pair in SILENT if pair[0] == task.name}


@pytest.mark.parametrize("relaxation", ["linear", "exponential"])
def test_lukasiewicz_logic_teaches_nothing_on_the_rules_of_images(relaxation):
    assert not teaches(Transfer(), methods.Lukasiewicz(relaxation=relaxation))


def test_a_table_needs_no_package_of_a_method(monkeypatch):
    def refuse(*args, **options):
        raise MissingExtraError("pip install dualogic[sdd]")

    monkeypatch.setattr(gradient, "LogicLoss", refuse)
    monkeypatch.setattr(gradient, "_KNOWN", {})
    assert teaches(Digits(), methods.Semantic())


@pytest.mark.parametrize("task", TASKS)
def test_what_is_drawn_fits_the_rules(task):
    made = TASKS[task]()
    rules, (outputs, tensors) = made.draw(methods.Dual(), 5, 1.0, torch.Generator().manual_seed(0))
    assert outputs.requires_grad
    for rule in rules.values():
        assert rule.cost(**{name: value for name, value in tensors.items() if name in rule.symbols}).shape == (5,)


@pytest.mark.parametrize("name", [name for name in arms.names() if name not in (arms.NO_RULE, arms.SUPERVISED)])
def test_a_recorded_method_reads_back(name):
    method = arms.make_arm(name).method
    assert read_method(method.describe()) == method


def test_options_that_are_gone_are_read_if_they_were_off():
    text = methods.Dual().describe()
    assert read_method(text.replace("share=", "forget=0.0, schedule=None, epoch=None, imply_step=0.0, share=")) == methods.Dual()


@pytest.mark.parametrize("before", [methods.Dual.paper(), methods.Dual(implication="or", first="equal", rules="sum")])
def test_a_step_of_implications_is_nothing_to_an_or(before):
    text = before.describe()
    assert read_method(text.replace("rules=", "imply_step=None, rules=")) == before


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Dual(",
        "Unknown(step=1)",
        "Dual(speed=1)",
        "Dual(step=-1)",
        "Dual(forget=0.1)",
        "Dual(implication='rests', imply_step=0.1)",
        "Dual(schedule=<lambda>)",
        "7",
        "os.system('x')",
    ],
)
def test_what_cannot_be_read_is_none(text):
    assert read_method(text) is None
