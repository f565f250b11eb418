"""The loss with a spread: a divergence, never a reward for violation, and the paper's loss in the limit."""

import math

import pytest
import scipy.integrate
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

import dualogic as dl
from dualogic.losses import DELTA_RULES, exact_delta, half_normal_loss, half_normal_slope, truncated_normal_loss
from plain import PLAIN

SCALES = st.floats(0.05, 20)
COSTS = st.lists(st.floats(0, 50), min_size=1, max_size=20)


def double(value):
    return torch.tensor(value, dtype=torch.float64)


def divergence(mu, delta, spread):
    """KL(half-normal || truncated normal), by quadrature over the standardised half-normal."""

    def integrand(z):
        x = spread * z
        log_model = scipy.stats.norm.logpdf(x, mu, delta) - scipy.stats.norm.logcdf(mu / delta)
        log_target = scipy.stats.halfnorm.logpdf(x, scale=spread)
        return scipy.stats.halfnorm.pdf(z) * (log_target - log_model)

    return scipy.integrate.quad(integrand, 0, 12, epsabs=1e-12, epsrel=1e-12)[0]


@pytest.mark.parametrize("spread", [0.01, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("delta", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("mu", [0.0, 0.1, 2.0, 9.0])
def test_it_is_the_divergence_between_the_two_distributions(mu, delta, spread):
    loss = half_normal_loss(double(mu), double(delta), spread).item()
    assert loss + math.log(2) - math.log(spread) - 0.5 == pytest.approx(divergence(mu, delta, spread), rel=1e-9, abs=1e-9)


def test_gradcheck():
    mu = torch.tensor([0.0, 1e-3, 0.3, 2.0, 30.0], dtype=torch.float64, requires_grad=True)
    delta = torch.tensor([0.7], dtype=torch.float64, requires_grad=True)
    spread = torch.tensor([0.4], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(half_normal_loss, (mu, delta, spread))
    assert torch.autograd.gradcheck(lambda costs: half_normal_loss(costs, double(0.7), 0.4), (mu,))


@given(COSTS, SCALES, st.floats(0, 20))
def test_slope_is_the_derivative(values, delta, spread):
    mu = double(values).requires_grad_()
    (gradient,) = torch.autograd.grad(half_normal_loss(mu, double(delta), spread).sum(), mu)
    torch.testing.assert_close(half_normal_slope(mu.detach(), double(delta), spread), gradient, rtol=1e-9, atol=1e-12)


@given(COSTS, SCALES)
def test_a_spread_of_zero_is_the_loss_without_one_and_small_ones_approach_it(values, delta):
    mu, scale = double(values), double(delta)
    plain = truncated_normal_loss(mu, scale)
    assert torch.equal(half_normal_loss(mu, scale, 0.0), plain)
    torch.testing.assert_close(half_normal_loss(mu, scale, double(0.0)), plain)
    # Linear in the spread near 0: a hundredth of it is a hundredth of the way.
    gaps = [(half_normal_loss(mu, scale, spread) - plain).abs() for spread in (1e-6, 1e-8)]
    torch.testing.assert_close(gaps[0] / 100, gaps[1], rtol=1e-2, atol=1e-9)
    assert (gaps[1] <= 1e-8 * (mu + 1) / scale**2 + 1e-9).all()


@given(SCALES, st.floats(0.05, 0.999))
def test_below_the_spread_a_small_violation_is_rewarded_and_at_or_above_it_none_is(spread, factor):
    grid = torch.linspace(0, 10, 4001, dtype=torch.float64) * spread
    low = half_normal_loss(grid, double(factor * spread), spread)
    assert half_normal_slope(grid[:1], double(factor * spread), spread) < 0
    assert (factor > 0.99) | (low.argmin() > 0)
    for scale in (1.0, 1.0 / factor):
        slopes = half_normal_slope(grid, double(scale * spread), spread)
        assert (slopes >= -1e-12 / spread).all()
        assert (slopes[1:] > 0).all()


def test_at_the_spread_the_best_cost_is_zero_and_the_divergence_is_zero():
    assert divergence(0.0, 1.5, 1.5) == pytest.approx(0, abs=1e-12)
    assert half_normal_loss(double(0.0), double(1.5), 1.5).item() + math.log(2) - math.log(1.5) - 0.5 == pytest.approx(0)


@given(COSTS, SCALES)
def test_exact_delta_minimises_the_loss_over_all_scales(values, spread):
    mu, count = double(values).unsqueeze(1), double(float(len(values)))
    delta = exact_delta(mu, count, spread).requires_grad_()
    loss = half_normal_loss(mu, delta, spread).mean()
    (slope,) = torch.autograd.grad(loss, delta)
    assert abs(slope.item() * delta.item()) < 1e-8
    with torch.no_grad():
        for factor in (0.01, 0.5, 0.9, 1.1, 2.0, 100.0):
            assert half_normal_loss(mu, delta * factor, spread).mean() >= loss
        # Convex in 1 / delta, so with a lower bound the best scale is the bound or the minimiser.
        bound = delta.clamp_min(spread)
        for factor in (1.0, 1.1, 2.0):
            assert half_normal_loss(mu, torch.maximum(bound, double(spread * factor)), spread).mean() >= (
                half_normal_loss(mu, bound, spread).mean() - 1e-12
            )


def test_rules_for_delta_without_costs_and_their_units():
    nothing, count = torch.zeros(4, 1, dtype=torch.float64), double(4.0)
    for rule in ("square", "exact"):
        assert DELTA_RULES[rule](nothing, count, 0.7).item() == pytest.approx(0.7)
    mu = torch.rand(16, 3, dtype=torch.float64)
    spreads = double([0.0, 0.1, 2.0])
    for rule in ("square", "exact"):
        found = DELTA_RULES[rule](mu, double(16.0), spreads)
        torch.testing.assert_close(DELTA_RULES[rule](7 * mu, double(16.0), 7 * spreads), 7 * found)
        torch.testing.assert_close(found[0], DELTA_RULES[rule](mu, double(16.0))[0])
    torch.testing.assert_close(
        DELTA_RULES["square"](mu, double(16.0), 0.1).square(), (mu**2 - 0.2 * (2 / math.pi) ** 0.5 * mu + 0.01).mean(0)
    )


# In training

x, y = dl.var("x"), dl.var("y")
RULES = {"firm": (x <= 0) | (y <= 0), "soft": (x >= 1) & (y >= 1)}
RULE_NAMES = ["mean", "square", "exact"]


def tensors(seed=0, scale=1.0):
    values = torch.rand(2, 8, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * scale
    return {"x": values[0].requires_grad_(), "y": values[1].requires_grad_()}


def run(method, steps=4, **options):
    logic = dl.LogicLoss(RULES, num_samples=8, method=method, dtype=torch.float64, **options)
    losses = [logic(torch.arange(8), **tensors(step)) for step in range(steps)]
    return logic, torch.stack(losses)


@pytest.mark.parametrize("delta", RULE_NAMES)
@pytest.mark.parametrize("kind", [dl.methods.Dual, dl.methods.Uniform, dl.methods.Hard])
def test_delta_stays_at_or_above_the_spread_of_each_rule(kind, delta):
    logic, losses = run(kind(delta=delta, spread={"soft": 3.0}))
    assert logic.delta[1] == 3.0
    assert logic.delta[0] < 1.5
    assert torch.isfinite(losses).all()
    both, _ = run(kind(delta=delta, spread=2.0))
    assert (both.delta == 2.0).all()


@pytest.mark.parametrize("kind", [dl.methods.Dual, dl.methods.Uniform, dl.methods.Hard])
def test_without_a_spread_nothing_changes_and_a_rule_without_one_is_left_alone(kind):
    plain, losses = run(kind())
    for spread in (0.0, {}, {"firm": 0, "soft": 0.0}):
        other, same = run(kind(spread=spread))
        assert torch.equal(losses, same)
        assert torch.equal(plain.delta, other.delta)
    mixed, _ = run(kind(spread={"soft": 0.5}))
    assert mixed.delta[0] == plain.delta[0]


@pytest.mark.parametrize("spread", [0.4, {"soft": 0.7}])
def test_duals_move_along_the_gradient_of_the_loss(spread):
    logic, _ = run(dl.methods.Dual(**{**PLAIN, "spread": spread, "step": 1.0}), steps=2)
    program, state = logic._program, logic._state
    values = program.evaluate(program.plan.bind(tensors(9), True))
    rows = logic.state_dict()["table"][:8].clone().requires_grad_()
    losses, _ = program.losses(rows, state, values)
    (gradient,) = torch.autograd.grad(losses.sum(), rows)
    signs = torch.cat([torch.full((level.width,), 1.0 if level.operation == "&" else -1.0) for level in program.plan.levels])
    with torch.no_grad():
        moves = program.moves(rows, state, values)[1]
    torch.testing.assert_close(moves, signs.double() * gradient)


def test_a_delta_from_elsewhere_is_raised_before_it_is_used():
    narrow, _ = run(dl.methods.Dual())
    wide = dl.LogicLoss(RULES, num_samples=8, method=dl.methods.Dual(spread=5.0), dtype=torch.float64)
    wide.load_state_dict(narrow.state_dict())
    assert (wide.delta < 5.0).all()
    program = wide._program
    values = program.evaluate(program.plan.bind(tensors(3), True))
    rows = wide.state_dict()["table"][:8]
    losses, costs = program.losses(rows, wide._state, values)
    torch.testing.assert_close(losses, half_normal_loss(costs, double(5.0), 5.0))
    assert (program.slope(costs, wide._state["delta"]) >= 0).all()


def test_bad_spreads_are_refused():
    for wrong in (-0.1, math.inf, math.nan):
        with pytest.raises(dl.errors.OptionError, match="at least 0"):
            dl.methods.Dual(spread=wrong)
    with pytest.raises(dl.errors.OptionError, match=r"at most the ceiling of delta \(1.0\).*got 2.0 for rule 'soft'"):
        dl.methods.Uniform(spread={"soft": 2.0}, ceiling=1.0)
    with pytest.raises(dl.errors.OptionError, match="spread, unless it maps rule names to numbers, must be a number; got 'much'"):
        dl.methods.Hard(spread="much")
    with pytest.raises(dl.errors.SymbolError, match="spread names the rule 'sfot', but the rules are 'firm', 'soft'"):
        dl.LogicLoss(RULES, method=dl.methods.Dual(spread={"sfot": 1.0}))


def test_an_option_does_not_change_with_the_mapping_it_came_from():
    given_spread = {"soft": 1.0}
    method = dl.methods.Dual(spread=given_spread)
    given_spread["soft"] = -1.0
    assert method.spread == {"soft": 1.0}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch.compile's own doing
@pytest.mark.parametrize("spread", [0.4, {"soft": 0.7}])
def test_compiles_into_one_graph(spread):
    torch._dynamo.reset()
    losses = []
    for prepare in (lambda logic: logic, lambda logic: torch.compile(logic, backend="aot_eager", fullgraph=True)):
        logic = prepare(dl.LogicLoss(RULES, num_samples=8, method=dl.methods.Dual(spread=spread), dtype=torch.float64))
        losses.append(torch.stack([logic(torch.arange(8), **tensors(step)) for step in range(2)]))
    torch.testing.assert_close(*losses)
