"""The text of a formula is a Python expression that gives the same formula back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualogic as dl
import strategies
from dualogic.formula.node import walk
from dualogic.formula.term import Number
from strategies import NAMESPACE, N, a, c, f, k, m, matrix, one, p, q, r, t, u, valid, vector, x, y, z


def read_back(node):
    return eval(str(node), NAMESPACE)


@settings(max_examples=200)
@given(st.one_of(strategies.formulas(), strategies.quantified()))
def test_text_gives_the_same_object_back(formula):
    assert read_back(formula) is formula
    assert read_back(formula.to_nnf()) is formula.to_nnf()
    for node in walk(formula):
        # Plain numbers and lists read back as such; everything else prints as itself.
        if not isinstance(node, Number) and getattr(node, "name", "") is not None:
            assert read_back(node) is node


EXACT = {
    "x <= 1": x <= 1,
    "x >= 1 ": x >= 1,
    "x == 0.1": x == 0.1,
    "x <= -1.5": x <= -1.5,
    "x <= 1e+30": x <= 1e30,
    "x - (y - z) <= 0": x - (y - z) <= 0,
    "x - y - z <= 0": x - y - z <= 0,
    "x * (y + z) / 2 <= 0": x * (y + z) / 2 <= 0,
    "x ** y ** z <= 0": x ** (y**z) <= 0,
    "(x ** y) ** z <= 0": (x**y) ** z <= 0,
    "(-x) ** 2 <= 0": (-x) ** 2 <= 0,
    "-x ** 2 <= 0": -(x**2) <= 0,
    "2 ** x <= 0": 2**x <= 0,
    "(-2) ** x <= 0": (-2) ** x <= 0,
    "abs(x - y) <= 0": abs(x - y) <= 0,
    "p[1:3] - p[:2] <= 0": p[1:] - p[:-1] <= 0,
    "m[0, 2] <= 0": m[0, -1] <= 0,
    "m[:, None, 1] <= [[1], [2]]": m[:, None, 1] <= [[1], [2]],
    "p[[2, 0]] <= 0": p[[2, 0]] <= 0,
    "p[:3:2] <= 0": p[::2] <= 0,
    "r[1:] <= r[:-1]": r[1:] <= r[:-1],
    "r[-1] <= 0": r[-1] <= 0,
    "m.sum(0).max() <= m.sum()": m.sum(0).max() <= m.sum((0, 1)),
    "p @ matrix <= 1": p @ matrix <= 1,
    "m @ [[1], [0], [2]] <= 1": m @ [[1], [0], [2]] <= 1,
    "(p + q) @ vector <= one": (p + q) @ vector <= one,
    "f == 1": f == 1,
    "f != 1": f != 1,
    "~(f != 1)": ~(f != 1),
    "~f.isin([0, 2])": ~f.isin([0, 2]),
    "a & (c[0] >> c[1]) & c[2]": a & (c[0] >> c[1]) & c[2],
    "a | (c[0] >> c[1])": a | c[0] >> c[1],
    "(a & c[0]) >> c[1]": (a & c[0]) >> c[1],
    'k == "cat"': k == "cat",
    'k != "a \\"dog\\" == \\\\"': k != 'a "dog" == \\',
    'k.isin(["cat", "owl"])': k.isin(["owl", "cat"]),
    "t[1:] != t[:-1]": t[1:] != t[:-1],
    "f.probabilities[2] <= 1": f.probabilities[2] <= 1,
    "~a": ~a,
    "c[0] | c[2]": c[0] | c[2],
    "(x <= 0) & (y <= 0) & (z <= 0)": (x <= 0) & ((y <= 0) & (z <= 0)),
    "(x <= 0) | (y <= 0) & (z <= 0)": (x <= 0) | ((y <= 0) & (z <= 0)),
    "((x <= 0) | (y <= 0)) & a": ((x <= 0) | (y <= 0)) & a,
    "a >> (f == 1)": a >> (f == 1),
    "(a >> c[0]) >> c[1]": a >> c[0] >> c[1],
    "a >> (c[0] >> c[1])": a >> (c[0] >> c[1]),
    "level(a | c[0]) | c[1]": dl.level(a | c[0]) | c[1],
    "evidence(a) >> (f == 1)": dl.Implies(a, f == 1, evidence=True),
    "evidence(a & c[0], 0.9) >> c[1]": dl.Implies(a & c[0], c[1], evidence=0.9),
    "evidence(a, 0) >> c[0]": dl.Implies(a, c[0], evidence=False),
    "~evidence(x <= 0) & a": ~dl.evidence(x <= 0) & a,
    "evidence(p <= 0).all() | evidence(evidence(a), 0.5)": dl.evidence(p <= 0).all() | dl.evidence(dl.evidence(a), 0.5),
    "Iff(a, x <= 0)": dl.Iff(a, x <= 0),
    "Xor(a, ~a)": dl.Xor(a, ~a),
    "ExactlyOne(a, c[0], c[1])": dl.ExactlyOne(a, c[0], c[1]),
    "AtMost(2, a, c[0], c[1])": dl.AtMost(2, a, c[0], c[1]),
    "lt(x, 1, margin=0.25)": dl.lt(x, 1, margin=0.25),
    "gt(x, 1, margin=0.25)": dl.lt(1, x, margin=0.25),
    "ne(x, y, margin=2)": dl.ne(x, y, margin=2),
    "le(x, y, margin=2)": dl.le(x, y, margin=2),
    "(p <= 1).all()": (p <= 1).all(),
    "(m <= 1).all(1).any()": (m <= 1).all(-1).any(0),
    "(m <= 1).any()": (m <= 1).any((1, 0)),
    "(r <= 1).all(where=valid)": (r <= 1).all(where=valid),
    "(r[1:] <= 1).all(where=valid[1:] & ~valid[:-1])": (r[1:] <= 1).all(where=valid[1:] & ~valid[:-1]),
    "(u <= 1).all(0, where=valid[:, None])": (u <= 1).all(0, where=valid[:, None]),
    '(p <= 1).all(duals="tied")': (p <= 1).all(duals="tied"),
    "softened(x - y) <= 1": dl.apply(strategies.softened, x - y) <= 1,
}


@pytest.mark.parametrize("text", EXACT)
def test_exact_text(text):
    assert str(EXACT[text]) == text.strip()
    assert repr(EXACT[text]) == text.strip()
    assert read_back(EXACT[text]) is EXACT[text]


def test_a_python_sum_prints_and_compiles_however_long():
    import pickle

    import torch

    wide = dl.var("wide", 3000)
    rule = sum(wide[i] for i in range(3000)) <= 1
    assert str(rule).startswith("0 + wide[0] + wide[1] + ")
    assert rule.cost(wide=torch.full((2, 3000), 0.5)).tolist() == [1499.0, 1499.0]
    assert pickle.loads(pickle.dumps(rule)) is rule


def test_zero_has_no_sign():
    assert (x <= -0.0) is (x <= 0.0)
    assert (p <= [-0.0, 0, 0]) is (p <= [0, 0, 0])


def test_emoji_and_control_characters_in_class_names():
    names = ["😀", "line\nbreak", "tab\t", "\u2028", "plain"]
    odd = dl.categorical("odd", 5, classes=names)
    for name in names:
        assert eval(str(odd == name), {"odd": odd}) is (odd == name)


def test_names_with_two_meanings_are_refused():
    with pytest.raises(dl.errors.SymbolError, match=r"'x' is declared twice.*var\('x'\).*var\('x', 3\)"):
        ((x <= 1) & (dl.var("x", 3) <= 1).all()).cost(x=[0.0])
    with pytest.raises(dl.errors.SymbolError, match="'one' is declared twice"):
        ((x <= one) & (x <= dl.constant("one", 7))).cost(x=[0.0])
    with pytest.raises(dl.errors.SymbolError, match=r"'x' is declared twice.*constant"):
        ((x <= 1) & (y <= dl.constant("x", 7))).cost(x=[0.0], y=[0.0])
    with pytest.raises(dl.errors.SymbolError, match="axis 'n' is declared twice"):
        ((r <= 1).all() & (dl.var("other", dl.axis("n", max=9)) <= 1).all()).cost(r=[[0.0]], other=[[0.0]])
    assert N.max == 4


def test_functions_may_not_borrow_a_name_of_the_language():
    with pytest.raises(dl.errors.SymbolError, match="cannot be called 'abs'"):
        dl.apply(lambda value: value, x, name="abs")
    with pytest.raises(dl.errors.SymbolError, match="needs a name"):
        dl.apply(lambda value: value, x)
