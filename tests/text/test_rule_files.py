"""Rule files: what each statement declares, how statements are told apart, and what is refused."""

import pickle

import pytest
import torch

import dualogic as dl
from dualogic.errors import ParseError


def test_every_declaration():
    rules = dl.parse_rules("""
        axis n: max 7
        let size = 3
        var x
        var p, q: size
        var u: n, 2
        class f, g: 10
        class pet: {cat, "guinea pig", owl} from logits
        class letter: 4 for each n, 2 from probabilities
        class digit: {0, 1, 2}
        bool wet
        bool flags: n, size from logits
        mask valid: n
        constant half = 0.5
        constant weights = [[1, 0], [0.5, -1], [2, 2]]
        let total = p.sum() + half
        let rainy = wet & (total <= 1)
        rule first: rainy
        rule "second rule": x <= 1
    """)
    n = dl.axis("n", max=7)
    wet, p = dl.boolean("wet"), dl.var("p", 3)
    expected = {
        "x": dl.var("x"),
        "p": p,
        "q": dl.var("q", 3),
        "u": dl.var("u", n, 2),
        "f": dl.categorical("f", 10),
        "g": dl.categorical("g", 10),
        "pet": dl.categorical("pet", 3, classes=["cat", "guinea pig", "owl"], input="logits"),
        "letter": dl.categorical("letter", 4, shape=(n, 2)),
        "digit": dl.categorical("digit", 3, classes=["0", "1", "2"]),
        "wet": wet,
        "flags": dl.boolean("flags", n, 3, input="logits"),
        "valid": dl.mask("valid", n),
    }
    assert list(rules.symbols) == list(expected)
    assert all(rules.symbols[name] is expected[name] for name in expected)
    assert list(rules) == ["first", "second rule"]
    assert rules["first"] is wet & (p.sum() + dl.constant("half", 0.5) <= 1)
    assert rules.names["weights"] is dl.constant("weights", [[1, 0], [0.5, -1], [2, 2]])
    assert rules.names["n"] == n
    assert rules.lines == {"first": 18, "second rule": 19}


def test_groups_by_name():
    rules = dl.parse_rules("""
        class ride: {bus, tram, train, bike, "e-bike", skates}
        group rail = {tram, train}
        group public of ride = {bus, rail}
        group cycles = {bike, "e-bike"}
        membership kind of ride = {public, cycles}
        rule one: ride in public
        rule two: ride.isin(cycles)
        rule three: ride not in rail and ride not in {cycles, skates}
        rule four: (ride.probabilities @ kind <= 1).all()
    """)
    names = ["bus", "tram", "train", "bike", "e-bike", "skates"]
    ride = dl.categorical("ride", 6, classes=names)
    assert rules["one"] is ride.isin(["bus", "tram", "train"])
    assert rules["two"] is ride.isin(["bike", "e-bike"])
    assert rules["three"] is ~ride.isin(["tram", "train"]) & ~ride.isin(["bike", "e-bike", "skates"])
    kind = dl.constant("kind", [[1, 0], [1, 0], [1, 0], [0, 1], [0, 1], [0, 0]])
    assert rules["four"] is (ride.probabilities @ kind <= 1).all()
    assert list(rules.names["public"]) == ["bus", "tram", "train"]


def test_groups_of_unnamed_classes():
    rules = dl.parse_rules("class f: 10\ngroup even = {0, 2, 4, 6, 8}\nrule r: f in even")
    assert rules["r"] is dl.categorical("f", 10).isin([0, 2, 4, 6, 8])


@pytest.mark.parametrize("names", ["1 2 3", "2 1 0", "10 5 many", "01 1 1.5", "1.5 2.5 0.5"])
@pytest.mark.parametrize(
    "text", ["r is {0}", "r == {0}", "{0} is r", "r in {{{0}}}", "r in [{0}]", "r in ({0}, {0})", "r.isin([{0}])", "r in g"]
)
def test_a_number_is_the_class_of_that_name(names, text):
    """Where classes are called by numbers, a number is no position: of the grades 1, 2 and 3 it is not the next one."""
    names = names.split()
    for name in (name for name in names if name[0].isdigit()):
        file = f"class r: {{{', '.join(names)}}}\ngroup g = {{{name}}}\nmembership m of r = {{g}}\nrule a: {text.format(name)}"
        rules = dl.parse_rules(file)
        assert rules["a"] is (dl.categorical("r", 3, classes=names) == name)
        assert rules.names["m"] is dl.constant("m", [[float(other == name)] for other in names])
    with pytest.raises(ParseError, match=r"'r' has no class '7'"):
        dl.parse_rules(f"class r: {{{', '.join(names)}}}\ngroup g of r = {{{names[0]}}}\nrule a: {text.format(7)} and r is 7")


