"""What is kept on a device for later calls can be trained with, in whatever mode it was first needed."""

import copy

import pytest
import torch

import dualogic as dl
from dualogic.constants import Constants, outside_inference

X, Y, Z = dl.var("x"), dl.var("y"), dl.var("z")
F, B = dl.categorical("f", 4), dl.boolean("b", 3)
# Rules whose shapes take turns, so that the plan has to put their costs back in order.
INTERLEAVED = {"a": (X <= 0) | (Y <= 0), "b": (X <= 1) & (Y <= 1) & (Z <= 1), "c": (X <= 2) | (Z <= 2)}
PROPOSITIONS = {"a": (F == 2) | B[0], "b": B.any() & (F != 1), "c": (F == 3) | B[1]}
NUMBERS = {"x": 3.0, "y": 4.0, "z": 5.0}


def tensors(rules):
    if rules is INTERLEAVED:
        return {name: torch.full((2,), value, requires_grad=True) for name, value in NUMBERS.items()}
    probabilities = torch.tensor([[0.4, 0.3, 0.2, 0.1]] * 2)
    return {"f": probabilities.requires_grad_(), "b": torch.full((2, 3), 0.3, requires_grad=True)}


METHODS = [
    "dual",
    dl.methods.Dual(spread={"a": 0.25}),
    dl.methods.Uniform(spread={"b": 0.25}),
    "dl2",
    "pd2",
    "ste",
    "ltn",
    "semantic",
    "problog",
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method if isinstance(method, str) else repr(method)[:40])
def test_an_evaluation_in_inference_mode_does_not_spoil_later_training(method):
    if method in ("semantic", "problog"):
        pytest.importorskip("pysdd")
    # Under names that no other test has, so that nothing is cached yet.
    rules = PROPOSITIONS if method in ("semantic", "problog") else INTERLEAVED
    rules = {f"{name} of inference with {method}": rule for name, rule in rules.items()}
    plain = PROPOSITIONS if method in ("semantic", "problog") else INTERLEAVED
    if isinstance(method, dl.methods.Method):
        spread = {f"{name} of inference with {method}": value for name, value in method.spread.items()}
        method = type(method)(spread=spread)
    with torch.inference_mode():
        dl.LogicLoss(rules, method=method).eval()(**tensors(plain))
    loss = dl.LogicLoss(rules, method=method)
    given = tensors(plain)
    loss(**given).backward()
    loss(**given).backward()
    assert all(tensor.grad is not None and torch.isfinite(tensor.grad).all() for tensor in given.values())


def test_a_formula_measured_in_inference_mode_can_be_differentiated_later():
    rule = (dl.var("v", 7)[torch.tensor([3, 1, 4]).tolist()] <= 0).all()
    with torch.inference_mode():
        rule.cost(v=torch.ones(2, 7))
    v = torch.ones(2, 7, requires_grad=True)
    rule.cost(v=v).sum().backward()
    assert v.grad.abs().sum() > 0


def test_weights_made_copied_or_moved_in_inference_mode_can_be_trained_with():
    with torch.inference_mode():
        made = dl.LogicLoss(INTERLEAVED, 4, weight={"a": 2.0})
        twin = copy.deepcopy(made)
        moved = copy.deepcopy(made).to("meta")
    assert not any(value.is_inference() for logic in (made, twin, moved) for value in logic._state.values())
    assert not moved._table.values.is_inference()
    for logic in (made, twin):
        logic(torch.tensor([0, 3]), **tensors(INTERLEAVED)).backward()


def test_a_constant_is_made_once():
    kept = Constants()
    calls = []
    for _ in range(2):
        kept.get("key", lambda: calls.append(1) or torch.ones(1))
    assert len(calls) == 1
    with torch.inference_mode(), outside_inference():
        assert not torch.is_inference_mode_enabled()
