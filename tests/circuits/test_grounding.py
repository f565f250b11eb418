"""Quantifiers and connectives written out as propositions."""

import itertools

import pytest

import dualogic as dl
from dualogic.circuits.grounding import atoms, ground
from dualogic.errors import FormulaTypeError

b = dl.boolean("b", 2, 3)
f = dl.categorical("f", 3, shape=(2,))
n = dl.axis("n", max=3)
e, valid = dl.boolean("e", n), dl.mask("valid", n)


def at(*entries):
    return tuple(("boolean", "b", entry) for entry in entries)


def test_entries_follow_indexing():
    assert ground(b[1, 2], "semantic") == ("boolean", "b", 5)
    assert ground(b[1].all(), "semantic") == ("and", at(3, 4, 5))
    assert ground(b[:, 1].any(), "semantic") == ("or", at(1, 4))
    assert ground(b[:, [2, 0]][0].all(), "semantic") == ("and", at(2, 0))
    assert ground(b.all(0).any(), "semantic") == ("or", tuple(("and", at(i, i + 3)) for i in range(3)))


def test_broadcasting_repeats_operands():
    proposition = ground((b | (f[:, None] == 1)).all(), "semantic")
    expected = [("or", (("boolean", "b", 3 * i + j), ("class", "f", i, (1,)))) for i, j in itertools.product(range(2), range(3))]
    assert proposition == ("and", tuple(expected))


def test_ragged_axes_carry_their_length():
    proposition = ground((e[1:] | e[:-1]).all(where=valid[1:]), "semantic")
    kinds = {atom[0] for atom in atoms(proposition)}
    assert kinds == {"boolean", "axis", "mask"}
    assert ("axis", "n", 2) in atoms(proposition)
    assert ("axis", "n", 0) not in atoms(proposition)


def test_negations_cancel():
    assert ground(~~b[0, 0], "semantic") == ("boolean", "b", 0)


def test_comparisons_are_refused():
    with pytest.raises(FormulaTypeError, match="real-valued comparison x <= 1"):
        ground(b.all() & (dl.var("x") <= 1), "semantic")
