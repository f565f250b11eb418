"""The arithmetic of the fused kernels, on a CPU: what they do with bad indices, bad costs and bad moves."""

import math

import pytest
import torch

import dualogic as dl
from dualogic.duals.table import average_moves
from dualogic.kernels import fused
from dualogic.losses import DELTA_RULES
from dualogic.losses.delta import violations_delta
from emulated_triton import emulated

pytestmark = pytest.mark.skipif(fused.triton is not None, reason="with Triton the kernels themselves are tested")

X, Y = dl.var("x", 3), dl.var("y", 3)
RULE = ((X <= 0) | (Y <= 0)).all()
RULES = {
    "or inside": RULE,
    "or outside": ((X <= 0) & (Y <= 0)).any(),
    "three inside": dl.And([dl.Or(X[0] <= 0, X[1] <= 0.5 * i, Y[i] <= 0) for i in range(3)]),
    "three outside": dl.Or([dl.And(X[0] <= 0, X[1] <= 0.5 * i, Y[i] <= 0) for i in range(3)]),
}
OPTIONS = [
    {},
    {"local": False},
    {"rule": "exponentiated"},
    {"rule": "exponentiated", "local": False, "share": 0.1},
    {"share": 0.1},
    {"delta": "square", "floor": 0.01},
    {"delta": "mean", "and_step": None},
    {"delta": "violations", "floor": 0.01, "ceiling": 0.5},
    {"first": "equal", "and_step": 0.3},
    {"first": "nearest"},
    {"step": 5.0, "and_step": 2.0, "local": False},
]


def batch(size, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return {"x": 0.2 + torch.rand(size, 3, generator=generator), "y": 0.2 + torch.rand(size, 3, generator=generator)}


def two_level_step(logic, index, tensors, launched=None):
    program = logic._program
    values = program.evaluate(program.plan.bind(tensors, False))
    with emulated(launched):
        return program.whole_step(index, logic._table.values, logic._state, logic._guard.flags, values)


def compare(rule, options, batches):
    """Losses, gradients, duals and scale of the kernels and of the eager path, over steps with repeated samples."""
    plain, kernels = (dl.LogicLoss(rule, 9, dl.methods.Dual(**options), reduction="none") for _ in range(2))
    close = {"rtol": 1e-4, "atol": 1e-4} if options.get("step", 0.0) > 1 else {}  # large steps magnify what is rounded
    for seed, tensors in enumerate(batches):
        index = torch.randint(9, (6,), generator=torch.Generator().manual_seed(seed))
        one, other = ({name: value.clone().requires_grad_() for name, value in tensors.items()} for _ in range(2))
        expected = plain(index, **one)
        found, costs = two_level_step(kernels, index, other)
        torch.testing.assert_close(found.squeeze(1), expected)
        assert (costs >= 0).all()
        found.sum().backward()
        expected.sum().backward()
        for name in tensors:
            torch.testing.assert_close(other[name].grad, one[name].grad, **close)
        torch.testing.assert_close(kernels.state_dict()["table"], plain.state_dict()["table"], **close)
        torch.testing.assert_close(kernels.delta, plain.delta)
    assert kernels.state_dict()["steps"] == len(batches)
    return kernels


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", RULES)
def test_a_whole_step_is_the_eager_one(name, options):
    compare(RULES[name], options, [batch(6, seed) for seed in range(4)])


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", RULES)
def test_operands_that_are_met_or_equal_in_a_whole_step(name, options):
    """A met operand costs exactly 0 and takes all that the loss has; equal ones keep the weights that are stored."""
    batches = [batch(6, seed) for seed in range(4)]
    for tensors in batches:
        tensors["x"][0, 0] = -1.0
        tensors["x"][1], tensors["y"][1] = 0.75, 0.75
        tensors["x"][2], tensors["y"][2] = -1.0, -1.0
        tensors["y"][3] = 0.0
        tensors["x"][4] = 5.0
    logic = compare(RULES[name], options, batches)
    assert torch.isfinite(logic.state_dict()["table"]).all()
    assert logic.state_dict()["table"].abs().max() > 0


def test_a_met_operand_whose_weight_has_vanished():
    """What is left of the weights underflows; the loss is that of a met rule, and nothing is divided by 0."""
    plain, kernels = (dl.LogicLoss(RULE, 1, reduction="none") for _ in range(2))
    for logic in (plain, kernels):
        logic._table.values[:, 3:6], logic._table.values[:, 6:] = -100.0, 100.0
    tensors = {"x": torch.tensor([[-1.0, 0.0, -2.0]]), "y": torch.tensor([[3.0, 4.0, 5.0]])}
    index = torch.zeros(1, dtype=torch.int64)
    expected = plain(index, **{name: value.clone().requires_grad_() for name, value in tensors.items()})
    found, costs = two_level_step(kernels, index, tensors)
    torch.testing.assert_close(found.squeeze(1), expected.detach())
    assert costs.item() == 0.0
    torch.testing.assert_close(kernels.state_dict()["table"], plain.state_dict()["table"])


def test_implications_that_rest_take_no_whole_step():
    rule = ((X <= 0) >> (Y <= 0)).all()
    assert dl.LogicLoss(rule, 9)._program.two_levels is None
    assert dl.LogicLoss(rule, 9, dl.methods.Dual(implication="or"))._program.two_levels is not None


def test_kernels_for_a_step():
    """Three for rules of two levels, whatever the options."""
    logic = dl.LogicLoss(RULE, 9)
    launched = []
    two_level_step(logic, torch.arange(6), batch(6), launched)
    assert launched == ["_find_moves", "_take_step", "_state"]


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
    mean, _ = average_moves(index, torch.where(expected.unsqueeze(1), moves, 0.0), expected)
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rule", ["mean", "square", "violations"])
def test_delta_is_the_eager_one(rule, dtype):
    generator = torch.Generator().manual_seed(0)
    costs = torch.rand(13, 5, generator=generator, dtype=dtype) * torch.tensor([0.0, 1e-3, 0.5, 1.0, 30.0], dtype=dtype)
    costs[torch.rand(13, 5, generator=generator) < 0.3] = 0.0
    costs[2], costs[5], costs[7] = math.nan, math.inf, 1e20
    good = torch.rand(13, generator=generator) > 0.2
    delta = torch.tensor([0.8, 0.3, 0.7, 2.0, 50.0], dtype=dtype)
    with emulated():
        found = fused.next_delta(costs, good, delta, 0.2, 10.0, rule, 1e15)
    counts = good & (costs < 1e15).all(1)
    counted = costs.masked_fill(~counts.unsqueeze(1), 0.0)
    expected = violations_delta(counted, delta) if rule == "violations" else DELTA_RULES[rule](counted, counts.sum())
    torch.testing.assert_close(found, expected.clamp(0.2, 10.0))


@pytest.mark.parametrize("rule", ["mean", "square", "violations"])
def test_delta_stays_where_no_sample_counts(rule):
    costs, delta = torch.rand(4, 2), torch.tensor([0.8, 3.0])
    with emulated():
        assert torch.equal(fused.next_delta(costs, torch.zeros(4, dtype=torch.bool), delta, 0.2, 10.0, rule), delta)
