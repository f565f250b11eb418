"""Text that means nothing is refused with its line, a mark under the place, what was expected, and what to do."""

import contextlib
import pickle
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualogic as dl
from dualogic.errors import DualogicError, MissingExtraError, ParseError
from strategies import a, f, p, x, y
from text.test_parsing import NAMES

# The text with the marks that must stand below it, and what the message must say.
CASES = [
    ("x <= yy", "     ^^", r"'yy' is not declared; did you mean 'y'\?", "known names: a, alive, b"),
    ("x <= 1 &", "        ^", "the text ends here, but a name, a number or '\\(' was expected"),
    ("(x <= 1", "       ^", r"the text ends here, but '\)' or ','"),
    ("x <= 1)", "      ^", r"'\)' cannot stand here", "expected a comparison such as '<=' or '=='"),
    ("x = 1", "  ^", "write '==' to compare"),
    ("x => 1", "  ^", "write '->' or 'implies'.*'>='"),
    ("a && b", "   ^", "write '&' or 'and'"),
    ("a || b", "   ^", r"write '\|' or 'or'"),
    ("!a", "^", "write 'not' or '~'"),
    ("x ≤ 1", "  ^", "write '<='"),
    ("a -> b -> c[0]", "       ^^", r"need parentheses.*a -> \(b -> c\)", "expected .*the end of the statement"),
    ("a given b given a", "          ^^^^^", "need parentheses"),
    ("a given x", "        ^", "expected a formula beside 'given'; this is a variable"),
    ("evidence(a, 2) -> b", "^^^^^^^^^^^^^^", "between 0 and 1"),
    ("evidence(x) -> b", "^^^^^^^^^^^", "expected a formula in evidence"),
    ("a iff b iff a", "        ^^^", "need parentheses"),
    ("if a then b else a", "            ^^^^", "has no 'else'"),
    ("If a then b", "   ^", "in small letters"),
    ("a AND b", "  ^^^", "in small letters"),
    ("when a then b", "     ^", "write 'if ... then ...'"),
    ("a unless b", "  ^^^^^^", "'if not ... then ...' for 'unless'"),
    ("x between 0 and 5", "  ^^^^^^^", "write 0 <= x <= 5"),
    ("x is between 0 and 5", "             ^", "write 0 <= x <= 5"),
    ("x >= 0 and <= 5", "           ^^", "write 0 <= x <= 5 .*and the name again"),
    ("x not 5", "      ^", "expected 'in'"),
    ("both a and b", "     ^", "'a and b'"),
    ("x <= $100", "     ^", "a number has no unit"),
    ("max(x, y) <= 5", "^^^", "compare numbers one by one"),
    ("a => b", "  ^", "write '->'"),
    ("a <=> b", "    ^", "write 'iff'"),
    ("a ==> b", "    ^", "write '->'"),
    ("a xor b", "  ^^^", r"Xor\(a, b\)"),
    ("either a or b", "       ^", "write 'a or b'"),
    ("neither a nor b", "        ^", r"not \(a or b\)"),
    ("a only if b", "  ^^^^", "write 'if ... then ...'"),
    ("a when b", "  ^^^^", "write 'if ... then ...'"),
    ("x is greater than 3", "             ^^^^", "write '>', '<' or '=='"),
    ("x less than 3", "  ^^^^", "write '>', '<' or '=='"),
    ("x is equal to 3", "           ^^", "write '>', '<' or '=='"),
    ("x equals 3", "  ^^^^^^", "write '>', '<' or '=='"),
    ("k is in {cat}", "     ^^", "write 'in' or 'not in', without 'is'"),
    ("k is not in {cat}", "         ^^", "write 'in' or 'not in', without 'is'"),
    ("k is a cat", "       ^^^", "no article: pet is cat"),
    ("k is \u2018cat\u2019", "     ^", "straight quotes"),
    ("x \u2013 1 <= 0", "  ^", "write '-'"),
    ("2 \u00d7 x <= 0", "  ^", r"write '\*'"),
    ("x^2 <= 1", " ^", r"x \*\* 2"),
    ("x² <= 1", " ^", r"x \*\* 2"),
    ("x <= 1 // at most", "        ^", "a comment begins with '#'"),
    ("x in [0, 1]", "^", "a range is 0 <= x <= 1"),
    ("k is one of {cat}", "         ^^", "write 'in' for 'one of'"),
    ("at least 2 of a", "   ^^^^^", r"AtMost\(2, a, b, c\)"),
    ("a requires b", "  ^^^^^^^^", "write 'if ... then ...'"),
    ("if a then no b", "             ^", "write 'not' for 'no'"),
    ("x is over 5", "          ^", "write '>', '<' or '=='"),
    ("x equals 5", "  ^^^^^^", "write '>', '<' or '=='"),
    ("x <> 5", "   ^", "write '!='"),
    ("exactly one of a", "        ^^^", r"ExactlyOne\(a, b, c\)"),
    ("x <= 100 EUR", "         ^^^", "a number has no unit"),
    ("a is true", "^", "'a' alone says that it is true, and 'not a'"),
    ("k is CAT", "     ^^^", r"did you mean 'cat'\?"),
    ("k > cat", "^^^^^^^", "the classes of k have names .* no order"),
    ("x <= 1,000", "      ^", "no comma stands .* or in a number: 1000"),
    ("x <= 10%", "       ^", "0.1 for 10 %"),
    ("if a, then b", "    ^", "no comma stands between"),
    ("k is not cat.", "             ^", "no full stop stands at the end"),
    ("k is cat or owl", "            ^^^", "'owl' is a class of k: write 'k is owl', or 'k in {...}' for several"),
    ("a if b", "  ^^", "the condition comes first: if ... then ..."),
    ("a & not b", "    ^^^", "write 'and not', or put it in parentheses"),
    ("a andb", "  ^^^^", "'andb' cannot stand here"),
    ("exists x <= 1", "       ^", r"\(...\).any\(\) for 'some'"),
    ('k == "a', "     ^", "the quotes that open here are not closed"),
    ('k == "\\d"', "     ^^^^", "has no meaning in quotes"),
    ("k in {a-b}", "       ^", "stands in quotes", "expected '}' or ','"),
    ("k in {not}", "      ^^^", 'stands in quotes: "not"'),
    ("x", "^", "expected a formula here; this is a variable", "compare it"),
    ("f", "^", "this is a class", "compare it with a class"),
    ("x & a", "^", "expected a formula beside '&'; this is a variable"),
    ("a or x", "     ^", "expected a formula beside 'or'"),
    ("a & valid", "    ^^^^^", "this is a mask", "where="),
    ("valid & a", "^^^^^^^^^", "expected a mask"),
    ("a -> 3", "     ^", "on either side of an implication; this is a number"),
    ("~x", " ^", "behind 'not' or '~'"),
    ("a + 1 <= 2", "^", "expected a term or a number; this is a truth value"),
    ("k + 1 <= 2", "^^^^^", "the classes of k have names .* no order or arithmetic"),
    ("k <= 1", "^^^^^^", "the classes of k have names .* no order or arithmetic"),
    ("f + 1 <= x", "^^^^^^^^^^", "x is a real-valued term"),
    ("f <= dog", "     ^^^", "'dog' is not declared"),
    ("f + 1", "^^^^^", "this is a number made of classes", "compare it with something"),
    ("x is 1", "^", "'is' compares a class; for numbers write '=='"),
    ("k == cta", "     ^^^", r"did you mean 'cat'\?", "classes: cat, "),
    ("k == 'cta'", "     ^^^^^", r"'k' has no class 'cta'; did you mean 'cat'\?"),
    ("f == 10", "     ^^", "class 10 is out of range for 'f', whose classes are 0 to 2"),
    ("f == cat", "     ^^^", "'cat' is not declared"),
    ("k in {cat, olw}", "           ^^^", r"did you mean 'owl'\?"),
    ("f in {1.5}", "      ^^^", "'f' has no class names"),
    ("f in {0, 1, 2}", "^^^^^^^^^^^^^^", "every class always holds"),
    ("x in {1}", "^", "'in' asks about a class; this is a variable"),
    ("f in x", "     ^", "expected classes behind 'in'"),
    ("f in furry", "     ^^^^^", "'furry' is not declared"),
    ("f == {1}", "     ^^^", "cannot be compared by '=='", "write 'in'"),
    ("k in {cat} or {owl}", "              ^^^^^", "this is a set of classes", r"'f in \{1, 2\}'"),
    ("a == b", "^", "a truth value cannot be compared", "write 'iff'"),
    ("(0 <= x) <= 1", " ^^^^^^", "a formula cannot be compared", "0 <= x <= 1"),
    ("x == 'a'", "     ^^^", "the other side is not a class"),
    ("1 <= 2", "^^^^^^", "constants only"),
    ("x.foo() <= 1", "  ^^^", "a variable has no '.foo'", "it has .sum, .max, .min"),
    ("x.sum <= 1", "  ^^^", r"needs parentheses behind it: .sum\(\)"),
    ("f.probabilities() <= 1", "  ^^^^^^^^^^^^^", "no parentheses"),
    ("f.probability <= 1", "  ^^^^^^^^^^^", "did you mean 'probabilities'"),
    ("AtLeast(1, a, b)", "^^^^^^^", r"there is no function 'AtLeast'\n", r"AtMost\(1, ~a, ~b, ~c\)", "known functions"),
    ("Ander(a, b)", "^^^^^", r"there is no function 'Ander'; did you mean 'And'\?", "known functions: .*softened"),
    ("all(p <= 1)", "^^^", r"\(...\).all\(...\)"),
    ("abs <= 1", "^^^", "'abs' is a function"),
    ("p(0) <= 1", "^", "'p' is a variable, not a function"),
    ("lt(x, 1, margn=2)", "^^^^^^^^^^^^^^^^^", "margn"),
    ("lt(x, margin=1, 2)", "                ^", "cannot follow one with a name"),
    ("(p <= 1).all(dim=0, dim=0)", "                    ^^^", "given twice"),
    ("p[5] <= 1", "^^^^", "position 5 is outside of an axis of size 3"),
    ("a & (p <= m[:, :2]).all()", "     ^^^^^^^^^^^^^", "cannot be broadcast"),
    ("[1, 2] + [3] <= x", "^^^^^^^^^^^^", "one side needs a symbol"),
    ("[1, 2][0] <= x", "^^^^^^", "a list has no axes to index"),
    ("x <= 1 / 0", "     ^^^^^", "division by zero"),
    ("x <= (-8) ** 0.5", "     ^^^^^^^^^^^", "not a real number"),
    ("", "^", "the text ends here"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_refused_at_its_place(case):
    text, marks, *messages = case
    with pytest.raises(ParseError) as caught:
        dl.parse(text, NAMES)
    head, line, mark, *_ = str(caught.value).split("\n")
    assert line == f"  1 | {text}"
    assert mark == f"    | {marks}"
    assert head.startswith(f"line 1, column {len(marks) - marks.count('^') + 1}: ")
    for message in messages:
        with pytest.raises(ParseError, match=message):
            raise caught.value
    assert isinstance(caught.value, (DualogicError, ValueError))
    assert (caught.value.line, caught.value.path) == (1, None)


def test_the_right_line_of_several():
    with pytest.raises(ParseError) as caught:
        dl.parse("x <= 1\n  and\n\tyy >= 0  # a comment", NAMES)
    assert str(caught.value).split("\n")[:3] == [
        "line 3, column 2: 'yy' is not declared; did you mean 'y'?",
        "  3 | \tyy >= 0  # a comment",
        "    | \t^^",
    ]
    assert (caught.value.line, caught.value.column) == (3, 2)


def test_an_unfinished_text_is_marked_before_its_comment():
    with pytest.raises(ParseError, match=r"\n  1 \| x <=  # at most\n    \|     \^$"):
        dl.parse("x <=  # at most\n\n", NAMES)
    with pytest.raises(ParseError, match=r"column 20: the text ends here"):
        dl.parse('k == "a#\\\\" or k ==  # "', NAMES)


def test_marks_below_wide_characters_and_in_long_lines():
    wide = dl.var("長さ")
    with pytest.raises(ParseError, match=r"\n  1 \| 長さ <= zz\n    \|         \^\^\n"):
        dl.parse("長さ <= zz", [wide])
    long = "x <= " + "x + " * 500 + "zz"
    with pytest.raises(ParseError) as caught:
        dl.parse(long, [x])
    line, mark = str(caught.value).split("\n")[1:3]
    assert len(line) < 120
    assert line[mark.index("^") :] == "zz"


def test_what_symbols_may_be():
    with pytest.raises(ParseError, match=r"no names are declared; a file declares them .* symbols="):
        dl.parse("x <= 1")
    with pytest.raises(TypeError, match="a mapping from names, a sequence of symbols or a formula; got 3"):
        dl.parse("x <= 1", 3)
    with pytest.raises(TypeError, match="has no name of its own; give a mapping"):
        dl.parse("x <= 1", [x + 1])
    with pytest.raises(TypeError, match="has no name of its own; give a mapping"):
        dl.parse("x <= 1", [lambda value: value])
    with pytest.raises(ValueError, match="'x' stands for two things"):
        dl.parse("x <= 1", [x, dl.var("x", 3)])
    with pytest.raises(TypeError, match="the key 3"):
        dl.parse("x <= 1", {3: x})
    with pytest.raises(ValueError, match="cannot be called 'abs'"):
        dl.parse("x <= 1", {"x": x, "abs": lambda value: value})
    with pytest.raises(TypeError, match=r"dl\.parse reads text; got x <= 1"):
        dl.parse(x <= 1, [x])
    with pytest.raises(TypeError, match=r"dl\.parse_rules reads text; got 3"):
        dl.parse_rules(3)
    assert dl.parse("x <= y", (symbol for symbol in (x, y))) is (x <= y)


PIECES = [
    *[
        "x",
        "y",
        "p",
        "m",
        "f",
        "k",
        "a",
        "c",
        "valid",
        "one",
        "softened",
        "foo",
        "cat",
        "0",
        "1",
        "2.5",
        "-1",
        "'cat'",
        '"',
        "None",
    ],
    *["(", "(", "(", ")", ")", ")", "[", "]", "{", "}", ",", ":", ".", "...", "=", "#", "\n"],
    *[
        "==",
        "<=",
        "<",
        "!=",
        ">>",
        "->",
        "iff",
        "if",
        "then",
        "in",
        "is",
        "not",
        "and",
        "or",
        "&",
        "|",
        "~",
        "+",
        "-",
        "*",
        "/",
        "**",
    ],
    *["@", ".sum()", ".all()", ".any(0)", ".isin(", ".probabilities", "lt(", "abs(", "And(", "AtMost(", "where=", "margin="],
]


@settings(max_examples=1500)
@given(st.lists(st.sampled_from(PIECES), max_size=12), st.sampled_from(["", " "]))
def test_any_text_is_a_formula_or_refused(pieces, space):
    text = space.join(pieces)
    try:
        formula = dl.parse(text, NAMES)
    except ParseError as error:
        message = str(error)
    else:
        message = ""
        assert dl.parse(str(formula), NAMES) is formula
    assert not message or re.match(r"line \d+, column \d+: .*\n +\d+ \| .*\n +\| +\^", message)


STATEMENTS = [
    *[
        "var",
        "class",
        "bool",
        "axis",
        "mask",
        "group",
        "membership",
        "constant",
        "let",
        "rule",
        "x",
        "n",
        "f",
        "r",
        ":",
        ",",
        "=",
    ],
    *["{cat,dog}", "3", "1.5", "from", "logits", "for", "each", "max", "of", "\n", "\n\t"],
]


@settings(max_examples=500)
@given(st.lists(st.sampled_from(STATEMENTS), max_size=12))
def test_any_file_is_read_or_refused(pieces):
    with contextlib.suppress(ParseError):
        dl.parse_rules("bool a\nrule a: a\n" + " ".join(pieces).replace("\n ", "\n"))


def test_errors_survive_a_process_boundary():
    with pytest.raises(ParseError) as caught:
        dl.parse("x <=\nyy", [x])
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.line, again.column) == (str(caught.value), 2, 1)


def test_the_cause_is_kept():
    with pytest.raises(ParseError) as caught:
        dl.parse("(p <= 1).all(1)", [p])
    assert isinstance(caught.value.__cause__, dl.errors.ShapeError)


def test_lark_is_imported_by_reading_only():
    code = "import sys, dualogic as dl; x = dl.var('x'); str(x <= 1); print('lark' in sys.modules); dl.parse('x <= 1', [x])"
    code += "; print('lark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_without_lark(monkeypatch):
    from dualogic.text import syntax

    syntax._parser.cache_clear()
    monkeypatch.setitem(sys.modules, "lark", None)
    with pytest.raises(MissingExtraError, match=r"pip install -e '.\[rules\]'"):
        dl.parse("a", [a, f])
    with pytest.raises(ImportError):
        dl.parse_rules("bool a\nrule r: a")
