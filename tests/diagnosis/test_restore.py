"""A report that went through JSON is the same report."""

import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dualogic as dl
from dualogic.diagnosis import ShortcutReport
from dualogic.errors import DataError

f, g, x = dl.categorical("f", 3), dl.categorical("g", 3), dl.var("x", 4)
RULES = {"implies": (g == 2) >> (f == 1), "or": ((x <= 0) | (x >= 1)).all(), "and": (x <= 1).all() & (f != 0)}


def make_report(seed, count, labelled, lead=0.1):
    generator = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.rand(count, *shape, generator=generator)  # noqa: E731
    labels = torch.randint(-1, 3, (count,), generator=generator) if labelled else None
    tensors = {"f": draw(3).softmax(-1), "g": draw(3).softmax(-1), "x": 2 * draw(4) - 0.5}
    return dl.diagnose(RULES, labels=labels, lead=lead, worst=3, **tensors)


@given(seed=st.integers(0, 999), count=st.integers(0, 12), labelled=st.booleans())
def test_there_and_back(seed, count, labelled):
    report = make_report(seed, count, labelled)
    again = ShortcutReport.from_dict(json.loads(json.dumps(report.to_dict(), allow_nan=False)))
    assert again == report
    assert again.to_dict() == report.to_dict()
    assert str(again) == str(report)


def test_it_can_be_compared():
    before, after = make_report(0, 9, True), make_report(1, 9, True)
    again = ShortcutReport.from_dict(before.to_dict())
    assert after.compare(again).to_dict() == after.compare(before).to_dict()


def test_weights_labels_and_names_come_back():
    logic = dl.LogicLoss(RULES["implies"], num_samples=4)
    diagnosis = dl.diagnosis.Diagnosis(logic, classes=["zero", "one", "two"])
    truth = {"f": torch.tensor([0, 1, 2, 0]), "g": torch.tensor([2, 2, 0, 1])}
    diagnosis.update(index=torch.arange(4), labels=truth, f=torch.eye(3)[[0, 1, 2, 0]], g=torch.eye(3)[[2, 2, 0, 1]])
    report = diagnosis.compute()
    assert report.rules["rule"].antecedent.expected == 0.5
    assert ShortcutReport.from_dict(report.to_dict()) == report


def test_an_infinite_cost_comes_back():
    report = dl.diagnose(1 / dl.var("y") <= 0, y=torch.tensor([0.0]))
    assert report.rules["rule"].worst[0].cost == math.inf
    assert ShortcutReport.from_dict(json.loads(json.dumps(report.to_dict(), allow_nan=False))) == report


@pytest.mark.parametrize("values", [{}, {"samples": 3, "rules": {"r": 5}}, {"samples": 1, "rules": {}}])
def test_anything_else_is_refused(values):
    with pytest.raises(DataError, match=r"not what ShortcutReport.to_dict\(\) gives"):
        ShortcutReport.from_dict(values)
