"""What ``weights`` reads for implications: who moves, from a sample's latest beliefs."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dualogic as dl
import strategies

a, b = dl.boolean("a"), dl.boolean("b")
f, g = dl.categorical("f", 4), dl.categorical("g", 4)
x = dl.var("x")
UPDATE_RULES = ["softmax", "exponentiated", "projected"]


def visit(logic, index, **values):
    tensors = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in values.items()}
    return logic(None if index is None else torch.tensor(index), **tensors)


@pytest.mark.parametrize("evidence", ["found", True, False])
@pytest.mark.parametrize("rule", UPDATE_RULES)
def test_a_first_visit_reads_as_not_p_where_the_antecedent_is_false_and_as_q_where_it_is_true(rule, evidence):
    logic = dl.LogicLoss(a >> b, 5, dl.methods.Dual(rule=rule, evidence=evidence), dtype=torch.float64)
    visit(logic, [0, 1, 2], a=[0.02, 0.97, 0.5], b=[0.6, 0.9, 0.5])
    denied, met = logic.weights(torch.arange(5))["rule"].unbind(-1)
    assert denied[0] > 0.9
    assert met[1] > 0.9
    assert met[2] == pytest.approx(0.5)
    assert met[3:].tolist() == [0.5, 0.5], "samples that nobody has seen"
    visit(logic, [0], a=[0.98], b=[0.6])
    assert logic.weights(torch.tensor([0]))["rule"][0, 1] > 0.9, "what is believed now counts"


def test_the_weight_is_the_belief_in_the_antecedent_under_evidence():
    logic = dl.LogicLoss(a >> b, 3, dl.methods.Dual(evidence=True), dtype=torch.float64)
    visit(logic, [0, 1, 2], a=[0.1, 0.5, 0.8], b=[0.9, 0.01, 0.3])
    torch.testing.assert_close(logic.weights(torch.arange(3))["rule"][:, 1], torch.tensor([0.1, 0.5, 0.8], dtype=torch.float64))


def test_a_known_consequent_has_half_a_say():
    logic = dl.LogicLoss(a >> b, 3, dl.methods.Dual(evidence=False), dtype=torch.float64)
    visit(logic, [0, 1, 2], a=[0.5, 0.5, 0.8], b=[0.9, 0.1, 0.5])
    weights = logic.weights(torch.arange(3))["rule"][:, 1]
    # Odds of 9 to 1 to the power of one half.
    torch.testing.assert_close(weights, torch.tensor([3 / 4, 1 / 4, 0.8], dtype=torch.float64))


def test_facts_read_as_certain():
    logic = dl.LogicLoss((x > 60) >> b, 2, dtype=torch.float64)
    logic(torch.arange(2), x=torch.tensor([60.5, 20.0]), b=torch.tensor([0.1, 0.1], requires_grad=True))
    weights = logic.weights(torch.arange(2))["rule"]
    torch.testing.assert_close(weights, torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64), rtol=0, atol=1e-9)


@pytest.mark.parametrize("samples", [1, None])
@pytest.mark.parametrize("rule", UPDATE_RULES)
def test_an_implication_learns_nothing_from_its_visits(rule, samples):
    """However often a sample is visited: what is stored is one number, the odds of its latest beliefs."""
    logic = dl.LogicLoss(a >> b, samples, dl.methods.Dual(rule=rule, evidence=False, step=5.0, share=0.2), dtype=torch.float64)
    odds = (0.7 / 0.3) * (0.05 / 0.95) ** 0.5
    for _ in range(5):
        visit(logic, None if samples is None else [0], a=[0.2], b=[0.9])
        visit(logic, None if samples is None else [0], a=[0.7], b=[0.05])  # to deny 0.7 costs 1.2, to meet it 3.0
        torch.testing.assert_close(logic.state_dict()["table"], torch.tensor([[odds]], dtype=torch.float64).log())
        weight = logic.weights(None if samples is None else torch.tensor([0]))["rule"][0, 1].item()
        assert weight == pytest.approx(odds / (1 + odds))


@pytest.mark.parametrize("rule", UPDATE_RULES)
@settings(max_examples=30)
@given(
    formula=st.one_of(strategies.formulas(depth=3), strategies.quantified(depth=2)),
    class_cost=st.sampled_from(["log", "probability"]),
    evidence=st.sampled_from(["found", True, 0.5]),
    data=st.data(),
)
def test_weights_sum_to_1_for_any_rule(rule, formula, class_cost, evidence, data):
    method = dl.methods.Dual(rule=rule, class_cost=class_cost, evidence=evidence)
    logic = dl.LogicLoss(formula, 4, method, dtype=torch.float64)
    for _ in range(2):
        tensors = data.draw(strategies.bindings(formula, batch=3))
        tensors = {name: tensor.requires_grad_(tensor.is_floating_point()) for name, tensor in tensors.items()}
        try:
            loss = logic(torch.tensor([3, 0, 1]), **tensors)
        except dl.errors.NonFiniteError:
            return  # an .any() of nothing
        live = [tensor for tensor in tensors.values() if tensor.is_floating_point()]
        for gradient in torch.autograd.grad(loss, live, allow_unused=True, materialize_grads=True):
            assert torch.isfinite(gradient).all()
    for path, weights in logic.weights(torch.arange(4)).items():
        assert (weights >= 0).all(), path
        total = weights.sum(-1)
        torch.testing.assert_close(torch.where(total > 0, total, 1.0), torch.ones_like(total), rtol=1e-9, atol=1e-9)
