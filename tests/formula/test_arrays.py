"""Connectives of one formula with axes mean its entries."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

import dualogic as dl
import strategies

T, N = dl.boolean("t", 3), dl.axis("n", max=4)
X = dl.var("x", 3)


def test_entries():
    assert dl.ExactlyOne(T) is dl.ExactlyOne(T[0], T[1], T[2])
    assert dl.AtMost(1, T) is dl.AtMost(1, T[0], T[1], T[2])
    assert dl.AtMost(T, k=2) is dl.AtMost(2, T[0], T[1], T[2])
    assert dl.ExactlyOne(T[:1]) is T[:1][0]
    assert dl.Xor(T[1:]) is dl.Xor(T[1:][0], T[1:][1])
    assert dl.And(T) is T.all()
    assert dl.Or(T) is T.any()
    assert dl.parse("ExactlyOne(t)", [T]) is dl.ExactlyOne(T)


def test_several_formulas_with_axes_are_joined_entry_by_entry():
    assert dl.ExactlyOne(T, X <= 1).shape == (3,)
    assert dl.And(T, X <= 1) is T & (X <= 1)


@settings(max_examples=40, deadline=None)
@given(strategies.open_formulas((2,), 2), st.data())
def test_any_formula_has_entries(formula, data):
    tensors = data.draw(strategies.bindings(formula))
    each = formula.satisfied(**tensors).expand(-1, 2)
    assert torch.equal(dl.ExactlyOne(formula).satisfied(**tensors), each.sum(-1) == 1)
    assert torch.equal(dl.AtMost(1, formula).satisfied(**tensors), each.sum(-1) <= 1)
    assert torch.equal(dl.Iff(formula).satisfied(**tensors), each[:, 0] == each[:, 1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dl.ExactlyOne(dl.boolean("m", 2, 3)), r"has the axes \(2, 3\): it is not clear along which; .*t\[:, 0\]"),
        (lambda: dl.AtMost(1, dl.boolean("m", N)), "its length is not known before tensors are bound"),
        (lambda: dl.ExactlyOne([T]), "give the formula without the list to mean its entries"),
        (lambda: dl.And([T]), r"leave And \(&\) out to mean every entry by itself"),
        (lambda: dl.Xor(T), "Xor joins two formulas; got 3. For one of several write ExactlyOne"),
        (lambda: dl.Iff(T[0]), "Iff joins two formulas; got 1"),
    ],
)
def test_refused_where_it_is_not_clear(make, message):
    with pytest.raises(dl.errors.FormulaTypeError, match=message):
        make()