def test_layout():
    text = """\
# A comment at the top.
  # An indented one.
var x: 3   # behind a statement, with ' and "

rule one:

  (x <= 1).all()
# A comment between the lines of a rule
    and (
      x >= 0
).all()
bool a
rule two: a
"""
    x, a = dl.var("x", 3), dl.boolean("a")
    indented = "\n".join("\t" + line for line in text.split("\n"))
    for variant in (text, text.replace("\n", "\r\n"), text.replace("\n", "\r"), "\ufeff" + text, indented):
        rules = dl.parse_rules(variant)
        assert rules["one"] is (x <= 1).all() & (x >= 0).all()
        assert rules["two"] is a


def test_a_statement_indented_by_no_break_spaces():
    text = "bool a\nrule one:\n\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}a\nrule two: a\N{NO-BREAK SPACE}\n"
    assert dict(dl.parse_rules(text)) == dict.fromkeys(["one", "two"], dl.boolean("a"))


def test_a_file_trains_as_it_is(tmp_path):
    file = tmp_path / "digits.rules"
    file.write_bytes("\ufeffclass f, g: 10\r\nrule six:\r\n  g is 9 -> f is 6\r\nrule not_both: not (f is 0 and g is 1)".encode())
    rules = dl.load_rules(file)
    assert rules.path == str(file)
    loss = dl.LogicLoss(rules, num_samples=4)
    probabilities = torch.full((4, 10), 0.1)
    value = loss(torch.arange(4), f=probabilities, g=probabilities)
    by_hand = dl.LogicLoss(dict(rules), num_samples=4)
    assert value == by_hand(torch.arange(4), f=probabilities, g=probabilities)
    assert list(loss.rules) == ["six", "not_both"]
    assert repr(rules) == "RuleSet(six: (g == 9) >> (f == 6), not_both: ~((f == 0) & (g == 1)))"
    again = pickle.loads(pickle.dumps(rules))
    assert again["six"] is rules["six"]
    assert again == rules


def test_further_formulas_with_the_names_of_a_file():
    rules = dl.parse_rules("var x: 3\nlet total = x.sum()\nconstant one = 1\nrule r: total <= one")
    assert dl.parse("total == one", rules) is (dl.var("x", 3).sum() == dl.constant("one", 1))
    assert dl.parse(str(rules["r"]), rules) is rules["r"]


def test_names_from_outside():
    table = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    outside = {"table": table, "squash": torch.sigmoid}
    rules = dl.parse_rules("var x: 2\nrule r: (squash(x) @ table <= 1).all()", outside)
    assert str(rules["r"]) == "(squash(x) @ table <= 1).all()"
    assert rules["r"].satisfied(x=torch.zeros(1, 2)).tolist() == [True]
    assert list(rules.symbols) == ["x"]
    assert list(outside) == ["table", "squash"]
    with pytest.raises(ParseError, match=r"'table' is declared already, by the symbols given beside the file"):
        dl.parse_rules("var table: 2\nrule r: (table <= 1).all()", outside)


