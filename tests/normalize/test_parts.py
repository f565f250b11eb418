"""Passes and questions of the normal form by themselves."""

import dualogic as dl
from dualogic.normalize.constancy import constant_truth, costs_nothing
from dualogic.normalize.literals import mark_literals, unfold_class_sets
from dualogic.normalize.nnf import to_nnf
from dualogic.normalize.unlabelled import Asking, describe_unlabelled, find_unlabelled

a, b, x = dl.boolean("a"), dl.boolean("b"), dl.var("x")


def test_what_is_always_true_by_its_comparisons_is_seen():
    assert [constant_truth(rule) for rule in ((x >= 0) | (x <= 0) | b, (x >= 1) & (x <= 0), b | ~b)] == [True, False, None]


def test_unequal_without_a_margin_costs_nothing():
    rules = (x != 0, ~(x == 0), dl.ne(x, 0, margin=0.1), x <= 0)
    assert [costs_nothing(rule) for rule in rules] == [True, True, False, False]


def test_markers_inside_of_markers_let_the_product_pass():
    assert str(mark_literals(~a | dl.evidence(b, 0.5), 0.5)) == "evidence(~a, 0.5) | evidence(b, 0.75)"


def test_class_sets_become_single_classes():
    assert str(unfold_class_sets(dl.categorical("f", 4) != 1)) == "(f == 0) | (f == 2) | (f == 3)"


def test_only_antecedents_that_are_not_marked_become_evidence():
    rule = (a >> b) & ~(b >> a) & dl.Implies(a, ~b, evidence=False)
    assert str(to_nnf(rule, evidence=1.0)) == "(evidence(~a) | b) & level(b & ~a) & (~a | ~b)"


def test_classes_without_labels_are_found_and_described():
    symbol = dl.categorical("f", 3, classes=["dog", "cat", "cow"])
    assert find_unlabelled({"f": ("cat",)}, {"f": symbol}) == (("f", (1,)),)
    assert describe_unlabelled((("b", None), ("f", (1, 6)))) == "b; f: 1, 6"


def test_a_formula_asks_for_what_it_names_without_a_negation():
    f, asking = dl.categorical("f", 3), Asking((("f", (2,)),))
    rules = (a | (f == 2), a & (f != 2), ~f.isin([0, 1]), f.isin([0, 1]))
    assert [asking(rule.to_nnf()) for rule in rules] == [True, False, True, False]
