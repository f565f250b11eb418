"""The arithmetic of the fused kernels, on a CPU: what they do with bad indices, bad costs and bad moves."""

import math

import pytest
import torch

import dualogic as dl
from dualogic import fused
from dualogic.duals.table import average_selected
from emulated_triton import emulated

pytestmark = pytest.mark.skipif(fused.triton is not None, reason="with Triton the kernels themselves are tested")

X, Y = dl.var("x", 3), dl.var("y", 3)
RULE = ((X <= 0) | (Y <= 0)).all()
OPTIONS = [{}, {"local": False}, {"rule": "exponentiated"}, {"forget": 0.2, "share": 0.1}, {"delta": "square", "floor": 0.01}]


def batch(size, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return {"x": 0.2 + torch.rand(size, 3, generator=generator), "y": 0.2 + torch.rand(size, 3, generator=generator)}


def two_level_step(logic, index, tensors):
    program = logic._program
    values = program.evaluate(program.plan.bind(tensors, False))
    with emulated():
        return program.whole_step(index, logic._table.values, logic._state, logic._guard.flags, values)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_whole_step_is_the_eager_one(options):
    plain, kernels = (dl.LogicLoss(RULE, 9, dl.methods.Dual(**options), reduction="none") for _ in range(2))
    for seed in range(3):
        index = torch.randint(9, (6,), generator=torch.Generator().manual_seed(seed))
        tensors = batch(6, seed)
        one, other = tensors["x"].clone().requires_grad_(), tensors["x"].clone().requires_grad_()
        expected = plain(index, **{**tensors, "x": one})
        found, _ = two_level_step(kernels, index, {**tensors, "x": other})
        torch.testing.assert_close(found.squeeze(1), expected)
        found.sum().backward()
        expected.sum().backward()
        torch.testing.assert_close(other.grad, one.grad)
    torch.testing.assert_close(kernels.state_dict()["table"], plain.state_dict()["table"])
    torch.testing.assert_close(kernels.delta, plain.delta)
    assert kernels.state_dict()["steps"] == 3


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("bad", ["index", "negative index", "cost", "move"])
def test_in_a_whole_step_bad_occurrences_count_nowhere(options, bad):
    """Row 0, to which bad indices are set, moves as if the bad occurrence were not there."""
    alone, together = (dl.LogicLoss(RULE, 9, dl.methods.Dual(**options)) for _ in range(2))
    tensors = batch(3)
    if bad == "cost":
        tensors["x"][2] = math.inf
        tensors["y"][2, 0] = math.nan
    if bad == "move":
        for logic in (alone, together):
            logic._state["delta"].fill_(1e-8)
        tensors["x"][2], tensors["y"][2] = 2e15, 1e15
    index = torch.tensor([0, 5, {"index": 77, "negative index": -1}.get(bad, 0)])
    alone(index[:2], **{name: value[:2].requires_grad_() for name, value in tensors.items()})
    two_level_step(together, index, tensors)
    torch.testing.assert_close(together.state_dict()["table"], alone.state_dict()["table"])
    torch.testing.assert_close(together.delta, alone.delta)
    assert together._guard.flags.tolist() == ([True, False] if "index" in bad else [False, True])
    assert together.state_dict()["table"].abs().max() > 0


@pytest.mark.parametrize("width", [1, 7, 1500])
def test_advanced_rows_are_the_eager_ones(width):
    generator = torch.Generator().manual_seed(width)
    size, rules = 12, 3
    index = torch.randint(0, 5, (size,), generator=generator)
    good = torch.rand(size, generator=generator) > 0.3
    costs = torch.rand(size, rules, generator=generator)
    costs[5, 1], costs[9, 2] = math.nan, math.inf
    rows = torch.randn(5, width, generator=generator)[index]
    moves = torch.randn(size, width, generator=generator)
    moves[5], moves[9] = math.nan, math.inf
    flags = torch.zeros(1 + rules, dtype=torch.bool)
    with emulated():
        new, counted = fused.advance_rows(index, good, costs, rows, moves, flags)
    expected = torch.isfinite(costs).all(1) & good
    assert torch.equal(counted, expected)
    mean, _ = average_selected(index, torch.where(expected.unsqueeze(1), moves, 0.0), expected)
    torch.testing.assert_close(new, rows + mean)
    assert flags.tolist() == [False, False, True, True]


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e31])
def test_a_move_that_cannot_be_stored_is_flagged_and_not_made(bad):
    rows, moves = torch.ones(3, 5), torch.ones(3, 5)
    moves[1, 2] = bad
    flags = torch.zeros(2, dtype=torch.bool)
    index, good = torch.tensor([4, 0, 2]), torch.ones(3, dtype=torch.bool)
    with emulated():
        new, _ = fused.advance_rows(index, good, torch.ones(3, 1), rows, moves, flags, most=1e30)
    assert flags.tolist() == [False, True]
    assert torch.isfinite(new).all()
    assert new[1, 2] == 1
    assert (new[[0, 2]] == 2).all()


def test_a_cost_past_its_limit_does_not_count_for_delta():
    costs, counts = torch.tensor([[4.0], [1e20], [9.0]]), torch.ones(3, dtype=torch.bool)
    with emulated():
        found = fused.next_delta(costs, counts, torch.ones(1), 0.1, math.inf, "mean", 1e15)
    assert found.item() == pytest.approx(math.sqrt(6.5))
