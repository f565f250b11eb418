"""What lint says of arithmetic and order of classes, against the enumeration of all classes."""

import itertools

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import dualogic as dl

A, B, C = dl.categorical("a", 4), dl.categorical("b", 3), dl.categorical("c", 3)


def last(number):
    return number % 3


# Each with the same in Python.
ATOMS = [
    (A + B == C, lambda a, b, c: a + b == c),
    (A < B, lambda a, b, c: a < b),
    (A * B >= 4, lambda a, b, c: a * b >= 4),
    (A * 2 - C > B, lambda a, b, c: a * 2 - c > b),
    (abs(A - C) != 1, lambda a, b, c: abs(a - c) != 1),
    (dl.apply(last, A + C) == B, lambda a, b, c: (a + c) % 3 == b),
    (A == 3, lambda a, b, c: a == 3),
    (B == C, lambda a, b, c: b == c),
]
WORLDS = list(itertools.product(range(4), range(3), range(3)))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ATOMS), st.booleans()), min_size=2, max_size=4), st.booleans())
def test_verdicts(parts, conjunction):
    formulas = [formula if sign else ~formula for (formula, _), sign in parts]
    rule = dl.And(*formulas) if conjunction else dl.Or(*formulas)
    join = all if conjunction else any
    holds = [join(test(*world) == sign for (_, test), sign in parts) for world in WORLDS]
    kinds = {finding.kind for finding in dl.lint({"rule": rule})}
    assert ("unsatisfiable" in kinds) == (not any(holds))
    assert ("tautology" in kinds) == all(holds)


def test_a_witness_is_in_the_users_terms():
    (finding,) = (found for found in dl.lint({"sum": A + B == 3, "large": A * B >= 3}) if found.kind == "conflict")
    assert finding.rules == ("sum", "large")
    assert finding.witness["a"] + finding.witness["b"] == 3


@pytest.mark.parametrize("rule", [A + B == C, A < B, A + B <= 3, (A + B == 3) >> (C == 2)])
def test_sound_rules(rule):
    findings = dl.lint({"rule": rule})
    assert not [finding for finding in findings if finding.severity != "info"]
    assert dl.lint(rule) == findings


def test_a_large_table_can_be_anything():
    many = [dl.categorical(f"x{place}", 60) for place in range(3)]
    findings = dl.lint({"rule": many[0] * many[1] * many[2] == 7})
    assert "opaque" in {finding.kind for finding in findings}
    assert {finding.severity for finding in findings} == {"info"}
