"""Quantifiers over fixed, ragged, masked and empty axes."""

import pytest
import torch

import dualogic as dl

n = dl.axis("n", max=5)
r, u, valid = dl.var("r", n), dl.var("u", n, 2), dl.mask("valid", n)
m = dl.var("m", 2, 3)


@pytest.mark.parametrize("dim", [None, 0, 1, -1, (0, 1), [0]])
def test_dims(dim):
    values = torch.randn(4, 2, 3)
    axes = (1, 2) if dim is None else tuple(1 + axis % 2 for axis in (dim if isinstance(dim, (tuple, list)) else (dim,)))
    costs = torch.relu(values)
    assert torch.equal((m <= 0).all(dim).cost(m=values), costs.amax(axes))
    assert torch.equal((m <= 0).any(dim).cost(m=values), costs.amin(axes))
    holds = values <= 0
    assert torch.equal((m <= 0).all(dim).satisfied(m=values), holds.float().amin(axes).bool())
    assert torch.equal((m <= 0).any(dim).satisfied(m=values), holds.float().amax(axes).bool())


def test_open_axes_stay():
    values = torch.randn(4, 2, 3)
    assert (m <= 0).cost(m=values).shape == (4, 2, 3)
    assert (m <= 0).all(0).cost(m=values).shape == (4, 3)
    assert (u <= 0).any(1).satisfied(u=torch.randn(4, 3, 2)).shape == (4, 3)


@pytest.mark.parametrize("length", [1, 3, 5])
def test_a_mask_leaves_entries_out(length):
    values, mask = torch.randn(6, length), torch.rand(6, length) > 0.5
    mask[0] = False
    costs = torch.relu(values)
    every = (r <= 0).all(where=valid)
    some = (r <= 0).any(where=valid)
    assert torch.equal(every.cost(r=values, valid=mask), costs.masked_fill(~mask, 0).amax(1))
    assert torch.equal(some.cost(r=values, valid=mask), costs.masked_fill(~mask, torch.inf).amin(1))
    assert torch.equal(every.satisfied(r=values, valid=mask), ((values <= 0) | ~mask).all(1))
    assert torch.equal(some.satisfied(r=values, valid=mask), ((values <= 0) & mask).any(1))


def test_an_empty_mask():
    """Everything holds for all of nothing, and nothing holds for some of nothing."""
    bound = {"r": torch.ones(2, 3), "valid": torch.zeros(2, 3, dtype=torch.bool)}
    every, some = (r <= 0).all(where=valid), (r <= 0).any(where=valid)
    assert every.satisfied(**bound).all()
    assert every.cost(**bound).tolist() == [0, 0]
    assert not some.satisfied(**bound).any()
    assert some.cost(**bound).tolist() == [torch.inf, torch.inf]
    assert (some | (r[0] <= 0)).cost(**bound).tolist() == [1, 1]
    assert (~some).satisfied(**bound).all()


def test_padding_never_matters():
    values = torch.randn(3, 4, requires_grad=True)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]).bool()
    padded = torch.where(mask, values, 1e9)
    rule = ((r[1:] <= r[:-1]) | (r[1:] >= 1)).all(where=valid[1:])
    assert torch.equal(rule.cost(r=padded, valid=mask), rule.cost(r=values, valid=mask))
    rule.cost(r=values, valid=mask).sum().backward()
    assert (values.grad[~mask] == 0).all()


def test_an_axis_of_which_slicing_leaves_nothing():
    one = torch.tensor([[3.0], [4.0]])
    assert (r[1:] <= r[:-1]).all().satisfied(r=one).all()
    assert (r[1:] <= r[:-1]).all().cost(r=one).tolist() == [0, 0]
    assert not (r[1:] <= r[:-1]).any().satisfied(r=one).any()
    assert (r[1:] <= r[:-1]).any().cost(r=one).tolist() == [torch.inf, torch.inf]
    assert (r[2:].sum() <= 0).satisfied(r=one).all()
    logic = dl.LogicLoss((r[1:] <= r[:-1]).all() & (r[0] <= 3), num_samples=2)
    assert torch.isfinite(logic(torch.tensor([0, 1]), r=one.requires_grad_()))


def test_two_ragged_axes_of_different_lengths():
    l = dl.axis("l", max=3)  # noqa: E741
    v, alive = dl.var("v", l), dl.mask("alive", l)
    rule = (r[:, None] <= v).any(1, where=alive).all(where=valid)
    left, right = torch.randn(4, 5), torch.randn(4, 2)
    first, second = torch.rand(4, 5) > 0.3, torch.tensor([[True, True], [True, False], [False, True], [False, False]])
    pairs = torch.relu(left[:, :, None] - right[:, None, :]).masked_fill(~second[:, None, :], torch.inf).amin(2)
    expected = pairs.masked_fill(~first, 0).amax(1)
    assert torch.equal(rule.cost(r=left, v=right, valid=first, alive=second), expected)


def test_a_mask_may_depend_on_what_is_kept():
    both = dl.mask("both", n, 2)
    values, mask = torch.randn(3, 4, 2), torch.rand(3, 4, 2) > 0.4
    rule = (u <= 0).all(0, where=both)
    assert torch.equal(rule.cost(u=values, both=mask), torch.relu(values).masked_fill(~mask, 0).amax(1))


def test_zero_samples():
    rule = ((r[1:] <= r[:-1]) | (r[1:] >= 1)).all(where=valid[1:])
    bound = {"r": torch.zeros(0, 3), "valid": torch.zeros(0, 3, dtype=torch.bool)}
    assert rule.cost(**bound).shape == (0,)
    assert rule.satisfied(**bound).shape == (0,)
