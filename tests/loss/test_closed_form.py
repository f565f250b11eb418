"""The dual step in closed form against autograd and against a calculation by hand."""

import math

import pytest
import torch

import dualogic as dl
from dualogic.duals.rules import UPDATE_RULES
from dualogic.losses import truncated_normal_loss, truncated_normal_slope
from dualogic.methods.mixture import Mixture, steps
from plain import plain

N = dl.axis("n", max=5)
X, Y, Z = dl.var("x", 4), dl.var("y", 3), dl.var("z", N)
VALID = dl.mask("valid", N)
F = dl.categorical("f", 5)
B = dl.boolean("b", 2)


def rules():
    return {
        "flat": (X[0] <= 0) | (X[1] <= 0.2) | (X[2] >= 0.9),
        "nested": ((X[0] <= 0) & ((Y[1] >= 1) | (X[3] == 0.5))) | ~((X[1] <= 0) | ((Y[0] <= 0) & (Y[2] >= 1))),
        "classes": (F == 1) >> (F.isin([2, 3]) | (X[0] <= 0.1)),
        "booleans": dl.Iff(B[0], ~B[1]) & dl.Xor(B[0], X[0] <= 0.3),
        "quantified": (((X <= 0.1) | (X >= 0.9)).all() | (Y >= 2).any()),
        "broadcast": ((X[:, None] <= Y) | (X[:, None] >= 2 * Y) | (X[0] >= 2)).all(0).any(),
        "ragged": ((Z <= 0.1) | (Z[:] >= 0.8)).all(where=VALID) | (Z >= 2).any(where=VALID),
        "tied": ((X <= 0.1) | (X >= 0.9)).all(duals="tied"),
        "partly tied": (((X[:, None] <= Y) | (X[:, None] >= 0.9)).all(0, duals="tied") | (Y <= 0)).all(),
        "many": dl.And([dl.Or(X[i % 4] <= 0.1 * i, Y[i % 3] >= 0.2, X[(i + 1) % 4] == 0.5) for i in range(12)]),
    }


