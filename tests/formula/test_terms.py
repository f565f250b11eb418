"""Terms and indexing against numpy."""

import contextlib
import itertools

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

import dualogic as dl
from dualogic.errors import ShapeError

d = dl.var("d", 2, 3, 4)
VALUES = torch.arange(48.0, dtype=torch.float64).reshape(2, 2, 3, 4) - 20

KEYS = [
    0,
    -1,
    slice(1, None),
    (slice(None), 1),
    (..., 2),
    (0, ..., 2),
    (0, 1, 2),
    (None, 0),
    (slice(None), None, 1),
    (..., None),
    (slice(None), slice(0, 3, 2)),
    (slice(None), slice(-2, None), slice(None, -1)),
    ([1, 0, 1],),
    (slice(None), [2, 0]),
    (0, [2, 0]),
    ([1, 0], 0),
    (slice(None), range(1, 3)),
    (slice(None), np.array([2, 0])),
    (..., [3]),
    (),
    (np.int64(1), 0),
    slice(None, None, -1),
    (..., slice(3, 0, -2)),
    (0, slice(None, None, -1)),
    (slice(None), [True, False, True]),
    (..., np.arange(4) % 2 == 1),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing_is_numpys(key):
    expected = VALUES.numpy()[(slice(None), *(key if isinstance(key, tuple) else (key,)))]
    result = (d[key] >= -1000).cost(d=VALUES)
    assert d[key].shape == expected.shape[1:]
    assert result.shape == expected.shape
    assert np.array_equal((d[key] <= -1000).cost(d=VALUES).numpy(), expected + 1000)


ENTRIES = st.one_of(
    st.integers(-2, 1),
    st.builds(slice, *[st.none() | st.integers(-3, 3)] * 2, st.sampled_from([None, 1, 2, -1])),
    st.lists(st.integers(-2, 1), min_size=1, max_size=3),
    st.sampled_from([None, ...]),
)


@given(st.lists(ENTRIES, max_size=5).map(tuple))
@example((slice(None), [1, 0], ..., 0))
def test_any_index_is_numpys_or_refused(key):
    with contextlib.suppress(ShapeError):
        chosen = d[key]
        assert np.array_equal((chosen <= -1000).cost(d=VALUES)[0].numpy(), VALUES[0].numpy()[key] + 1000)


@pytest.mark.parametrize(("first", "second"), list(itertools.product(KEYS[:8], [0, slice(1, None), (..., -1), None])), ids=str)
def test_indexing_twice(first, second):
    reference = VALUES.numpy()[(slice(None), *(first if isinstance(first, tuple) else (first,)))]
    if not d[first].shape and second is not None:
        return
    if isinstance(second, slice) and d[first].shape[0] == 1:
        return
    expected = reference[(slice(None), *(second if isinstance(second, tuple) else (second,)))]
    assert np.array_equal((d[first][second] <= -1000).cost(d=VALUES).numpy(), expected + 1000)


@pytest.mark.parametrize("length", [2, 3, 5])
def test_lists_of_positions_from_the_end_of_a_ragged_axis(length):
    n = dl.axis("n", max=5)
    r, f, kept = dl.var("r", n), dl.categorical("f", 5, shape=(n,)), dl.mask("kept", n)
    rule = (r[[-1, 0, -2]] == [length - 1, 0, length - 2]).all() & (f[[0, -1]] == length - 1).any()
    tensors = {"r": torch.arange(length)[None].float(), "f": torch.eye(5)[None, :length]}
    assert rule.satisfied(**tensors).all()
    assert (r[[-1, -2]] <= 0).any(where=kept[[-2, -1]]).cost(r=tensors["r"], kept=tensors["r"] > length - 2) == length - 2


@pytest.mark.parametrize("operation", ["sum", "max", "min"])
@pytest.mark.parametrize("dim", [None, 0, 1, -1, (0, 2), (1, -1), (0, 1, 2)])
def test_reductions_are_numpys(operation, dim):
    term = getattr(d, operation)(dim)
    axes = tuple(range(1, 4)) if dim is None else tuple(1 + axis % 3 for axis in (dim if isinstance(dim, tuple) else (dim,)))
    expected = getattr(VALUES.numpy(), operation)(axis=axes)
    assert term.shape == expected.shape[1:]
    assert np.allclose((term <= -1e6).cost(d=VALUES).numpy(), expected + 1e6)


def test_arithmetic_broadcasts():
    a, b = dl.var("a", 3, 1), dl.var("b", 2)
    left, right = torch.rand(4, 3, 1) + 0.5, torch.rand(4, 2) + 0.5
    for make, expected in (
        (a + b, left + right[:, None]),
        (a - b, left - right[:, None]),
        (a * b, left * right[:, None]),
        (a / b, left / right[:, None]),
        (a**b, left ** right[:, None]),
        (2 / a, 2 / left),
        (2 - b, 2 - right),
        (2**b, 2**right),
        (abs(a - 1), (left - 1).abs()),
        (-a + +b, right[:, None] - left),
    ):
        assert make.shape == expected.shape[1:]
        bound = {name: {"a": left, "b": right}[name] for name in (make >= 0).symbols}
        torch.testing.assert_close((make >= 100).cost(**bound), 100 - expected)


def test_matrix_products():
    p = dl.var("p", 2, 3)
    values = torch.rand(4, 2, 3)
    matrix, vector = torch.rand(3, 5), torch.rand(3)
    torch.testing.assert_close((p @ matrix <= -1).cost(p=values), values @ matrix + 1)
    torch.testing.assert_close((p @ vector <= -1).cost(p=values), values @ vector + 1)
    named = dl.constant("named", matrix)
    torch.testing.assert_close((p @ named <= -1).cost(p=values), values @ matrix + 1)


def test_constants_index_like_any_term():
    c, x = dl.constant("c", [[1, 2], [3, 4]]), dl.var("x")
    assert (x <= c[1, 0]).cost(x=torch.tensor([5.0])).tolist() == [2.0]
    assert (x + c.sum() <= 0).cost(x=torch.tensor([5.0, 6.0])).tolist() == [15.0, 16.0]
    assert (x <= c.max(0)).cost(x=torch.tensor([5.0])).tolist() == [[2.0, 1.0]]


def test_apply_gets_batches_of_everything():
    x, p, seen = dl.var("x"), dl.var("p", 3), []

    def join(*tensors):
        seen.append([tuple(tensor.shape) for tensor in tensors])
        return torch.cat([tensor.flatten(1) if tensor.dim() > 1 else tensor[:, None] for tensor in tensors], 1)

    term = dl.apply(join, x, p, 2.0, dl.constant("c", [1, 2]), name="join")
    assert term.shape == (7,)
    result = (term >= 10).cost(x=torch.zeros(5), p=torch.ones(5, 3))
    assert seen[-1] == [(5,), (5, 3), (5,), (5, 2)]
    assert result[4].tolist() == [10, 9, 9, 9, 8, 9, 8]


def test_apply_that_changes_its_mind_is_refused():
    p = dl.var("p", 3)
    term = dl.apply(lambda value: value.sum(1), p, name="total", shape=(2,))
    with pytest.raises(dl.errors.ShapeError, match=r"function total must return.*\(2,\).*it returned \(4,\)"):
        (term <= 1).cost(p=torch.zeros(4, 3))


def test_apply_keeps_ragged_axes_and_gradients():
    n = dl.axis("n", max=4)
    r = dl.var("r", n)
    rule = (dl.apply(torch.sigmoid, r) <= 0.5).all()
    values = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda value: rule.cost(r=value), (values,))
    assert torch.allclose(rule.cost(r=values), torch.relu(values.sigmoid() - 0.5).amax(1))


