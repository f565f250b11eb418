"""Weights of rules that change during training, and rules that are switched off for a while."""

import copy
import io
import pickle

import hypothesis
import hypothesis.strategies as st
import pytest
import torch

import dualogic as dl
from dualogic.errors import OptionError, SymbolError

x, y = dl.var("x"), dl.var("y")
RULES = {"a": (x <= 0) | (y <= 0), "b": (x >= 2) | (y >= 3), "c": (x <= y) >> (y <= 1)}


def make(**options):
    return dl.LogicLoss(RULES, 6, dl.methods.Dual(step=0.5, delta="mean"), **options)


def draw(seed, size=4):
    generator = torch.Generator().manual_seed(seed)
    tensors = {name: 2 * torch.rand(size, generator=generator, requires_grad=False) for name in "xy"}
    return torch.randint(6, (size,), generator=generator), {name: value.requires_grad_() for name, value in tensors.items()}


def run(logic, steps, where=None):
    found = []
    for step in steps:
        index, tensors = draw(step)
        loss = logic(index, where=where, **tensors)
        found += [loss.detach(), *torch.autograd.grad(loss, list(tensors.values()))]
    return found


@hypothesis.settings(max_examples=20)
@hypothesis.given(off=st.sets(st.sampled_from("abc")), kind=st.sampled_from(["set", "assigned", "made", "loaded"]))
def test_a_rule_of_weight_zero_is_one_without_samples(off, kind):
    weight = dict.fromkeys(off, 0.0)
    logic, other = make(weight=weight if kind == "made" else 1.0), make()
    if kind == "set":
        for name in off:
            logic.set_weight(name, 0.0)
    elif kind == "assigned":
        logic.weight = weight
    elif kind == "loaded":
        logic.load_state_dict(make(weight=weight).state_dict())
    assert dict(logic.weight) == {name: float(name not in off) for name in RULES}
    torch.testing.assert_close(run(logic, range(3)), run(other, range(3), where=dict.fromkeys(off, False)))
    logic.set_weight(None, 1.0)  # switched on again, it goes on where it stood
    torch.testing.assert_close(run(logic, range(3, 5)), run(other, range(3, 5)))
    for name, value in logic.state_dict().items():
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(value, other.state_dict()[name])


def test_a_rule_that_is_off_rests():
    logic = make(weight={"b": 0.0})
    run(logic, range(4))
    weights = logic.weights(torch.arange(6))
    assert (weights["b"] == 0.5).all()
    assert (weights["a"] != 0.5).any()
    assert logic.delta[1] == 1
    assert logic.statistics()["b"]["cost"].isnan()
    logic.set_weight(None, 0.0)
    before = logic.state_dict()["steps"].clone()
    assert not any(value.any() for value in run(logic, [9]))
    assert logic.state_dict()["steps"] == before


def test_weights_are_linear_in_the_loss():
    logic, double = make(), make()
    double.set_weight(None, 2.0)
    for one, two in zip(run(logic, range(3)), run(double, range(3))):
        torch.testing.assert_close(2 * one, two)
    assert torch.equal(logic.weights(torch.arange(6))["a"], double.weights(torch.arange(6))["a"])


def test_checkpoints_and_copies_hold_the_weights():
    logic = make()
    logic.set_weight("b", 0.25)
    file = io.BytesIO()
    torch.save(logic.state_dict(), file)
    file.seek(0)
    loaded = make(weight=3.0)
    loaded.load_state_dict(torch.load(file, weights_only=True))
    for twin in (loaded, copy.deepcopy(logic), pickle.loads(pickle.dumps(logic))):
        assert dict(twin.weight) == {"a": 1.0, "b": 0.25, "c": 1.0}
        torch.testing.assert_close(run(twin, [5]), run(copy.deepcopy(logic), [5]))
    old = logic.state_dict()
    del old["_extra_state"]["weight"]  # a checkpoint of before weights were kept
    loaded = make(weight=3.0)
    loaded.load_state_dict(old)
    assert loaded.weight["a"] == 3
    old["_extra_state"]["weight"] = {"a": -1.0}
    with pytest.raises(RuntimeError, match="weight of rule 'a' must be a finite number of at least 0"):
        loaded.load_state_dict(old)


def test_what_cannot_be_meant_is_refused():
    logic = make()
    with pytest.raises(SymbolError, match="weight names the rule 'd'"):
        logic.set_weight("d", 1.0)
    with pytest.raises(OptionError, match="at least 0"):
        logic.weight = -1.0
    with pytest.raises(TypeError, match="item assignment"):
        logic.weight["a"] = 2.0
    assert set(logic.weight.values()) == {1.0}


@pytest.mark.filterwarnings("ignore")
def test_a_compiled_loss_sees_new_weights_without_compiling_again():
    logic, plain = make(), make()
    compiled = torch.compile(logic, backend="eager", fullgraph=True)
    torch._dynamo.reset()
    with torch._dynamo.config.patch(error_on_recompile=True):
        for step, weight in enumerate([0.5, 2.0, 1.0, 3.0]):
            logic.set_weight("a", weight)
            plain.set_weight("a", weight)
            index, tensors = draw(step)
            torch.testing.assert_close(compiled(index, **tensors), plain(index, **tensors))


def test_a_gradient_is_that_of_the_weights_that_the_loss_had():
    index, tensors = draw(0)
    slopes = []
    for later in (0.5, 3.0):
        logic = make(weight=0.5)
        loss = logic(index, where=torch.ones(4, dtype=torch.bool), **tensors)
        logic.set_weight("a", later)
        slopes.append(torch.autograd.grad(loss, list(tensors.values())))
    assert all(map(torch.equal, *slopes))