def tensors(batch, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    length = 3
    lengths = torch.randint(1, length + 1, (batch,), generator=generator)
    return {
        "x": torch.rand(batch, 4, generator=generator, dtype=torch.float64).to(dtype),
        "y": torch.rand(batch, 3, generator=generator, dtype=torch.float64).to(dtype),
        "z": torch.rand(batch, length, generator=generator, dtype=torch.float64).to(dtype),
        "valid": torch.arange(length) < lengths.unsqueeze(1),
        "f": torch.rand(batch, 5, generator=generator, dtype=torch.float64).softmax(-1).to(dtype),
        "b": torch.rand(batch, 2, generator=generator, dtype=torch.float64).to(dtype),
    }


def needed(plan, values):
    return {name: values[name] for name in plan.symbols}


@pytest.mark.parametrize("class_cost", ["probability", "log"])
@pytest.mark.parametrize("name", rules())
def test_step_is_the_gradient_that_autograd_finds(name, class_cost):
    program = plain(class_cost=class_cost).program({name: rules()[name]})
    plan = program.plan
    batch, step = 6, 0.3
    values = plan.evaluate(plan.bind(needed(plan, tensors(batch)), validate=True))
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(batch, plan.width, generator=generator, dtype=torch.float64).requires_grad_()
    delta = torch.tensor([0.7], dtype=torch.float64)
    mixture = Mixture(UPDATE_RULES["softmax"], rows, remember=True)
    costs = plan.fold(values, mixture)
    (gradient,) = torch.autograd.grad(truncated_normal_loss(costs, delta).sum(), rows)
    sign = torch.ones(plan.width, dtype=torch.float64)
    for level in plan.levels:
        if level.operation == "|":
            sign[level.offset : level.offset + level.width] = -1
    with torch.no_grad():
        mixture = Mixture(UPDATE_RULES["softmax"], rows, remember=True)
        costs = plan.fold(values, mixture)
        moves, _ = steps(plan, mixture, step * truncated_normal_slope(costs, delta))
    torch.testing.assert_close(moves, step * sign * gradient, rtol=0, atol=1e-10)
    assert moves.abs().max() > 1e-6


@pytest.mark.parametrize("method", [dl.methods.Dual(), plain(), dl.methods.Dual.paper()], ids=["dual", "plain", "paper"])
def test_several_rules_at_once_equal_each_by_itself(method):
    chosen = {name: rule for name, rule in rules().items() if not {"valid", "z"} & set(rule.symbols)}
    together = dl.LogicLoss(chosen, num_samples=9, method=method, dtype=torch.float64)
    apart = {name: dl.LogicLoss({name: rule}, 9, method, dtype=torch.float64) for name, rule in chosen.items()}
    share = 1.0 if method.rules == "sum" else 1.0 / len(chosen)
    index = torch.tensor([3, 1, 8, 0])
    for seed in range(4):
        values = tensors(4, seed=seed)
        joint = together(index, **{key: value for key, value in values.items() if key not in ("valid", "z")})
        single = sum(loss(index, **needed(loss._program.plan, values)) for loss in apart.values())
        torch.testing.assert_close(joint, share * single, rtol=1e-12, atol=1e-12)
    weights = together.weights(index)
    expected = {path: value for loss in apart.values() for path, value in loss.weights(index).items()}
    assert list(weights) == list(expected)
    for path, value in weights.items():
        torch.testing.assert_close(value, expected[path], rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(value.sum(-1), torch.ones(value.shape[:-1], dtype=torch.float64))
    torch.testing.assert_close(together.delta, torch.cat([loss.delta for loss in apart.values()]))


def test_two_whole_updates_equal_a_calculation_by_hand():
    """One sample, one ``or`` of two real atoms with costs a and b, softmax logits (s, t), Algorithm 1's delta."""
    step, floor = 0.2, 0.1
    method = plain(rule="softmax", step=step, floor=floor)
    logic = dl.LogicLoss((dl.var("x") <= 0) | (dl.var("y") <= 0), num_samples=1, method=method, dtype=torch.float64)

    def phi(x):
        return math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)

    def cdf(x):
        return 0.5 * (1 + math.erf(x / math.sqrt(2)))

    s = t = 0.0
    delta = 1.0
    for a, b in [(1.5, 0.5), (1.2, 0.9)]:
        w = math.exp(s) / (math.exp(s) + math.exp(t))
        mu = w * a + (1 - w) * b
        slope = (mu / delta + phi(mu / delta) / cdf(mu / delta)) / delta
        s, t = s - step * slope * w * (a - mu), t - step * slope * (1 - w) * (b - mu)
        w = math.exp(s) / (math.exp(s) + math.exp(t))
        mu = w * a + (1 - w) * b
        expected = math.log(delta) + mu**2 / (2 * delta**2) + math.log(cdf(mu / delta))
        slope = (mu / delta + phi(mu / delta) / cdf(mu / delta)) / delta
        gradient = (slope * w, slope * (1 - w))
        delta = max(math.sqrt(mu), floor)

        x, y = (torch.tensor([cost], dtype=torch.float64, requires_grad=True) for cost in (a, b))
        loss = logic(torch.tensor([0]), x=x, y=y)
        loss.backward()
        assert loss.item() == pytest.approx(expected, abs=1e-12)
        assert (x.grad.item(), y.grad.item()) == pytest.approx(gradient, abs=1e-12)
        assert logic.weights(torch.tensor([0]))["rule"][0].tolist() == pytest.approx([w, 1 - w], abs=1e-12)
        assert logic.delta.item() == pytest.approx(delta, abs=1e-12)


@pytest.mark.parametrize("rule", ["exponentiated", "projected"])
def test_other_update_rules_equal_a_calculation_by_hand(rule):
    step, costs = 0.1, torch.tensor([0.9, 0.4, 0.1], dtype=torch.float64)
    x = dl.var("x", 3)
    logic = dl.LogicLoss((x <= 0).all(), num_samples=1, method=plain(step=step, rule=rule, floor=0.1), dtype=torch.float64)
    weights = torch.full((3,), 1 / 3, dtype=torch.float64)
    delta = torch.tensor(1.0, dtype=torch.float64)
    for _ in range(4):
        logic(torch.tensor([0]), x=costs.unsqueeze(0).requires_grad_())
        mu = (weights * costs).sum()
        slope = truncated_normal_slope(mu, delta)
        if rule == "exponentiated":
            weights = weights * torch.exp(step * slope * costs)
            weights = weights / weights.sum()
        else:
            point = weights + step * slope * costs
            # The projection of three numbers by bisection on the threshold.
            low, high = point.min() - 1, point.max()
            for _ in range(200):
                middle = (low + high) / 2
                low, high = (middle, high) if (point - middle).clamp_min(0).sum() > 1 else (low, middle)
            weights = (point - low).clamp_min(0)
        delta = (weights * costs).sum().sqrt().clamp_min(0.1)
        torch.testing.assert_close(logic.weights(torch.tensor([0]))["rule"][0], weights, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("update", ["softmax", "exponentiated"])
@pytest.mark.parametrize("name", rules())
def test_local_steps_are_those_of_a_rule_by_itself_with_two_operands(name, update):
    """Each connective moves by the slope of the whole rule times ``c - m`` of its own, whatever weights stand above."""
    near = plain(local=True, step=0.7, rule=update).program({name: rules()[name]})
    values = near.evaluate(near.plan.bind(needed(near.plan, tensors(4)), False))
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(4, near.plan.width, generator=generator, dtype=torch.float64)
    state = {
        key: value.double() if value.is_floating_point() else value for key, value in near.initial_state(torch.float64).items()
    }
    costs, moves, _ = near.moves(rows, state, values)
    mixture = Mixture(UPDATE_RULES[update], near._clean(rows, values), remember=True)
    near.plan.fold(values, mixture)
    slope = 0.7 * truncated_normal_slope(costs, state["delta"])
    for level in near.plan.levels:
        if level.uniform or level.shared or level.ragged or near.plan.masked:
            continue
        seen = mixture.joined[level.number]
        centred = seen.values - seen.result.unsqueeze(1)
        sign = 1.0 if level.operation == "&" else -1.0
        expected = sign * centred * slope.view(4, *(1,) * (centred.dim() - 1))
        if update == "softmax":
            expected = expected * (seen.weights * centred.shape[1] / 2).clamp(max=1)
        torch.testing.assert_close(level.columns(moves), expected.expand(level.columns(moves).shape), rtol=1e-10, atol=1e-12)


def test_a_wide_connective_moves_at_the_pace_of_a_narrow_one_and_never_faster_than_an_exponentiated_step():
    """One operand is cheaper than all others by 1: how its weight grows hardly depends on how many others there are."""
    odds = {}
    for count in (2, 20, 2000):
        x = dl.var("x", count)
        logic = dl.LogicLoss((x <= 0).any(), 1, plain(floor=1.0, ceiling=1.0), dtype=torch.float64)
        costs = torch.full((1, count), 1.0, dtype=torch.float64)
        costs[0, 0] = 0.0
        moved = []
        for _ in range(60):
            before = logic.state_dict()["table"].clone()
            slope = truncated_normal_slope((logic.weights(torch.tensor([0]))["rule"][0] * costs[0]).sum(), torch.tensor(1.0))
            logic(torch.tensor([0]), x=costs.requires_grad_())
            step = logic.state_dict()["table"] - before
            assert step.abs().max() <= 0.7 * slope + 1e-12
            moved.append(float(logic.state_dict()["table"][0, 0] - logic.state_dict()["table"][0, 1]))
        odds[count] = moved
    assert 0.3 < odds[2000][4] / odds[2][4] < 3
    assert odds[2000][0] > 0.25 * odds[2][0]


def test_local_steps_see_only_what_exists():
    """A rule about three of five places moves its weights as one about three places does."""
    places = dl.axis("n", max=5)
    z, valid = dl.var("z", places), dl.mask("valid", places)
    three = dl.var("z", 3)
    ragged = dl.LogicLoss(((z <= 0.1) | (z >= 0.8)).all(where=valid), 2, plain(), dtype=torch.float64)
    whole = dl.LogicLoss(((three <= 0.1) | (three >= 0.8)).all(), 2, plain(), dtype=torch.float64)
    index, mask = torch.tensor([0, 1]), torch.tensor([[True, False, True, True, False]] * 2)
    for visit in range(6):
        values = torch.rand(2, 5, generator=torch.Generator().manual_seed(visit), dtype=torch.float64)
        losses = [
            ragged(index, z=values.clone().requires_grad_(), valid=mask),
            whole(index, z=values[mask].view(2, 3).requires_grad_()),
        ]
        torch.testing.assert_close(*losses, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(ragged.weights(index)["rule"][mask].view(2, 3), whole.weights(index)["rule"])
    torch.testing.assert_close(ragged.weights(index)["rule/0"][mask].view(2, 3, 2), whole.weights(index)["rule/0"])
    assert whole.weights(index)["rule"].std() > 0.01


def test_local_steps_of_tied_weights_are_the_mean_of_those_of_their_entries():
    """Entries that share weights and agree move them as one entry would, however many they are."""
    moved = {}
    for count in (1, 2, 7):
        x = dl.var("x", count)
        rule = ((x <= 0) | (x <= 0.3) | (x >= 2)).all(duals="tied")
        logic = dl.LogicLoss(rule, 1, plain(floor=1.0, ceiling=1.0), dtype=torch.float64)
        for _ in range(4):
            logic(torch.tensor([0]), x=torch.full((1, count), 0.8, dtype=torch.float64, requires_grad=True))
        assert logic._program.width == 3
        (weights,) = logic.weights(torch.tensor([0])).values()
        moved[count] = weights.reshape(-1, 3)[0]
    torch.testing.assert_close(moved[2], moved[1])
    torch.testing.assert_close(moved[7], moved[1])
    assert moved[1].std() > 0.01


@pytest.mark.parametrize("name", rules())
@pytest.mark.parametrize("rule", UPDATE_RULES)
def test_a_share_of_the_weights_is_divided_equally_after_a_step(name, rule):
    """``(1 - share) w + share / k``, for the weights ``w`` after a plain step from the same table; over what exists."""
    options = {"rule": rule, "floor": 1.0, "ceiling": 1.0}
    shared = dl.LogicLoss({name: rules()[name]}, 8, plain(share=0.3, **options), dtype=torch.float64)
    bare = dl.LogicLoss({name: rules()[name]}, 8, plain(**options), dtype=torch.float64)
    index = torch.tensor([7, 0, 3, 2, 5])
    for seed in (0, 1):
        values = needed(shared._program.plan, {**tensors(5, seed=seed), "valid": tensors(5)["valid"]})
        bare.load_state_dict(shared.state_dict())
        for logic in (shared, bare):
            logic(index, **values)
    before, after = bare.weights(index), shared.weights(index)
    assert before.keys() == after.keys()
    for path, weights in before.items():
        exists = after[path] > 0
        assert rule == "projected" or torch.equal(exists, weights > 0)
        count = exists.sum(-1, keepdim=True).double()
        expected = torch.where(exists, 0.7 * weights + 0.3 / count, 0.0)
        torch.testing.assert_close(after[path], expected, rtol=1e-9, atol=1e-12)


def test_shares_outside_their_range_are_refused():
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(dl.errors.OptionError, match=f"share .*; got {wrong}"):
            dl.methods.Dual(share=wrong)
    with pytest.raises(dl.errors.OptionError, match="below 1, which would leave equal weights"):
        dl.methods.Dual(share=1.0)


def test_with_a_share_a_decision_is_soon_undone():
    """Visits until a weight that had long been small is above one half again, after the costs have changed sides."""
    x, visits = dl.var("x", 2), {}
    first, second = torch.tensor([[0.0, 1.0]], dtype=torch.float64), torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    for share in (0.0, 0.02):
        method = plain(rule="exponentiated", step=1.0, share=share, floor=1.0, ceiling=1.0)
        logic = dl.LogicLoss((x <= 0).any(), 1, method, dtype=torch.float64)
        index = torch.tensor([0])
        for _ in range(50):
            logic(index, x=first.clone().requires_grad_())
        visits[share] = 0
        assert logic.weights(index)["rule"][0, 1] < 0.02
        while logic.weights(index)["rule"][0, 1] < 0.5:
            logic(index, x=second.clone().requires_grad_())
            visits[share] += 1
    assert visits[0.02] <= 6
    assert visits[0.0] > 5 * visits[0.02]


@pytest.mark.parametrize("name", rules())
def test_gradcheck_through_the_loss(name):
    # Without evidence, whose point is a gradient that is not the loss's.
    method = plain(evidence=False)
    logic = dl.LogicLoss({name: rules()[name]}, 8, method, reduction="none", dtype=torch.float64)
    values = needed(logic._program.plan, tensors(5))
    index = torch.tensor([7, 0, 3, 2, 5])
    logic(index, **values)
    names = [key for key in values if key != "valid"]
    leaves = tuple(values[key].requires_grad_() for key in names)

    def loss(*inputs):
        with logic.frozen():
            return logic(index, **{**values, **dict(zip(names, inputs))})

    assert torch.autograd.gradcheck(loss, leaves)


def test_tied_duals_share_one_set_of_weights():
    each = dl.LogicLoss(((X <= 0.1) | (X >= 0.9)).all(), num_samples=3)
    tied = dl.LogicLoss(((X <= 0.1) | (X >= 0.9)).all(duals="tied"), num_samples=3)
    assert each._program.width == 4 + 4 * 2
    assert tied._program.width == 2
    x = torch.tensor([[0.2, 0.2, 0.2, 0.2]])
    tied(torch.tensor([1]), x=x.requires_grad_())
    weights = tied.weights(torch.tensor([1]))
    assert weights["rule/0"].shape == (1, 1, 2)
    assert weights["rule/0"][0, 0, 0] > 0.5


def test_a_rule_whose_only_connective_is_tied_trains_on_the_mean():
    """It has no dual variables at all, which must not be taken for the optimal duals of ``eval()``."""
    x = torch.tensor([[1.0, 2.0, 3.0, 6.0]])
    for samples, index in ((3, torch.tensor([1])), (None, None)):
        logic = dl.LogicLoss((X <= 0).all(duals="tied"), num_samples=samples)
        logic(index, x=x.requires_grad_())
        assert logic.statistics()["rule"]["cost"].item() == 3.0
    logic = dl.LogicLoss((X <= 0).all(duals="tied"), num_samples=3).eval()
    logic(x=x)
    assert logic.statistics()["rule"]["cost"].item() == 6.0
