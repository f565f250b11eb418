"""Negation and conjunctive normal forms: same meaning, same cost, promised shape."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dualogic as dl
import strategies
from dualogic.errors import SizeError
from dualogic.formula.connective import Junction, Level, Premise, Quantifier
from dualogic.normalize.nnf import is_literal, to_nnf

x, y, z = dl.var("x"), dl.var("y"), dl.var("z")
A, B, C = x <= 0, y <= 0, z <= 0
any_formula = st.one_of(strategies.formulas(depth=3), strategies.quantified())


def check_same(formula, other, tensors):
    assert other.shape == formula.shape
    kept = {name: tensors[name] for name in other.symbols}
    for class_cost in ("probability", "log"):
        torch.testing.assert_close(other.cost(class_cost, **kept), formula.cost(class_cost, **tensors), rtol=1e-9, atol=1e-12)
    for tol, lead in [(0.0, 0.0), (0.25, 0.1)]:
        assert torch.equal(other.satisfied(tol, lead, **kept), formula.satisfied(tol, lead, **tensors))


def is_nnf(formula):
    if isinstance(formula, Junction):
        return all(map(is_nnf, formula.operands))
    if isinstance(formula, (Quantifier, Level)):
        return is_nnf(formula.operand)
    return is_literal(formula)


def is_clause(formula):
    if isinstance(formula, Junction):
        return formula.operation == "|" and all(map(is_clause, formula.operands))
    if isinstance(formula, Quantifier):
        return formula.operation == "any" and is_clause(formula.operand)
    return is_literal(formula)


def is_cnf(formula):
    parts = formula.operands if isinstance(formula, Junction) and formula.operation == "&" else (formula,)
    bodies = [part.operand if isinstance(part, Quantifier) and part.operation == "all" else part for part in parts]
    return all(map(is_clause, bodies))


@settings(max_examples=150)
@given(any_formula, st.data())
def test_negation_normal_form(formula, data):
    form = formula.to_nnf()
    assert is_nnf(form)
    assert form.to_nnf() is form
    check_same(formula, form, data.draw(strategies.bindings(formula)))


@settings(max_examples=150)
@given(st.one_of(strategies.formulas(depth=2), strategies.quantified()), st.data())
def test_conjunctive_normal_form(formula, data):
    try:
        form = formula.to_cnf(max_clauses=200)
    except SizeError:
        return
    assert is_cnf(form)
    check_same(formula, form, data.draw(strategies.bindings(formula)))


def test_negations_are_pushed_to_the_atoms():
    assert str((~((x <= 1) & (y > 2) | (z == 0))).to_nnf()) == "((x > 1) | (y <= 2)) & (z != 0)"
    assert str((~(A >> B)).to_nnf()) == "(x <= 0) & (y > 0)"
    assert str((A >> B).to_nnf()) == "(x > 0) | (y <= 0)"
    assert str((~(dl.var("p", 2) <= 0).all()).to_nnf()) == "(p > 0).any()"
    assert str((~(dl.categorical("f", 3) == 1)).to_nnf()) == "f != 1"


def test_levels_of_their_own():
    """A chain is one connective; what a negation or an implication brings in stays a level (design: Levels)."""
    a, b, c = (dl.boolean(name) for name in "abc")
    assert str(((a & b) >> c).to_nnf()) == "level(~a | ~b) | c"
    assert str((~(a & b) | c).to_nnf()) == "level(~a | ~b) | c"
    assert str((a >> (b | c)).to_nnf()) == "~a | level(b | c)"
    assert str((a | b | c).to_nnf()) == "a | b | c"
    assert str(dl.Iff(a, b).to_nnf()) == "(~a | b) & (~b | a)"
    assert str(dl.Xor(a, b).to_nnf()) == "a & ~b | b & ~a"
    assert str(dl.ExactlyOne(a, b).to_nnf()) == "(a | b) & (~a | ~b)"


def test_distribution():
    assert str((A & B | C).to_cnf()) == "((x <= 0) | (z <= 0)) & ((y <= 0) | (z <= 0))"
    assert (A | B).to_cnf() is (A | B)
    assert (A & B).to_cnf() is (A & B)
    assert A.to_cnf() is A
    assert (A & A | A).to_cnf() is A


def test_size_is_guarded():
    p = dl.var("p", 40)
    wide = dl.Or([(p[2 * i] <= 0) & (p[2 * i + 1] <= 0) for i in range(20)])
    with pytest.raises(SizeError, match=r"more than 10000 clauses.*train the nested formula.*or raise max_clauses"):
        wide.to_cnf()
    small = dl.Or([(p[2 * i] <= 0) & (p[2 * i + 1] <= 0) for i in range(6)])
    assert len(small.to_cnf().operands) == 64
    with pytest.raises(SizeError, match="more than 63 clauses"):
        small.to_cnf(max_clauses=63)
    assert len(small.to_cnf(max_clauses=64).operands) == 64


def test_quantifiers():
    p, q = dl.var("p", 3), dl.var("q", 3)
    assert str(((p <= 0).all() | (q <= 0).all()).to_cnf()) == "((p[:, None] <= 0) | (q <= 0)).all()"
    assert str(((p <= 0) & A).all().to_cnf()) == "(p <= 0).all() & (x <= 0)"
    some = ((p <= 0) & (q <= 0)).any()
    assert len(some.to_cnf().operands) == 8


def test_what_has_no_normal_form_says_so():
    n = dl.axis("n", max=3)
    r, s, valid = dl.var("r", n), dl.var("s", n), dl.mask("valid", n)
    with pytest.raises(SizeError, match=r"has no CNF.*not known before tensors are bound"):
        ((r <= 0) & (s <= 0)).any().to_cnf()
    with pytest.raises(SizeError, match=r"has no CNF.*depends on the mask alone"):
        ((r <= 0) & A).all(where=valid).to_cnf()
    with pytest.raises(SizeError, match=r"has no CNF.*depends on the mask alone"):
        ((r <= 0) & A).all(where=valid[0]).to_cnf()
    with pytest.raises(SizeError, match=r"has no CNF.*may be empty"):
        ((r[1:] <= 0) & A).all().to_cnf()


def test_a_node_without_a_conversion_is_an_error():
    with pytest.raises(TypeError, match=r"no conversion for a node of type Premise: x <= 0"):
        to_nnf(A & ~Premise(A))


def test_normal_forms_of_a_large_rule_are_quick():
    p = dl.var("p", 3000)
    rule = dl.And([(p[i] <= 0) >> (p[i + 1] <= 0) for i in range(2999)])
    assert len(rule.to_cnf().operands) == 2999


@pytest.mark.parametrize("count", [3, 4, 6])
def test_several_comparisons_of_classes_in_one_formula(count):
    """What one of them unfolds to is made on the way, and must not be taken for what another did."""
    symbols = [dl.categorical(f"f{place}", 5) for place in range(count)]
    pairs = list(itertools.combinations(symbols, 2))
    classes = torch.randint(5, (200, count), generator=torch.Generator().manual_seed(0))
    bound = {symbol.name: torch.nn.functional.one_hot(classes[:, place], 5).float() for place, symbol in enumerate(symbols)}
    different = torch.stack([(classes[:, one] != classes[:, two]) for one, two in itertools.combinations(range(count), 2)])
    for rule, expected in [
        (dl.And(*(one != two for one, two in pairs)), different.all(0)),
        (dl.Or(*(one == two for one, two in pairs)), (~different).any(0)),
        (dl.And(*(one == two for one, two in pairs)), (~different).all(0)),
        (~dl.Or(*(dl.Iff(one == two, one != two) for one, two in pairs)), torch.ones(200, dtype=torch.bool)),
    ]:
        assert torch.equal(rule.satisfied(**bound), expected)
        assert torch.equal(rule.to_nnf().satisfied(**bound), expected)
        assert torch.equal(rule.cost(**bound) == 0, expected)
