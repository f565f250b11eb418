"""Parts of a diagnosis by themselves."""

import torch

import dualogic as dl
from dualogic.diagnosis.events import weights_by_operand
from dualogic.diagnosis.outline import outline
from dualogic.diagnosis.tally import number_consequents
from dualogic.diagnosis.verdict import rises
from dualogic.diagnosis.window import Look


def test_weights_are_told_by_operand():
    x = dl.var("x")
    weights = weights_by_operand(dl.LogicLoss((x <= 0) | (x >= 1), num_samples=3))
    assert {name: tuple(value.shape) for name, value in weights.items()} == {"rule/operand_0": (3,), "rule/operand_1": (3,)}


def test_the_outline_goes_through_quantifiers_to_the_choices():
    s = dl.var("s", 20)
    found = [(part.path, part.kind, part.operands) for part in outline("rule", ((s == 0) | (s == 1)).all())]
    assert found == [("rule", "all", ("(s == 0) | (s == 1)",)), ("rule/0", "or", ("s == 0", "s == 1"))]


def test_implications_with_one_consequent_belong_together():
    dog, cat, animal = map(dl.boolean, ("dog", "cat", "animal"))
    parts = [*outline("one", dog >> animal), *outline("two", cat >> animal), *outline("three", animal >> ~dog)]
    assert number_consequents(parts) == {"one": 0, "two": 0, "three": 1}


def test_a_rate_rises_by_more_than_chance():
    assert [rises(0.0, 3, 1.0, 3), rises(0.0, 10, 1.0, 10), rises(0.5, 1000, 0.52, 1000)] == [False, True, False]


def test_a_look_on_the_host_has_arrived():
    look = Look(7, {"rules": torch.ones(2, 3).double()}, {"delta": torch.ones(2).double()})
    assert look.arrived()
    assert look.arrive().sums["rules"].shape == (2, 3)
