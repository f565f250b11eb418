"""The cost of an implication that rests: where it is 0, what it is elsewhere, and how its gradient is divided."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dualogic as dl
from dualogic.compile.implication import IMPOSSIBLE, deny, divide, excess, join_odds, log_odds, possible_sides

belief = st.one_of(st.floats(0.001, 0.999), st.sampled_from([0.0, 1.0]))
weight = st.floats(0, 1)
MODES = [True, False]


def cost_of(value, logarithmic, dtype=torch.float64):
    value = torch.as_tensor(value, dtype=dtype)
    return -value.clamp_min(torch.finfo(dtype).tiny).log() if logarithmic else 1 - value


def plain(p, q):
    """``KL(p || q)`` from its definition, for beliefs within (0, 1)."""
    return p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log()


@pytest.mark.parametrize("logarithmic", MODES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(p=belief, q=belief)
def test_it_is_0_exactly_where_the_consequent_is_at_least_as_believed(logarithmic, dtype, p, q):
    antecedent, consequent = (cost_of(value, logarithmic, dtype) for value in (p, q))
    found = excess(antecedent, consequent, logarithmic)
    assert found >= 0
    assert torch.isfinite(found)
    if consequent <= antecedent:
        assert found == 0
    elif p > q + 1e-3:
        assert found > 0


@pytest.mark.parametrize("logarithmic", MODES)
def test_truth_table(logarithmic):
    p, q = cost_of([0.0, 0.0, 1.0, 1.0], logarithmic), cost_of([0.0, 1.0, 0.0, 1.0], logarithmic)
    found = excess(p, q, logarithmic)
    assert ((found == 0) == torch.tensor([True, True, False, True])).all()
    torch.testing.assert_close(found[2], q[2], msg="a certain antecedent leaves the consequent's own cost")


@pytest.mark.parametrize("logarithmic", MODES)
@given(q=belief)
def test_under_a_certain_antecedent_it_is_the_cost_of_the_consequent(logarithmic, q):
    consequent = cost_of(q, logarithmic)
    torch.testing.assert_close(excess(torch.zeros_like(consequent), consequent, logarithmic), consequent)


@given(p=st.floats(0.01, 0.99), q=st.floats(0.01, 0.99))
def test_it_is_a_divergence_where_the_antecedent_is_more_believed(p, q):
    found = excess(cost_of(p, True), cost_of(q, True), True)
    expected = plain(*torch.tensor([p, q], dtype=torch.float64)) if q < p else torch.zeros((), dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)
    # Lukasiewicz's cost bounds it from below, Goguen's from above.
    assert found >= 2 * max(p - q, 0) ** 2 - 1e-12
    assert found <= max(math.log(p / q), 0.0) + 1e-12


@pytest.mark.parametrize("q", [1e-3, 1e-10, 1e-30])
@pytest.mark.parametrize("p", [0.05, 0.5, 0.999])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_pull_on_the_consequents_logit_is_the_difference_of_beliefs_however_small_it_is(p, q, dtype):
    logit = torch.tensor([math.log(q / (1 - q))], dtype=dtype, requires_grad=True)
    consequent = torch.nn.functional.softplus(-logit)
    antecedent = cost_of([p], True, dtype)
    for found in (excess(antecedent, consequent, True), divide(antecedent, consequent, torch.ones(1, dtype=dtype), 1.0, True)):
        (gradient,) = torch.autograd.grad(found, logit, retain_graph=True)
        torch.testing.assert_close(gradient, torch.tensor([q - p], dtype=dtype), rtol=1e-5, atol=0)


@pytest.mark.parametrize("logarithmic", MODES)
@given(p=st.floats(0.01, 0.99), q=st.floats(0.01, 0.99), w=weight, share=st.sampled_from([0.0, 0.25, 1.0]))
def test_the_gradient_is_divided_by_the_weight(logarithmic, p, q, w, share):
    """In closed form, as of the plain expression: ``w`` of it into the consequent, the rest into the antecedent."""
    sides = [cost_of([value], logarithmic).requires_grad_() for value in (p, q)]
    into, away = torch.autograd.grad(excess(*sides, logarithmic).sum(), sides)[::-1]
    for shares in (share, torch.tensor([share], dtype=torch.float64)):
        cost = divide(*sides, torch.tensor([w], dtype=torch.float64), shares, logarithmic)
        assert torch.equal(cost, excess(*sides, logarithmic))
        found = torch.autograd.grad(cost.sum(), sides)
        torch.testing.assert_close(found[0], (1 - w) * (1 - share) * away, rtol=1e-7, atol=1e-12)
        torch.testing.assert_close(found[1], w * into, rtol=1e-7, atol=1e-12)


def test_gradcheck():
    """Half of each gradient, doubled, is that of the cost itself."""
    generator = torch.Generator().manual_seed(0)
    sides = [2 * torch.rand(20, generator=generator, dtype=torch.float64).requires_grad_() for _ in range(2)]
    half = torch.full((20,), 0.5, dtype=torch.float64)
    for logarithmic in MODES:
        scale = 1.0 if logarithmic else 0.5
        leaves = tuple((scale * side).detach().requires_grad_() for side in sides)
        assert torch.autograd.gradcheck(lambda p, q, mode=logarithmic: excess(p, q, mode), leaves)
        cost = divide(*leaves, half, 0.0, logarithmic)
        doubled = torch.autograd.grad(2 * cost.sum(), leaves)
        whole = torch.autograd.grad(excess(*leaves, logarithmic).sum(), leaves)
        for one, two in zip(doubled, whole):
            torch.testing.assert_close(one, two)


@pytest.mark.parametrize("share", [0.0, 0.5, torch.tensor([0.25], dtype=torch.float64)], ids=str)
def test_second_derivatives_are_those_of_the_divided_gradient(share):
    generator = torch.Generator().manual_seed(1)
    p, q = (2 * torch.rand(6, generator=generator, dtype=torch.float64) for _ in range(2))
    w = torch.rand(6, generator=generator, dtype=torch.float64)
    leaves = (p.requires_grad_(), q.requires_grad_())

    def first(p, q):
        return torch.autograd.grad(divide(p, q, w, share, True).sum(), (p, q), create_graph=True)

    for part in range(2):
        (second,) = torch.autograd.grad(first(*leaves)[part].sum(), leaves[part], allow_unused=True)
        numeric = (first(*_moved(leaves, part, 1e-6))[part] - first(*_moved(leaves, part, -1e-6))[part]) / 2e-6
        torch.testing.assert_close(second, numeric.detach(), rtol=1e-5, atol=1e-7)


def _moved(leaves, part, by):
    moved = [leaf.detach().clone() for leaf in leaves]
    moved[part] += by
    return [leaf.requires_grad_() for leaf in moved]


@pytest.mark.parametrize("logarithmic", MODES)
def test_under_a_transform_it_is_the_same(logarithmic):
    p, q, w = torch.rand(3, 8, generator=torch.Generator().manual_seed(2), dtype=torch.float64).unbind()
    leaves = [p.clone().requires_grad_(), q.clone().requires_grad_()]
    eager = torch.autograd.grad(divide(*leaves, w, 0.5, logarithmic).sum(), leaves)
    transformed = torch.func.grad(lambda p, q: divide(p, q, w, 0.5, logarithmic).sum(), argnums=(0, 1))(p, q)
    for one, two in zip(eager, transformed):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("logarithmic", MODES)
def test_an_impossible_antecedent_asks_nothing_and_sends_no_gradient(logarithmic):
    for doubt in (IMPOSSIBLE, math.inf):
        values = torch.tensor([[doubt, 5.0], [0.1, 0.9]])
        sides = [side.requires_grad_() for side in possible_sides(values, values != math.inf)]
        for weight in (0.0, 0.5, 1.0):
            cost = divide(*sides, torch.full((2,), weight), 0.0, logarithmic)
            assert cost[0] == 0
            for gradient in torch.autograd.grad(cost.sum(), sides):
                assert gradient[0] == 0
            for gradient in torch.func.grad(
                lambda p, q, w=weight: divide(p, q, torch.full((2,), w), 0.0, logarithmic).sum(), argnums=(0, 1)
            )(*(side.detach() for side in sides)):
                assert gradient[0] == 0


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("logarithmic", MODES)
def test_an_impossible_consequent_leaves_the_denial_of_the_antecedent(logarithmic, share):
    p = torch.tensor([0.0, 0.3, 0.9, 1.0], dtype=torch.float64)
    antecedent = cost_of(p, logarithmic).requires_grad_()
    found = deny(antecedent, share, logarithmic)
    assert found[3] == math.inf, "what is certain cannot be denied"
    torch.testing.assert_close(found[:3], cost_of(1 - p[:3], logarithmic), atol=1e-12, rtol=1e-12)
    (whole,) = torch.autograd.grad(deny(antecedent, 0.0, logarithmic)[:3].sum(), antecedent)
    (gradient,) = torch.autograd.grad(found[:3].sum(), antecedent)
    torch.testing.assert_close(gradient, (1 - share) * whole)
    assert (whole[1:3] < 0).all()


@given(p=st.floats(0.001, 0.999), q=st.floats(0.001, 0.999), share=st.floats(0, 1))
def test_first_odds_are_those_of_the_antecedent_and_half_of_those_of_a_known_consequent(p, q, share):
    odds = [math.log(value / (1 - value)) for value in (p, q)]
    for logarithmic in MODES:
        antecedent, consequent = (cost_of([value], logarithmic) for value in (p, q))
        assert log_odds(antecedent, logarithmic).item() == pytest.approx(odds[0], abs=1e-9)
        found = join_odds(log_odds(antecedent, logarithmic), log_odds(consequent, logarithmic), share).item()
        assert found == pytest.approx(odds[0] + 0.5 * (1 - share) * odds[1], abs=1e-9)


@pytest.mark.parametrize("cost", [0.0, 1e-30, 80.0, 1e9, math.inf])
def test_log_odds_are_finite_at_the_extremes(cost):
    for dtype in (torch.float32, torch.float64):
        found = log_odds(torch.tensor([cost], dtype=dtype), True)
        assert found.abs() == 30.0


def test_comparisons_as_antecedents_hold_or_do_not():
    """Just past the threshold is as good as far past it, and just short of it asks nothing."""
    age, granted = dl.var("age"), dl.boolean("granted", input="logits")
    logic = dl.LogicLoss((age > 60) >> granted, 4, reduction="none", dtype=torch.float64)
    values = torch.tensor([60.001, 90.0, 59.999, 20.0], dtype=torch.float64)
    logits = torch.full((4,), -2.0, dtype=torch.float64, requires_grad=True)
    losses = logic(torch.arange(4), age=values, granted=logits)
    assert losses[0] == losses[1] > losses[2] == losses[3]
    losses.sum().backward()
    assert (logits.grad[:2] < 0).all()
    assert logits.grad[0] == logits.grad[1]
    assert logits.grad[2:].tolist() == [0, 0]
