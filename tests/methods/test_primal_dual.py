"""The primal-dual method, worked by hand from its definitions."""

import pytest
import torch

import dualogic as dl
from dualogic.errors import OptionError

a, b, c = (dl.boolean(name) for name in "abc")
x, y = dl.var("x"), dl.var("y")


def multipliers(logic, index):
    return logic.state_dict()["table"][index, : len(logic.rules)]


@pytest.mark.parametrize(
    ("rule", "truth"),
    [
        (a | b, 0.75),
        (a | b | c, 1.0),
        (a & b, 0.0),
        (a & c, 0.125),
        (b & c & c, 0.5 + 0.875 + 0.875 - 2),
        (~a, 0.75),
        (c >> b, 0.625),
        ((a | b) & c, 0.625),
    ],
)
def test_lukasiewicz_truth_by_hand(rule, truth):
    """With a = 0.25, b = 0.5, c = 0.875: "or" sums up to 1, "and" of k loses k - 1."""
    values = {"a": 0.25, "b": 0.5, "c": 0.875}
    tensors = {name: torch.tensor([values[name]]) for name in rule.symbols}
    logic = dl.LogicLoss(rule, method="pd1").eval()
    logic(**tensors)
    assert logic.statistics()["rule"]["cost"].item() == pytest.approx(1 - truth)


def test_minimum_and_maximum_by_hand():
    rule = ((x <= 0) & (y <= 0)) | (x >= 5)
    logic = dl.LogicLoss(rule, method="pd2").eval()
    logic(x=torch.tensor([1.0]), y=torch.tensor([2.0]))
    assert logic.statistics()["rule"]["cost"].item() == 2.0


def test_ascent_by_hand():
    """Cost 2 at every visit; updates at visits 1, 3, 6, 10 with rates 1/2, 1/2 / 1.5, 1/2 / 2, 1/2 / 2.5."""
    logic = dl.LogicLoss(x <= 1, num_samples=3, method=dl.methods.PD2(rate=0.5, decay=0.5, interval=1, growth=1))
    index, value = torch.tensor([1]), torch.tensor([3.0])
    expected, found = [], []
    total = 0.0
    for visit in range(1, 13):
        if visit in (1, 3, 6, 10):
            total += 2.0 * 0.5 / (1 + 0.5 * (1, 3, 6, 10).index(visit))
        expected.append(total)
        loss = logic(index, x=value)
        found.append(multipliers(logic, 1).item())
        assert loss.item() == pytest.approx(2.0 * total)
    assert found == pytest.approx(expected)
    assert multipliers(logic, [0, 2]).abs().sum() == 0


@pytest.mark.parametrize(("warmup", "interval", "growth"), [(0, 1, 0), (0, 3, 0), (2, 1, 1), (0, 10, 5), (4, 2, 3)])
def test_schedule(warmup, interval, growth):
    """Updates come where a plain count says so."""
    due, gap, visit = [], interval, warmup + interval
    while visit <= 400:
        due.append(visit)
        gap += growth
        visit += gap
    logic = dl.LogicLoss(x <= 0, method=dl.methods.PD2(rate=1.0, decay=0.0, warmup=warmup, interval=interval, growth=growth))
    found, last = [], 0.0
    for step in range(1, 401):
        logic(x=torch.tensor([1.0]))
        now = logic.state_dict()["table"][0, 0].item()
        if now != last:
            assert now - last == pytest.approx(1.0)
            found.append(step)
        last = now
    assert found == due


def test_a_multiplier_of_zero_gives_no_gradient():
    logic = dl.LogicLoss(x <= 1, method=dl.methods.PD2(interval=2))
    value = torch.tensor([3.0], requires_grad=True)
    loss = logic(x=value)
    loss.backward()
    assert loss.item() == 0
    assert value.grad.item() == 0
    logic(x=value).backward()
    assert value.grad.item() > 0


def test_satisfied_samples_keep_their_multiplier():
    logic = dl.LogicLoss(x <= 1, num_samples=2, method=dl.methods.PD2(rate=1.0, growth=0))
    for value in (3.0, 0.0, 0.0):
        logic(torch.tensor([0, 1]), x=torch.tensor([value, 0.0]))
    assert multipliers(logic, [0, 1]).flatten().tolist() == [2.0, 0.0]


def test_several_rules_and_shared_multipliers():
    """One multiplier serves all samples and moves by the batch's mean cost."""
    logic = dl.LogicLoss({"one": x <= 0, "two": y <= 0}, method=dl.methods.PD2(rate=1.0))
    logic(x=torch.tensor([1.0, 3.0]), y=torch.tensor([0.0, 1.0]))
    assert logic.state_dict()["table"][0].tolist() == [2.0, 0.5, 1.0]


def test_released_variant_is_momentum_ascent():
    """The same numbers as torch's own SGD on the multiplier, without its decay."""
    logic = dl.LogicLoss(x <= 1, num_samples=1, method=dl.methods.PD2.released(decay=0.0))
    multiplier = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([multiplier], lr=1e-2, momentum=0.9, maximize=True)
    for value in (3.0, 2.0, 5.0, 1.0, 0.0, 4.0):
        optimizer.zero_grad()
        (multiplier * max(value - 1.0, 0.0)).sum().backward()
        optimizer.step()
        logic(torch.tensor([0]), x=torch.tensor([value]))
        assert multipliers(logic, 0).item() == pytest.approx(multiplier.item())


def test_pd1_refuses_regression():
    logic = dl.LogicLoss(x <= 1, method="pd1")
    logic(x=torch.tensor([2.0]))  # cost 1, wholly false but still a truth value
    with pytest.raises(OptionError, match=r"x <= 1 costs up to 4, more than its scale of 1.*'pd2'"):
        logic(x=torch.tensor([5.0]))
    dl.LogicLoss(x <= 1, method=dl.methods.PD1(scale=10.0))(x=torch.tensor([5.0]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": -1.0}, "rate must be"),
        ({"interval": 0}, "interval counts visits and must be at least 1"),
        ({"growth": -1}, "growth counts visits"),
        ({"momentum": 1.0}, "momentum must be"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(OptionError, match=message):
        dl.methods.PD2(**options)
