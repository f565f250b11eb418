"""The benchmark of an ordinary training loop, on tiny networks."""

import pytest
import torch
from torch import nn

from dualogic_paper.models.convolutional import NETWORKS
from dualogic_paper.speed import eager


@pytest.mark.skipif(torch.cuda.is_available(), reason="its steps are on a CPU, where nothing is recorded")
def test_every_step_is_timed_against_the_one_without_a_rule(monkeypatch):
    def make_tiny(classes):
        return nn.Sequential(nn.Conv2d(3, 4, 3, stride=4), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(256, classes))

    monkeypatch.setitem(NETWORKS, "vgg16", make_tiny)
    found = eager.measure("vgg16", "cpu", batch=6, rounds=2, block=2)
    assert set(found) == {"none", "other", *(f"{form}, {how}" for form in ("published", "each") for how in ("recorded", "plain"))}
    assert found["none"]["ratio"] == 1
    assert all(timing["ratio"] > 0 and timing["steps"] == 4 for timing in found.values())
