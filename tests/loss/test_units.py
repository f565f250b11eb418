"""Numbers in a small unit, such as euros for houses: how large a unit is, the first training call shows."""

import copy

import pytest
import torch

import dualogic as dl

kind, price = dl.categorical("kind", 2, input="logits"), dl.var("price")
INDEX = torch.arange(8)


def make_rules(unit):
    return {"villa": (kind == 1) >> (price >= 3 * unit), "flat": (kind == 0) >> (price <= 3 * unit)}


def train(logic, unit, steps, seed=0):
    """Losses, and gradients of what a network would say in units of its own."""
    generator, found = torch.Generator().manual_seed(seed), []
    for _ in range(steps):
        said = torch.randn(8, 3, generator=generator).requires_grad_()
        loss = logic(INDEX, kind=said[:, :2], price=(3 + said[:, 2]) * unit)
        loss.backward()
        found.append((loss.detach(), said.grad))
    return found


def test_the_unit_does_not_matter_once_it_is_small():
    first, second = (train(dl.LogicLoss(make_rules(unit), num_samples=8), unit, 10) for unit in (1e3, 1e6))
    for (loss, gradient), (other, other_gradient) in zip(first, second):
        # A loss has the logarithm of its scale, and so of the unit.
        torch.testing.assert_close(loss + torch.tensor(1e3).log(), other, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(gradient, other_gradient, rtol=1e-3, atol=1e-5)
        assert other_gradient.norm() < 10  # with a scale of 1 it is 10^12


def test_numbers_of_an_ordinary_size_are_left_alone():
    logic = dl.LogicLoss(make_rules(1.0), num_samples=8)
    before = logic._program
    train(logic, 1.0, 2)
    assert logic._program is before
    assert logic._units == ()


def test_what_is_given_has_no_say_in_it():
    """A rate in percent is taught; the income in euros is a fact."""
    rate, income = dl.var("rate"), dl.var("income")
    logic = dl.LogicLoss((income >= 30_000) >> (rate <= 5), num_samples=8)
    logic(INDEX, rate=torch.randn(8, requires_grad=True), income=60_000 * torch.rand(8)).backward()
    assert logic._units == ()


def test_only_the_rules_that_speak_of_it_have_the_unit():
    logic = dl.LogicLoss({**make_rules(1e5), "other": (kind == 1) >> dl.boolean("garden", input="logits")}, num_samples=8)
    said = torch.randn(8, 4, requires_grad=True)
    logic(INDEX, kind=said[:, :2], price=1e5 * (3 + said[:, 2]), garden=said[:, 3]).backward()
    assert logic._units[0] == logic._units[1] == pytest.approx(1e5 * said[:, 2].std().item(), rel=1e-4)
    assert logic._units[2] == 0
    assert logic.delta[2].item() < 5


def test_it_is_kept_in_copies_and_checkpoints():
    logic = dl.LogicLoss(make_rules(1e5), num_samples=8)
    train(logic, 1e5, 3)
    fresh = dl.LogicLoss(make_rules(1e5), num_samples=8)
    fresh.load_state_dict(logic.state_dict())
    twin = copy.deepcopy(logic)
    results = [train(each, 1e5, 3, seed=1) for each in (logic, fresh, twin)]
    torch.testing.assert_close(results[1], results[0])
    torch.testing.assert_close(results[2], results[0])
    assert logic.reset_()._units == ()


@pytest.mark.parametrize("unit", [1e2, 1e5])
def test_plain_gradient_descent_stays_finite(unit):
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
    inputs, optimizer = torch.randn(64, 8), torch.optim.SGD(network.parameters(), 0.03, momentum=0.9)
    logic = dl.LogicLoss(make_rules(unit), num_samples=64)
    for _ in range(150):
        said = network(inputs)
        loss = said[:32, 2].square().mean() + logic(torch.arange(64), kind=said[:, :2], price=(3 + said[:, 2]) * unit)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert network(inputs).abs().max() < 50
