"""Many rules are not a heavier weight, and how they are written down does not matter."""

import dataclasses
import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dualogic as dl
import strategies
from dualogic.losses.emphasis import emphasise

f, g = dl.categorical("f", 4, input="logits"), dl.categorical("g", 4, input="logits")
a, b, c = dl.boolean("a"), dl.boolean("b"), dl.boolean("c")
x, v = dl.var("x"), dl.var("v", 3)
RULES = {
    "classes": (g == 2) >> (f == 1),
    "beliefs": (a & b) >> c,
    "fact": (x > 0.2) >> b,
    "either": (v <= 0.2).any() | a,
    "one": dl.ExactlyOne(a, b, c),
    "both": dl.Iff(a, c),
}
TAUTOLOGIES = {
    "a class": (f == 0) | (x**2 >= 0),
    "an implication of itself": (f == 0) >> (f == 0),
    "a belief of itself": a >> a,
    "a wider class": (g == 1) >> g.isin([1, 2]),
    "a real one": x**2 >= 0,
}
INDEX = torch.tensor([4, 0, 2])
METHODS = {
    "found": dl.methods.Dual(),
    "both ways": dl.methods.Dual(evidence=False),
    "exponentiated": dl.methods.Dual(rule="exponentiated", share=0.02),
    "hard": "hard",
    "lukasiewicz": "lukasiewicz",
}


def bind(seed=0):
    generator = torch.Generator().manual_seed(seed)

    def uniform(*sizes):
        return torch.rand(3, *sizes, generator=generator, dtype=torch.float64)

    tensors = {
        "f": 3 * uniform(4),
        "g": 3 * uniform(4),
        "a": uniform(),
        "b": uniform(),
        "c": uniform(),
        "x": uniform(),
        "v": uniform(3),
    }
    return {name: tensor.requires_grad_() for name, tensor in tensors.items()}


def train(rules, method, steps=3, **options):
    """The losses, the last step's gradients by symbol, and the module."""
    logic = dl.LogicLoss(rules, 5, method, dtype=torch.float64, **options)
    losses = []
    for seed in range(steps):
        tensors = {
            name: tensor for name, tensor in bind(seed).items() if any(name in rule.symbols for rule in logic.rules.values())
        }
        losses.append(logic(INDEX, **tensors))
    found = torch.autograd.grad(losses[-1], list(tensors.values()), allow_unused=True, materialize_grads=True)
    return torch.stack(losses).detach(), dict(zip(tensors, found)), logic


