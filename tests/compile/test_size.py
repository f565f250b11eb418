"""Rules that are small as written and huge as a tree: refused before anything is built, printed and saved in linear time."""

import functools
import operator
import pickle
import time

import pytest
import torch

import dualogic as dl
from dualogic.compile.build import Builder
from dualogic.compile.plan import compile_rules
from dualogic.compile.size import find_size
from dualogic.formula.printing import TEXT_LIMIT, fingerprint, stands_for, to_rope
from dualogic.normalize.nnf import to_nnf

SECONDS = 20.0
"""Of processor time, for what takes a tenth of that."""


def nest(join, count):
    return functools.reduce(join, [dl.boolean(f"a{number}") for number in range(count)])


def alternate(count):
    """``((a & b) | c) & a ...``: a level deeper with every step."""
    letters = dl.boolean("a"), dl.boolean("b"), dl.boolean("c")
    rule = letters[0]
    for number in range(1, count):
        rule = rule & letters[number % 3] if number % 2 else rule | letters[number % 3]
    return rule


def double(count, of=None):
    """A chain of ``let t = t + t``."""
    term = dl.var("x") if of is None else of
    for _ in range(count):
        term = 0.5 * (term + term)
    return term


@pytest.fixture(autouse=True)
def in_little_time():
    began = time.process_time()
    yield
    assert time.process_time() - began < SECONDS


def test_the_size_of_a_plan_is_that_of_the_plan():
    x, y, p = dl.var("x"), dl.var("y"), dl.var("p", 3)
    rules = [
        nest(dl.Xor, 5),
        nest(dl.Iff, 5),
        alternate(9),
        (x <= 1) >> ((p <= 1).all() | (y >= 2)),
        dl.ExactlyOne(x <= 0, y <= 0, (p >= 3).any()),
        dl.evidence((x <= 1) & (y <= 1)) >> ((dl.categorical("f", 4) != 1) & (x >= y)),
    ]
    for rule in rules:
        for resting in (False, True):
            size = find_size(to_nnf(rule, None if resting else 0.0, resting))
            plan = compile_rules([("rule", rule)], "log", None if resting else 0.0, resting)
            assert size.levels == len(plan.levels)
            connectives = sum(len(level.paths) for level in plan.levels)
            assert size.places == connectives + sum(len(leaf.formulas) for leaf in plan.leaves)


@pytest.mark.parametrize("join", [dl.Iff, dl.Xor])
@pytest.mark.parametrize("count", [16, 25, 40, 100])
def test_nested_equivalences_are_refused_before_anything_is_built(join, count, monkeypatch):
    monkeypatch.setattr(Builder, "roots", lambda *arguments: pytest.fail("a plan is being built"))
    rule = nest(join, count)
    for method in ("dual", "uniform", "dl2", "godel", "ltn"):
        with pytest.raises(dl.errors.SizeError, match=r"rule 'parity' .*dl\.Iff\(c, inner\), and use c in its place"):
            dl.LogicLoss({"parity": rule}, method=method)
    tensors = {name: torch.ones(2) for name in rule.symbols}
    for ask in (rule.cost, rule.satisfied):
        with pytest.raises(dl.errors.SizeError):
            ask(**tensors)


def test_the_size_is_told_as_it_would_be():
    with pytest.raises(dl.errors.SizeError, match=r"written out 49,147 places .* in 20,477 operations") as caught:
        dl.LogicLoss(nest(dl.Xor, 14))
    assert len(str(caught.value)) < 1200


def test_small_ones_still_work():
    for join in (dl.Iff, dl.Xor):
        rule = nest(join, 6)
        tensors = {name: torch.full((1,), 0.3, requires_grad=True) for name in rule.symbols}
        dl.LogicLoss(rule)(**tensors).backward()


def test_what_is_large_without_copies_is_not_refused():
    x = dl.var("x", 200)
    assert len(dl.LogicLoss(dl.ExactlyOne(*(x[place] <= 0 for place in range(200))))._program.plan.levels) == 3


