"""What the duals chose, beside what holds."""

import math

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

import dualogic as dl
from dualogic.diagnosis import Diagnosis
from dualogic.diagnosis.tally import CHOICE_MARGIN
from dualogic.diagnosis.verdict import DISAGREE, FROZEN
from strategies import bindings, quantified

x, y = dl.var("x"), dl.var("y")


def trained(rule, tensors, rows, steps=5, **options):
    """A loss whose duals have moved, with rows in another order than the samples."""
    logic = dl.LogicLoss(rule, num_samples=rows, method=dl.methods.Dual(step=2.0, **options))
    index = torch.arange(rows).flip(0)[: len(next(iter(tensors.values())))]
    for _ in range(steps):
        logic(index, **{name: value.clone() for name, value in tensors.items()})
    return logic, index


def test_a_two_way_rule_against_a_hand_count():
    rule = (x <= 0) | (y <= 0)
    tensors = {"x": torch.tensor([-1.0, 3.0, 2.0, -1.0]), "y": torch.tensor([2.0, -1.0, 1.0, -1.0])}
    logic, index = trained(rule, tensors, rows=6)
    weights = logic.weights(index)["rule"].double()
    part = dl.diagnose(logic, index=index, **tensors).rules["rule"].choices[0]
    assert [operand.weight for operand in part.operands] == pytest.approx(weights.mean(0).tolist())
    assert part.operands[0].weight_alone == pytest.approx(weights[0, 0].item())
    assert part.operands[1].weight_alone == pytest.approx(weights[1, 1].item())
    entropy = -(weights * weights.log()).sum(-1).mean().item() / math.log(2)
    assert part.weights.entropy == pytest.approx(entropy)
    # Sample 2 holds by no branch and leans to the cheaper one; sample 3 costs nothing either way and has not moved.
    assert [operand.chosen for operand in part.operands] == [0.25, 0.5]
    assert [operand.chosen_rightly for operand in part.operands] == [0.25, 0.25]
    assert part.weights.agreement == 1.0


@settings(max_examples=40)
@given(st.data())
def test_mean_weights_of_every_choice_are_those_of_the_loss(data):
    rule = data.draw(quantified())
    tensors = {
        name: value.float() if value.is_floating_point() else value for name, value in data.draw(bindings(rule, batch=3)).items()
    }
    logic = dl.LogicLoss(rule, num_samples=5)
    index = torch.tensor([4, 1, 3])
    report = dl.diagnose(logic, index=index, **tensors).rules["rule"]
    weights = logic.weights(index)
    for part in report.connectives:
        if part.kind in ("all", "any") or not part.total:
            assert part.weights is None or part.weights.entropy is None
            continue
        # Untouched duals are uniform, whatever the axes, masks and ties above them.
        assert part.path in weights
        assert [operand.weight for operand in part.operands] == pytest.approx([1 / len(part.operands)] * len(part.operands))
        assert part.weights.entropy == pytest.approx(1)
        assert all(operand.chosen == 0 for operand in part.operands)
        assert part.weights.agreement is None


@pytest.mark.parametrize("duals", ["each", "tied"])
def test_weights_of_ragged_entries_follow_the_mask(duals):
    n = dl.axis("n", max=4)
    s, valid = dl.var("s", n), dl.mask("valid", n)
    rule = ((s == 0) | (s == 1)).all(where=valid, duals=duals)
    values = torch.tensor([[0.0, 1.0, 0.4], [1.0, 0.9, 0.0]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    logic, index = trained(rule, {"s": values, "valid": mask}, rows=2)
    (choice,) = dl.diagnose(logic, index=index, s=values, valid=mask).rules["rule"].choices
    weights = logic.weights(index)["rule/0"].double().expand(2, 4, 2)[:, :3][mask]
    assert choice.total == 3
    assert [operand.holds for operand in choice.operands] == pytest.approx([1 / 3, 2 / 3])
    assert [operand.weight for operand in choice.operands] == pytest.approx(weights.mean(0).tolist())
    gap = (weights[:, 0] - weights[:, 1]).tolist()
    assert choice.operands[0].chosen == pytest.approx(sum(value > CHOICE_MARGIN for value in gap) / 3)
    if duals == "each":
        assert (weights[:, 0] > 0.6).tolist() == [True, False, False]
        assert choice.weights.agreement == 1.0


def test_shared_duals_need_no_index_and_stored_ones_are_left_alone_without_it():
    rule = (x <= 0) | (y <= 0)
    tensors = {"x": torch.tensor([1.0, 2.0]), "y": torch.tensor([3.0, 4.0])}
    shared = dl.LogicLoss(rule)
    for _ in range(3):
        shared(**tensors)
    part = dl.diagnose(shared, **tensors).rules["rule"].choices[0]
    assert [operand.weight for operand in part.operands] == pytest.approx(shared.weights()["rule"][0].tolist())
    stored = dl.LogicLoss(rule, num_samples=2)
    assert dl.diagnose(stored, **tensors).rules["rule"].choices[0].weights is None
    hard = dl.LogicLoss(rule, num_samples=2, method="hard")
    assert dl.diagnose(hard, index=[0, 1], **tensors).rules["rule"].choices[0].weights is None


def test_looking_changes_nothing():
    rule = (x <= 0) | (y <= 0)
    tensors = {"x": torch.ones(2, requires_grad=True), "y": torch.ones(2)}
    logic, index = trained(rule, tensors, rows=2)
    before = {name: value.clone() for name, value in logic.state_dict().items() if isinstance(value, torch.Tensor)}
    dl.diagnose(logic, index=index, **tensors)
    after = logic.state_dict()
    assert before
    assert all(torch.equal(value, after[name]) for name, value in before.items())


def test_weights_are_averaged_over_the_batches_that_have_them():
    rule = (x <= 0) | (y <= 0)
    tensors = {"x": torch.tensor([-1.0, 2.0]), "y": torch.tensor([1.0, -2.0])}
    logic, index = trained(rule, tensors, rows=2)
    diagnosis = Diagnosis(logic)
    diagnosis.update(index=index, **tensors)
    alone = diagnosis.compute().rules["rule"].choices[0]
    diagnosis.update(**tensors)
    mixed = diagnosis.compute().rules["rule"].choices[0]
    assert (mixed.total, alone.total) == (4, 2)
    assert mixed.weights == alone.weights
    assert [operand.weight_alone for operand in mixed.operands] == [operand.weight_alone for operand in alone.operands]


def test_findings_about_weights():
    rule = (x <= 0) | (y <= 0)
    good = {"x": torch.tensor([-1.0, -1.0, 2.0]), "y": torch.tensor([2.0, 2.0, -1.0])}
    kinds = [
        found.kind for found in dl.diagnose(dl.LogicLoss(rule, num_samples=3), index=[0, 1, 2], **good).rules["rule"].findings
    ]
    assert FROZEN in kinds
    logic, index = trained(rule, good, rows=3)
    bad = {"x": good["y"], "y": good["x"]}
    right, wrong = (dl.diagnose(logic, index=index, **tensors).rules["rule"] for tensors in (good, bad))
    assert not {FROZEN, DISAGREE} & {found.kind for found in right.findings}
    assert DISAGREE in {found.kind for found in wrong.findings}
    assert wrong.choices[0].weights.agreement == 0.0