def assert_same(one, two, scale=1.0):
    for name, gradient in one.items():
        torch.testing.assert_close(gradient * scale, two[name], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("tautology", TAUTOLOGIES)
@pytest.mark.parametrize("method", ["found", "both ways", "exponentiated"])
def test_a_tautology_takes_its_share_and_nothing_else(method, tautology):
    count = len(RULES)
    options = dataclasses.replace(METHODS[method], rules="mean")
    _, before, alone = train(RULES, options)
    _, after, joined = train({**RULES, "true": TAUTOLOGIES[tautology]}, options)
    assert_same(before, after, count / (count + 1))
    torch.testing.assert_close(joined.delta[:count], alone.delta)
    assert joined.delta[count] == joined.delta.min()


@settings(max_examples=25)
@given(order=st.permutations(list(RULES)), method=st.sampled_from(list(METHODS)))
def test_the_order_of_rules_does_not_matter(order, method):
    losses, before, one = train(RULES, METHODS[method])
    same, after, two = train({name: RULES[name] for name in order}, METHODS[method])
    torch.testing.assert_close(losses, same, rtol=1e-12, atol=1e-12)
    assert_same(before, after)
    for name, delta in zip(RULES, one.delta):
        torch.testing.assert_close(two.delta[order.index(name)], delta)
    weights = two.weights(INDEX)
    for path, weight in one.weights(INDEX).items():
        torch.testing.assert_close(weights[path], weight, rtol=1e-9, atol=1e-12)
    if "known" in one.state_dict():
        torch.testing.assert_close(by_path(one), by_path(two))


def by_path(logic):
    """What has been found out about each implication, by its path."""
    levels = [level for level in logic._program.leaning if level.share is None]
    paths = list(itertools.chain(*(level.paths for level in levels)))
    return dict(sorted(zip(paths, logic.state_dict()["known"].unbind(1))))


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("name", RULES)
def test_a_hundred_copies_of_a_rule_pull_as_hard_as_one(name, method):
    losses, before, one = train(RULES[name], method)
    same, after, hundred = train({f"copy {number}": RULES[name] for number in range(100)}, method)
    torch.testing.assert_close(losses, same, rtol=1e-9, atol=1e-9)
    assert_same(before, after)
    torch.testing.assert_close(hundred.delta, one.delta.expand(100))


def test_a_conjunction_of_copies_pulls_as_hard_as_one():
    """Whether they are written as a mapping or as one formula."""
    for name, rule in RULES.items():
        _, before, _ = train(rule, "dual", steps=1)
        _, after, _ = train(dl.And([dl.level(rule & dl.level(rule)), dl.level(rule)]), "dual", steps=1)
        assert_same(before, after)
        assert any(gradient.abs().sum() > 0 for gradient in before.values()), name


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_regrouping_a_chain_changes_nothing(method):
    parts = [RULES["classes"], (v <= 0.1).any(), a >> c, b | (x <= 0)]
    one, two, three, four = parts
    ways = [
        ((one & two) & three) & four,
        one & (two & (three & four)),
        (one & two) & (three & four),
        dl.And(one, two, dl.And(three, four)),
        dl.And(parts),
    ]
    losses, before, first = train(ways[0], method)
    for way in ways[1:]:
        same, after, other = train(way, method)
        assert torch.equal(losses, same)
        assert all(torch.equal(before[name], after[name]) for name in before)
        for path, weight in first.weights(INDEX).items():
            assert torch.equal(weight, other.weights(INDEX)[path])
    alternatives = [(a | b) | c | (x <= 0), a | (b | (c | (x <= 0))), dl.Or(a, b, c, x <= 0)]
    results = [train(way, method) for way in alternatives]
    for losses, gradients, _ in results[1:]:
        assert torch.equal(losses, results[0][0])
        assert_same(results[0][1], gradients)


def test_weights_set_shares_of_the_mean():
    averaged = dl.methods.Dual(rules="mean")
    _, one, _ = train({"classes": RULES["classes"]}, averaged, steps=1)
    _, both, _ = train({"classes": RULES["classes"], "fact": RULES["fact"]}, averaged, steps=1, weight={"classes": 3.0})
    torch.testing.assert_close(both["f"], 1.5 * one["f"])
    _, summed, _ = train(RULES, dl.methods.Dual(rules="sum"), steps=1)
    _, mean, _ = train(RULES, averaged, steps=1)
    assert_same(mean, summed, len(RULES))


@settings(max_examples=40)
@given(
    met=st.integers(0, 60), cost=st.floats(0.01, 50.0), floor=st.floats(0.1, 2.0), method=st.sampled_from(["violated", "mean"])
)
def test_a_rule_among_many_that_are_met_pulls_at_least_a_quarter_as_hard_as_alone(met, cost, floor, method):
    """Less if its violations stay dear, but no less than in a mean."""
    low, high = v[0] <= 0, v[1] <= 0
    rules = {"violated": low, **{f"met {number}": high for number in range(met)}}
    tensors = {"v": torch.tensor([[cost, -1.0, 0.0]], dtype=torch.float64, requires_grad=True)}
    options = dl.methods.Dual(rules=method, floor=floor, ceiling=4.0)
    alone, among = (dl.LogicLoss(chosen, method=options, dtype=torch.float64) for chosen in ({"violated": low}, rules))
    for _ in range(3):
        (one,) = torch.autograd.grad(alone(**tensors), tensors["v"])
        delta = among.delta[0].item()
        (many,) = torch.autograd.grad(among(**tensors), tensors["v"])
        count = met + 1
        share = 1 / count if method == "mean" else max(0.25 * floor / delta, 1 / count)
        torch.testing.assert_close(many, one * share)


@settings(max_examples=30)
@given(
    rules=st.lists(st.one_of(strategies.formulas(depth=2), strategies.quantified(depth=1)), min_size=2, max_size=4),
    data=st.data(),
)
def test_random_rules_in_any_order(rules, data):
    named = {f"rule {number}": rule for number, rule in enumerate(rules)}
    order = data.draw(st.permutations(list(named)))
    tensors = data.draw(strategies.bindings(dl.And(*map(dl.level, rules)), batch=3))
    found = []
    for names in (list(named), order):
        logic = dl.LogicLoss({name: named[name] for name in names}, 5, dtype=torch.float64)
        leaves = {name: tensor.clone().requires_grad_(tensor.is_floating_point()) for name, tensor in tensors.items()}
        try:
            losses = [logic(INDEX, **leaves) for _ in range(2)]
        except dl.errors.NonFiniteError:
            return  # an .any() of nothing
        live = [leaf for leaf in leaves.values() if leaf.requires_grad]
        found.append((losses[-1], *torch.autograd.grad(losses[-1], live, allow_unused=True, materialize_grads=True)))
    for one, two in zip(*found):
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-10)


costs_of_rules = st.lists(st.sampled_from([0.0, 0.0, 1e-4, 0.1, 0.7, 3.0, 40.0]), min_size=1, max_size=12)


@given(costs=costs_of_rules, tautologies=st.integers(0, 40), copies=st.integers(1, 5), data=st.data())
def test_what_rests_dilutes_fourfold_at_most(costs, tautologies, copies, data):
    """Whatever the order; and copies of all rules, or more that are met, change no gradient once that is reached."""
    deltas = data.draw(st.lists(st.floats(0.5, 9.0), min_size=len(costs), max_size=len(costs)))
    order = data.draw(st.permutations(range(len(costs))))
    row, delta = torch.tensor([costs], dtype=torch.float64), torch.tensor(deltas, dtype=torch.float64)
    factors = emphasise(row, delta, floor=0.5)
    torch.testing.assert_close(emphasise(row[:, order], delta[order], 0.5), factors[:, order])
    torch.testing.assert_close(emphasise(row.repeat(1, copies), delta.repeat(copies), 0.5), factors.repeat(1, copies))
    share = factors / len(costs)  # of what each would pull alone
    assert (share * row).sum() <= row.max() + 1e-9, "together no more than the dearest alone"
    more = torch.cat([row, torch.zeros(1, tautologies, dtype=torch.float64)], 1)
    scales = torch.cat([delta, torch.ones(tautologies, dtype=torch.float64)])
    after = emphasise(more, scales, 0.5)[:, : len(costs)] / more.shape[1]
    assert (after <= share + 1e-9).all()
    torch.testing.assert_close(torch.where(factors > 1, after, share), share)
    assert any(costs) or (factors == 1).all()
