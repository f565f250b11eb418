"""Rules are saved as a rule file that loads to the same rules."""

import math

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import assume, given

import dualogic as dl
import strategies
from dualogic.errors import FormulaTypeError, ParseError, SizeError, SymbolError
from dualogic.formula.function import Application
from dualogic.formula.node import walk
from dualogic.formula.shape import Ragged

names = st.text(min_size=1, max_size=5)
bounds = st.floats(allow_nan=False)


@given(
    st.dictionaries(names, st.one_of(strategies.formulas(), strategies.quantified()), min_size=1, max_size=3),
    st.dictionaries(st.sampled_from("xyz"), st.tuples(bounds, bounds).map(sorted).map(tuple)),
)
def test_the_same_rules_come_back(tmp_path_factory, rules, ranges):
    assume(not any(isinstance(node, Application) for node in walk(*rules.values())))
    file = tmp_path_factory.mktemp("rules") / "my.rules"
    saved = dl.RuleSet(rules, ranges=ranges)
    saved.save(file)
    loaded = dl.load_rules(file)
    assert loaded == saved == rules
    assert list(loaded) == list(rules)
    assert loaded.symbols == saved.symbols
    assert loaded.ranges == {name: ends for name, ends in ranges.items() if name in saved.symbols}


@pytest.mark.parametrize("word", ["None", "in", "is", "not", "and", "if", "then", "given"])
def test_classes_and_rules_named_by_words_of_the_language(word, tmp_path):
    f = dl.categorical("f", 3, classes=[word, "b", "c"])
    rules = {word: (f == word) >> f.isin([word, "b"])}
    dl.RuleSet(rules).save(tmp_path / "my.rules")
    assert dl.load_rules(tmp_path / "my.rules") == rules


def test_what_a_file_declared_is_declared_again(tmp_path):
    text = """
        axis n: max 7
        class pet, other: {cat, "guinea pig", owl} for each n from logits
        group furry = {cat, "guinea pig"}
        group cat = {owl}
        group feathered = {"cat", owl}
        class digit: 3
        membership even of digit = {evens}
        let sum = (digit.probabilities @ even).sum()
        var price in [0, inf]
        var spare: n, 2
        bool wet: n from logits
        mask valid: n
        rule first: (if pet in furry then wet).all(where=valid)
        rule second: sum <= price
    """.replace("membership", "group evens = {0, 2}\n        membership")
    rules = dl.parse_rules(text)
    rules.save(tmp_path / "again.rules")
    again = dl.load_rules(tmp_path / "again.rules")
    assert again == rules
    assert again.symbols == rules.symbols
    assert again.ranges == rules.ranges == {"price": (0, math.inf)}
    assert {name: value for name, value in rules.names.items() if name != "sum"} == again.names


def softened(value):
    return value * torch.relu(value)


N = dl.axis("n", max=4)
REFUSED = {
    "a function": ({"soft": dl.apply(softened, dl.var("x")) <= 1}, SymbolError, "rule 'soft' calls the function 'softened'"),
    "a table": ({"odd": dl.apply(softened, dl.categorical("k", 3)) > 1}, SymbolError, "rule 'odd' calls the function 'softened'"),
    "one name for two": ({"r": (dl.var("n", N) <= 1).all()}, SymbolError, "'n' names both an axis and something else"),
    "a cut axis": ({"r": (dl.var("x", Ragged(N, 1)) <= 1).all()}, SymbolError, "'x' has an axis of length n - 1"),
    "axes left": ({"r": dl.boolean("b", 3)}, ParseError, r"rule 'r' still has axes \(3,\)"),
    "no rule": ({}, ParseError, "there is no rule here"),
}


def test_shared_parts_that_would_never_be_written_out(tmp_path):
    term = dl.var("x")
    for _ in range(200):
        term = term + term
    with pytest.raises(SizeError, match=r"it would have about 10\^\d+ bytes; split them, or keep them in Python"):
        dl.RuleSet({"r": term <= 1}).save(tmp_path / "my.rules")
    with pytest.raises(SizeError, match=r"it would have 6,000,048 bytes"):
        dl.RuleSet({"r": dl.constant("many", torch.full((10**6,), 0.25)).sum() <= dl.var("x")}).save(tmp_path / "my.rules")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("rules", [[dl.boolean("b")], dl.boolean("b"), {1: dl.boolean("b")}])
def test_rules_need_names(rules):
    with pytest.raises(FormulaTypeError, match=r'a RuleSet needs names: \{"first": a >> b\}; got a '):
        dl.RuleSet(rules)


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_file_cannot_say(case, tmp_path):
    rules, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        dl.RuleSet(rules).save(tmp_path / "my.rules")
    assert not list(tmp_path.iterdir())
