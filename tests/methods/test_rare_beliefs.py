"""What is rare tells more when it is believed: who gives way is counted from how often each side is believed."""

import copy

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

import dualogic as dl
from dualogic.methods.lean import OPEN, RARE, odds_of_rates, share_of, start_known

a, b, x = dl.boolean("a"), dl.boolean("b"), dl.var("x")
f, g = dl.categorical("f", 3), dl.categorical("g", 3)
RECENT, RECENT_OF_CONSEQUENT = 7, 9
belief = st.floats(0.02, 0.98)


def loss_that_knows(rule, rate=0.5, consequent_rate=0.5, **options):
    """A loss whose antecedents may be taught, after sides have been believed so often; frozen there by hand."""
    logic = dl.LogicLoss(rule, 1, dtype=torch.float64, **options)
    known = logic._state["known"]
    known[4], known[RECENT], known[RECENT_OF_CONSEQUENT] = 2 * OPEN, rate, consequent_rate
    return logic


def weight_of(logic, p, q):
    """On the consequent of ``a >> b``, after a visit of a sample that believes so much."""
    tensors = {"a": torch.tensor([p], dtype=torch.float64), "b": torch.tensor([q], dtype=torch.float64)}
    logic(torch.tensor([0]), **{name: tensor.requires_grad_() for name, tensor in tensors.items()})
    return logic.weights(torch.tensor([0]))["rule"][0, 1]


@settings(max_examples=50)
@given(p=belief, q=belief, rate=belief, other=belief)
def test_log_odds_are_counted_from_those_of_the_mean(p, q, rate, other):
    p, q, rate, other = (torch.tensor(value, dtype=torch.float64) for value in (p, q, rate, other))
    expected = torch.sigmoid(p.logit() - rate.logit() + 0.5 * (q.logit() - other.logit()))
    torch.testing.assert_close(weight_of(loss_that_knows(a >> b, rate, other), p, q), expected)


def test_the_rarer_an_antecedent_is_the_less_it_gives_way():
    weights = [weight_of(loss_that_knows(a >> b, rate), 0.6, 0.3).item() for rate in (0.9, 0.5, 0.1, 0.02)]
    assert weights == sorted(weights)
    assert weights[-1] - weights[0] > 0.5


def test_beyond_some_rarity_nothing_changes():
    found = [odds_of_rates(known_with(rate), torch.ones(2, 1), 0.0) for rate in (RARE, RARE / 100, 0.0)]
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def known_with(rate):
    known = start_known([0], torch.float64)
    known[RECENT], known[RECENT_OF_CONSEQUENT] = rate, 0.5
    return known


def test_evidence_is_not_counted_so():
    """Its weight follows the belief in the antecedent alone."""
    known = known_with(0.05)
    assert odds_of_rates(known, torch.ones(2, 1), torch.ones(1)).item() == 0.0
    logic = dl.LogicLoss(a >> b, 1, dtype=torch.float64)
    logic._state["known"][RECENT] = 0.05
    assert weight_of(logic, 0.6, 0.3).item() == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("rule", "told_by"),
    [
        (a >> b, (True, True)),
        ((f == 1) >> b, (False, True)),
        ((a & ~b) >> (f == 1), (True, False)),
        ((f == 1) >> (g == 2), (False, False)),
        (((f == 1) & a) >> b, (False, True)),
        (a >> (x <= 1), (False, False)),
    ],
    ids=str,
)
def test_only_sides_of_booleans_alone_tell(rule, told_by):
    """A class is one of many, and the others are as rare; a distance is no belief."""
    (level,) = [level for level in dl.LogicLoss(rule)._program.plan.levels if level.operation == ">>"]
    assert level.yes_or_no == told_by


def train(logic, steps):
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        p, q = (torch.rand(8, generator=generator).requires_grad_() for _ in range(2))
        loss = logic(torch.randperm(8, generator=generator), a=p, b=q)
        yield loss, *torch.autograd.grad(loss, (p, q))


def test_means_are_those_of_what_was_believed_lately():
    logic = dl.LogicLoss(a >> b, 1, dtype=torch.float64)
    for p, q in [(0.9, 0.2)] * 5 + [(0.1, 0.6)] * 200:
        weight_of(logic, p, q)
    known = logic._state["known"]
    torch.testing.assert_close(known[RECENT], torch.tensor([0.1], dtype=torch.float64), atol=1e-6, rtol=0)
    torch.testing.assert_close(known[RECENT_OF_CONSEQUENT], torch.tensor([0.6], dtype=torch.float64), atol=1e-6, rtol=0)


def test_recorded_steps_have_the_same_bits():
    """While antecedents are evidence, while some are, and when none is any longer."""
    walked = dl.LogicLoss(a >> b, 8, capture=False)
    recorded = dl.LogicLoss(a >> b, 8)
    for step, pair in enumerate(zip(train(walked, 120), train(recorded, 120))):
        assert all(torch.equal(one, two) for one, two in zip(*pair)), step
    assert share_of(walked._state["known"]).item() == 0.0
    state = recorded.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in walked.state_dict().items() if torch.is_tensor(value))


def test_second_derivatives_are_those_of_the_walk():
    found = []
    for capture in (False, True):
        logic = dl.LogicLoss(a >> b, 8, dtype=torch.float64, capture=capture)
        list(train(logic, 100))
        twin = copy.deepcopy(logic)
        p, q = torch.full((8,), 0.8).requires_grad_(), torch.full((8,), 0.3).requires_grad_()
        for _ in range(3):
            (slope,) = torch.autograd.grad(twin(torch.arange(8), a=p, b=q), p, create_graph=True)
        found.append(torch.autograd.grad(slope.sum(), (p, q)))
    torch.testing.assert_close(found[0], found[1])
