"""One sentence for each way in which a rule comes to be satisfied."""

import pytest
import torch

import dualogic as dl
from dualogic.diagnosis import verdict
from dualogic.report.headline import SEVERITY, TONES, describe_untaught, write_headline

f, g, x = dl.categorical("f", 3), dl.categorical("g", 3), dl.var("x")
RULE = (g == 2) >> (f == 1)
WORDS = {"g == 2": "saying two", "f == 1": "saying one"}
LABELS = torch.tensor([0] * 50 + [1] * 50)


def report(on_f, on_g, labels=LABELS, rules=RULE):
    """Class 0 is never concerned; in class 1, f is 1 on so many samples, and g is 2."""

    def sure(count, number):
        classes = torch.zeros(100, dtype=torch.long)
        classes[50 : 50 + count] = number
        return torch.nn.functional.one_hot(classes, 3).float()

    return dl.diagnose(rules, labels=labels, f=sure(on_f, 1), g=sure(on_g, 2))


def headline(after, before=(0, 50)):
    found = report(*after)
    return write_headline(found, None if before is None else found.compare(report(*before)), WORDS)


@pytest.mark.parametrize(
    ("after", "tone", "sentence"),
    [
        (
            (0, 0),
            "shortcut",
            "The rule is satisfied by never saying two of class 1 (100.0 % without the rule, 0.0 % with it), not by saying one "
            "(0.0 % without, 0.0 % with).",
        ),
        ((0, 4), "shortcut", "The rule is satisfied by almost never saying two of class 1 ("),
        (
            (50, 50),
            "learned",
            "The rule is satisfied as meant: by saying one of class 1 (0.0 % without, 100.0 % with), while saying ",
        ),
        (
            (50, 0),
            "both ways",
            "The rule is satisfied both ways: by saying one of class 1 (0.0 % without, 100.0 % with), and by never ",
        ),
        (
            (50, 20),
            "both ways",
            "The rule is satisfied both ways: by saying one of class 1 (0.0 % without, 100.0 % with), and by less ",
        ),
        (
            (0, 50),
            "broken",
            "The rule is not satisfied: saying two of class 1 goes on (100.0 % without the rule, 100.0 % with it) ",
        ),
    ],
)
def test_against_a_baseline(after, tone, sentence):
    found = headline(after)
    assert (found.tone, found.label) == (tone, 1)
    assert found.sentence.startswith(sentence)
    assert found.sentence.endswith(").")
    assert found.sentence.count(".") == found.sentence.count(". ") + found.sentence.count(".0 %") + 1
    assert found.details


@pytest.mark.parametrize(
    ("after", "tone", "start"),
    [
        ((0, 0), "shortcut", "The rule is satisfied by never saying two of class 1 (0.0 %), not by saying one (0.0 %)."),
        (
            (50, 0),
            "both ways",
            "The rule is satisfied both ways: by saying one of class 1 (100.0 %), and by never saying two (0.0 %).",
        ),
        ((50, 50), "learned", "The antecedent g == 2 is true for 50.0 % of the samples, and for 100.0 % of these f == 1 holds."),
        ((0, 50), "broken", "Violated on 50.0 % of the samples, and on 100.0 % of class 1."),
    ],
)
def test_by_the_labels_of_the_symbols(after, tone, start):
    truth = {"f": LABELS, "g": 2 * LABELS}
    found = write_headline(report(*after, labels=truth), None, WORDS)
    assert (found.tone, found.sentence) == (tone, start)


def test_where_it_was_is_said_once():
    after, before = report(0, 0), report(0, 50)
    found = write_headline(after, after.compare(before), {}).sentence
    assert found.startswith("The rule is satisfied by never making g == 2 true on samples of class 1 (")
    assert ", not by making f == 1 true (0.0 % without, 0.0 % with)." in found


def test_without_baseline_and_labels_it_stays_open():
    found = headline((0, 0), before=None)
    assert (found.tone, found.kind) == ("unclear", verdict.VACUOUS)
    assert "whether it was switched off only a baseline or labels of its symbols can tell" in found.sentence


def test_a_rule_that_is_no_implication_says_how_often_it_holds():
    low, high = (dl.diagnose((x <= 0) & (x >= -1), x=torch.full((4,), value)) for value in (3.0, -0.5))
    found = write_headline(high, high.compare(low), {})
    assert found.sentence == "The rule holds on 0.0 % of the samples untaught, on 100.0 % taught."


def test_the_most_serious_of_several_rules_is_named():
    rules = {"easy": f != 2, "hard": RULE}
    before, after = report(0, 50, rules=rules), report(0, 0, rules=rules)
    found = write_headline(after, after.compare(before), WORDS)
    assert found.tone == "shortcut"
    assert found.sentence.startswith("hard: The rule is satisfied by never saying two of class 1")


def test_a_run_without_a_rule_is_not_judged():
    found = describe_untaught(report(0, 50))
    assert found.tone == "no rule"
    assert found.sentence == "No rule was taught: violated on 50.0 % of the samples, and on 100.0 % of class 1."


def test_every_tone_has_a_rank():
    assert {*TONES.values(), "unclear"} <= set(SEVERITY)
    assert TONES.keys() <= set(verdict.KINDS)


def test_rules_that_are_worse_only_together_are_said_to_be():
    """Each of three rules is lost on 0.9 % of the samples, which is little; on 2.7 % one of them is."""
    rules = {name: dl.boolean(name) for name in "abc"}
    lost = torch.arange(1000) // 9
    before = dl.diagnose(rules, **dict.fromkeys(rules, torch.ones(1000)))
    after = dl.diagnose(rules, **{name: (lost != number).float() for number, name in enumerate(rules)})
    found = write_headline(after, after.compare(before), {})
    sentence = "Worse than without the rules: all of them hold on 97.3 % of the samples, on 100.0 % without."
    assert (found.tone, found.kind, found.sentence) == ("broken", verdict.WORSE, sentence)
    assert found.details[0] == sentence
