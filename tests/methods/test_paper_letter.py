"""``Dual.paper()``: numbers that do not change, whatever the defaults become."""

import pytest
import torch

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
        [-0.15828552533804505, 0.7868118767807554, 0.7162319724826685],
        [-0.14760759981332053, 0.8317126032100455, 0.6449148119440136],
    ],
    "an or": [
        [0.02940818699671091, 0.7613686046840928, 0.7613686046840928],
        [-0.0069877514410360735, 1.0054150309057157, 0.8317728706203742],
        [-0.18334072510809088, 0.8016955308839524, 0.6456951974018984],
    ],
    "two rules": [
        [-0.1957708188247654, 1.079912568713402, 0.5316889624613901, 0.2741118031260059, 0.2741118031260059],
        [-0.24254165799481062, 1.4841336212021103, 0.7162319724826685, 0.3968594561163312, 0.35236685492208997],
        [-0.27693215061244764, 1.4731771214359608, 0.6449148119440136, 0.2794486712912773, 0.3090997236882185],
    ],
}
# After them: the first weight of each connective, sample by sample.
WEIGHTS = {
    "an implication": {
        "rule": [0.38806762647394016, 0.39436102816777924, 0.39670682755052505],
        "rule/0": [0.46295132055911625, 0.4827310098959775, 0.5],
    },
    "an or": {"rule": [0.8715226159523548, 0.7019937049193206, 0.38039880542885396]},
    "two rules": {
        "one": [0.38806762647394016, 0.39436102816777924, 0.39670682755052505],
        "one/0": [0.46295132055911625, 0.4827310098959775, 0.5],
        "two": [0.5677318386884287, 0.5729696126623948, 0.5471024992821171],
        "two/0": [0.8507447073922929, 0.6922526677624132, 0.5328471078876144],
        "two/1": [0.4281610628211858, 0.47092225883775957, 0.5050076266002013],
    },
}
DELTA = {
    "an implication": [0.7962279888035976],
    "an or": [0.7700934180155736],
    "two rules": [0.7962279888035976, 0.8038384235675553],
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
def test_the_paper_preset_gives_the_numbers_that_it_always_gave(name):
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
