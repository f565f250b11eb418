"""Reading is the inverse of printing, and a little more forgiving."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dualogic as dl
import strategies
from dualogic.formula.node import walk
from dualogic.formula.term import Number
from dualogic.text.expression import Reader
from dualogic.text.names import collect_names
from dualogic.text.source import Source
from dualogic.text.syntax import to_tree
from formula.test_printing import EXACT
from strategies import NAMESPACE, SYMBOLS, a, b, c, evened, f, g, k, matrix, one, p, softened, t, vector, x, y, z

NAMES = {**SYMBOLS, "one": one, "vector": vector, "matrix": matrix, "softened": softened, "evened": evened}


def read(text, names):
    source = Source(text)
    return Reader(source, collect_names(names)).read(to_tree(source, text, "expression"))


@settings(max_examples=300)
@given(st.one_of(strategies.formulas(), strategies.quantified()))
def test_reading_gives_the_same_object_back(formula):
    assert dl.parse(str(formula), NAMES) is formula
    assert dl.parse(str(formula), formula) is formula
    negative = formula.to_nnf()
    assert dl.parse(str(negative), NAMES) is negative
    for node in walk(formula):
        if not isinstance(node, Number) and getattr(node, "name", "") is not None:
            assert read(str(node), NAMES) is node


@pytest.mark.parametrize("text", EXACT)
def test_exact_text(text):
    assert dl.parse(text, NAMES) is EXACT[text]
    assert dl.parse(text, list(NAMES.values())) is EXACT[text]


# Valid in Python and here, written in other ways than str() prints.
AS_IN_PYTHON = [
    "a >> c[0] >> c[1]",
    "a >> c[0] & c[1] | a",
    "a | c[0] & c[1] >> a",
    "~a & ~~c[0]",
    "~c.all() | (~c).any()",
    "-2 ** 2 * x <= 2 ** -1 - -3",
    "x ** -y ** 2 <= +1",
    "2 * 3 + x / 4 / 2 <= 7 - 1 - 1",
    "0 <= x",
    "[1, 2, 3] >= p",
    "1 - p <= [0.5, .5, 1e-3]",
    "6 / 2 * x <= 1_000.",
    "p[1 + 1] <= 0",
    "p[-1] <= 0",
    "m[..., 0] <= 0",
    "m[:, None, ::2][1] <= 0",
    "m[0,] <= 1",
    "m.sum(dim=-1) <= 1",
    "m.sum((0, 1)) <= 1",
    "m.sum([1, 0]) <= 1",
    "m.sum((1,)) <= p.sum((0,))",
    "(m <= 1).all(dim=(1, 0), duals='tied')",
    "(m <= 1).any(None)",
    "(r <= 1).all(where=valid & valid & ~valid | valid)",
    "(r <= 1).all(where=valid & (valid & ~valid))",
    "2 == f",
    "'cat' != k",
    "k.isin(['owl', 0])",
    "f.isin({0, 1})",
    "And([a, c[0]], ) & Or(a, Not(c[1]))",
    "AtMost(a, c[0], c[1], k=1)",
    "Implies(a, c[0]) | And(a)",
    "eq(f, 1) | eq(x, 1) | eq(k, 'owl')",
    "le(x, 1) & ge(x, 0, margin=.5) & ne(x, y, 1)",
    "level(level(a) | c[0])",
    "abs(-x) + abs(-2) <= 1",
    "softened(x + 1) <= 2",
    "one * p @ vector <= 1",
    "(\n  x <= 1  # a comment\n)",
]


@pytest.mark.parametrize("text", AS_IN_PYTHON)
def test_same_meaning_as_python(text):
    assert dl.parse(text, NAMES) is eval(text, NAMESPACE)


TOKENS = re.compile(r'"(?:[^"\\\\]|\\\\.)*"|[A-Za-z_]+|[0-9.]+(?:e[+-]?[0-9]+)?|<=|>=|==|!=|>>|\*\*|.')
OTHERS = [
    "(",
    ")",
    "&",
    "|",
    "~",
    ">>",
    "-",
    "+",
    "*",
    "**",
    "<=",
    "==",
    "x",
    "p",
    "a",
    "c[0]",
    "f",
    "1",
    "[1, 2, 3]",
    "[0]",
    ".all()",
    "",
]


@settings(max_examples=600)
@given(st.data())
def test_whatever_both_python_and_this_language_read_means_the_same(data):
    formula = data.draw(st.one_of(strategies.formulas(depth=2, atom_count=3), strategies.quantified()))
    tokens = TOKENS.findall(str(formula))
    for _ in range(data.draw(st.integers(1, 3))):
        tokens[data.draw(st.integers(0, len(tokens) - 1))] = data.draw(st.sampled_from(OTHERS))
    text = "".join(tokens).strip()
    try:
        found = dl.parse(text, NAMES)
    except dl.errors.ParseError:
        return
    try:
        expected = eval(text, NAMESPACE)
    except (TypeError, ValueError, SyntaxError, ArithmeticError, NameError, AttributeError):
        return
    assert found is expected


BY_HAND = {
    "x <= 1 & y >= 0": (x <= 1) & (y >= 0),
    "x <= 1 | y >= 0 & z == 1": (x <= 1) | (y >= 0) & (z == 1),
    "x <= 1 and y >= 0 or z == 1": (x <= 1) & (y >= 0) | (z == 1),
    "a and b | c[0]": a & (b | c[0]),
    "not a & b": ~(a & b),
    "not a and b": ~a & b,
    "~x <= 1": ~(x <= 1),
    "not x <= 1": ~(x <= 1),
    "not not a": ~~a,
    "a implies b": a >> b,
    "a or b -> b and c[0]": (a | b) >> (b & c[0]),
    "a >> b -> c[0]": (a >> b) >> c[0],
    "a -> (b -> c[0])": a >> (b >> c[0]),
    "b given a": dl.Implies(a, b, evidence=True),
    "b and c[0] given a or not b": dl.Implies(a | ~b, b & c[0], evidence=True),
    "(f is 1 given g is 2) and (if evidence(a, .5) then b)": dl.Implies(g == 2, f == 1, evidence=1) & (dl.evidence(a, 0.5) >> b),
    "a iff b": dl.Iff(a, b),
    "a or b <-> not b": dl.Iff(a | b, ~b),
    "if a then b": a >> b,
    "if a or b then not c[0]": (a | b) >> ~c[0],
    "if a then if b then c[0]": a >> (b >> c[0]),
    "(if a then b) and (a iff b)": (a >> b) & dl.Iff(a, b),
    "0 <= x <= 1": (x >= 0) & (x <= 1),
    "0 <= x < y != z": (x >= 0) & (x < y) & (y != z),
    "not 0 <= x <= 1": ~((x >= 0) & (x <= 1)),
    "(0 <= p <= 1).all()": ((p >= 0) & (p <= 1)).all(),
    "x<-1": x < -1,
    "f == g == 1": (f == g) & (g == 1),
    "k == cat": k == "cat",
    "owl != k": k != "owl",
    "k is cat": k == "cat",
    "k is not cat": k != "cat",
    "f is 2": f == 2,
    "f is not g": f != g,
    "k in {cat, owl}": k.isin(["cat", "owl"]),
    "k not in {cat, 'owl'}": ~k.isin(["cat", "owl"]),
    "k in ['cat', 2]": k.isin(["cat", 2]),
    "k.isin({cat, owl})": k.isin(["cat", "owl"]),
    "k in {cat}": k == "cat",
    "f in {0, 2}": f.isin([0, 2]),
    "t[1:] in {1}": t[1:].isin([1]),
    "2 ** 3 ** 2 * x <= 1": 512 * x <= 1,
}


@pytest.mark.parametrize("text", BY_HAND)
def test_conveniences(text):
    assert dl.parse(text, NAMES) is BY_HAND[text]
    copied = text.replace(" ", "\N{NO-BREAK SPACE}")  # from a page
    assert dl.parse(copied, NAMES) is BY_HAND[text]


def test_symbols_may_have_the_names_of_the_language():
    words = [
        "given",
        "evidence",
        "iff",
        "implies",
        "then",
        "var",
        "rule",
        "of",
        "each",
        "max",
        "all",
        "abs",
        "lt",
        "And",
        "logits",
        "axis",
    ]
    for word in words:
        symbol, flag = dl.var(word), dl.boolean(word)
        for formula in (symbol <= 1, abs(symbol) + symbol <= symbol * 2, dl.lt(symbol, 1, margin=1)):
            assert dl.parse(str(formula), [symbol]) is formula
        for formula in (flag, ~flag, flag >> flag, flag & flag, dl.Iff(flag, flag)):
            assert dl.parse(str(formula), [flag]) is formula
    given = dl.boolean("given")
    assert dl.parse("given given given", [given]) is dl.Implies(given, given, evidence=True)
    assert dl.parse("if then then then", [dl.boolean("then")]) is dl.boolean("then") >> dl.boolean("then")


def test_names_of_every_script():
    for name in ["größe", "ширина", "नमस्ते", "長さ", "x\u0301y", "_", "\N{GREEK SMALL LETTER MU}"]:
        symbol = dl.var(name, 2)
        assert dl.parse(str(symbol[1] + 1 <= symbol.sum()), [symbol]) is (symbol[1] + 1 <= symbol.sum())


@given(st.lists(st.text(min_size=1, max_size=5), min_size=2, max_size=4, unique=True))
def test_any_class_name_reads_back(classes):
    odd = dl.categorical("odd", len(classes), classes=classes)
    for name in classes:
        assert dl.parse(str(odd == name), [odd]) is (odd == name)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_number_reads_back(number):
    assert dl.parse(str(x <= number), [x]) is (x <= number)
    assert dl.parse(str(p <= [number, 1, -number]), [p]) is (p <= [number, 1, -number])


def test_a_declared_name_wins_over_a_class():
    names = ["g", "h"]
    left, right = dl.categorical("left", 2, classes=names), dl.categorical("g", 2, classes=names)
    assert dl.parse("left == g", [left, right]) is (left == right)
    assert dl.parse("left == 'g'", [left, right]) is (left == "g")
    assert dl.parse("left == g", [left]) is (left == "g")


def test_functions_with_axes_declared_by_hand():
    def picky(values):
        return values[:, :2] if values.sum() > 0 else values.new_zeros(())

    formula = (dl.apply(picky, p, shape=(2,)) <= 1).all()
    assert dl.parse(str(formula), formula) is formula
    with pytest.raises(dl.errors.ParseError, match=r"line 1, column 2.*picky.*\n.*\n.*\^\^\^\^\^\^\^\^ *$"):
        dl.parse(str(formula), [p, picky])


def test_functions_and_arrays_by_name():
    sigmoid = dl.apply(torch.sigmoid, p, name="squash").max() <= 0.5
    assert dl.parse("squash(p).max() <= 0.5", {"p": p, "squash": torch.sigmoid}) is sigmoid
    given = {"p": p, "weights": torch.tensor([[1.0, 2.0]]).T.expand(2, 3)[0], "limit": 3}
    formula = dl.parse("p @ weights <= limit", given)
    assert formula is (p @ dl.constant("weights", [1, 1, 1]) <= 3)
    assert str(formula) == "p @ weights <= 3"
    alias = dl.parse("small -> a", {"small": x <= 1, "a": a})
    assert alias is ((x <= 1) >> a)


def test_long_chains_are_no_deep_recursion():
    wide = dl.var("wide", 3000)
    total = sum(wide[i] for i in range(3000)) <= 1
    assert dl.parse(str(total), [wide]) is total
    both = dl.And([wide[i] <= 1 for i in range(3000)])
    assert dl.parse(str(both), [wide]) is both


def test_deep_nesting_reads_as_far_as_it_prints():
    formula = a
    for _ in range(80):
        formula = (formula & b) | c[0]
    assert dl.parse(str(formula), formula) is formula
    assert dl.parse("(" * 5000 + "a" + ")" * 5000, [a]) is a
    with pytest.raises(dl.errors.ParseError, match="nested too deeply"):
        dl.parse("~" * 100_000 + "a", [a])


def test_powers_of_whole_numbers_do_not_grow_without_bound():
    with pytest.raises(dl.errors.ParseError, match="too large"):
        dl.parse("x <= 9 ** 9 ** 9 ** 9", [x])
    assert dl.parse("x <= 2 ** 0.5", [x]) is (x <= 2**0.5)
    assert dl.parse("p[2 ** 1] <= 0", [p]) is (p[2] <= 0)
