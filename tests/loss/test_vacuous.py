"""What asks nothing pulls nothing: no gradient where an antecedent is false, a consequent believed, or an ``or`` met."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dualogic as dl
import strategies

f, g = dl.categorical("f", 4, input="logits"), dl.categorical("g", 4)
a, b, c = dl.boolean("a"), dl.boolean("b"), dl.boolean("c", input="logits")
x, y, v = dl.var("x"), dl.var("y"), dl.var("v", 3)
n = dl.axis("n", max=3)
r, e, valid = dl.var("r", n), dl.boolean("e", n), dl.mask("valid", n)
SURE = [0.97, 0.01, 0.01, 0.01]
FLAT = [0.25, 0.25, 0.25, 0.25]
YES, NO = [True, True, True], [False, False, False]

# An antecedent, a consequent, and tensors of one sample for which the rule asks nothing.
VACUOUS = {
    "a fact that does not hold": (x > 60, c, {"x": 59.9, "c": -3.0}),
    "facts of which one does not hold": ((x > 60) & (y <= 0), f == 1, {"x": 70.0, "y": 0.1, "f": [3.0, 0.0, 0.0, 0.0]}),
    "none of two facts": ((x > 60) | (y <= 0), f == 1, {"x": 50.0, "y": 0.1, "f": [3.0, 0.0, 0.0, 0.0]}),
    "a fact and a belief": ((x > 60) & a, b, {"x": 50.0, "a": 0.99, "b": 0.01}),
    "a believed class": (g == 2, f == 1, {"g": FLAT, "f": [0.0, 0.0, 0.0, 0.0]}),
    "a set of classes": (g.isin([1, 2]), f.isin([0, 1, 2]), {"g": FLAT, "f": [0.0, 0.0, 0.0, 0.0]}),
    "not a class": (g != 0, f != 1, {"g": SURE, "f": [0.0, 0.0, 0.0, 0.0]}),
    "Booleans": (a, b, {"a": 0.4, "b": 0.4}),
    "the denial of a Boolean": (~a, ~b, {"a": 0.9, "b": 0.2}),
    "an and of beliefs": (a & b, c, {"a": 0.9, "b": 0.2, "c": 0.0}),
    "an or of beliefs": (a | b, c, {"a": 0.4, "b": 0.2, "c": 0.0}),
    "a denied implication": (~(a >> b), c, {"a": 0.9, "b": 0.8, "c": 0.0}),
    "an implication as an antecedent": ((x > 60) >> a, c, {"x": 70.0, "a": 0.02, "c": 0.5}),
    "all of several facts": ((v > 0).all(), c, {"v": [1.0, -1.0, 1.0], "c": -3.0}),
    "any of several facts": ((v > 0).any(), c, {"v": [-2.0, -1.0, -3.0], "c": -3.0}),
    "all of several beliefs": (e.all(), c, {"e": [0.9, 0.9, 0.3], "c": 0.0}),
    "a consequent that is quantified": (a, (v <= 0).all(), {"a": 0.9, "v": [-1.0, -2.0, 0.0]}),
    "a consequent with alternatives": (a, (x <= 0) | (y <= 0), {"a": 0.9, "x": -1.0, "y": 3.0}),
    "any of nothing": (e.any(where=valid), c, {"e": [0.9, 0.9, 0.9], "valid": NO, "c": -3.0}),
    "all of what a mask leaves": (e.all(where=valid), c, {"e": [0.9, 0.2, 0.9], "valid": YES, "c": 0.0}),
}
METHODS = {
    "found": dl.methods.Dual(),
    "one way": dl.methods.Dual(evidence=True),
    "both ways": dl.methods.Dual(evidence=False),
    "half": dl.methods.Dual(evidence=0.5),
    "projected": dl.methods.Dual(evidence=False, rule="projected"),
    "probabilities": dl.methods.Dual(evidence=False, class_cost="probability"),
}


def bind(values):
    tensors = {}
    for name, value in values.items():
        tensor = torch.tensor([value])
        tensors[name] = tensor if tensor.dtype == torch.bool else tensor.double().requires_grad_()
    return tensors


def gradients(logic, tensors, index):
    loss = logic(index, **tensors)
    assert torch.isfinite(loss)
    live = [tensor for tensor in tensors.values() if tensor.is_floating_point()]
    return torch.autograd.grad(loss, live, allow_unused=True, materialize_grads=True)


@pytest.mark.parametrize("samples", [2, None])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize(("antecedent", "consequent", "values"), VACUOUS.values(), ids=VACUOUS)
def test_no_gradient_reaches_a_sample_of_which_the_rule_asks_nothing(antecedent, consequent, values, method, samples):
    rule = antecedent >> consequent
    logic = dl.LogicLoss(rule, samples, method, dtype=torch.float64)
    for _ in range(3):
        assert all((gradient == 0).all() for gradient in gradients(logic, bind(values), torch.tensor([1])))
    other = dl.LogicLoss({"rule": rule, "again": rule & (rule | consequent)}, samples, method, dtype=torch.float64)
    assert all((gradient == 0).all() for gradient in gradients(other, bind(values), torch.tensor([1])))


def test_what_is_asked_is_pulled_for_every_kind_of_antecedent():
    """The same rules, where the antecedent holds and the consequent does not: each pulls."""
    holds = {
        "a fact": (x > 60, c, {"x": 61.0, "c": -3.0}),
        "a fact and a belief": ((x > 60) & a, b, {"x": 70.0, "a": 0.9, "b": 0.01}),
        "a class": (g == 0, f == 1, {"g": SURE, "f": [3.0, 0.0, 0.0, 0.0]}),
        "an or": (a | b, c, {"a": 0.9, "b": 0.2, "c": -3.0}),
        "a denied implication": (~(a >> b), c, {"a": 0.9, "b": 0.1, "c": -3.0}),
        "all of nothing": (e.all(where=valid), c, {"e": [0.9, 0.9, 0.9], "valid": NO, "c": -3.0}),
        "a quantifier": (e.any(where=valid), (v <= 0).all(), {"e": [0.1, 0.9, 0.1], "valid": YES, "v": [1.0, -1.0, 2.0]}),
    }
    for antecedent, consequent, values in holds.values():
        logic = dl.LogicLoss(antecedent >> consequent, 2, dtype=torch.float64)
        tensors = bind(values)
        logic(torch.tensor([1]), **tensors).backward()
        wanted = next(name for name in consequent.symbols)
        assert tensors[wanted].grad.abs().sum() > 0.01


def test_a_pull_is_never_stronger_than_the_belief_in_the_antecedent():
    """Nearly vacuous samples are nearly left alone, however wrong their consequent is."""
    certain = torch.tensor([1.0, 0.1, 1e-2, 1e-4, 1e-8], dtype=torch.float64)
    logit = torch.full((5,), -40.0, dtype=torch.float64, requires_grad=True)
    logic = dl.LogicLoss(a >> c, 5, reduction="none", dtype=torch.float64)
    (gradient,) = torch.autograd.grad(logic(torch.arange(5), a=certain, c=logit).sum(), logit)
    assert (gradient < 0).all()
    assert (-gradient <= 41 * certain**2 + 2 * certain).all()
    assert (gradient.diff() > 0).all()


@pytest.mark.parametrize("evidence", [False, "found"])
def test_an_iff_of_equal_beliefs_rests(evidence):
    logic = dl.LogicLoss(dl.Iff(a, b), 2, dl.methods.Dual(evidence=evidence), dtype=torch.float64)
    assert all((gradient == 0).all() for gradient in gradients(logic, bind({"a": 0.3, "b": 0.3}), torch.tensor([0])))
    moved = gradients(logic, bind({"a": 0.8, "b": 0.3}), torch.tensor([0]))
    assert moved[0] > 0 > moved[1], "neither side is the evidence of the other"


# ---------------------------------------------------------------------- an or that is met

met = st.lists(st.floats(0.01, 5), min_size=1, max_size=5)


@settings(max_examples=40)
@given(
    costs=met, place=st.integers(0, 5), visits=st.integers(1, 3), rule=st.sampled_from(["softmax", "exponentiated", "projected"])
)
def test_an_or_that_one_operand_meets_passes_nothing_to_the_others(costs, place, visits, rule):
    place = min(place, len(costs))
    values = [*costs[:place], -1.0, *costs[place:]]
    u = dl.var("u", len(values))
    for formula in (dl.Or([u[position] <= 0 for position in range(len(values))]), (u <= 0).any()):
        logic = dl.LogicLoss(formula, 1, dl.methods.Dual(rule=rule), dtype=torch.float64)
        for _ in range(visits):
            assert all((gradient == 0).all() for gradient in gradients(logic, bind({"u": values}), torch.tensor([0])))


@settings(max_examples=40)
@given(costs=st.lists(st.floats(0.1, 5), min_size=2, max_size=5))
def test_an_or_that_nothing_meets_pulls_most_at_the_nearest_operand(costs):
    u = dl.var("u", len(costs))
    logic = dl.LogicLoss((u <= 0).any(), 1, dtype=torch.float64)
    (gradient,) = gradients(logic, bind({"u": costs}), torch.tensor([0]))
    assert (gradient > 0).all()
    order = torch.tensor(costs, dtype=torch.float64).argsort()
    assert (gradient[0][order].diff() <= 1e-12).all()


def test_an_or_under_a_mask_looks_only_at_what_exists():
    logic = dl.LogicLoss((r <= 0).any(where=valid), 1, dtype=torch.float64)
    values = {"r": [-1.0, 2.0, 1.0], "valid": [False, True, True]}
    (gradient,) = gradients(logic, bind(values), torch.tensor([0]))
    assert gradient[0, 0] == 0
    assert gradient[0, 2] > 4 * gradient[0, 1] > 0


# ---------------------------------------------------------------------- random implications


@settings(max_examples=60)
@given(
    antecedent=st.one_of(strategies.formulas(depth=2, atom_count=3), strategies.quantified(depth=1)),
    consequent=strategies.real_atoms(operations=st.sampled_from(["<=", ">=", "=="]), margins=False),
    class_cost=st.sampled_from(["log", "probability"]),
    data=st.data(),
)
def test_any_antecedent_asks_nothing_where_its_consequent_holds(antecedent, consequent, class_cost, data):
    rule = antecedent >> consequent
    tensors = data.draw(strategies.bindings(rule, batch=3))
    tensors = {name: tensor.requires_grad_(tensor.is_floating_point()) for name, tensor in tensors.items()}
    holds = consequent.satisfied(**{name: tensors[name] for name in consequent.symbols})
    logic = dl.LogicLoss(rule, 3, dl.methods.Dual(class_cost=class_cost, evidence=False), reduction="none", dtype=torch.float64)
    losses = logic(torch.arange(3), **tensors)
    floating = [tensor for tensor in tensors.values() if tensor.is_floating_point()]
    found = torch.autograd.grad(losses.sum(), floating, allow_unused=True, materialize_grads=True)
    for gradient in found:
        assert torch.isfinite(gradient).all()
        assert (gradient[holds] == 0).all()
    assert (losses[holds] == losses.min()).all()
