"""Every connective against its truth table, through ``satisfied``, ``cost`` and both normal forms."""

import itertools

import pytest
import torch

import dualogic as dl

x, y, z = dl.var("x"), dl.var("y"), dl.var("z")
A, B, C = x <= 0, y <= 0, z <= 0
ROWS = list(itertools.product([True, False], repeat=3))
# A false atom costs 1, 2 or 4, so that every cost says which atoms it came from.
TENSORS = {name: torch.tensor([0.0 if row[place] else float(2**place) for row in ROWS]) for place, name in enumerate("xyz")}

TABLES = {
    "and": (A & B & C, lambda a, b, c: a and b and c),
    "or": (A | B | C, lambda a, b, c: a or b or c),
    "not": (~A, lambda a, b, c: not a),
    "implies": (A >> B, lambda a, b, c: not a or b),
    "implies to the left": ((A >> B) >> C, lambda a, b, c: not (not a or b) or c),
    "implies to the right": (A >> (B >> C), lambda a, b, c: not a or (not b or c)),
    "And": (dl.And(A, B, C), lambda a, b, c: a and b and c),
    "And of a list": (dl.And([A, B, C]), lambda a, b, c: a and b and c),
    "And of rules by name": (dl.And({"one": A, "two": B | C}), lambda a, b, c: a and (b or c)),
    "Or": (dl.Or(A, B, C), lambda a, b, c: a or b or c),
    "Or of a generator": (dl.Or(part for part in (A, B, C)), lambda a, b, c: a or b or c),
    "Not": (dl.Not(A | B), lambda a, b, c: not (a or b)),
    "Implies": (dl.Implies(A & B, C), lambda a, b, c: not (a and b) or c),
    "Iff": (dl.Iff(A, B), lambda a, b, c: a == b),
    "Xor": (dl.Xor(A, B), lambda a, b, c: a != b),
    "not Iff": (~dl.Iff(A, B), lambda a, b, c: a != b),
    "not Xor": (~dl.Xor(A, B | C), lambda a, b, c: a == (b or c)),
    "ExactlyOne": (dl.ExactlyOne(A, B, C), lambda a, b, c: a + b + c == 1),
    "not ExactlyOne": (~dl.ExactlyOne(A, B, C), lambda a, b, c: a + b + c != 1),
    "ExactlyOne of one": (dl.ExactlyOne(A), lambda a, b, c: a),
    "AtMost 0": (dl.AtMost(0, A, B, C), lambda a, b, c: a + b + c == 0),
    "AtMost 1": (dl.AtMost(1, A, B, C), lambda a, b, c: a + b + c <= 1),
    "AtMost 2": (dl.AtMost(2, [A, B, C]), lambda a, b, c: a + b + c <= 2),
    "AtMost k": (dl.AtMost(A, B, C, k=1), lambda a, b, c: a + b + c <= 1),
    "not AtMost": (~dl.AtMost(1, A, B, C), lambda a, b, c: a + b + c > 1),
    "level": (dl.level(A | B) | C, lambda a, b, c: a or b or c),
    "double negation": (~~(A & ~B), lambda a, b, c: a and not b),
}


@pytest.mark.parametrize("name", TABLES)
def test_satisfied_follows_the_truth_table(name):
    formula, expected = TABLES[name]
    table = torch.tensor([bool(expected(*row)) for row in ROWS])
    tensors = {key: TENSORS[key] for key in formula.symbols}
    assert torch.equal(formula.satisfied(**tensors), table)
    assert torch.equal((~formula).satisfied(**tensors), ~table)
    for form in (formula.to_nnf(), formula.to_cnf()):
        kept = {key: TENSORS[key] for key in form.symbols}
        assert torch.equal(form.satisfied(**kept), table)
        assert torch.equal(form.cost(**kept), formula.cost(**tensors))


@pytest.mark.parametrize(
    "name",
    [name for name in TABLES if not any(word in name.lower() for word in ("not", "im", "iff", "xor", "one", "most", "neg"))],
)
def test_cost_is_zero_exactly_where_a_positive_formula_holds(name):
    formula, _ = TABLES[name]
    assert torch.equal(formula.cost(**TENSORS) == 0, formula.satisfied(**TENSORS))


def test_costs_of_and_or():
    assert (A & B & C).cost(**TENSORS).tolist() == [0, 4, 2, 4, 1, 4, 2, 4]
    assert (A | B | C).cost(**TENSORS).tolist() == [0, 0, 0, 0, 0, 0, 0, 1]


def test_operators_equal_functional_forms():
    assert (A & B & C) is dl.And(A, B, C)
    assert (A | B | C) is dl.Or(A, dl.Or(B, C))
    assert (~A) is dl.Not(A)
    assert (A >> B) is dl.Implies(A, B)


def test_iff_is_two_implications():
    table = {name: TENSORS[name] for name in "xy"}
    both = (A >> B) & (B >> A)
    assert torch.equal(dl.Iff(A, B).cost(**table), both.cost(**table))
    assert torch.equal(dl.Xor(A, B).cost(**table), (~both).cost(**table))


@pytest.mark.parametrize("operation", ["<=", "<", ">=", ">", "==", "!="])
def test_comparisons_by_definition(operation):
    values = torch.tensor([-1.0, -0.25, 0.0, 0.25, 1.0])
    formula = {"<=": x <= 0, "<": x < 0, ">=": x >= 0, ">": x > 0, "==": x == 0, "!=": x != 0}[operation]
    want = {
        "<=": values <= 0.5,
        "<": values < -0.5,
        ">=": values >= -0.5,
        ">": values > 0.5,
        "==": values.abs() <= 0.5,
        "!=": values.abs() > 0.5,
    }
    assert torch.equal(formula.satisfied(tol=0.5, x=values), want[operation])
    costs = {
        "<=": values.clamp(min=0),
        "<": values.clamp(min=0),
        ">=": (-values).clamp(min=0),
        ">": (-values).clamp(min=0),
        "==": values.abs(),
        "!=": torch.zeros(5),
    }
    assert torch.equal(formula.cost(x=values), costs[operation])


def test_margins_move_the_cost_and_not_the_truth():
    values = torch.tensor([0.0, 0.75, 1.0, 1.5])
    assert dl.lt(x, 1, margin=0.5).cost(x=values).tolist() == [0, 0.25, 0.5, 1.0]
    assert dl.lt(x, 1, margin=0.5).satisfied(x=values).tolist() == [True, True, False, False]
    assert dl.gt(x, 1, margin=0.5).cost(x=values).tolist() == [1.5, 0.75, 0.5, 0.0]
    assert dl.gt(x, 1, margin=0.5).satisfied(x=values).tolist() == [False, False, False, True]
    assert dl.ne(x, 1, margin=0.5).cost(x=values).tolist() == [0, 0.25, 0.5, 0]
    assert dl.ne(x, 1, margin=0.5).satisfied(x=values).tolist() == [True, True, False, True]
    assert dl.le(x, 1, margin=0.5).cost(x=values).tolist() == [0, 0.25, 0.5, 1.0]
    assert dl.ge(x, 1, margin=0.5).cost(x=values).tolist() == [1.5, 0.75, 0.5, 0.0]
    assert dl.lt(1, x, margin=0.5) is dl.gt(x, 1, margin=0.5)


def test_negating_a_margin_gives_the_relaxed_atom():
    assert str((~dl.lt(x, 1, margin=0.5)).to_nnf()) == "x >= 1"
    assert (~~dl.lt(x, 1, margin=0.5)).to_nnf() is dl.lt(x, 1, margin=0.5)
