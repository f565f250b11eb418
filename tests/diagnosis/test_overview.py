"""Many rules at a glance: one row for each, the worst first, and details on request."""

import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dualogic as dl
from dualogic.diagnosis import make_overview, verdict
from dualogic.diagnosis.render import MANY

a, b = dl.boolean("a", 45), dl.boolean("b", 45)
RULES = {f"rule {number}": a[number] >> b[number] for number in range(45)}


def diagnose(asked, kept, rules=RULES):
    """Rule k is asked for on so many of ten samples, and holds on so many of these."""
    rows = torch.arange(10).unsqueeze(1)
    asked, kept = (torch.tensor([values[number % len(values)] for number in range(45)]) for values in (asked, kept))
    return dl.diagnose(rules, a=(rows < asked).float(), b=(rows < kept).float())


counts = st.lists(st.integers(0, 10), min_size=1, max_size=45)


@settings(max_examples=10, deadline=None)
@given(counts, counts, counts)
def test_each_rule_has_one_row_and_the_worst_comes_first(asked, kept, before):
    report = diagnose(asked, kept)
    for judged in (report, report.compare(diagnose(asked, before))):
        rows = make_overview(judged)
        assert sorted(row["rule"] for row in rows) == sorted(RULES)
        ranks = [(verdict.KINDS.index(row["kind"]), row["holds"]) for row in rows]
        assert ranks == sorted(ranks)
        for row in rows:
            rule = report.rules[row["rule"]]
            assert (row["holds"], row["vacuous"], row["text"]) == (rule.satisfied, rule.antecedent.denied, rule.text)
            assert row["kind"] == judged.rules[row["rule"]].kind
        lines = str(judged).splitlines()
        shown = [line for line in lines if line.startswith("  rule ") and "%" in line and ":" not in line]
        assert len(shown) == 45
        assert [line.strip().partition("  ")[0] for line in shown] == [row["rule"] for row in rows]
        assert len(lines) < 45 + 20
        assert judged.kind in shown[0] or judged.kind == verdict.WORSE
        assert lines[0].startswith(f"  {rows[0]['rule']}: {rows[0]['verdict']}") or judged.kind == verdict.WORSE


def test_what_is_printed_of_many_rules():
    report = diagnose([10, 0], [3, 0])
    text = str(report)
    assert "violated" in text
    assert "antecedent never true" in text
    assert text.endswith("All about one rule: print(report.details('rule 0')); about all: print(report.details()).")
    assert "| rule | holds | vacuous | verdict |\n|---|---:|---:|---|" in report.to_markdown()
    comparison = report.compare(diagnose([10], [3]))
    assert "before" in str(comparison)
    assert "print(comparison.details('rule 0'))" in str(comparison)
    assert "antecedent switched off" in str(comparison)
    assert verdict.REMEDIES[verdict.SWITCHED_OFF] in str(comparison)


def test_details_are_what_few_rules_print():
    report, few = diagnose([10, 0], [3, 0]), {name: RULES[name] for name in list(RULES)[:2]}
    small = diagnose([10, 0], [3, 0], few)
    assert str(small).endswith(small.details())
    assert report.details("rule 0", "rule 1") == small.details()
    assert report.details("rule 1") in report.details()
    comparison, other = report.compare(report), small.compare(small)
    assert comparison.details("rule 0", "rule 1") == other.details()
    with pytest.raises(dl.errors.SymbolError, match="there is no rule named 'rule 99'; the rules are 'rule 0', 'rule 1'"):
        report.details("rule 99")


@pytest.mark.parametrize("number", [1, MANY, MANY + 1])
def test_a_few_rules_are_shown_in_full(number):
    report = diagnose([10], [3], {name: RULES[name] for name in list(RULES)[:number]})
    assert ("All about one rule" in str(report)) == (number > MANY)
    assert ("largest cost" in str(report)) == (number <= MANY)


def test_a_data_frame():
    pandas = pytest.importorskip("pandas")
    report = diagnose([10, 0], [3, 0])
    frame = report.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.index) == [row["rule"] for row in make_overview(report)]
    assert frame.loc["rule 0", "holds"] == pytest.approx(0.3)
    assert "before" in report.compare(report).to_frame().columns


def test_a_data_frame_without_pandas(monkeypatch):
    class Frame(list):
        def set_index(self, name):
            return {row.pop(name): row for row in self}

    monkeypatch.setitem(sys.modules, "pandas", type(sys)("pandas"))
    monkeypatch.setattr(sys.modules["pandas"], "DataFrame", Frame, raising=False)
    report = diagnose([10], [3])
    assert report.to_frame()["rule 7"]["kind"] == verdict.VIOLATED
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(dl.errors.MissingExtraError, match="needs pandas, which is not installed; type: pip install pandas"):
        report.to_frame()
