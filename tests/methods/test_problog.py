"""``problog`` the method against ``problog`` the package, on 20 small programs."""

import warnings

import pytest
import torch

import dualogic as dl

pytest.importorskip("pysdd", reason="the methods 'semantic' and 'problog' count models with pysdd")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("problog", reason="the package is the reference here")
    from problog import get_evaluatable
    from problog.program import PrologString

f, g = dl.categorical("f", 3), dl.categorical("g", 3)
s = dl.categorical("s", 3, shape=(3,))
a, b = dl.boolean("a"), dl.boolean("b")
c = dl.boolean("c", 3)

VALUES = {
    "f": torch.tensor([[0.5, 0.2, 0.3]], dtype=torch.float64),
    "g": torch.tensor([[0.1, 0.6, 0.3]], dtype=torch.float64),
    "s": torch.tensor([[[0.2, 0.3, 0.5], [0.7, 0.2, 0.1], [0.25, 0.25, 0.5]]], dtype=torch.float64),
    "a": torch.tensor([0.35], dtype=torch.float64),
    "b": torch.tensor([0.8], dtype=torch.float64),
    "c": torch.tensor([[0.9, 0.4, 0.15]], dtype=torch.float64),
}

PROGRAMS = [
    (f == 1, "q :- f(1)."),
    (f != 1, r"q :- \+f(1)."),
    (f.isin([0, 2]), "q :- f(0). q :- f(2)."),
    ((f == 0) & (g == 1), "q :- f(0), g(1)."),
    ((f == 0) | (g == 1), "q :- f(0). q :- g(1)."),
    ((g == 2) >> (f == 1), r"q :- \+g(2). q :- f(1)."),
    (f == g, "q :- f(X), g(X)."),
    (f != g, r"same :- f(X), g(X). q :- \+same."),
    ((f == g) >> a, r"same :- f(X), g(X). q :- \+same. q :- a."),
    ((f == 0) | (f == 1) | (g == 0), "q :- f(0). q :- f(1). q :- g(0)."),
    (a & b, "q :- a, b."),
    (dl.Xor(a, b), r"q :- a, \+b. q :- b, \+a."),
    (dl.Iff(a, f == 2), r"q :- a, f(2). q :- \+a, \+f(2)."),
    (c.all(), "q :- c(0), c(1), c(2)."),
    (c.any(), "q :- c(X)."),
    (dl.ExactlyOne(c[0], c[1], c[2]), r"q :- c(0), \+c(1), \+c(2). q :- c(1), \+c(0), \+c(2). q :- c(2), \+c(0), \+c(1)."),
    (
        dl.AtMost(1, c[0], c[1], a),
        r"two :- c(0), c(1). two :- c(0), a. two :- c(1), a. q :- \+two.",
    ),
    ((s == 0).any(), "q :- s(X, 0)."),
    ((s[1:] != s[:-1]).all(), r"same :- s(0, X), s(1, X). same :- s(1, X), s(2, X). q :- \+same."),
    (((s == 1) & c).any() | ((s == 2).all() & (f == 0)), "q :- s(X, 1), c(X). q :- s(0, 2), s(1, 2), s(2, 2), f(0)."),
]


def facts():
    """All symbols as annotated disjunctions and probabilistic facts."""
    lines = []
    for name in "fg":
        lines.append("; ".join(f"{p:.10f}::{name}({k})" for k, p in enumerate(VALUES[name][0].tolist())) + ".")
    for entry, row in enumerate(VALUES["s"][0].tolist()):
        lines.append("; ".join(f"{p:.10f}::s({entry}, {k})" for k, p in enumerate(row)) + ".")
    lines += [f"{VALUES[name].item():.10f}::{name}." for name in "ab"]
    lines += [f"{p:.10f}::c({k})." for k, p in enumerate(VALUES["c"][0].tolist())]
    return "\n".join(lines)


@pytest.mark.filterwarnings("ignore:::problog")
@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_program(number):
    rule, clauses = PROGRAMS[number]
    program = "\n".join([facts(), *clauses.replace(". ", ".\n").splitlines(), "query(q)."])
    (expected,) = get_evaluatable().create_from(PrologString(program)).evaluate().values()
    loss = dl.LogicLoss(rule, method="problog")(**{name: VALUES[name] for name in rule.symbols})
    assert loss.neg().exp().item() == pytest.approx(expected, rel=1e-7)


def test_there_are_twenty_programs():
    assert len({clauses for _, clauses in PROGRAMS}) == 20
