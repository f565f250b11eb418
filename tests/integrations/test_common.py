"""What the integrations share."""

import torch

import dualogic as dl
from dualogic.integrations.common import Count


def test_satisfaction_is_counted_where_the_mask_says():
    count = Count({"small": dl.var("x") <= 1})
    count.update({"x": torch.tensor([0.5, 2.0, 7.0])}, where=torch.tensor([True, True, False]))
    assert count.fractions() == {"small": 0.5}
    count.reset()
    assert count.fractions() == {}