def test_the_rules_of_the_design():
    membership = (torch.arange(100)[:, None] // 5 == torch.arange(20)).double()
    p = dl.var("p", 100)
    superclass = p @ membership
    rule = ((superclass == 0) | (superclass == 1)).all()
    values = torch.rand(6, 100, dtype=torch.float64).softmax(1)
    sums = values @ membership
    assert torch.allclose(rule.cost(p=values), torch.minimum(sums, (sums - 1).abs()).amax(1))

    n = dl.axis("n", max=7)
    x, valid = dl.var("x", n, 13), dl.mask("valid", n)
    digit, operator = x[..., :9].sum(-1), x[..., 9:].sum(-1)
    rule = ((digit[1:] + digit[:-1] == 2) | (operator[1:] + operator[:-1] == 1)).all(where=valid[1:])
    values = torch.rand(3, 5, 13, dtype=torch.float64).softmax(-1)
    mask = torch.arange(5) < torch.tensor([[5], [3], [1]])
    digits = values[..., :9].sum(-1)
    pairs = torch.minimum((digits[:, 1:] + digits[:, :-1] - 2).abs(), (2 - digits[:, 1:] - digits[:, :-1] - 1).abs())
    expected = (pairs * mask[:, 1:]).amax(1)
    torch.testing.assert_close(rule.cost(x=values, valid=mask), expected)
    assert rule.cost(x=values, valid=mask)[2] == 0

    distances, other = dl.var("d", 15), dl.var("e", 15, 15)
    rule = (distances == other[:, 0]).all() & (distances[None, :] <= distances[:, None] + other).all()
    first, table = torch.rand(2, 15, dtype=torch.float64), torch.rand(2, 15, 15, dtype=torch.float64)
    slack = torch.relu(first[:, None, :] - first[:, :, None] - table).amax((1, 2))
    torch.testing.assert_close(rule.cost(d=first, e=table), torch.maximum((first - table[:, :, 0]).abs().amax(1), slack))
