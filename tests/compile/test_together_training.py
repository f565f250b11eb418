"""Rules trained together move like each by itself: their weights only share a table."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dualogic as dl
import strategies

rule = st.one_of(strategies.formulas(depth=2), strategies.quantified()).filter(lambda formula: "tied" not in str(formula))
UPDATE_RULES = ["softmax", "exponentiated", "projected"]


@settings(max_examples=60)
@given(
    st.lists(rule, min_size=2, max_size=4),
    st.sampled_from(UPDATE_RULES),
    st.sampled_from([None, 3]),
    st.sampled_from(["probability", "log"]),
    st.data(),
)
def test_random_rules(rules, update_rule, samples, class_cost, data):
    named = {f"rule{number}": formula for number, formula in enumerate(rules)}
    method = dl.methods.Dual(rule=update_rule, step=0.3, class_cost=class_cost)

    def make(chosen):
        return dl.LogicLoss(chosen, samples, method, dtype=torch.float64)

    together, apart = make(named), {name: make({name: formula}) for name, formula in named.items()}
    index = torch.tensor([2, 0])
    for _ in range(3):
        tensors = data.draw(strategies.bindings(dl.And(*map(dl.level, rules)), batch=2))
        tensors = {name: value.requires_grad_(value.is_floating_point()) for name, value in tensors.items()}
        try:
            loss = together(index, **tensors)
        except dl.errors.NonFiniteError:
            return  # an .any() of nothing
        losses = [
            logic(index, **{key: value for key, value in tensors.items() if key in named[name].symbols})
            for name, logic in apart.items()
        ]
        torch.testing.assert_close(loss, sum(losses) / len(losses), rtol=1e-8, atol=1e-10)
    weights = together.weights(index)
    for logic in apart.values():
        for path, value in logic.weights(index).items():
            torch.testing.assert_close(weights[path], value, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("samples", [None, 2])
@pytest.mark.parametrize("update_rule", UPDATE_RULES)
def test_an_impossible_alternative_leaves_finite_weights(update_rule, samples):
    """Nothing satisfies some of nothing: that side of an ``or`` costs infinity and must not spoil the table."""
    n = dl.axis("n", max=3)
    r, x, valid = dl.var("r", n), dl.var("x"), dl.mask("valid", n)
    formula = ((r <= 0).any(where=valid) & (x > 0)) | (x <= 0)
    logic = dl.LogicLoss(formula, samples, dl.methods.Dual(rule=update_rule))
    for _ in range(3):
        values = torch.ones(2, 3, requires_grad=True)
        loss = logic(torch.arange(2), r=values, x=torch.tensor([1.0, 2.0]), valid=torch.zeros(2, 3, dtype=torch.bool))
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(values.grad).all()
    assert all(torch.isfinite(weights).all() for weights in logic.weights(torch.arange(2)).values())


@pytest.mark.parametrize("update_rule", UPDATE_RULES)
def test_an_axis_of_length_zero_trains(update_rule):
    n = dl.axis("n", max=3)
    r = dl.var("r", n)
    logic = dl.LogicLoss(((r[1:] <= r[:-1]) | (r[1:] >= 1)).all(), 2, dl.methods.Dual(rule=update_rule))
    for length in (3, 1, 2):
        assert torch.isfinite(logic(torch.arange(2), r=torch.rand(2, length, requires_grad=True)))


def test_a_rule_in_conjunctive_normal_form_trains():
    p, q = dl.var("p", 3), dl.var("q", 3)
    formula = ((p <= 0).all() | (q <= 0).all()).to_cnf()
    logic = dl.LogicLoss(formula, num_samples=2)
    values = torch.rand(2, 3, requires_grad=True)
    logic(torch.arange(2), p=values, q=torch.rand(2, 3)).backward()
    assert values.grad.abs().sum() > 0
