"""An ``or`` of beliefs rests where two of them sum to 1, as the implication that says the same does; not where a fact asks."""

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


# ---------------------------------------------------------------------- alternatives that a fact asks for

known, other_fact = dl.boolean("known"), dl.boolean("other_fact")


def look_beside_a_fact(rule, values, **facts):
    """The cost where the facts have no gradient, and the gradients of the rest, after a step that has seen this."""
    logic = dl.LogicLoss(rule, 1, dtype=torch.float64)
    tensors = {name: torch.tensor([value], dtype=torch.float64).requires_grad_() for name, value in values.items()}
    facts = {name: torch.tensor([value], dtype=torch.float64) for name, value in facts.items()}
    loss = logic(torch.tensor([0]), **tensors, **facts)
    slopes = torch.autograd.grad(loss, list(tensors.values()), allow_unused=True, materialize_grads=True)
    return logic.statistics()["rule"]["cost"].item(), dict(zip(tensors, slopes))


@settings(max_examples=40)
@given(first=believed, second=believed)
def test_what_a_fact_asks_for_is_decided(first, second):
    """A bag has a fault, so some part has: two parts of which one half each is believed are no answer."""
    values = {"a": first, "b": second}
    for rule in (known >> (a | b), ~(a | b) >> known, known >> ((a | b) & (a | c))):
        own = values if "c" not in rule.symbols else values | {"c": first}
        turned = isinstance(rule, type(known >> a)) and "known" not in rule.antecedent.symbols
        cost, slopes = look_beside_a_fact(rule, own, known=0.0 if turned else 1.0)
        assert cost > 0
        assert sum(slope.abs().sum() for slope in slopes.values()) > 0
        cost, slopes = look_beside_a_fact(rule, own, known=1.0 if turned else 0.0)
        assert cost == 0
        assert all((slope == 0).all() for slope in slopes.values()), "what is vacuous pulls nothing"


@pytest.mark.parametrize(
    ("rule", "values"),
    [
        (known >> (~a | b), {"a": 0.5, "b": 0.6}),  # which says a >> b
        (known >> ~(a & b & c), {"a": 0.6, "b": 0.6, "c": 0.6}),
        (known >> (f == g), {"f": [0.4, 0.3, 0.3], "g": [0.4, 0.3, 0.3]}),
        (known >> (a >> b), {"a": 0.5, "b": 0.6}),
    ],
)
def test_what_denies_something_rests_beside_a_fact_too(rule, values):
    cost, slopes = look_beside_a_fact(rule, values, known=1.0)
    assert cost == pytest.approx(0, abs=1e-9)
    assert all(slope.abs().max() < 1e-6 for slope in slopes.values())


def test_what_a_belief_asks_for_rests():
    assert look(c >> (a | b), {"a": 0.5, "b": 0.55, "c": 0.95})[0] == pytest.approx(0, abs=1e-6)


def test_it_stays_decided_in_eval_and_in_checkpoints():
    rule, values = known >> z.any(), {"z": torch.full((1, 4), 0.55), "known": torch.ones(1)}
    logic = dl.LogicLoss(rule, 1)
    logic(torch.tensor([0]), z=values["z"].clone().requires_grad_(), known=values["known"])
    again = dl.LogicLoss(rule, 1)
    again.load_state_dict(logic.state_dict())
    for each in (logic, again):
        each.eval()(**values)
        assert each.statistics()["rule"]["cost"].item() > 0.5


def test_rules_of_one_shape_may_differ_in_what_asks():
    """Side by side, and in whatever order, each costs what it does alone."""
    rules = {"fact": known >> (a | b), "belief": c >> (a | b), "denied": known >> (~a | b), "both": other_fact >> (b | a)}
    values, facts = {"a": 0.55, "b": 0.6, "c": 0.9}, {"known": 1.0, "other_fact": 1.0}
    alone = {}
    for name, rule in rules.items():
        own, given_ = ({n: v for n, v in each.items() if n in rule.symbols} for each in (values, facts))
        alone[name] = look_beside_a_fact(rule, own, **given_)[0]
    for names in (list(rules), list(rules)[::-1]):
        logic = dl.LogicLoss({name: rules[name] for name in names}, 1, dtype=torch.float64)
        tensors = {n: torch.tensor([v], dtype=torch.float64).requires_grad_() for n, v in values.items()}
        logic(torch.tensor([0]), **tensors, **{n: torch.tensor([v], dtype=torch.float64) for n, v in facts.items()})
        assert {name: found["cost"].item() for name, found in logic.statistics().items()} == pytest.approx(alone, abs=1e-9)
    assert alone["fact"] > 0.3
    assert alone["belief"] == alone["denied"] == pytest.approx(0, abs=1e-9)


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
