"""What a monitor says of small rules."""

import dataclasses
from typing import ClassVar

import pytest
import torch

import dualogic as dl
from diagnosis.watched import EITHER, RULE, f, g, kinds, look_at, train
from dualogic.diagnosis import alarm, watch
from dualogic.diagnosis import monitor as module
from dualogic.methods.truth import TruthMethod

# ---------------------------------------------------------------- what it says


def test_equal_weights_that_cancel_are_no_gradient():
    logic = dl.LogicLoss(EITHER, num_samples=32, method="uniform")
    monitor = dl.Monitor(logic, every=1)
    with pytest.warns(dl.ShortcutWarning, match="violated on 100.0 % of the samples, and its loss has no gradient") as caught:
        train(logic, steps=10)
    assert len(caught) == 1
    (found,) = monitor.findings
    assert (found.kind, found.step) == (alarm.NO_GRADIENT, module.PATIENCE)
    assert "method='dual'" in found.advice


def test_a_rule_that_rests_where_it_is_violated_misses_no_gradient():
    rule = (g == 2) >> f.isin([0, 1])  # class 2 leads in both, but the others together are believed more than it
    logic = dl.LogicLoss(rule, num_samples=8)
    monitor = dl.Monitor(logic, every=1, warn=False)
    scores = {"g": torch.tensor([[0.0, 0.1, 0.2]] * 8), "f": torch.tensor([[0.0, 0.0, 0.5]] * 8)}
    assert not rule.satisfied(**scores).any()
    for _ in range(module.PATIENCE + 1):
        logic(torch.arange(8), **{name: value.clone().requires_grad_() for name, value in scores.items()})
    assert not monitor.findings


def test_a_tiny_step_leaves_weights_frozen_and_a_fair_one_does_not():
    logic = dl.LogicLoss(EITHER, num_samples=32, method=dl.methods.Dual(step=1e-4))
    monitor = dl.Monitor(logic, every=1, warn=False)
    train(logic)
    assert alarm.FROZEN in kinds(monitor)
    found = next(each for each in monitor.findings if each.kind == alarm.FROZEN)
    assert found.path == "rule/0"
    assert "visits of each sample" in found.message
    logic = dl.LogicLoss(EITHER, num_samples=32)
    monitor = dl.Monitor(logic, every=1, warn=False)
    train(logic, steps=100)
    assert alarm.FROZEN not in kinds(monitor)
    assert alarm.NO_GRADIENT not in kinds(monitor)


def test_weights_that_were_never_meant_to_move_are_only_mentioned():
    logic = dl.LogicLoss(EITHER, num_samples=32, method=dl.methods.Dual(step=0.0))
    monitor = dl.Monitor(logic, every=1, warn=False)
    train(logic)
    assert {found.severity for found in monitor.findings if found.kind == alarm.FROZEN} == {alarm.INFO}


def test_one_branch_taking_over():
    x = dl.var("x")
    logic = dl.LogicLoss((x <= 0) | (x >= 1), method="hard")
    monitor = dl.Monitor(logic, every=1, warn=False)
    for step in range(60):
        spread = torch.linspace(0.05, 0.95, 16)
        logic(x=(spread * max(0.0, 1 - step / 10)).requires_grad_())
    assert alarm.TAKEN_OVER in kinds(monitor)
    found = next(each for each in monitor.findings if each.kind == alarm.TAKEN_OVER)
    assert found.message.startswith("the branch x <= 0 is the nearest one for ")


def test_weights_locked_in_while_the_rule_is_broken():
    logic = dl.LogicLoss(RULE, num_samples=8, method=dl.methods.Dual(implication="or"))
    logic._table.values.copy_(torch.tensor([[30.0, -30.0]]))
    monitor = dl.Monitor(logic, every=1, warn=False)
    index = torch.arange(8)
    for _ in range(20):
        logic(
            index, f=torch.tensor([[9.0, 0.0, 0.0]]).repeat(8, 1).requires_grad_(), g=torch.tensor([[0.0, 0.0, 9.0]]).repeat(8, 1)
        )
    (found,) = (each for each in monitor.findings if each.kind == alarm.LOCKED_IN)
    assert "the branch g != 2 has a mean dual weight of 1.000" in found.message


def test_weights_on_the_consequent_alone_are_no_lock():
    logic = dl.LogicLoss(dl.boolean("a") >> (dl.var("y") >= 1), num_samples=8)
    monitor = dl.Monitor(logic, every=1, warn=False)
    for _ in range(20):
        logic(torch.arange(8), a=torch.ones(8), y=torch.zeros(8, requires_grad=True))
    assert logic.weights(torch.arange(8))["rule"][:, 1].min() > 0.99
    assert alarm.LOCKED_IN not in kinds(monitor)


def test_a_floor_that_is_reached_is_a_problem_only_if_the_task_suffers():
    for rising, severity in ((False, alarm.INFO), (True, alarm.WARNING)):
        x = dl.var("x")
        logic = dl.LogicLoss(x <= 1, method=dl.methods.Dual(floor=0.1, delta="mean"))
        seen = []
        monitor = dl.Monitor(logic, every=1, warn=False, on_finding=seen.append)
        for step in range(30):
            monitor.task_loss(torch.tensor(1.0 + rising * step))
            logic(x=torch.zeros(4, requires_grad=True))
        assert [(found.kind, found.severity) for found in monitor.findings] == [(alarm.AT_FLOOR, severity)]
        assert ("the task's loss has risen" in monitor.findings[0].message) == rising
        assert seen[-1].severity == severity


