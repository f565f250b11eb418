"""What lint takes, what it says about what it cannot see, and how long it may take."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import dualogic as dl

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "rules").glob("*.rules"))


def kinds(findings, above=True):
    return sorted(finding.kind for finding in findings if finding.severity != "info" or not above)


def test_importing_the_package_does_not_import_z3():
    code = "import sys, dualogic as dl; dl.lint, dl.Finding; print('z3' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_package_and_the_function_share_a_name():
    import dualogic.lint

    assert callable(dualogic.lint)
    assert dualogic.lint is dl.lint
    assert callable(sys.modules["dualogic.lint"])
    assert sys.modules["dualogic.lint"](dl.boolean("a") & ~dl.boolean("a"))[0].kind == "unsatisfiable"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a & b >> c", True),
        ("a >> (b & (b >> c))", True),
        ("(a & b) >> c", False),
        ("(a >> b) & (b >> c)", False),
        ("(a >> b) & c", False),
        ("a | b >> c", False),
    ],
)
def test_a_conjunction_that_ends_in_an_implication(text, told):
    formula = eval(text, {name: dl.boolean(name) for name in "abc"})
    findings = [finding for finding in dl.lint(formula) if finding.kind == "grouping"]
    assert len(findings) == told
    for finding in findings:
        assert finding.severity == "info"
        assert "`a & (b >> c)`" in finding.message or "`b & (b >> c)`" in finding.message
        assert "(a & b) >> c" in finding.message


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_tasks_rules_are_sound_and_checked_in_seconds(path):
    start = time.process_time()
    findings = dl.lint(dl.load_rules(path), timeout=60)  # the solver's limit is one of the clock on the wall
    assert time.process_time() - start < 10
    assert kinds(findings) == []
    assert all(finding.kind != "unknown" for finding in findings)


def test_a_formula_a_mapping_and_a_rule_set_are_taken():
    a = dl.boolean("a")
    for rules in (a & ~a, {"rule": a & ~a}, dl.parse_rules("bool a\nrule rule: a and not a")):
        (finding,) = dl.lint(rules)
        assert (finding.kind, finding.severity, finding.rules) == ("unsatisfiable", "error", ("rule",))
        assert str(finding) == "error: rule 'rule' cannot hold: `a` and `~a` exclude each other [unsatisfiable]"
    with pytest.raises(TypeError, match="at least one rule"):
        dl.lint({})
    with pytest.raises(ValueError, match="still has axes"):
        dl.lint(dl.var("p", 3) <= 1)
    with pytest.raises(ValueError, match="declared twice"):
        dl.lint({"r": dl.var("p", 3).sum() <= 1, "s": dl.var("p") <= 1})


def test_ranges():
    v = dl.var("v", 2)
    rule = (v <= 3).all()
    assert kinds(dl.lint(rule)) == []
    assert kinds(dl.lint(rule, ranges={"v": (0, 1)})) == ["tautology"]
    assert kinds(dl.lint(rule, ranges={"v": (5, None)})) == ["unsatisfiable"]
    assert kinds(dl.lint(rule, ranges={"v": (None, 5)})) == []
    assert dl.lint(rule, ranges={"v": (5, None)})[0].witness["v"][0] >= 5
    with pytest.raises(ValueError, match="is empty"):
        dl.lint(rule, ranges={"v": (1, 0)})
    with pytest.raises(ValueError, match="must be a pair"):
        dl.lint(rule, ranges={"v": 1})
    with pytest.raises(ValueError, match="only a variable"):
        dl.lint(dl.boolean("a"), ranges={"a": (0, 1)})
    with pytest.raises(ValueError, match="no symbol of the rules"):
        dl.lint(rule, ranges={"u": (0, 1)})


def test_ranges_of_a_rule_file():
    rules = dl.parse_rules("var v, w: 2 in [-1, 0.5]\nvar u in [0, inf]\nvar t: 3\nrule r: (v <= 1).all() or u <= t.sum()")
    assert rules.ranges == {"v": (-1.0, 0.5), "w": (-1.0, 0.5), "u": (0.0, float("inf"))}
    assert kinds(dl.lint(rules)) == ["tautology"]
    assert kinds(dl.lint(rules, ranges={"v": (None, 2)})) == []
    with pytest.raises(dl.errors.ParseError, match=r"line 1, column 10: the range from 1 to 0 is empty"):
        dl.parse_rules("var v in [1, 0]\nrule r: v <= 1")
    with pytest.raises(dl.errors.ParseError, match=r"expected a number or inf as the end of a range; got 'one'"):
        dl.parse_rules("var v in [0, one]\nrule r: v <= 1")


def test_what_the_solver_cannot_see_is_free_and_said_so():
    v, w = dl.var("v"), dl.var("w")
    squashed = dl.apply(torch.sigmoid, v, name="sigmoid")
    findings = dl.lint(squashed <= -1)  # never true, but the solver cannot know
    assert kinds(findings) == []
    assert [finding.message for finding in findings if finding.kind == "opaque"] == [
        "rule 'rule': the solver takes `sigmoid(v)` for a free number"
    ]
    assert kinds(dl.lint((squashed <= 0) & (squashed >= 1))) == ["unsatisfiable"]  # the same free number twice
    assert kinds(dl.lint((2**v <= w) & (w**0.5 <= v) & (v / w <= 1))) == []


def test_no_answer_in_time_is_said():
    v, w, u = dl.var("v"), dl.var("w"), dl.var("u")
    hard = (v**3 + w**3 + u**3 == 42) & (v * w * u == 5) & (v**2 * w - u**5 + v * u**4 >= 7) & (v**7 - w**6 * u == 3)
    findings = dl.lint(hard, timeout=0.01)
    assert kinds(findings) == []
    unknown = [finding for finding in findings if finding.kind == "unknown"]
    assert unknown
    assert unknown[0].severity == "info"
    assert "whether it can hold" in unknown[0].message


def test_rules_too_large_to_write_out_are_said_to_be_unchecked():
    x = dl.var("x", 400, 400)
    (finding,) = dl.lint((x <= 1).all())
    assert (finding.kind, finding.severity) == ("unknown", "info")
    assert "more than 100,000" in finding.message
    f = dl.categorical("f", 10**9)
    (finding,) = dl.lint(f == 1)
    assert "the rules have 1,000,000,001 parts, more than 100,000" in finding.message
    a = dl.boolean("a", 250)
    (finding,) = dl.lint(dl.ExactlyOne(*(a[place] for place in range(250))))
    assert finding.message == "rule 'rule': its gradient was not looked at: the rule is too large"


def test_lengths_of_ragged_axes():
    n = dl.axis("n", max=5)
    s, x = dl.categorical("s", 3, shape=(n,)), dl.var("x", n)
    different = dl.And(*((s[:-gap] != s[gap:]).all() for gap in range(1, 5)))
    (finding,) = [finding for finding in dl.lint(different) if finding.severity != "info"]
    assert (finding.kind, finding.severity) == ("unsatisfiable", "warning")  # up to three entries it can hold
    assert "when n = 5" in finding.message
    apart = {f"gap{gap}": (s[:-gap] != s[gap:]).all() for gap in range(1, 5)}
    (finding,) = [finding for finding in dl.lint(apart) if finding.severity != "info"]
    assert (finding.kind, finding.severity, finding.rules) == ("conflict", "warning", ("gap1", "gap2", "gap3"))
    assert "when n = 5" in finding.message
    assert kinds(dl.lint((x.sum() <= -1) & (x >= 0).all())) == ["unsatisfiable"]
    assert kinds(dl.lint((x[-2] > x.max()) | (x[-2] < x.min()))) == ["unsatisfiable"]
    assert kinds(dl.lint((x[0] <= 0) | (x[-1] > 0))) == []  # with one entry it always holds, with more it may fail


def test_masks_that_cannot_all_leave_something_in():
    n = dl.axis("n", max=1)
    x, m = dl.var("x", n), dl.mask("m", n)
    assert kinds(dl.lint({"in": (x <= 0).all(where=m), "out": (x >= 1).all(where=~m)})) == []


def test_a_long_sum_and_many_clauses():
    x = dl.var("x", 2000)
    total = x[0]
    for place in range(1, 2000):
        total = total + x[place]
    assert kinds(dl.lint((total <= -1) & (x >= 0).all())) == ["unsatisfiable"]
    clauses = dl.And(*((x[place] <= 0) | (x[place + 1] >= 1) for place in range(300)))
    assert kinds(dl.lint(clauses)) == []


def test_what_holds_elsewhere_but_not_where_the_antecedent_does_is_said_so():
    a, b, v, w = dl.boolean("a"), dl.boolean("b"), dl.var("v"), dl.var("w")
    outside = "where the antecedent `v <= 0` holds"
    for rules, message in (
        ((v <= 0) >> ((v >= 1) | (w >= 1)), f"the alternative `v >= 1` can never hold {outside}"),
        ({"r": a >> (b | (v <= 0)), "s": v >= 1}, "the alternative `v <= 0` can never hold beside rule 's'"),
        (
            {"r": a >> (b | (v <= 0)), "s": a >> (v >= 1)},
            "the alternative `v <= 0` can never hold where the antecedent `a` holds beside rule 's'",
        ),
        (
            a >> (b >> ((w <= 0) | dl.Xor(~a, ~b))),
            "the alternative `Xor(~a, ~b)` can never hold where the antecedents `a` and `b` hold",
        ),
        ((v <= 0) >> (dl.evidence(v >= 1) >> (w <= 0)), f"(v >= 1)` can never hold {outside}, so nothing follows"),
        ((v <= 0) >> (a >> (v >= 1)), f"the consequent `v >= 1` can never hold together with its antecedent {outside}: all that"),
        (a >> ((v <= 0) >> (v >= 1)), "the consequent `v >= 1` can never hold together with its antecedent: all that"),
    ):
        messages = [finding.message for finding in dl.lint(rules) if finding.kind in ("dead-branch", "vacuous")]
        assert any(message in found for found in messages), messages


def test_evidence_means_what_it_marks():
    a, b = dl.boolean("a"), dl.boolean("b")
    assert kinds(dl.lint({"r": dl.evidence(a) >> b, "s": ~a})) == ["vacuous"]
    assert kinds(dl.lint(dl.evidence(a & ~a) >> b)) == ["vacuous"]
    assert kinds(dl.lint(dl.evidence(a) & ~a)) == ["unsatisfiable"]
    assert kinds(dl.lint(dl.evidence(a) >> b)) == []
