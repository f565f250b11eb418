"""An antecedent about classes that gives way raises the likeliest other class, and costs what it did."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dualogic as dl

SETS = st.sets(st.integers(0, 4), min_size=1, max_size=3)
METHOD = dl.methods.Dual(evidence=False)


def draw(seed, batch=6, input="logits"):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(2, batch, 5, generator=generator, dtype=torch.float64)
    logits = logits if input == "logits" else logits.softmax(-1)
    return [each.requires_grad_() for each in logits.unbind(0)]


def symbols(input="logits"):
    return (dl.categorical(name, 5, input=input) for name in "fg")


def as_cost(values, classes, input="logits"):
    logarithms = values.log_softmax(-1) if input == "logits" else values.log()
    return -logarithms[:, sorted(classes)].logsumexp(-1)


@pytest.mark.parametrize("input", ["logits", "probs"])
@given(st.integers(0, 10_000), SETS, SETS)
@settings(max_examples=40, deadline=None)
def test_what_is_given_up_goes_to_the_likeliest_other_class(input, seed, given_up, asked):
    assume(given_up != asked)  # both sides would say the same
    f, g = symbols(input)
    first, second = draw(seed, input=input)
    logic = dl.LogicLoss(f.isin(given_up) >> g.isin(asked), method=METHOD).double()
    (found,) = torch.autograd.grad(logic(f=first, g=second), first)

    # An independent implementation: the plain gradient of the same loss by S(P), sent through the likeliest other class.
    cost = as_cost(first.detach(), given_up, input).requires_grad_()
    twin = dl.LogicLoss(dl.boolean("p") >> dl.boolean("q"), method=METHOD).double()
    q = (-as_cost(second.detach(), asked, input)).exp()
    (slope,) = torch.autograd.grad(twin(p=(-cost).exp(), q=q.requires_grad_()), cost)
    probabilities = first.softmax(-1) if input == "logits" else first
    others = [label for label in range(5) if label not in given_up]
    likeliest = probabilities.detach()[:, others].argmax(-1)
    taken = probabilities[:, others].gather(-1, likeliest.unsqueeze(-1)).squeeze(-1)
    a, m = (-cost.detach()).exp(), taken.detach()
    own = (1 - a) / (1 - m).clamp_min(1e-4)
    factor = torch.minimum(8 * own, torch.maximum(m / a, own))
    (expected,) = torch.autograd.grad((slope * factor * taken.log()).sum(), first)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-9)


@given(st.integers(0, 10_000), SETS, SETS)
@settings(max_examples=40, deadline=None)
def test_the_loss_is_that_of_the_same_beliefs(seed, given_up, asked):
    f, g = symbols()
    first, second = draw(seed)
    found = dl.LogicLoss(f.isin(given_up) >> g.isin(asked), method=METHOD).double()(f=first, g=second)
    beliefs = {"p": (-as_cost(first, given_up)).exp(), "q": (-as_cost(second, asked)).exp()}
    twin = dl.LogicLoss(dl.boolean("p") >> dl.boolean("q"), method=METHOD).double()
    torch.testing.assert_close(found, twin(**beliefs))


@given(st.integers(0, 10_000), st.integers(0, 4))
@settings(max_examples=30, deadline=None)
def test_one_other_class_is_the_plain_gradient(seed, label):
    f, g = symbols()
    first, second = draw(seed)
    p = dl.boolean("p")
    said = dl.LogicLoss((f != label) >> (g == 0), method=METHOD).double()
    plain = dl.LogicLoss(p >> (g == 0), method=METHOD).double()
    (found,) = torch.autograd.grad(said(f=first, g=second), first)
    (expected,) = torch.autograd.grad(plain(p=1 - first.softmax(-1)[:, label], g=second), first)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-8)


@given(st.integers(0, 10_000), SETS, SETS)
@settings(max_examples=30, deadline=None)
def test_nothing_is_given_up_at_rest_or_as_evidence(seed, given_up, asked):
    f, g = symbols()
    first, second = draw(seed)
    rule = f.isin(given_up) >> g.isin(asked)
    resting = as_cost(second, asked) <= as_cost(first, given_up)
    (found,) = torch.autograd.grad(dl.LogicLoss(rule, method=METHOD).double()(f=first, g=second), first)
    assert (found[resting] == 0).all()
    (found,) = torch.autograd.grad(
        dl.LogicLoss(rule, method=dl.methods.Dual(evidence=True)).double()(f=first, g=second), first, allow_unused=True
    )
    assert found is None or (found == 0).all()


@given(st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_a_comparison_as_the_consequent_leaves_the_plain_gradient(seed):
    f, _ = symbols()
    first, second = draw(seed)
    x, p = dl.var("x"), dl.boolean("p")
    said = dl.LogicLoss((f == 1) >> (x <= 0), method=METHOD).double()
    plain = dl.LogicLoss(p >> (x <= 0), method=METHOD).double()
    (found,) = torch.autograd.grad(said(f=first, x=second[:, 0]), first)
    (expected,) = torch.autograd.grad(plain(p=first.softmax(-1)[:, 1], x=second[:, 0]), first)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("method", [METHOD, "dual"])
@given(st.integers(0, 10_000), SETS, SETS)
@settings(max_examples=20, deadline=None)
def test_where_both_sides_teach_it_is_the_plain_gradient(method, seed, one, other):
    f, g = symbols()
    p, q = (dl.boolean(name) for name in "pq")
    first, second = draw(seed)
    beliefs = {"p": (-as_cost(first, one)).exp(), "q": (-as_cost(second, other)).exp()}
    found = dl.LogicLoss(dl.Iff(f.isin(one), g.isin(other)), method=method).double()(f=first, g=second)
    expected = dl.LogicLoss(dl.Iff(p, q), method=method).double()(**beliefs)
    for pair in zip(*(torch.autograd.grad(loss, (first, second)) for loss in (found, expected))):
        torch.testing.assert_close(*pair, rtol=1e-5, atol=1e-8)


@given(st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_rules_about_several_classes_together(seed):
    """Rules that are compiled together, each with a class of its own, are as each alone."""
    f, g = symbols()
    first, second = draw(seed)
    rules = {str(label): (f == label) >> (g == label + 1) for label in range(4)}
    (together,) = torch.autograd.grad(dl.LogicLoss(rules, method=METHOD).double()(f=first, g=second), first)
    alone = [
        torch.autograd.grad(dl.LogicLoss(rule, method=METHOD).double()(f=first, g=second), first)[0] for rule in rules.values()
    ]
    torch.testing.assert_close(together, sum(alone) / 4)


def test_under_a_transformation():
    f, g = symbols()
    first, second = (each.detach() for each in draw(3))
    logic = dl.LogicLoss((f == 1) >> (g == 2), method=METHOD).double().eval()

    def lose(values):
        return logic(f=values, g=second)

    leaf = first.clone().requires_grad_()
    (expected,) = torch.autograd.grad(lose(leaf), leaf)
    torch.testing.assert_close(torch.func.grad(lose)(first), expected)
