"""A view of a loss: what it holds for some samples, without changing it."""

import pytest
import torch

import dualogic as dl
from dualogic.errors import SampleIndexError
from dualogic.methods import METHODS

f, g = dl.categorical("f", 4, input="logits"), dl.categorical("g", 4, input="logits")
RULES = {"implied": (g == 1) >> (f == 2), "either": (f == 0) | (g == 3)}


def draw(seed, size=5):
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(size, 4, generator=generator, requires_grad=True) for name in "fg"}


@pytest.mark.parametrize("samples", [9, None])
@pytest.mark.parametrize("method", METHODS)
def test_it_shows_what_a_call_would_use(method, samples):
    logic = dl.LogicLoss(RULES, samples, method, reduction="none")
    index = None if samples is None else torch.tensor([0, 3, 3, 8, 1])
    logic(index, **draw(0))
    before = {name: value.clone() for name, value in logic.state_dict().items() if isinstance(value, torch.Tensor)}
    view, tensors = logic.view(index), draw(1)
    losses = view.losses(**tensors)
    with logic.frozen():
        torch.testing.assert_close(losses.mean(1), logic(index, **tensors))
    assert losses.requires_grad
    for path, weights in logic.weights(index).items():
        assert torch.equal(view.weights[path], weights)
    assert view.evidence.keys() == logic.statistics()["implied"].get("evidence", {}).keys()
    assert torch.equal(view.state["delta"], logic.delta)
    assert all(torch.equal(value, logic.state_dict()[name]) for name, value in before.items())


def test_it_needs_samples():
    with pytest.raises(SampleIndexError, match="needs the indices of training samples"):
        dl.LogicLoss(RULES, 9).view()
    with pytest.raises(SampleIndexError, match="sample index 9 is out of range"):
        dl.LogicLoss(RULES, 9).view(torch.tensor([9]))


def test_updating_says_whether_a_call_would_learn():
    logic = dl.LogicLoss(RULES)
    assert logic.updating
    with logic.frozen():
        assert not logic.updating
    with torch.no_grad():
        assert not logic.updating
    assert not logic.eval().updating
