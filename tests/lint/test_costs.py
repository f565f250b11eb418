"""Costs below the distance (Theorem 2), and costs without gradient, against enumeration and autograd."""

import random
from pathlib import Path

import pytest
import torch

import dualogic as dl
from dualogic.formula.symbol import Categorical
from dualogic.lint.gradient import check_gradient
from dualogic.lint.looseness import check_looseness
from dualogic.lint.samples import draw_inputs
from witnesses import to_tensors

ROOT = Path(__file__).parents[2]
v, w, p = dl.var("v"), dl.var("w"), dl.var("p", 10)
# Thresholds are whole numbers and slopes 0 or 1, so costs and distances bend at halves only.
HALVES = torch.arange(-6, 20, dtype=torch.float64) / 2


def loose(rule, **options):
    findings = check_looseness("r", rule, options.get("ranges", {}), 3)
    assert all(finding.kind == "loose" and finding.severity == "info" for finding in findings), findings
    return findings


def draw(choose):
    def atom():
        return getattr(dl, choose.choice(["le", "ge", "le", "ge", "eq"]))(v, choose.randrange(6))

    def clause():
        outside = choose.randrange(4)
        return dl.Or(v <= outside, v >= outside + choose.randrange(1, 4), *(atom() for _ in range(choose.randrange(2))))

    parts = [choose.choice([clause, clause, atom])() for _ in range(choose.choice([1, 2, 3]))]
    return choose.choice([dl.And, dl.And, dl.Or])(*parts)


def test_random_rules_agree_with_enumeration():
    choose = random.Random(0)
    counts = {True: 0, False: 0}
    while min(counts.values()) < 25:
        rule = draw(choose)
        satisfying = HALVES[rule.satisfied(v=HALVES)]
        if not len(satisfying):
            continue
        distance = (HALVES[:, None] - satisfying[None, :]).abs().amin(1)
        expected = bool((rule.cost(v=HALVES) < distance).any())
        counts[expected] += 1
        if counts[expected] > 60:
            continue
        findings = loose(rule)
        assert bool(findings) == expected, rule
        for finding in findings:
            here = torch.tensor([finding.witness["v"]], dtype=torch.float64)
            assert rule.cost(v=here) < (here - satisfying).abs().amin() - 1e-7


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_terms_with_one_polarity_are_never_loose(depth):
    choose = random.Random(depth)

    def monotone(level):
        if level == 0:
            return choose.choice([dl.le, dl.lt])(choose.choice([v, v + w, p[1:3].sum() - 2 * p[0]]), choose.randrange(-3, 4))
        return choose.choice([dl.And, dl.Or])(*(monotone(level - 1) for _ in range(2)))

    for _ in range(20):
        assert loose(monotone(depth)) == []


def test_the_example_of_the_notes():
    (finding,) = loose(((v <= 0) | (v >= 10)) & (v >= 2))
    assert finding.witness == {"v": 1.0}
    assert "1 at the example, where the distance is 9" in finding.message


def test_what_couples_terms_counts():
    both = (v <= 0) | (v >= 10)
    assert loose(both) == []
    assert loose(both & (w >= 2)) == []
    assert loose(both & ((w <= 0) | (v >= 2)))
    assert loose(((p == 0) | (p == 1)).all()) == []  # each entry by itself
    s = dl.categorical("s", 4).probabilities
    assert loose(((s == 0) | (s == 1)).all())  # but probabilities sum to 1: all near 0 is far from all decided
    assert loose((v >= 0) | (v <= -4), ranges={"v": (-3, 1)})  # -4 is out of reach


def test_rules_about_classes_have_no_distance():
    f, a = dl.categorical("f", 3), dl.boolean("a")
    assert loose((f == 0) | a & (v <= 0)) == []


