"""Formulas are values: equal structure is one object, in every thread and after every copy."""

import copy
import enum
import functools
import gc
import multiprocessing
import operator
import pickle
import threading

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dualogic as dl
import strategies
from dualogic.formula import node as nodes
from operations import assert_linear


def rule_of(name="x"):
    x, f = dl.var(name, 3), dl.categorical("f", 4, classes=["a", "b", "c", "d"])
    return ((x <= [1, 2, 3]) | (f == "b")).all() >> (x.sum() == 1)


def test_equal_structure_is_equal():
    assert rule_of() == rule_of()
    assert rule_of() is rule_of()
    assert hash(rule_of()) == hash(rule_of())
    assert rule_of() != rule_of("y")
    assert {rule_of(): 1}[rule_of()] == 1
    x = dl.var("x")
    assert (x <= 1) != (x <= 2)
    assert (x <= 1) != (x < 1)
    assert (x <= 1) != (x >= 1)
    assert (dl.var("x", 1) <= 1) != (x <= 1)
    assert ((x <= 1) & (x >= 0)) != ((x >= 0) & (x <= 1))
    assert dl.boolean("b") != dl.boolean("b", input="logits")


@given(st.one_of(strategies.formulas(), strategies.quantified()))
def test_copies_are_the_same_object(formula):
    assert copy.copy(formula) is formula
    assert copy.deepcopy(formula) is formula
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(formula, protocol)) is formula


def _send_back(connection):
    formula = connection.recv()
    connection.send((formula, formula is rule_of()))


def test_equality_across_processes():
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_send_back, args=(there,))
    process.start()
    here.send(rule_of())
    formula, same = here.recv()
    process.join()
    assert same
    assert formula is rule_of()


def test_threads_build_the_same_object():
    barrier, found = threading.Barrier(8), []

    def build():
        barrier.wait()
        found.append([rule_of(f"shared{i}") for i in range(50)])

    threads = [threading.Thread(target=build) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one is other for formulas in found for one, other in zip(formulas, found[0]))


def test_forgotten_formulas_are_freed():
    gc.collect()
    before = len(nodes._interned)
    formula = dl.var("transient") + 12345.5 <= 1
    assert len(nodes._interned) > before
    del formula
    gc.collect()
    assert len(nodes._interned) <= before


def test_nodes_are_frozen():
    with pytest.raises(AttributeError):
        (dl.var("x") <= 1).margin = 3


def test_a_chain_grown_step_by_step_is_one_connective():
    x = dl.var("x", 3000)
    clauses = [x[i] <= 1 for i in range(3000)]
    chain = clauses[0]
    for clause in clauses[1:]:
        chain = chain & clause
    assert chain is dl.And(clauses)
    assert len(chain.operands) == 3000


@pytest.mark.parametrize(
    "number", [2, 2.0, np.float32(2), np.float64(2), np.int64(2), torch.tensor(2), torch.tensor(2.0), np.array(2.0)]
)
def test_numbers_of_all_kinds_on_both_sides(number):
    x = dl.var("x")
    for function in (operator.le, operator.lt, operator.ge, operator.gt, operator.eq, operator.ne):
        assert function(x, number) is function(x, 2)
        assert function(number, x) is function(2, x)
    for function in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow):
        assert function(x, number) is function(x, 2)
        assert function(number, x) is function(2, x)


@pytest.mark.parametrize("make", [list, np.array, torch.tensor])
def test_arrays_of_all_kinds_on_both_sides(make):
    x, values = dl.var("x", 3), make([1.0, 2.0, 3.0])
    assert str(values <= x) == "x >= [1, 2, 3]"
    assert str(x <= values) == "x <= [1, 2, 3]"
    assert str(values - x <= 0) == "[1, 2, 3] - x <= 0"
    assert str(values + x <= 0) == "[1, 2, 3] + x <= 0"
    assert str(values * x <= 0) == "[1, 2, 3] * x <= 0"
    assert (x @ values).shape == ()


@pytest.mark.parametrize("label", [np.int64(1), np.uint8(1), torch.tensor(1)])
def test_class_indices_of_all_kinds(label):
    f = dl.categorical("f", 3)
    assert (f == label) is (f == 1)
    assert (label == f) is (f == 1)
    assert f.isin([label]) is (f == 1)


def test_numpy_strings_name_classes():
    f = dl.categorical("f", 2, classes=np.array(["cat", "dog"]))
    assert (f == np.str_("dog")) is (f == 1)


def test_names_of_all_kinds_are_plain_texts():
    class Name(str, enum.Enum):
        F = "f"
        CAT = "cat"

    plain = dl.categorical("f", 2, classes=["cat", "dog"])
    assert dl.categorical(np.str_("f"), 2, classes=np.array(["cat", "dog"])) is plain
    assert dl.categorical(Name.F, 2, classes=[Name.CAT, "dog"]) is plain
    assert (plain == Name.CAT) is (plain == "cat")
    for make in (dl.var, dl.boolean, lambda name: dl.mask(name, dl.axis(name, 3)), lambda name: dl.constant(name, 1)):
        assert make(np.str_("f")) is make(Name.F) is make("f")
    assert dl.apply(torch.exp, dl.var("x"), name=np.str_("f")) is dl.apply(torch.exp, dl.var("x"), name="f")


def test_ten_thousand_operands_joined_one_by_one_take_little_longer_than_at_once():
    v = dl.var("v", 10_000)
    clauses = [(v[place] <= 0) for place in range(10_000)]
    for join in (operator.or_, operator.and_):
        # It was quadratic when each step looked at all operands.
        assert_linear(lambda count, join=join: lambda: functools.reduce(join, clauses[:count]), 1000)
    chain = functools.reduce(operator.or_, clauses)
    assert chain is dl.Or(clauses)
    assert chain.operands == tuple(clauses)
    assert chain & clauses[0] is dl.And(chain, clauses[0])
    assert pickle.loads(pickle.dumps(chain)) is chain


def test_chains_that_grow_keep_their_shape_and_their_kind():
    x, y = dl.var("x"), dl.var("y", 3)
    a, b, c = x <= 0, x <= 1, y <= 2
    assert (a | b).shape == ()
    assert ((a | b) | c).shape == (3,)
    assert ((a | c) | b).shape == (3,)
    assert (a | b) | (b | a) is dl.Or(a, b, b, a)
    assert (a & b) | a is not dl.And(a, b, a)
    assert (a | b) | b is not (a | b)
