"""DL2's costs, worked by hand from its definitions."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dualogic as dl
from dualogic.errors import OptionError

x, y, z = dl.var("x"), dl.var("y"), dl.var("z")
v = dl.var("v", 3)


def cost(rule, method="dl2", **values):
    tensors = {name: torch.tensor([value]) for name, value in values.items()}
    return dl.LogicLoss(rule, method=method)(**tensors).item()


@pytest.mark.parametrize(
    ("rule", "values", "expected"),
    [
        (x <= 1, {"x": 3.0}, 2.0),
        (x <= 1, {"x": 1.0}, 0.0),
        (x >= 1, {"x": -1.0}, 2.0),
        (x == 1, {"x": -1.0}, 2.0),
        (x != 1, {"x": 1.0}, 1.0),
        (x != 1, {"x": 1.001}, 0.0),
        (x < 1, {"x": 3.0}, 2.0),
        (x < 1, {"x": 1.0}, 1.0),
        (x < 1, {"x": 0.999}, 0.0),
        (x > 1, {"x": 1.0}, 1.0),
        (x > 1, {"x": 0.5}, 0.5),
        (~(x <= 1), {"x": 1.0}, 1.0),
        (~(x == 1), {"x": 1.0}, 1.0),
        ((x <= 1) & (y <= 1), {"x": 3.0, "y": 4.0}, 5.0),
        ((x <= 1) | (y <= 1), {"x": 3.0, "y": 4.0}, 6.0),
        ((x <= 1) | (y <= 1), {"x": 0.0, "y": 4.0}, 0.0),
        ((x <= 1) >> (y <= 1), {"x": 1.0, "y": 4.0}, 3.0),
        (((x <= 0) & (y <= 0)) | ((y <= 0) & (z <= 0)), {"x": 1.0, "y": 2.0, "z": 3.0}, 15.0),
        ((v <= 1).all(), {"v": [2.0, 3.0, 0.0]}, 3.0),
        ((v <= 1).any(), {"v": [2.0, 3.0, 5.0]}, 8.0),
        (dl.lt(x, 1, margin=0.5), {"x": 0.5}, 1.0),
        (dl.lt(x, 1, margin=0.5), {"x": 1.0}, 0.5),
    ],
)
def test_costs_by_hand(rule, values, expected):
    assert cost(rule, **values) == pytest.approx(expected, abs=1e-6)


def test_strict_and_plain_comparisons_computed_together():
    """Comparisons of one shape share one tensor operation; the constant goes to the strict ones alone."""
    rules = {"strict": x < 1, "plain": y <= 1, "greater": z > 1}
    logic = dl.LogicLoss(rules, method="dl2", reduction="none")
    logic(x=torch.tensor([1.0]), y=torch.tensor([1.0]), z=torch.tensor([1.0]))
    assert [logic.statistics()[name]["cost"].item() for name in rules] == [1.0, 0.0, 1.0]


def test_class_atoms():
    """``f == k`` costs ``1 - p_k``; ``f != k`` is an "or" over the other classes, so a product."""
    f = dl.categorical("f", 3)
    p = [0.5, 0.2, 0.3]
    assert cost(f == 1, f=p) == pytest.approx(0.8)
    assert cost(f != 1, f=p) == pytest.approx(0.5 * 0.7)
    assert cost(f.isin([0, 1]), f=p) == pytest.approx(0.5 * 0.8)
    assert cost((f != 1) | (f == 1), f=p) == pytest.approx(0.5 * 0.7 * 0.8)


def test_gradient_of_a_product_is_the_other_factor():
    values = {"x": torch.tensor([3.0], requires_grad=True), "y": torch.tensor([4.0], requires_grad=True)}
    dl.LogicLoss((x <= 1) | (y <= 1), method="dl2")(**values).backward()
    assert (values["x"].grad.item(), values["y"].grad.item()) == (3.0, 2.0)


def test_weight_and_strictness():
    assert cost(x < 1, dl.methods.DL2(weight=0.5, strictness=4.0), x=1.0) == 2.0
    with pytest.raises(OptionError, match="weight must be"):
        dl.methods.DL2(weight=-1.0)
    with pytest.raises(OptionError, match="strictness must be"):
        dl.methods.DL2(strictness=0.0)


@given(st.lists(st.floats(0, 10), min_size=2, max_size=5))
def test_its_and_is_the_papers_with_fixed_equal_weights(costs):
    """Appendix C of the paper: ``sum S_i`` is ``k`` times ``sum tau_i S_i`` with every ``tau_i`` fixed at ``1 / k``."""
    names = [f"v{number}" for number in range(len(costs))]
    rule = dl.And(*(dl.var(name) <= 0 for name in names))
    values = {name: torch.tensor([value], dtype=torch.float64) for name, value in zip(names, costs)}
    logic = dl.LogicLoss(rule, method="uniform", dtype=torch.float64)
    logic(**values)
    equal = logic.statistics()["rule"]["cost"].item()
    found = dl.LogicLoss(rule, method="dl2", dtype=torch.float64)(**values).item()
    assert found == pytest.approx(len(costs) * equal, rel=1e-12)


def test_its_or_has_stationary_points_between_the_ways_to_meet_it():
    """Appendix C: for ``v = 1 or v = 2 or v = 3`` the paper says 1.5 and 2.5; they are maxima, at ``2 -+ 1 / sqrt(3)``."""
    points = torch.tensor([2 - 3**-0.5, 2 + 3**-0.5, 1.5, 2.5], dtype=torch.float64)
    rule = (x == 1) | (x == 2) | (x == 3)

    def product(at):
        return dl.LogicLoss(rule, method="dl2", reduction="none", dtype=torch.float64)(x=at)

    at = points.clone().requires_grad_()
    product(at).sum().backward()
    assert at.grad[:2].abs().max() < 1e-12
    assert at.grad[2:].abs().min() > 0.2
    assert (product(points[:2]) > torch.maximum(product(points[:2] - 1e-3), product(points[:2] + 1e-3))).all()