FLAT = [
    (v <= 0) | (v >= 10),
    (v == 0) | (v == 1),
    ((p == 0) | (p == 1)).all(),
    dl.Iff(dl.boolean("a"), dl.boolean("b")),
    dl.categorical("f", 3) == dl.categorical("g", 3),
    dl.boolean("a", input="logits") & ~dl.boolean("a", input="logits") | (v <= 0) & (v >= 1),
]
STEEP = [
    (v >= 0) & (v <= 1),
    (v == 1) | (v == 2) | (v == 3),
    v == w,
    (dl.categorical("g", 10) == 9) >> (dl.categorical("f", 10, input="logits") == 6),
    dl.boolean("a") >> dl.boolean("b"),
    dl.ExactlyOne(dl.boolean("a"), dl.boolean("b"), dl.boolean("c")),
]


@pytest.mark.parametrize("rule", FLAT, ids=str)
def test_flat_at_equal_weights(rule):
    (finding,) = check_gradient("r", rule, {})
    assert (finding.kind, finding.severity) == ("zero-gradient", "info")
    leaves, bound = {}, {}
    for name, tensor in to_tensors(rule.symbols, finding.witness).items():
        symbol, classes = rule.symbols[name], isinstance(rule.symbols[name], Categorical)
        if getattr(symbol, "input", "") != "probs":
            leaves[name] = bound[name] = tensor.requires_grad_()
            continue
        leaves[name] = (tensor.log() if classes else tensor.logit()).requires_grad_()
        bound[name] = leaves[name].softmax(-1) if classes else leaves[name].sigmoid()
    assert not rule.satisfied(tol=1e-6, **{name: tensor.detach() for name, tensor in bound.items()})
    class_cost = "probability" if 'with the option class_cost="probability" only' in finding.message else "log"
    dl.LogicLoss(rule, method=dl.methods.Uniform(class_cost=class_cost), dtype=torch.float64)(**bound).backward()
    assert all(leaf.grad.abs().max() < 1e-7 for leaf in leaves.values())


@pytest.mark.parametrize("rule", STEEP, ids=str)
def test_steep_at_equal_weights(rule):
    assert check_gradient("r", rule, {}) == []


def test_the_rule_of_cifar100_is_flat_and_loose():
    findings = dl.lint(dl.load_rules(ROOT / "examples" / "rules" / "cifar100.rules"))
    assert sorted(finding.kind for finding in findings) == ["loose", "zero-gradient"]
    assert all(finding.severity == "info" for finding in findings)
    assert "0.05 at the example, where the distance is 0.95" in next(f.message for f in findings if f.kind == "loose")


def test_a_rule_that_is_all_evidence_has_no_gradient():
    a, b = dl.boolean("a"), dl.boolean("b")
    for rule in (dl.evidence(a), dl.evidence(a) >> dl.evidence(b), dl.evidence(v <= 0)):
        assert [(finding.kind, finding.severity) for finding in dl.lint(rule)] == [("zero-gradient", "info")]


def test_masks_that_leave_nothing_and_constant_terms_are_no_place_to_look():
    p, gap = dl.var("p", 3), dl.mask("gap", 3)
    assert dl.lint((p <= 1).any(where=~gap) & (p.sum() >= 5)) == []  # its cost is infinite where all are gaps
    assert dl.lint((v**0 <= [0.5, 1, 0]).any(where=gap)) == []


def test_a_function_that_refuses_inputs_is_reported():
    def picky(value):
        if (value < 0).any():
            raise RuntimeError("negative")
        return value.sqrt()

    findings = dl.lint(dl.apply(picky, v, shape=()) <= 1)
    assert sorted(finding.kind for finding in findings) == ["opaque", "unknown"]
    assert any("RuntimeError: negative" in finding.message for finding in findings)


def test_a_rule_too_large_for_its_gradient_is_said_to_be():
    f = dl.categorical("f", 400, shape=(6,))
    (finding,) = check_gradient("r", (f[1:] == f[:-1]).all(), {})
    assert (finding.kind, finding.severity) == ("unknown", "info")
    assert "the rule is too large" in finding.message


def test_large_symbols_get_few_inputs():
    big = dl.var("big", 300, 200)
    assert draw_inputs(big[0, 0] <= 1, {})["big"].shape[0] <= 8
    inputs = draw_inputs((v <= 0) | (v >= 1), {"v": (0.25, 0.75)})["v"]
    assert len(inputs) > 30
    assert ((inputs >= 0.25) & (inputs <= 0.75)).all()
