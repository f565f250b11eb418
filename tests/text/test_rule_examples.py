"""The four tasks' rule files say what the design's formulas say, and the documentation's tables are true."""

import re
from pathlib import Path

import pytest
import torch

import dualogic as dl

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "rules"
PAGE = ROOT / "docs" / "rule-files.md"


def only(name):
    rules = dl.load_rules(EXAMPLES / name)
    (formula,) = rules.values()
    return rules, formula


def test_digits():
    f, g = dl.categorical("f", 10), dl.categorical("g", 10)
    assert only("digits.rules")[1] is (g == 9) >> (f == 6)


def test_formulas():
    n = dl.axis("n", max=7)
    x, valid = dl.var("x", n, 13), dl.mask("valid", n)
    digit, operator = x[..., :9].sum(-1), x[..., 9:].sum(-1)
    rule = ((digit[1:] + digit[:-1] == 2) | (operator[1:] + operator[:-1] == 1)).all(where=valid[1:])
    assert only("formulas.rules")[1] is rule


def test_distances():
    d, e = dl.var("d", 15), dl.var("e", 15, 15)
    assert only("distances.rules")[1] is (d == e[:, 0]).all() & (d[None, :] <= d[:, None] + e).all()


def test_cifar100():
    rules, formula = only("cifar100.rules")
    classes = rules.symbols["p"].classes
    groups = [value for value in rules.names.values() if hasattr(value, "members")]
    assert len(classes) == 100
    assert list(classes) == sorted(classes)
    assert [len(group.members) for group in groups] == [5] * 20
    assert sorted(name for group in groups for name in group) == list(classes)
    assert [group.name for group in groups] == sorted(group.name for group in groups)
    assert set(rules.names["reptiles"]) == {"crocodile", "dinosaur", "lizard", "snake", "turtle"}

    membership = torch.tensor([[float(name in group.members) for group in groups] for name in classes])
    p = dl.var("p", 100)
    s = p @ membership
    rule = ((s == 0) | (s == 1)).all()
    probabilities = torch.randn(64, 100, dtype=torch.float64).mul(4).softmax(-1)
    sure = torch.eye(100, dtype=torch.float64)
    for values in (probabilities, sure):
        assert torch.allclose(formula.cost(p=values), rule.cost(p=values), atol=1e-12)
        assert torch.equal(formula.satisfied(tol=0.01, p=values), rule.satisfied(tol=0.01, p=values))
    assert formula.satisfied(p=sure).all()
    assert not formula.satisfied(p=probabilities).any()


def test_animals():
    rules = dl.load_rules(EXAMPLES / "animals.rules")
    assert len(rules.symbols) == 36
    names = list(rules.symbols)
    places = [torch.arange(24) // 6, 4 + torch.arange(24) // 3, 12 + torch.arange(24)]
    labels = torch.stack([torch.nn.functional.one_hot(place, 36) for place in places]).sum(0)
    flipped = labels.clone()
    flipped[torch.arange(24), torch.randint(36, (24,))] ^= 1
    for given, right in ((labels, True), (flipped, False)):
        tensors = dict(zip(names, (8.0 * given - 4).unbind(1)))
        held = [rule.satisfied(**{name: tensors[name] for name in rule.symbols}) for rule in rules.values()]
        assert (torch.stack(held).all(0) == right).all()


def test_every_example_is_tested_here():
    assert sorted(path.name for path in EXAMPLES.iterdir()) == [
        "animals.rules",
        "cifar100.rules",
        "digits.rules",
        "distances.rules",
        "formulas.rules",
    ]


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", blocks("rules"))
def test_rule_files_of_the_documentation(text):
    rules = dl.parse_rules(text)
    for formula in rules.values():
        assert dl.parse(str(formula), rules) is formula


VOCABULARY = """
var x, y
var p, q: 3
class f, g: {cat, dog, owl}
class k, m: 3
bool A, B, C
bool a, b, c, d
axis n: max 4
mask valid: n
group pets = {cat, dog}
constant table = [[1, 0], [0, 1], [1, 1]]
rule r: A
"""


def test_what_the_tables_of_the_documentation_say():
    rules = dl.parse_rules(VOCABULARY)
    section = PAGE.read_text(encoding="utf-8").split("## What a rule says")[1].split("\n\n")[1]
    rows = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in section.split("\n")[2:]]
    same = 0
    for row in rows:
        written = [text.replace("\\|", "|") for text in re.findall(r"`([^`]+)`", row[0])]
        assert written
        for text in written:
            if ".all" not in text and ".any" not in text:
                dl.parse(text, rules)
        also = [text.replace("\\|", "|") for text in re.findall(r"`([^`]+)`", row[2])] if len(row) > 2 else []
        if written[0].startswith(("if", "A iff", "B given")):
            assert all(dl.parse(text, rules) is dl.parse(written[0], rules) for text in also)
            same += len(also)
    assert same == 7
    assert dl.parse("a and b | c", rules) is dl.parse("a and (b | c)", rules)
    assert dl.parse("a >> b & c", rules) is dl.parse("(a >> b) & c", rules)
    assert dl.parse("a or b -> c and d", rules) is dl.parse("(a or b) -> (c and d)", rules)


def test_the_statements_of_the_documentation_are_read():
    from dualogic.text.source import Source
    from dualogic.text.syntax import KEYWORDS, to_tree

    section = PAGE.read_text(encoding="utf-8").split("## What a file declares")[1].split("\n\n")[1]
    written = [text for line in section.split("\n")[2:] for text in re.findall(r"`([^`]+)`", line.split(" | ")[0])]
    for text in written:
        to_tree(Source(text), text, "statement")
    assert {text.split()[0] for text in written} == set(KEYWORDS)