def test_an_antecedent_that_goes_is_switched_off_unless_the_rule_does_not_teach_it():
    for method, expected in (("hard", [alarm.SWITCHED_OFF]), ("dual", [])):
        logic = dl.LogicLoss(RULE, num_samples=200, method=method)
        monitor = dl.Monitor(logic, warn=False)
        look_at(monitor, 0.3, 0.0, 10)
        look_at(monitor, 0.0, 0.0, 60)
        assert [kind for kind in kinds(monitor) if kind == alarm.SWITCHED_OFF] == expected


def test_an_antecedent_that_is_unlearned_is_named_with_how_much_of_it_is_evidence():
    for evidence, expected in ((True, None), (0.25, "25.0 %"), (False, "0.0 %")):
        logic = dl.LogicLoss(RULE, num_samples=200, method=dl.methods.Dual(evidence=evidence))
        monitor = dl.Monitor(logic, warn=False)
        for _ in range(40):  # beliefs say that the antecedent gives way: it barely leads, and the consequent is known to be false
            turned = torch.tensor([1.0, 0.0, 0.0]).repeat(200, 1)
            turned[:60, 2] = 1.35
            upright = torch.tensor([1.0, -8.0, 0.0]).repeat(200, 1)
            monitor.look(torch.arange(200), f=upright.requires_grad_(), g=turned.requires_grad_())
        found = [each for each in monitor.findings if each.kind == alarm.SWITCHED_OFF]
        assert len(found) == (expected is not None)
        for each in found:
            assert f"; {expected} of the antecedent is taken for evidence" in each.message
            assert "dl.evidence(a) >> b" in each.advice
            assert "Dual(evidence=True)" in each.advice
            assert "Dual(unlabelled={'f': [6]})" in each.advice


def test_with_labels_a_lost_antecedent_is_named_whoever_lost_it_and_a_rightly_false_one_never():
    true = torch.where(torch.arange(200) < 60, 2, 0)
    for labels, method, expected in ((true, "dual", True), (torch.zeros(200, dtype=torch.long), "hard", False)):
        logic = dl.LogicLoss(RULE, num_samples=200, method=method)
        monitor = dl.Monitor(logic, warn=False, labels={"g": labels})
        look_at(monitor, 0.3, 0.0, 10)
        look_at(monitor, 0.0, 0.0, 60)
        assert (alarm.SWITCHED_OFF in kinds(monitor)) == expected


@dataclasses.dataclass(frozen=True)
class Residuum(TruthMethod):
    """``a >> b`` is as true as ``min(1, b / a)``: it teaches both sides, and rests where ``b`` is as believed as ``a``."""

    name: ClassVar[str] = "residuum"
    loss: str = "log"

    def combine(self, level, values, mask, extent):
        return (values[:, 1] / (1 - values[:, 0]).clamp_min(1e-9)).clamp_max(1.0)


@pytest.mark.parametrize(
    ("rule", "fades", "learned", "expected"),
    [
        (RULE, False, False, [(alarm.SWITCHED_OFF, alarm.WARNING)]),
        (RULE, False, True, [(alarm.BOTH_WAYS, alarm.WARNING)]),
        (RULE, True, False, []),
        (dl.evidence(g == 2) >> (f == 1), False, False, []),
    ],
)
def test_an_antecedent_that_a_rule_of_two_ways_holds_down(rule, fades, learned, expected):
    logic = dl.LogicLoss(rule, num_samples=200, method=Residuum())
    monitor = dl.Monitor(logic, warn=False)
    place = torch.arange(200)
    for look in range(watch.LASTING + 5):
        turned, upright = torch.zeros(200, 3), torch.zeros(200, 3)
        turned[:, 0], turned[:, 2] = 1.0, -0.4 * look if fades else 0.5
        upright[:, 0], upright[:, 1] = 1.0, torch.where((place < 20) & learned & (look > 10), 3.0, -2.0)
        monitor.look(place, f=upright.requires_grad_(), g=turned.requires_grad_())
    assert [(found.kind, found.severity) for found in monitor.findings] == expected
    for found in monitor.findings:
        assert "the pull is still " in found.message
        assert "dl.evidence(a) >> b" in found.advice


def test_a_consequent_that_is_given_may_exclude_its_antecedent():
    logic = dl.LogicLoss(RULE, num_samples=200, method="hard")
    monitor = dl.Monitor(logic, warn=False)
    look_at(monitor, 0.05, 0.0, 40, taught=False)
    assert monitor.findings == ()


def test_an_alarm_clears_and_can_be_raised_again():
    raised = []
    logic = dl.LogicLoss(RULE, num_samples=200, method="hard")
    monitor = dl.Monitor(logic, warn=False, on_finding=raised.append)
    look_at(monitor, 0.3, 0.0, 30)
    assert kinds(monitor) == [alarm.SWITCHED_OFF]
    look_at(monitor, 0.3, 0.3, 60)
    assert alarm.SWITCHED_OFF not in kinds(monitor)
    look_at(monitor, 0.3, 0.0, 90)
    assert [found.kind for found in raised].count(alarm.SWITCHED_OFF) == 2