# The text, the marked line and its marks, and what the message must say.
CASES = {
    "unknown statement": (
        "var x\nrul r: x <= 1",
        2,
        "^^^",
        r"cannot begin with 'rul'; did you mean 'rule'\?",
        "expected one of axis, ",
    ),
    "continuation at the margin": ("var x\nrule r:\nx <= 1", 2, "       ^", "the text ends here", "only if they are indented"),
    "no name of a rule": ("var x\nif x <= 1 then x >= 0", 2, "^^", "cannot begin with 'if'", "rule NAME: if ... then ..."),
    "a number": ("number x\nrule r: x >= 0", 1, "^^^^^^", "cannot begin with 'number'", "'var' declares a number"),
    "a range": ("var x: [0, 1]\nrule r: x >= 0", 1, "       ^", r"a range is written so: var x in \[0, 1\]"),
    "a range without a word": (
        "var x >= 0\nrule r: x >= 0",
        1,
        "      ^^",
        "a range is written so",
        "expected ',', ':', 'in' or",
    ),
    "a negative class": ("class f: {-1, 0, 1}", 1, "          ^", "stands in quotes"),
    "classes in other brackets": ("class f: [a, b]", 1, "         ^", r"in braces: class pet: \{cat, dog\}"),
    "class and symbol": (
        "bool b\nclass f: {a, b}\nrule r: f is b",
        3,
        "             ^",
        "truth value and a class of f",
        'quotes: "b"',
    ),
    "stray continuation": ("var x\nrule r: x <= 1\n& x >= 0", 3, "^", "cannot begin with '&'", "indent the line"),
    "unknown name": ("var x\nrule r:\n  y <= 1", 3, "  ^", "'y' is not declared", "known names: x"),
    "used before": ("rule r: x <= 1\nvar x", 1, "        ^", "'x' is not declared"),
    "twice": ("var x\nbool y, x", 2, "        ^", "'x' is declared already, in line 1"),
    "rule twice": ("bool a\nrule r: a\nrule r: ~a", 3, "     ^", "the rule 'r' stands in line 2 already"),
    "reserved": ("var where: 3", 1, "    ^^^^^", "'where' cannot name a variable.*choose another name"),
    "reserved let": ("var x\nlet index = x + 1", 2, "    ^^^^^", "'index' cannot name"),
    "no size": ("mask valid", 1, "          ^", "the text ends here, but ',' or ':' was expected"),
    "size zero": ("var x: 3, 0", 1, "          ^", "whole number of at least 1 or the name of an axis; got 0"),
    "size by a variable": ("var x\nvar y: x", 2, "       ^", "got 'x', which is a variable"),
    "unknown axis": ("axis n: max 3\nvar x: m", 2, "       ^", "'m' is not declared"),
    "axis without max": ("axis n: 7", 1, "        ^", "'7' cannot stand here", "expected 'max'"),
    "one class": ("class f: 1", 1, "^^^^^^^^^^", "at least two classes"),
    "class twice": ("class f: {cat, dog,\n  cat}", 2, "  ^^^", r"'cat' is listed twice \(first in line 1\)"),
    "axis as a count": ("axis n: max 3\nclass f: n", 2, "         ^", "'n' is an axis"),
    "unknown input": ("class f: 10 from scores", 1, "                 ^^^^^^", "expected 'logits' or 'probs'"),
    "member": (
        "class f: {cat, dog}\ngroup g = {cat, dgo}",
        2,
        "                ^^^",
        r"'dgo' is no class of f; did you mean 'dog'\?",
    ),
    "member out of range": ("class f: 3\ngroup g = {1, 5}", 2, "              ^", "'5' is no class of f"),
    "group without a class": ("group g = {cat}", 1, "           ^^^", "no class is declared above"),
    "group of a variable": ("var x\ngroup g of x = {cat}", 2, "           ^", "'x' is a variable"),
    "group and class": (
        "class f: {cat, dog, g}\ngroup g = {cat}\nrule r: f in {g, dog}",
        3,
        "              ^",
        "'g' is a group and a class",
    ),
    "membership": (
        "class f: {cat, dog}\nmembership m of f = {cat}",
        2,
        "                     ^^^",
        "expected the name of a group",
    ),
    "foreign member": (
        "class f: {cat, dog}\nclass h: {a, b}\ngroup k = {a}\nmembership m of f = {k}",
        4,
        "                     ^",
        "'a', which is no class of 'f'",
    ),
    "foreign group": (
        "class f: {cat, dog}\nclass h: {a, b}\ngroup k = {a}\nrule r: f in k",
        4,
        "             ^",
        "'f' has no class 'a'",
    ),
    "group compared": (
        "class f: 3\ngroup k = {1, 2}\nrule r: f == k",
        3,
        "             ^",
        "the group 'k' cannot be compared",
        "write 'in'",
    ),
    "constant of a term": ("var x\nconstant c = x", 2, "             ^", "this is a variable", "use let"),
    "ragged constant": ("constant c = [[1], [1, 2]]", 1, "^^^^^^^^^^^^^^^^^^^^^^^^^^", "rectangular"),
    "set in a let": ("let s = {a, b}", 1, "        ^^^^^^", "named by group"),
    "axes": ("var x: 3\nrule r: x <= 1", 2, "        ^^^^^^", r"rule 'r' still has axes \(3,\)", r"\.all\(\) or \.any\(\)"),
    "term as a rule": ("var x\nrule r: x", 2, "        ^", "expected a formula in rule 'r'"),
    "no rule": ("var x", 1, "^", "there is no rule here", "rule NAME: FORMULA"),
    "empty": ("", 1, "^", "there is no rule here"),
    "rule without a name": ("bool a\nrule a", 2, "      ^", "':' was expected"),
    "two on a line": ("bool a; rule r: a", 1, "      ^", "a line of its own"),
    "range in round brackets": ("var x in (0, 1)", 1, "         ^", r"expected '\['\Z"),
    "name that is a word": ("class if: 3", 1, "      ^^", "'if' has a meaning already; choose another name"),
    "assignment in a declaration": ("class f = {a, b}", 1, "        ^", "':' in a declaration"),
    "assignment in a rule": ("var x\nrule r: x = 1", 2, "          ^", "write '=='"),
}


@pytest.mark.parametrize("name", CASES)
def test_refused_at_its_place(name, tmp_path):
    text, line, marks, *messages = CASES[name]
    file = tmp_path / "some.rules"
    file.write_text(text)
    with pytest.raises(ParseError) as caught:
        dl.load_rules(file)
    head, shown, mark, *_ = str(caught.value).split("\n")
    column = len(marks) - marks.count("^") + 1
    assert head.startswith(f"{file}, line {line}, column {column}: ")
    assert shown == f"  {line} | " + text.split("\n")[line - 1]
    assert mark == f"    | {marks}"
    assert (caught.value.path, caught.value.line, caught.value.column) == (str(file), line, column)
    assert head.endswith(caught.value.reason)
    for message in messages:
        with pytest.raises(ParseError, match=message):
            raise caught.value


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        dl.load_rules(tmp_path / "none.rules")
