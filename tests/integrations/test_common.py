"""What the integrations share."""

import pytest
import torch

import dualogic as dl
from dualogic.integrations.common import Count


def test_satisfaction_is_counted_where_the_mask_says():
    count = Count({"small": dl.var("x") <= 1})
    count.update({"x": torch.tensor([0.5, 2.0, 7.0])}, where=torch.tensor([True, True, False]))
    assert count.fractions() == {"small": 0.5}
    count.reset()
    assert count.fractions() == {}


@pytest.mark.parametrize(
    ("where", "shares"), [(True, {"small": 0.5, "large": 0.5}), (None, {"small": 0.5, "large": 0.5}), (False, {"large": 0.5})]
)
def test_a_rule_may_be_about_all_samples_or_none(where, shares):
    x = dl.var("x")
    count = Count({"small": x <= 1, "large": x >= 1})
    count.update({"x": [0.5, 2.0]}, where={"small": where})
    assert count.fractions() == shares
