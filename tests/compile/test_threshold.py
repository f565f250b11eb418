"""Antecedents that compare numbers: what such an implication costs, and who gives way."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

import dualogic as dl

x, y, b = dl.var("x"), dl.var("y"), dl.boolean("b", input="logits")
f, c = dl.categorical("f", 3, input="logits"), dl.boolean("c")
numbers = st.floats(-3, 3).map(lambda value: round(value, 2))
FREE = dl.methods.Dual(delta="mean", floor=1.0, ceiling=1.0)


def of(*values, gradient=True):
    return torch.tensor(values, dtype=torch.float64, requires_grad=gradient)


def pull(rule, method=FREE, **tensors):
    """The losses of single samples, and their gradients by name."""
    count = len(next(iter(tensors.values())))
    logic = dl.LogicLoss(rule, count, method, reduction="none", dtype=torch.float64)
    losses = logic(torch.arange(count), **tensors)
    wanted = {name: tensor for name, tensor in tensors.items() if tensor.requires_grad}
    found = torch.autograd.grad(losses.sum(), list(wanted.values()), allow_unused=True, materialize_grads=True)
    return losses.detach(), dict(zip(wanted, found))


@given(values=st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6))
def test_the_cost_is_the_same_whether_the_number_has_a_gradient_or_not(values):
    first, second = zip((0.0, 0.0), *values)  # the first one is fine
    rule = (x >= 1) >> (y >= 0)
    predicted, _ = pull(rule, x=of(*first), y=of(*second))
    known, _ = pull(rule, x=of(*first, gradient=False), y=of(*second))
    assert torch.equal(predicted, known)
    bound = {"x": of(*first, gradient=False), "y": of(*second, gradient=False)}
    assert torch.equal(predicted > predicted[0], ~rule.satisfied(**bound))


@given(value=st.floats(1.01, 4), short=st.floats(0.01, 4))
def test_the_gradient_is_divided_by_how_far_each_side_is_off(value, short):
    """Of ``(x >= 1) >> (y >= 0)``, at ``x = value`` and ``y = -short``."""
    _, both = pull((x >= 1) >> (y >= 0), x=of(value), y=of(-short))
    _, fact = pull((x >= 1) >> (y >= 0), x=of(value, gradient=False), y=of(-short))
    weight = (value - 1) ** 4 / ((value - 1) ** 4 + short**4)
    torch.testing.assert_close(both["y"], weight * fact["y"])
    torch.testing.assert_close(both["x"], -(1 - weight) * fact["y"])


def test_a_number_far_past_the_threshold_asks_and_one_just_past_it_gives_way():
    _, found = pull((x >= 8) >> (f == 2), x=of(8.1, 20.0), f=torch.zeros(2, 3, dtype=torch.float64, requires_grad=True))
    assert found["x"][0] > 100 * found["x"][1] > 0
    assert found["f"][1, 2] < 100 * found["f"][0, 2] < 0


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("operation", ["<", "<=", ">", ">=", "!=", "=="])
def test_every_comparison_gives_way_by_leaving_its_side(operation, sign):
    symbol = {"<": x < 0, "<=": x <= 0, ">": x > 0, ">=": x >= 0, "!=": x != 0, "==": x == 0}[operation]
    at = 0.0 if operation == "==" else sign * 0.5
    _, found = pull(symbol >> b, x=of(at), b=of(-3.0))
    holds = {"<": at < 0, "<=": at <= 0, ">": at > 0, ">=": at >= 0, "!=": True, "==": True}[operation]
    moves = holds and operation != "=="  # what is equal is so by no distance
    assert found["x"].sign().item() == (sign if moves else 0.0)  # a step against the gradient leads towards 0
    assert (found["b"].item() < 0) == holds


def test_on_the_threshold_itself_the_rule_is_violated_and_can_be_left():
    losses, found = pull((x >= 1) >> b, x=of(1.0, 0.999), b=of(-2.0, -2.0))
    assert losses[0] > losses[1]
    assert found["x"][0] > 0 == found["x"][1]


def test_evidence_is_a_fact():
    for rule, method in (
        (dl.evidence(x >= 1) >> b, FREE),
        ((x >= 1) >> b, dl.methods.Dual(delta="mean", floor=1.0, ceiling=1.0, evidence=True)),
    ):
        _, found = pull(rule, method, x=of(1.1), b=of(-2.0))
        _, fact = pull((x >= 1) >> b, x=of(1.1, gradient=False), b=of(-2.0))
        assert found["x"].item() == 0
        torch.testing.assert_close(found["b"], fact["b"])


def test_what_is_known_stays_a_fact_beside_what_is_predicted():
    """Two rules of one shape are evaluated together, and each is what it is alone."""
    rules = {"known": (x >= 1) >> b, "predicted": (y >= 1) >> b}
    both = dl.LogicLoss(rules, 1, dl.methods.Dual(delta="mean", floor=1.0, ceiling=1.0, rules="sum"), dtype=torch.float64)
    tensors = {"x": of(1.2, gradient=False), "y": of(1.2), "b": of(-2.0)}
    together = torch.autograd.grad(both(torch.arange(1), **tensors), [tensors["y"], tensors["b"]])
    _, known = pull(rules["known"], x=tensors["x"], b=tensors["b"])
    _, predicted = pull(rules["predicted"], y=tensors["y"], b=tensors["b"])
    torch.testing.assert_close(together, (predicted["y"], known["b"] + predicted["b"]))


def test_a_conjunction_is_left_where_that_is_nearest_and_a_disjunction_everywhere():
    _, found = pull(((x >= 0) & (y >= 0)) >> b, x=of(0.2), y=of(0.5), b=of(-3.0))
    assert found["x"] > 0 == found["y"]
    _, found = pull(((x >= 0) | (y >= 0)) >> b, x=of(0.2), y=of(0.5), b=of(-3.0))
    assert found["y"] > 0 == found["x"]


def test_an_empty_conjunction_of_comparisons_is_a_fact_that_holds():
    n = dl.axis("n", max=2)
    r, valid = dl.var("r", n), dl.mask("valid", n)
    tensors = {"r": of([0.5, 0.5]), "valid": torch.zeros(1, 2, dtype=torch.bool), "b": of(-2.0)}
    losses, found = pull((r >= 0).all(where=valid) >> b, **tensors)
    expected, fact = pull((x >= 0) >> b, x=of(1.0, gradient=False), b=of(-2.0))
    assert torch.equal(losses, expected)
    assert torch.equal(found["b"], fact["b"])
    assert (found["r"] == 0).all()


def test_beside_beliefs_a_comparison_is_a_fact():
    a = dl.boolean("a", input="logits")
    _, found = pull(((x >= 0) & a) >> b, x=of(0.1), a=of(3.0), b=of(-3.0))
    assert found["x"] == 0 > found["b"]


def test_the_beliefs_of_the_call_itself_change_nothing():
    rule = {"one": (x >= 0) >> b, "two": ((x >= 0) & (y <= 1)) >> (f == 1)}
    tensors = {"x": of(0.4, -1.0), "y": of(0.2, 0.3), "b": of(-2.0, 1.0), "f": of([0.0, 1.0, 2.0], [1.0, 0.0, 0.0])}
    found = []
    for believe in (None, {name: tensor.detach() for name, tensor in tensors.items()}):
        logic = dl.LogicLoss(rule, 2, dtype=torch.float64)
        for _ in range(3):
            loss = logic(torch.arange(2), believe=believe, **tensors)
        found.append([loss, *torch.autograd.grad(loss, list(tensors.values())), logic.table])
    assert all(torch.equal(one, other) for one, other in zip(*found))


def test_recorded_calls_have_the_bits_of_others():
    rule = {"one": (x >= 0) >> b, "two": (y >= 0) >> b, "three": (y >= 0) >> (x <= 2), "four": b >> (x >= 1)}
    losses = []
    for capture in (True, False):
        torch.manual_seed(0)
        logic, found = dl.LogicLoss(rule, 4, capture=capture), []
        for _ in range(6):
            tensors = {name: torch.randn(4, requires_grad=name != "y") for name in "xyb"}
            loss = logic(torch.arange(4), **tensors)
            loss.backward()
            found += [loss.detach(), tensors["x"].grad, tensors["b"].grad]
        losses.append(found)
    assert all(torch.equal(one, other) for one, other in zip(*losses))


# ---------------------------------------------------------------------- numbers as consequents


@given(belief=st.floats(-2, 4), short=st.floats(1.4, 50))
def test_how_far_a_number_is_off_says_little_about_who_gives_way(belief, short):
    """In whatever unit it is: a belief of 1 to e is all that is held against it, and half of that counts."""
    logic = dl.LogicLoss(b >> (x >= 0), 1, dl.methods.Dual(evidence=False), dtype=torch.float64)
    logic(torch.arange(1), b=of(belief), x=of(-short))
    expected = torch.tensor(belief - 0.5).sigmoid().item()
    assert logic.weights(torch.arange(1))["rule"][0, 1].item() == pytest.approx(expected, abs=1e-6)


# ---------------------------------------------------------------------- what is given beside numbers


@pytest.mark.parametrize("negated", [False, True])
def test_beside_what_is_given_a_number_gives_way_as_it_does_alone(negated):
    """``((x >= 1) & given) >> b`` asks for what ``(x >= 1) >> b`` does where ``given`` holds, and for nothing elsewhere."""
    given_is = of(1.0, 0.0, 0.7, 0.3, gradient=False)
    literal, holds = (~c, given_is < 0.5) if negated else (c, given_is > 0.5)
    at, sure = [1.2, 1.2, 3.0, 1.5], [-2.0, -2.0, -1.0, -1.0]
    losses, found = pull(((x >= 1) & literal) >> b, x=of(*at), b=of(*sure), c=given_is)
    alone, expected = pull((x >= 1) >> b, x=of(*at), b=of(*sure))
    torch.testing.assert_close(losses[holds], alone[holds])
    assert (losses[~holds] < losses[holds].min()).all()
    for name in ("x", "b"):
        torch.testing.assert_close(found[name], torch.where(holds, expected[name], 0.0))


def test_beside_a_class_that_is_given_too():
    kind = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], dtype=torch.float64)
    rule = ((x >= 1) & (dl.categorical("k", 3) == 0)) >> b
    _, found = pull(rule, x=of(1.2, 1.2), b=of(-2.0, -2.0), k=kind)
    assert found["x"][0] > 0
    assert found["x"][1] == 0


def test_beside_what_is_predicted_a_number_stays_a_fact():
    _, found = pull(((x >= 1) & c) >> b, x=of(1.2), b=of(-2.0), c=of(0.9))
    assert found["x"].item() == 0.0
    assert found["b"].item() < 0


def test_rules_of_one_shape_may_differ_in_what_is_given():
    """They are computed together otherwise."""
    d = dl.boolean("d")
    logic = dl.LogicLoss({"given": ((x >= 1) & c) >> b, "not": ((y >= 1) & d) >> b}, 1, FREE, dtype=torch.float64)
    number, other = of(1.2), of(1.2)
    logic(torch.tensor([0]), x=number, y=other, b=of(-2.0), c=of(1.0, gradient=False), d=of(0.9)).backward()
    assert number.grad.item() > 0
    assert other.grad is None or other.grad.item() == 0


def test_it_says_the_same_with_a_quantifier():
    several = dl.var("v", 3)
    values = of(1.2, 0.5, 0.3).unsqueeze(0).detach().requires_grad_()
    logic = dl.LogicLoss(((several >= 1).any() & c) >> b, 1, FREE, dtype=torch.float64)
    logic(torch.tensor([0]), v=values, b=of(-2.0), c=of(1.0, gradient=False)).backward()
    assert values.grad[0, 0] > 0
    assert (values.grad[0, 1:] == 0).all()
