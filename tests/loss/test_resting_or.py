"""An ``or`` of beliefs rests where two of them sum to 1: where an implication rests that says the same."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dualogic as dl

a, b, c = dl.boolean("a"), dl.boolean("b"), dl.boolean("c")
f, g = dl.categorical("f", 3), dl.categorical("g", 3)
z = dl.boolean("z", 4)
n = dl.axis("n", max=4)
y, valid = dl.boolean("y", n), dl.mask("valid", n)
believed = st.floats(0.02, 0.98)


def look(rule, values, index=0, method="dual", **masks):
    """The cost of one sample and its gradients, by a loss without a step behind it."""
    logic = dl.LogicLoss(rule, 1, method, dtype=torch.float64)
    tensors = {name: torch.tensor([value], dtype=torch.float64).requires_grad_() for name, value in values.items()}
    loss = logic(None if index is None else torch.tensor([index]), **tensors, **masks)
    slopes = torch.autograd.grad(loss, list(tensors.values()), allow_unused=True, materialize_grads=True)
    return logic.statistics()["rule"]["cost"].item(), dict(zip(tensors, slopes))


@settings(max_examples=60)
@given(first=believed, second=believed)
def test_an_or_rests_where_the_implication_does(first, second):
    assume(abs(first - second) > 1e-6)
    values = {"a": first, "b": second}
    alternative, slopes = look(~a | b, values)
    implied, _ = look(a >> b, values)
    assert (alternative == 0) == (implied == 0) == (second > first)
    assert (alternative == 0) == all((slope == 0).all() for slope in slopes.values())


@settings(max_examples=60)
@given(beliefs=st.lists(believed, min_size=4, max_size=4))
def test_it_costs_nothing_exactly_where_two_beliefs_sum_to_one(beliefs):
    highest = sum(sorted(beliefs)[-2:])
    assume(abs(highest - 1) > 1e-6)
    written = dl.Or(*(z[place] for place in range(4)))
    costs = [look(rule, {"z": beliefs})[0] for rule in (written, z.any())]
    assert costs[0] == pytest.approx(costs[1])
    assert (costs[0] == 0) == (highest > 1)
    assert 0 <= costs[0] <= -torch.tensor(min(beliefs)).log().item() + 1e-6


@settings(max_examples=40)
@given(beliefs=st.lists(believed, min_size=3, max_size=3))
def test_at_most_one_rests_while_no_two_are_believed_to_more_than_one(beliefs):
    largest = sum(sorted(beliefs)[1:])
    assume(abs(largest - 1) > 1e-6)
    cost, slopes = look(dl.AtMost(1, a, b, c), dict(zip("abc", beliefs)))
    assert (cost == 0) == (largest < 1)
    assert all((slope >= 0).all() for slope in slopes.values()), "what it pulls, it pulls down"


@settings(max_examples=60)
@given(beliefs=st.lists(believed, min_size=4, max_size=4), bound=st.integers(1, 3))
def test_at_most_some_rests_while_no_more_are_expected(beliefs, bound):
    largest = sum(sorted(beliefs)[-bound - 1 :])
    assume(abs(largest - bound) > 1e-6)
    cost, slopes = look(dl.AtMost(bound, z), {"z": beliefs})
    assert (cost == 0) == (largest < bound)
    assert (slopes["z"] >= 0).all(), "what it pulls, it pulls down"
    if bound == 3:
        assert [look(rule, {"z": beliefs})[0] for rule in (~z.all(), (~z).any())] == pytest.approx([cost, cost])


def test_two_classes_of_which_two_are_left_rest_where_they_are_believed_alike():
    alike, apart = [0.7, 0.3, 0.0], [0.2, 0.3, 0.5]
    assert look(f == g, {"f": alike, "g": alike})[0] == pytest.approx(0, abs=1e-9)
    assert look(f == g, {"f": alike, "g": apart})[0] > 0.1


def test_only_entries_that_exist_count():
    values = {"y": [0.5, 0.2, 0.9, 0.9]}
    masks = {"valid": torch.tensor([[True, True, False, False]])}
    cost, slopes = look(y.any(where=valid), values, **masks)
    assert cost > 0
    assert (slopes["y"][:, 2:] == 0).all()
    assert look(y.any(where=valid), {"y": [0.6, 0.5, 0.0, 0.0]}, **masks)[0] == 0


@pytest.mark.parametrize("rule", [~a | b, dl.Or(a, b, c), z.any(), dl.AtMost(1, a, b, c), a >> (b | c)])
def test_a_sample_without_weights_of_its_own_rests_at_the_same_place(rule):
    generator = torch.Generator().manual_seed(0)
    for _ in range(30):
        values = {name: torch.rand(1, *symbol.sizes, generator=generator).double() for name, symbol in rule.symbols.items()}
        training = dl.LogicLoss(rule, 1, dtype=torch.float64)
        validating = dl.LogicLoss(rule, 1, dtype=torch.float64).eval()
        training(torch.tensor([0]), **{name: value.clone().requires_grad_() for name, value in values.items()})
        validating(**values)
        assert (training.statistics()["rule"]["cost"] == 0) == (validating.statistics()["rule"]["cost"] == 0)


def test_numbers_and_the_paper_do_not_rest():
    x, w = dl.var("x"), dl.var("w")
    assert look((x <= 0) | (w <= 0), {"x": 0.3, "w": 0.3})[0] > 0.29, "both are missed, so it is violated"
    assert look(a | (x <= 0), {"a": 0.7, "x": 0.1})[0] > 0, "a distance is no belief"
    for method in (dl.methods.Dual.paper(), "hard", "uniform"):
        assert look(a | b, {"a": 0.7, "b": 0.6}, method=method)[0] > 0.1


# ---------------------------------------------------------------------- an and

costs = st.lists(st.floats(0.0, 5.0), min_size=2, max_size=6)


@settings(max_examples=40)
@given(costs=costs, more=st.integers(1, 5))
def test_what_is_met_does_not_dilute_an_and(costs, more):
    assume(max(costs) > 0.01)
    u = dl.var("u", len(costs) + more)
    plain, padded = (
        look(dl.And([u[place] <= 0 for place in range(count)]), {"u": [*costs, *(-1.0,) * more]})[1]["u"]
        for count in (len(costs), len(costs) + more)
    )
    torch.testing.assert_close(plain, padded, rtol=0.02, atol=1e-3)  # dual weights have moved a little meanwhile
    assert (padded[0, len(costs) :] == 0).all()


@settings(max_examples=40)
@given(costs=costs)
def test_the_dearest_part_of_an_and_is_pulled_most(costs):
    assume(max(costs) > 0.01)
    u = dl.var("u", len(costs))
    cost, slopes = look((u <= 0).all(), {"u": costs})
    assert sum(costs) / len(costs) - 1e-6 <= cost <= max(costs) + 1e-6
    assert slopes["u"][0, costs.index(max(costs))] == slopes["u"].max()
    flat, _ = look((u <= 0).all(), {"u": costs}, method=dl.methods.Dual(first="nearest"))
    assert flat <= cost + 1e-6


# ---------------------------------------------------------------------- classes that exclude each other


@settings(max_examples=40)
@given(beliefs=st.lists(believed, min_size=3, max_size=3))
def test_two_classes_that_are_believed_alike_are_the_same(beliefs):
    """``f == g`` rests there, however unsure: all classes count, since they exclude each other."""
    shares = (torch.tensor(beliefs) / sum(beliefs)).tolist()
    cost, slopes = look(f == g, {"f": shares, "g": shares})
    assert cost == pytest.approx(0, abs=1e-6)
    assert all(slope.abs().max() < 1e-5 for slope in slopes.values())


def test_two_classes_that_differ_pull():
    cost, slopes = look(f == g, {"f": [0.6, 0.3, 0.1], "g": [0.1, 0.3, 0.6]})
    assert cost > 0.1
    assert all(slope.abs().max() > 0.1 for slope in slopes.values())


def test_an_or_of_what_does_not_exclude_each_other_counts_two():
    """Three beliefs of a third sum to 1; but only where they exclude each other one of them must be true."""
    unsure, values = [1 / 3] * 3, dict.fromkeys("abc", 0.9)
    assert look(((f == 0) & a) | ((f == 1) & b) | ((f == 2) & c), values | {"f": unsure})[0] < 0.05
    assert look(((f == 0) & a) | ((f == 1) & b) | ((g == 2) & c), values | {"f": unsure, "g": unsure})[0] > 0.3


@pytest.mark.parametrize("turned", [False, True])
def test_rules_of_one_shape_may_differ_in_signs(turned):
    """Not all of three is met by what is expected; one of three, each of them hardly believed, is not."""
    rules = {"denied": dl.Or(~a, ~b, ~c), "affirmed": dl.Or(~a, ~b, c), "entries": ~z.all(), "any entry": z.any()}
    rules = dict(reversed(rules.items())) if turned else rules
    tensors = {name: torch.tensor([0.65], dtype=torch.float64) for name in "abc"}
    tensors |= {"c": torch.tensor([0.25], dtype=torch.float64), "z": torch.full((1, 4), 0.7, dtype=torch.float64)}
    logic = dl.LogicLoss(rules, 1, dtype=torch.float64)
    logic(torch.tensor([0]), **{name: tensor.clone().requires_grad_() for name, tensor in tensors.items()})
    together = {name: found["cost"].item() for name, found in logic.statistics().items()}
    for name, rule in rules.items():
        values = {symbol: tensors[symbol][0].tolist() for symbol in rule.symbols}
        assert together[name] == pytest.approx(look(rule, values)[0], abs=1e-9)
    assert together["denied"] == 0
    assert together["affirmed"] > 0


def test_rules_of_one_shape_may_differ_in_whether_they_exclude_each_other():
    """They are computed together otherwise, in whatever order they come."""
    unsure, values = [1 / 3] * 3, dict.fromkeys("abc", 0.9)
    rules = {"apart": ((f == 0) & a) | ((f == 1) & b) | ((f == 2) & c), "mixed": ((f == 0) & a) | ((f == 1) & b) | ((g == 2) & c)}
    tensors = {name: torch.tensor([value], dtype=torch.float64) for name, value in {**values, "f": unsure, "g": unsure}.items()}
    for names in (("apart", "mixed"), ("mixed", "apart")):
        logic = dl.LogicLoss({name: rules[name] for name in names}, 1, dtype=torch.float64)
        logic(torch.tensor([0]), **{name: tensor.clone().requires_grad_() for name, tensor in tensors.items()})
        costs = {name: found["cost"].item() for name, found in logic.statistics().items()}
        assert costs["apart"] < 0.05
        assert costs["mixed"] > 0.3