def test_a_method_that_counts_models_takes_forty_of_them():
    pytest.importorskip("pysdd")
    rule = nest(dl.Iff, 40)
    values = torch.rand(40, 3, generator=torch.Generator().manual_seed(0))
    loss = dl.LogicLoss(rule, method="semantic")(**{f"a{number}": values[number] for number in range(40)})
    # The parity of independent bits: an Iff of forty holds where an even number of them is false.
    chance = 0.5 * (1 + (2 * values.double() - 1).prod(0))
    torch.testing.assert_close(loss.double(), -chance.log().mean(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("count", [62, 119, 200, 5000])
def test_deep_rules_are_refused_in_words(count):
    rule = alternate(count)
    for method in ("dual", "hard", "product"):
        with pytest.raises(dl.errors.SizeError, match="nest"):
            dl.LogicLoss(rule, method=method)
    if count > 119:
        pytest.importorskip("pysdd")
        with pytest.raises(dl.errors.SizeError, match=rf"can be nested 120 deep, and this one is {count:,} deep"):
            dl.LogicLoss(rule, method="semantic")
        with pytest.raises(dl.errors.SizeError, match="can be nested 120 deep"):
            rule.to_nnf()


def test_rules_of_sixty_levels_are_trained():
    tensors = {name: torch.full((2,), 0.4, requires_grad=True) for name in "abc"}
    dl.LogicLoss(alternate(61))(**tensors).backward()
    assert tensors["a"].grad is not None


def test_texts_of_shared_terms_are_cut_off():
    rule = double(200) <= 1
    assert len(str(rule)) < 1200
    assert str(rule).endswith("characters)")
    assert "(cut off: the text would have about 10^" in str(rule)
    assert rule.brief() == f"{str(rule)[:200]}..."
    assert len(str(double(16_000) <= 1)) < 1200
    assert hash(rule) == hash(double(200) <= 1)
    assert rule is (double(200) <= 1)
    assert pickle.loads(pickle.dumps(rule)) is rule


def test_a_text_that_fits_is_whole():
    rule = double(12) <= 1
    assert 10_000 < len(str(rule)) < TEXT_LIMIT
    assert dl.parse(str(rule), rule) is rule


def test_state_is_saved_without_the_text():
    logic = dl.LogicLoss({"let": double(200) <= 1, "short": dl.var("x") >= 0})
    saved = logic.state_dict()
    assert saved["_extra_state"]["rules"]["short"] == "x >= 0"
    assert len(saved["_extra_state"]["rules"]["let"]) < 300
    dl.LogicLoss(logic.rules).load_state_dict(saved)
    other = dl.LogicLoss({"let": double(200, dl.var("y")) <= 1, "short": dl.var("x") >= 0})
    with pytest.raises(RuntimeError, match="rule 'let' is"):
        other.load_state_dict(saved)
    monitor = dl.Monitor(logic, warn=False)
    monitor.load_state_dict(monitor.state_dict())
    assert len(repr(logic)) < 1000


def test_long_texts_of_older_checkpoints_are_read():
    rule = double(18) <= 1
    whole = to_rope(rule).start(to_rope(rule).length)
    assert len(whole) > TEXT_LIMIT
    assert stands_for(whole, rule)
    assert not stands_for(whole.replace("x", "y"), rule)
    logic = dl.LogicLoss(rule)
    saved = logic.state_dict()
    saved["_extra_state"] = {**saved["_extra_state"], "rules": {"rule": whole}}
    logic.load_state_dict(saved)
    saved["_extra_state"] = {**saved["_extra_state"], "rules": {"rule": whole[:-1] + "2"}}
    with pytest.raises(RuntimeError, match="rule 'rule' is"):
        logic.load_state_dict(saved)


def test_fingerprints_tell_formulas_apart():
    rules = [double(60) <= 1, double(61) <= 1, double(60) <= 2, double(60, dl.var("y")) <= 1, double(60) >= 1]
    assert len({fingerprint(rule) for rule in rules}) == len(rules)


def test_a_file_of_two_hundred_lets(tmp_path):
    pytest.importorskip("lark")
    file = tmp_path / "lets.rules"
    terms = "".join(f"let t{number + 1} = 0.5 * (t{number} + t{number})\n" for number in range(200))
    file.write_text(f"var x\nlet t0 = x\n{terms}rule low: t200 <= 1\n")
    rules = dl.load_rules(file)
    x = torch.full((2,), 3.0, requires_grad=True)
    torch.testing.assert_close(rules["low"].cost(x=x), torch.full((2,), 2.0))
    dl.LogicLoss(rules)(x=x).backward()
    assert len(str(rules["low"])) < 1200
    doubled = "".join(f"let f{number + 1} = (f{number} & a) | (f{number} & b)\n" for number in range(200))
    file.write_text(f"bool a, b\nlet f0 = a\n{doubled}rule deep: f200\n")
    with pytest.raises(dl.errors.SizeError, match="can be nested 120 deep"):
        dl.LogicLoss(dl.load_rules(file))
    file.write_text(f"bool a, b\nlet f0 = a\n{doubled}rule wide: f20\n")
    with pytest.raises(dl.errors.SizeError, match=r"rule 'wide' .* written out [\d,]+ places"):
        dl.LogicLoss(dl.load_rules(file))


@pytest.mark.parametrize("join", [operator.and_, operator.or_, dl.And, dl.Or])
def test_chains_that_double_are_refused_before_they_are_built(join):
    formula = dl.boolean("a")
    for _ in range(17):
        formula = join(formula, formula)
    assert len(formula.operands) == 2**17
    with pytest.raises(dl.errors.SizeError, match=r"would join 262,144 formulas in one connective, at most 250,000"):
        join(formula, formula)


def test_a_file_whose_chains_double(tmp_path):
    pytest.importorskip("lark")
    file = tmp_path / "lets.rules"
    doubled = "".join(f"let f{number + 1} = f{number} or f{number}\n" for number in range(200))
    file.write_text(f"bool a\nlet f0 = a\n{doubled}rule long: f200\n")
    with pytest.raises(dl.errors.ParseError, match=r"line 20, column 11: Or \(\|\) would join 262,144 formulas"):
        dl.load_rules(file)


def test_lint_answers_in_little_time():
    pytest.importorskip("z3")
    for rule in (nest(dl.Xor, 25), nest(dl.Iff, 40), double(200) <= 1, double(5000) <= 1, alternate(70)):
        assert [finding.kind for finding in dl.lint(rule, timeout=0.2)] == ["unknown"]
    with pytest.raises(dl.errors.SizeError, match="nested"):
        dl.lint(alternate(1000))
