"""Many rules are not a heavier weight, and how they are written down does not matter."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dualogic as dl
import strategies

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
    "found": dl.methods.Dual(imply_step=0.07),
    "both ways": dl.methods.Dual(evidence=False),
    "exponentiated": dl.methods.Dual(rule="exponentiated", share=0.02, imply_step=0.5),
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
    _, before, alone = train(RULES, METHODS[method])
    _, after, joined = train({**RULES, "true": TAUTOLOGIES[tautology]}, METHODS[method])
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
    _, one, _ = train({"classes": RULES["classes"]}, "dual", steps=1)
    _, both, _ = train({"classes": RULES["classes"], "fact": RULES["fact"]}, "dual", steps=1, weight={"classes": 3.0})
    torch.testing.assert_close(both["f"], 1.5 * one["f"])
    _, summed, _ = train(RULES, dl.methods.Dual(rules="sum"), steps=1)
    _, mean, _ = train(RULES, "dual", steps=1)
    assert_same(mean, summed, len(RULES))


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
