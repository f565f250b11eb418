"""On a GPU: fused kernels against their eager references, no synchronisation, graphs and compilation.

Skipped without CUDA; run on a GPU machine with ``python -m pytest tests/test_fused.py``.
"""

import math
import warnings

import pytest
import torch

import dualogic as dl
from dualogic.duals.table import average_moves
from dualogic.kernels import fused
from dualogic.losses import DELTA_RULES
from dualogic.losses.delta import violations_delta
from dualogic.losses.truncated_normal import truncated_normal_loss

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

X, Y = dl.var("x", 6), dl.var("y")
F = dl.categorical("f", 7, input="logits")
N = dl.axis("n", max=5)
Z, VALID = dl.var("z", N), dl.mask("valid", N)
RULES = {
    "flat": (X[0] <= 0) | (X[1] <= 0.2) | (Y >= 0.9),
    "class": (F == 1) >> (F.isin([2, 3]) | (X[2] <= 0.1)),
    "all": ((X == 0) | (X == 1)).all(),
}
RAGGED = {"ragged": ((Z <= 0.1) | (Z >= 0.8)).all(where=VALID)}


def batch(step, samples, device):
    generator = torch.Generator().manual_seed(step)
    size = 16
    index = torch.randint(0, samples, (size,), generator=generator)
    values = {
        "x": torch.rand(size, 6, generator=generator),
        "y": torch.rand(size, generator=generator),
        "f": torch.randn(size, 7, generator=generator),
    }
    return index.to(device), {name: value.to(device).requires_grad_() for name, value in values.items()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_fetched_rows(dtype):
    table = torch.randn(50, 1500, device="cuda").to(dtype)
    index = torch.tensor([3, 49, -1, 50, 0, 3], device="cuda")
    flags = torch.zeros(2, dtype=torch.bool, device="cuda")
    rows, clean, good = fused.fetch_rows(table, index, flags)
    assert clean.tolist() == [3, 49, 0, 0, 0, 3]
    assert good.tolist() == [True, True, False, False, True, True]
    assert flags.tolist() == [True, False]
    assert torch.equal(rows, table[clean].to(rows.dtype))


@pytest.mark.parametrize("width", [1, 60, 3000])
def test_advanced_rows(width):
    size, rules = 40, 3
    index = torch.randint(0, 12, (size,), device="cuda")
    good = torch.rand(size, device="cuda") > 0.1
    costs = torch.rand(size, rules, device="cuda")
    costs[5, 1], costs[9, 2] = math.nan, math.inf
    rows = torch.randn(12, width, device="cuda")[index]
    moves = torch.randn(size, width, device="cuda")
    moves[5], moves[9] = math.nan, math.inf
    flags = torch.zeros(1 + rules, dtype=torch.bool, device="cuda")
    new, counted = fused.advance_rows(index, good, costs, rows, moves, flags)
    expected_counted = torch.isfinite(costs).all(1) & good
    expected = rows + average_moves(index, torch.where(expected_counted.unsqueeze(1), moves, 0.0), expected_counted)[0]
    assert torch.equal(counted, expected_counted)
    assert flags.tolist() == [False, False, True, True]
    torch.testing.assert_close(new, expected)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_move_that_is_not_finite_is_flagged_and_not_made(bad):
    rows, moves = torch.ones(3, 5, device="cuda"), torch.ones(3, 5, device="cuda")
    moves[1, 2] = bad
    flags = torch.zeros(2, dtype=torch.bool, device="cuda")
    good, index = torch.ones(3, dtype=torch.bool, device="cuda"), torch.tensor([4, 0, 2], device="cuda")
    new, _ = fused.advance_rows(index, good, torch.ones(3, 1, device="cuda"), rows, moves, flags, most=1e30)
    assert flags.tolist() == [False, True]
    assert torch.isfinite(new).all()
    assert (new[[0, 2]] == 2).all()


@pytest.mark.parametrize(
    "rule", [((dl.var("x", 3) <= 0) | (dl.var("y", 3) <= 0)).all(), (dl.var("x", 3) <= 0).all()], ids=["two levels", "one level"]
)
@pytest.mark.parametrize("bad", ["index", "cost"])
def test_a_bad_occurrence_does_not_dilute_the_move_of_a_good_one(rule, bad):
    """Row 0, to which bad indices are set, moves as if the bad occurrence were not there."""
    alone, together = (dl.LogicLoss(rule, 20).to("cuda") for _ in range(2))
    values = torch.rand(3, 3, generator=torch.Generator().manual_seed(0)).cuda() + 0.5

    def tensors(rows):
        found = {"x": values[rows].clone().requires_grad_(), "y": values[rows].flip(1).clone()}
        return {name: found[name] for name in rule.symbols}

    given = tensors([0, 1, 2])
    index = torch.tensor([0, 7, 77 if bad == "index" else 0], device="cuda")
    if bad == "cost":
        with torch.no_grad():
            given["x"][2] = torch.nan
            given["x"][2, :2] = torch.inf
    for logic in (alone, together):  # values are looked at, and NaN refused, at the first call alone
        logic(torch.tensor([4, 5], device="cuda"), **tensors([0, 1]))
    alone(torch.tensor([0, 7], device="cuda"), **tensors([0, 1]))
    together(index, **given)
    with pytest.raises(dl.errors.DualogicError):
        together.check()
    torch.testing.assert_close(together.state_dict()["table"], alone.state_dict()["table"])
    torch.testing.assert_close(together.delta, alone.delta)
    assert together.state_dict()["table"].abs().max() > 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_loss_slope_and_delta(dtype):
    mu = torch.rand(300, 4, device="cuda", dtype=dtype) * torch.tensor([1e-6, 0.1, 3.0, 1e5], device="cuda", dtype=dtype)
    delta = torch.tensor([1e-4, 0.1, 1.0, 2.0], device="cuda", dtype=dtype)
    leaf = mu.clone().requires_grad_()
    expected = truncated_normal_loss(leaf, delta.clone().requires_grad_())  # the plain operations
    (slope,) = torch.autograd.grad(expected.sum(), leaf)
    loss, fast = fused.loss_and_slope(mu, delta)
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(fast, slope)
    (again,) = torch.autograd.grad(truncated_normal_loss(leaf, delta).sum(), leaf)
    torch.testing.assert_close(again, slope)
    finite = torch.rand(300, device="cuda") > 0.5
    count = finite.sum().to(dtype)
    mu[finite.nonzero()[0]] = 0.0
    counted = mu * finite.unsqueeze(1)
    for name in ("mean", "square", "violations"):
        reference = violations_delta(counted, delta) if name == "violations" else DELTA_RULES[name](counted, count)
        torch.testing.assert_close(fused.next_delta(mu, finite, delta, 0.2, 10.0, name), reference.clamp(0.2, 10.0))
        none = fused.next_delta(mu, torch.zeros_like(finite), delta, 0.2, 10.0, name)
        torch.testing.assert_close(none, delta.clamp(0.2, 10.0) if name == "violations" else delta)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rule": "exponentiated"},
        {"rule": "projected", "delta": "exact"},
        {"delta": "square"},
        {"delta": "mean", "first": "equal", "implication": "or", "and_step": None, "rules": "sum"},
    ],
    ids=str,
)
def test_training_on_a_gpu_equals_training_on_a_cpu(options):
    method = dl.methods.Dual(**options)
    there, here = (dl.LogicLoss(RULES, num_samples=20, method=method) for _ in range(2))
    there.to("cuda")
    for step in range(12):
        losses, gradients = [], []
        for logic, device in ((there, "cuda"), (here, "cpu")):
            index, values = batch(step, 20, device)
            loss = logic(index, **values)
            loss.backward()
            losses.append(loss.cpu())
            gradients.append(values["f"].grad.cpu())
        torch.testing.assert_close(losses[0], losses[1], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(there.state_dict()["table"].cpu(), here.state_dict()["table"], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(there.delta.cpu(), here.delta, rtol=1e-4, atol=1e-5)


GRID = dl.var("grid", 5, 3)
TWO_LEVELS = {
    "all of any": (GRID <= 0.2).any(1).all(),
    "any of all": (GRID <= 0.2).all(0).any(),
    "equal to either": ((GRID == 0) | (GRID == 1)).all(),
    "clauses": dl.And([dl.Or(GRID[i, 0] <= 0.1 * i, GRID[i, 1] <= 0.5, GRID[i, 2] <= 0.3) for i in range(5)]),
    "evidence": dl.And([dl.Implies(GRID[i, 0] >= 0.1 * i, GRID[i, 1] <= 0.5, evidence=0.75) for i in range(5)]),
    "no gradient into evidence": dl.And([dl.Or(dl.evidence(GRID[i, 0] <= 0.1 * i), GRID[i, 1] <= 0.5) for i in range(5)]),
    "one clause of many": dl.Or([dl.And(GRID[i, 0] <= 0.1 * i, GRID[i, 1] >= 0.5) for i in range(5)]),
}


MANNERS = {
    "default": {},
    "by the mean": {"delta": "mean", "floor": 0.05},
    "by the square": {"delta": "square", "floor": 0.05},
    "by violations": {"delta": "violations", "floor": 0.05, "ceiling": 0.6},
    "exponentiated": {"rule": "exponentiated"},
    "along the gradient": {"local": False, "step": 2.0, "and_step": 0.5},
    "equal at first": {"first": "equal"},
    "as quick": {"and_step": None},
    "sharing": {"rule": "exponentiated", "step": 2.0, "share": 0.05},
    "sharing along the gradient": {"share": 0.05, "local": False},
}


@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("name", TWO_LEVELS)
def test_whole_steps_on_a_gpu_equal_those_on_a_cpu(name, manner):
    """Rules of two levels take three kernels; duplicates, several visits, operands that are met and that are equal included."""
    method = dl.methods.Dual(**MANNERS[manner], implication="or")
    there, here = (dl.LogicLoss(TWO_LEVELS[name], num_samples=9, method=method) for _ in range(2))
    there.to("cuda")
    assert there._program.two_levels is not None
    for step in range(12):
        generator = torch.Generator().manual_seed(step)
        index = torch.randint(0, 9, (14,), generator=generator)
        value = torch.rand(14, 5, 3, generator=generator)
        value[0], value[1], value[2, 0], value[3, :, 1] = 0.7, 0.0, 1.0, 0.0
        losses, gradients = [], []
        for logic, device in ((there, "cuda"), (here, "cpu")):
            leaf = value.to(device).requires_grad_()
            loss = logic(index.to(device), grid=leaf)
            loss.backward()
            losses.append(loss.cpu())
            gradients.append(leaf.grad.cpu())
        torch.testing.assert_close(losses[0], losses[1], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-4, atol=1e-6)
    for key in ("table", "delta", "steps"):
        torch.testing.assert_close(there.state_dict()[key].cpu(), here.state_dict()[key], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(there.statistics()["rule"]["cost"].cpu(), here.statistics()["rule"]["cost"], rtol=1e-4, atol=1e-5)


def test_a_whole_step_leaves_bad_samples_alone():
    logic = dl.LogicLoss(TWO_LEVELS["all of any"], num_samples=9).to("cuda")
    value = torch.rand(3, 5, 3, device="cuda")
    value[1, 0, 0] = math.inf
    logic._run.validated = True
    logic(torch.tensor([4, 5, 9], device="cuda"), grid=value.requires_grad_())
    with pytest.raises(dl.errors.SampleIndexError, match="outside of 0 to 8"):
        logic.check()
    table = logic.state_dict()["table"]
    assert (table[4] != 0).any()
    assert (table[[0, 1, 2, 3, 5, 6, 7, 8]] == 0).all()
    assert torch.isfinite(logic.delta).all()
    leaf = torch.rand(2, 5, 3, device="cuda", requires_grad=True)
    loss = logic(torch.tensor([1, 2], device="cuda"), grid=leaf)
    with pytest.raises(dl.errors.StateError, match="differentiated once only"):
        torch.autograd.grad(loss, leaf, create_graph=True)


def test_ragged_training_on_a_gpu_equals_training_on_a_cpu():
    there, here = (dl.LogicLoss(RAGGED, num_samples=4) for _ in range(2))
    there.to("cuda")
    for step in range(6):
        generator = torch.Generator().manual_seed(step)
        value = torch.rand(3, 4, generator=generator)
        mask = torch.arange(4) < torch.tensor([[4], [2], [1]])
        for logic, device in ((there, "cuda"), (here, "cpu")):
            logic(torch.tensor([0, 3, 2]).to(device), z=value.to(device).requires_grad_(), valid=mask.to(device))
    torch.testing.assert_close(there.state_dict()["table"].cpu(), here.state_dict()["table"], rtol=1e-4, atol=1e-5)


def test_no_synchronisation_and_problems_are_reported_later():
    logic = dl.LogicLoss(RULES, num_samples=20).to("cuda")
    batches = [batch(step, 20, "cuda") for step in range(40)]
    for index, values in batches[:3]:
        logic(index, **values).backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.cuda.set_sync_debug_mode("error")
    try:
        for index, values in batches[3:]:
            logic(index, **values).backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    before = logic.state_dict()["table"].clone()
    index, values = batches[0]
    with torch.no_grad():
        values["y"][0] = math.nan
        values["x"][0] = math.nan
    logic(torch.full_like(index, 77), **values)
    with pytest.raises(dl.errors.DualogicError, match="a recent batch had"):
        logic.check()
    logic.check()
    assert torch.equal(logic.state_dict()["table"], before)
    assert torch.isfinite(logic.delta).all()


def test_a_captured_step_equals_an_eager_one():
    graphed, eager = (dl.LogicLoss(RULES, num_samples=20).to("cuda") for _ in range(2))
    batches = [batch(step, 20, "cuda") for step in range(10)]
    static_index, static = (
        batches[0][0].clone(),
        {name: value.detach().clone().requires_grad_() for name, value in batches[0][1].items()},
    )
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            graphed(static_index, **static).backward()
    torch.cuda.current_stream().wait_stream(side)
    graphed.reset_()
    for value in static.values():
        value.grad = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = graphed(static_index, **static)
        loss.backward()
    graphed.reset_()
    for index, values in batches:
        static_index.copy_(index)
        with torch.no_grad():
            for name, value in values.items():
                static[name].copy_(value)
        graph.replay()
        torch.testing.assert_close(loss, eager(index, **values))
    torch.testing.assert_close(graphed.state_dict()["table"], eager.state_dict()["table"])
    torch.testing.assert_close(graphed.delta, eager.delta)


@pytest.mark.filterwarnings(r"ignore:`torch\.jit\.script_method` is deprecated:DeprecationWarning")  # Inductor's own
@pytest.mark.filterwarnings(r"ignore:\s*Online softmax is disabled on the fly:UserWarning")  # of Inductor, in torch 2.11
def test_a_thousand_compiled_steps():
    """No graph break, no recompilation, no synchronisation; the same duals as eager."""
    torch._dynamo.reset()
    compiled_logic, eager = (dl.LogicLoss(RULES, num_samples=20).to("cuda") for _ in range(2))
    compiled = torch.compile(compiled_logic, fullgraph=True)
    batches = [batch(step, 20, "cuda") for step in range(50)]
    for index, values in batches[:5]:
        compiled(index, **values).backward()
    counters = torch._dynamo.utils.counters
    frames, breaks = dict(counters["frames"]), dict(counters["graph_break"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.cuda.set_sync_debug_mode("error")
    try:
        for step in range(5, 1000):
            index, values = batches[step % 50]
            compiled(index, **values).backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert dict(counters["frames"]) == frames
    assert dict(counters["graph_break"]) == breaks == {}
    compiled_logic.reset_()
    for index, values in batches[:20]:
        torch.testing.assert_close(compiled(index, **values), eager(index, **values), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(compiled_logic.state_dict()["table"], eager.state_dict()["table"], rtol=1e-4, atol=1e-5)


def test_part_of_a_batch_without_synchronisation():
    part, whole = (dl.LogicLoss(RULES, num_samples=20).to("cuda") for _ in range(2))
    batches = []
    for step in range(12):
        index, values = batch(step, 20, "cuda")
        where = (torch.arange(16, device="cuda") + step) % 3 > (2 if step == 5 else 0)
        poisoned = {name: value.detach().clone() for name, value in values.items()}
        for value in poisoned.values():
            value[~where] = torch.nan
        batches.append((torch.where(where, index, -1), where, {name: value.requires_grad_() for name, value in poisoned.items()}))
    found = [part(batches[0][0], where=batches[0][1], **batches[0][2]).detach()]  # the first call looks at values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.cuda.set_sync_debug_mode("error")
    try:
        for index, where, values in batches[1:]:
            loss = part(index, where=where, **values)
            loss.backward()
            found.append(loss.detach())
    finally:
        torch.cuda.set_sync_debug_mode("default")
    part.check()
    for loss, (index, where, values) in zip(found, batches):
        selected = {name: value.detach()[where].requires_grad_() for name, value in values.items()}
        expected = whole(index[where], **selected)
        torch.testing.assert_close(loss, expected.detach(), rtol=1e-4, atol=1e-5)
        if values["x"].grad is not None:
            expected.backward()
            torch.testing.assert_close(values["x"].grad[where], selected["x"].grad, rtol=1e-4, atol=1e-5)
            assert not values["x"].grad[~where].any()
    torch.testing.assert_close(part.state_dict()["table"], whole.state_dict()["table"], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(part.delta, whole.delta, rtol=1e-4, atol=1e-5)
    assert torch.equal(part.state_dict()["steps"], whole.state_dict()["steps"])
