"""``Dual.paper()``: numbers that do not change, whatever the defaults become."""

import numpy as np
import pytest
import torch
from scipy.stats import norm

import dualogic as dl

f, g = dl.categorical("f", 3), dl.categorical("g", 3)
x, y = dl.var("x"), dl.var("y")
RULES = {
    "an implication": {"rule": (g == 2) >> (f == 1)},
    "an or": {"rule": (x <= 0.25) | (y <= 0) | (x + y == 1)},
    "two rules": {"one": (g == 2) >> (f == 1), "two": ((x <= 0.25) | (y <= 0)) & (f != 2)},
}
INDEX = torch.tensor([2, 0, 3])
# Three visits: the loss, and the sum of the absolute gradient at each symbol.
VISITS = {
    "an implication": [
        [-0.13187193382535475, 0.5316889624613901, 0.5316889624613901],
        [-0.1620191562638887, 0.7995873725801595, 0.7011174152538767],
        [-0.15138257347482184, 0.8452427534620556, 0.633222108661081],
    ],
    "an or": [
        [0.02940818699671091, 0.7613686046840928, 0.7613686046840928],
        [-0.0395747661889719, 1.0104004718587514, 0.8019800848719678],
        [-0.20601330724245984, 0.8120937745082628, 0.6434944604750783],
    ],
    "two rules": [
        [-0.1957708188247654, 1.079912568713402, 0.5316889624613901, 0.2741118031260059, 0.2741118031260059],
        [-0.2567521436862156, 1.485749658531331, 0.7011174152538767, 0.4067392371507599, 0.3473834331324376],
        [-0.29564356300208233, 1.4828160259417902, 0.633222108661081, 0.28435963302258793, 0.304279554497191],
    ],
}
# After them: the first weight of each connective, sample by sample.
WEIGHTS = {
    "an implication": {
        "rule": [0.3844412516040755, 0.38628779884231207, 0.3844693506952041],
        "rule/0": [0.4584964003336836, 0.4807721502734517, 0.5],
    },
    "an or": {"rule": [0.9128883517122917, 0.7280256781788723, 0.3872083786832901]},
    "two rules": {
        "one": [0.3844412516040755, 0.38628779884231207, 0.3844693506952041],
        "one/0": [0.4584964003336836, 0.4807721502734517, 0.5],
        "two": [0.5651386359914006, 0.5769033582731906, 0.5506286153548798],
        "two/0": [0.8797234012970484, 0.7065293668748132, 0.5307984646744097],
        "two/1": [0.42385262551254704, 0.4683619720040833, 0.5029584701736176],
    },
}
DELTA = {
    "an implication": [0.7946829605428658],
    "an or": [0.7597678014809545],
    "two rules": [0.7946829605428658, 0.7972306038422234],
}


def tensors(visit):
    """Three samples, by a formula that needs no random numbers."""
    s = torch.arange(3, dtype=torch.float64)
    counts = {
        "f": torch.stack([1 + s, 2 + (s + visit) % 3, 1 + 0 * s], 1),
        "g": torch.stack([1 + 0 * s, 2 - s / 2, 1 + s + visit], 1),
    }
    classes = {name: value / value.sum(1, keepdim=True) for name, value in counts.items()}
    return {**classes, "x": 0.5 + s / 4 - visit / 8, "y": 1.5 - s / 2 + visit / 4}


@pytest.mark.parametrize("name", RULES)
def test_the_paper_preset_gives_these_numbers(name):
    logic = dl.LogicLoss(RULES[name], 4, dl.methods.Dual.paper(), dtype=torch.float64)
    needed = [symbol for symbol in "fgxy" if any(symbol in rule.symbols for rule in RULES[name].values())]
    for visit, expected in enumerate(VISITS[name]):
        live = {symbol: value.requires_grad_() for symbol, value in tensors(visit).items() if symbol in needed}
        loss = logic(INDEX, **live)
        loss.backward()
        assert [loss.item(), *(live[symbol].grad.abs().sum().item() for symbol in needed)] == pytest.approx(expected, rel=1e-13)
    found = {path: weights[:, 0].tolist() for path, weights in logic.weights(INDEX).items()}
    assert found.keys() == WEIGHTS[name].keys()
    for path, weights in WEIGHTS[name].items():
        assert found[path] == pytest.approx(weights, rel=1e-13)
    assert logic.delta.tolist() == pytest.approx(DELTA[name], rel=1e-13)


def test_the_paper_preset_stores_no_more_than_weights_and_a_scale():
    logic = dl.LogicLoss(RULES["two rules"], 4, dl.methods.Dual.paper())
    assert {name for name, value in logic.state_dict().items() if isinstance(value, torch.Tensor)} == {"table", "delta", "steps"}


def project(point):
    """The nearest point of the simplex: all entries are lowered alike, and cut at 0."""
    ordered = np.sort(point)[::-1]
    lowered = (np.cumsum(ordered) - 1) / np.arange(1, len(point) + 1)
    return np.maximum(point - lowered[np.nonzero(ordered > lowered)[0][-1]], 0)


def algorithm_1(visits, eta_and, eta_or, upper):
    """The paper's, for ``(a | b) & (c | d)`` and one batch of samples that comes again and again; loss, duals and delta after."""
    samples = visits[0].shape[0]
    tau_and, tau_or, delta, losses = np.full((samples, 2), 0.5), np.full((samples, 2, 2), 0.5), min(1.0, upper), []
    for costs in visits:  # (samples, clauses, atoms)
        clauses = (tau_or * costs).sum(2)
        mu = (tau_and * clauses).sum(1)
        losses.append(np.mean(np.log(delta) + mu**2 / (2 * delta**2) + norm.logcdf(mu / delta)))
        delta = np.clip(np.sqrt(mu.mean()), 0.1, upper)
        slope = mu / delta**2 + norm.pdf(mu / delta) / norm.cdf(mu / delta) / delta
        for_and, for_or = slope[:, None] * clauses, slope[:, None, None] * tau_and[:, :, None] * costs
        tau_and = np.array([project(row) for row in tau_and + eta_and * for_and])
        tau_or = np.array([[project(row) for row in clause] for clause in tau_or - eta_or * for_or])
    return losses, tau_and, tau_or, delta


@pytest.mark.parametrize("update", ["forward", "manual"])
def test_the_order_is_that_of_algorithm_1(update):
    """Loss, then delta, then the duals by the new delta; two steps, and both bounds of delta."""
    a, b, c, d = (dl.var(name) for name in "abcd")
    visits = np.random.default_rng(0).uniform(0, 1.5, (4, 3, 2, 2))
    method = dl.methods.Dual.paper(step=0.3, and_step=0.1, ceiling=0.8)
    rule = ((a <= 0) | (b <= 0)) & ((c <= 0) | (d <= 0))
    logic = dl.LogicLoss(rule, 3, method, dtype=torch.float64, update=update)
    losses, tau_and, tau_or, delta = algorithm_1(visits, 0.1, 0.3, 0.8)
    for costs, expected in zip(torch.from_numpy(visits), losses):
        live = dict(zip("abcd", costs.flatten(1).unbind(1)))
        assert logic(torch.arange(3), **live).item() == pytest.approx(expected, rel=1e-12)
        if update == "manual":
            logic.step()
    found = logic.weights(torch.arange(3))
    assert found["rule"].numpy() == pytest.approx(tau_and, rel=1e-12)
    assert np.stack([found["rule/0"], found["rule/1"]], 1) == pytest.approx(tau_or, rel=1e-12)
    assert logic.delta.item() == pytest.approx(delta, rel=1e-12)
