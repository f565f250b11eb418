"""A consequent that came where no rule asks for it: what is counted, and when it is called applied too widely."""

import itertools

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

import dualogic as dl
from dualogic.diagnosis import alarm, verdict, watch
from dualogic.diagnosis.verdict import rises

p, r, q = dl.boolean("p"), dl.boolean("r"), dl.boolean("q")
RULE = p >> q
bits = st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=12)


def report(asked, elsewhere, asked_q=1.0, samples=200, labels=None, rule=RULE):
    """A model whose antecedent holds on a share of the samples, and whose consequent on shares of these and of the others."""
    place = torch.arange(samples)
    true = place < round(asked * samples)
    others = place - round(asked * samples)
    consequent = torch.where(true, place < asked_q * asked * samples, others < elsewhere * (samples - round(asked * samples)))
    return dl.diagnose(rule, labels=labels, p=true.float(), q=consequent.float())


def kinds(findings):
    return [finding.kind for finding in findings]


# ---------------------------------------------------------------- what is counted


@given(bits)
def test_elsewhere_is_where_no_rule_asks_for_the_same(rows):
    first, second, consequent, truth = (torch.tensor(column) for column in zip(*rows))
    rules = {"one": p >> q, "two": dl.evidence(r) >> q, "three": q >> p}
    tensors = {"p": first.float(), "r": second.float(), "q": consequent.float()}
    found = dl.diagnose(rules, labels={"q": truth.long()}, **tensors).rules
    for name, outside, holds, expected in (
        ("one", ~first & ~second, consequent, truth),
        ("two", ~first & ~second, consequent, truth),
        ("three", ~consequent, first, None),
    ):
        part = found[name].choices[0].elsewhere
        units = int(outside.sum())
        assert (part.units, part.share) == (units, pytest.approx(units / len(rows)))
        assert part.holds == (pytest.approx(int((outside & holds).sum()) / units) if units else None)
        assert part.labelled == (units if expected is not None else 0)
        if expected is not None and units:
            assert part.expected == pytest.approx(int((outside & expected).sum()) / units)
            assert part.wrongly == pytest.approx(int((outside & holds & ~expected).sum()) / units)
            assert part.missed == pytest.approx(int((outside & ~holds & expected).sum()) / units)


@given(bits)
def test_all_rules_and_what_labels_contradict(rows):
    first, _, consequent, truth = (torch.tensor(column) for column in zip(*rows))
    rules = {"one": p >> q, "two": ~p}
    labels = {"p": first.long(), "q": truth.long()}
    found = dl.diagnose(rules, labels=labels, p=first.float(), q=consequent.float())
    assert found.satisfied == pytest.approx(float((~first).double().mean()))
    asked = int(first.sum())
    assert found.rules["one"].antecedent.labelled == asked
    assert found.rules["one"].antecedent.contradicted == (pytest.approx(int((first & ~truth).sum()) / asked) if asked else None)
    assert found.rules["two"].contradicted == pytest.approx(asked / len(rows))


def test_labels_that_are_not_known():
    x = dl.var("x")
    labels = {"p": torch.tensor([1, 1, -1, 0]), "x": torch.tensor([1.0, torch.nan, 1.0, 1.0])}
    found = dl.diagnose(p >> (x >= 2), labels=labels, p=torch.tensor([1.0, 1.0, 1.0, 0.0]), x=torch.full((4,), 3.0))
    part = found.rules["rule"].choices[0]
    assert (part.antecedent.expected, part.antecedent.read) == (pytest.approx(2 / 3), 1.0)
    assert (part.antecedent.labelled, part.antecedent.contradicted) == (1, 1.0)
    assert (part.elsewhere.labelled, part.elsewhere.wrongly) == (1, 1.0)


def test_entries_below_quantifiers():
    n = dl.axis("n", max=3)
    a, b, valid = dl.boolean("a", n), dl.boolean("b", n), dl.mask("valid", n)
    rule = (a >> b).all(where=valid)
    there = torch.tensor([[True, True, False], [True, True, True]])
    tensors = {"a": torch.tensor([[1.0, 0, 0], [0, 0, 0]]), "b": torch.tensor([[1.0, 1, 1], [1, 0, 0]])}
    part = dl.diagnose(rule, valid=there, **tensors).rules["rule"].choices[0]
    assert (part.counted, part.elsewhere.units, part.elsewhere.share, part.elsewhere.holds) == ("entries", 4, 0.8, 0.5)


@given(st.floats(0, 1), st.integers(1, 500), st.floats(0, 1), st.integers(1, 500))
def test_only_one_of_two_directions_rises(before, count_before, after, count_after):
    up, down = rises(before, count_before, after, count_after), rises(after, count_after, before, count_before)
    assert not (up and down)
    assert up <= (after > before)


# ---------------------------------------------------------------- against a baseline


def test_a_consequent_that_came_everywhere_is_applied_too_widely_and_not_satisfied_in_kind():
    compared = report(0.05, 0.9).compare(report(0.05, 0.3, asked_q=0.0))
    assert compared.kind == verdict.TOO_WIDE
    assert verdict.IN_KIND not in kinds(compared.rules["rule"].findings)
    assert compared.verdict == (
        "the antecedent p does not hold on 95.0 % of the samples, and the consequent q holds on 90.0 % of them, 30.0 % before: "
        "the rule is applied too widely"
    )
    assert "To try: a smaller weight=" in str(compared)


def test_over_all_pairs_it_is_said_only_where_the_consequent_came_elsewhere():
    models = [report(a, e, k) for a, e, k in itertools.product((0.0, 0.05, 0.4), (0.0, 0.3, 0.9), (0.0, 1.0))]
    said = 0
    for before, after in itertools.product(models, repeat=2):
        found = verdict.TOO_WIDE in kinds(after.compare(before).rules["rule"].findings)
        old, new = (each.rules["rule"].choices[0].elsewhere for each in (before, after))
        assert not found or new.holds - old.holds >= verdict.WIDELY
        said += found
        if found:
            assert verdict.TOO_WIDE not in kinds(before.compare(after).rules["rule"].findings)
    assert said > 20


def test_what_a_rule_can_account_for_is_not_held_against_it():
    # A fifth of the samples lost the antecedent and kept the consequent; as many more did not read the antecedent.
    assert verdict.TOO_WIDE not in kinds(report(0.2, 0.25).compare(report(0.4, 0.0)).rules["rule"].findings)
    assert verdict.TOO_WIDE not in kinds(report(0.4, 0.3).compare(report(0.4, 0.0)).rules["rule"].findings)
    assert verdict.TOO_WIDE in kinds(report(0.4, 0.9).compare(report(0.4, 0.0)).rules["rule"].findings)


def test_another_rule_that_asks_for_the_same_is_not_held_against_it_either():
    place = torch.arange(200)
    cats, dogs = (place < 80).float(), (place >= 120).float()
    for rules, expected in (({"dog": p >> q}, True), ({"dog": p >> q, "cat": r >> q}, False)):
        before, after = (
            dl.diagnose(rules, **{"p": dogs, "q": animal, "r": cats} if len(rules) > 1 else {"p": dogs, "q": animal})
            for animal in (torch.zeros(200), torch.maximum(cats, dogs))
        )
        assert (verdict.TOO_WIDE in kinds(after.compare(before).rules["dog"].findings)) == expected


def test_labels_decide_whether_what_came_is_right():
    place = torch.arange(200)
    for true, expected in ((torch.zeros(200), True), (torch.ones(200), False)):
        labels = {"q": torch.where(place < 10, 1, true.long())}
        found = report(0.05, 0.9, labels=labels).compare(report(0.05, 0.3, asked_q=0.0, labels=labels)).rules["rule"]
        assert (verdict.TOO_WIDE in kinds(found.findings)) == expected
        if expected:
            assert "by their labels it is wrong on 90.0 % of them, 30.0 % before, and right to hold on 0.0 %" in found.verdict


def test_classes_sharpen_it():
    # The antecedent is read on half of class 1, and the consequent came on all of class 1; or, as often, on class 0.
    place, classes = torch.arange(200), (torch.arange(200) < 100).long()
    read = (place < 50).float()
    before = dl.diagnose(RULE, labels=classes, p=read, q=torch.zeros(200))
    right = dl.diagnose(RULE, labels=classes, p=read, q=classes.float())
    wrong = dl.diagnose(RULE, labels=classes, p=read, q=((place < 50) | (place >= 150)).float())
    assert right.compare(before).kind == verdict.IN_KIND
    assert verdict.TOO_WIDE in kinds(wrong.compare(before).rules["rule"].findings)


# ---------------------------------------------------------------- by labels alone


@pytest.mark.parametrize(("true", "kind"), [(0.0, verdict.TOO_WIDE), (0.8, verdict.IN_KIND)])
def test_one_report_with_labels_of_the_consequent(true, kind):
    place = torch.arange(200)
    labels = {"q": ((place < 10) | (place - 10 < true * 190)).long()}
    found = report(0.05, 0.9, labels=labels)
    assert found.kind == kind
    if kind == verdict.TOO_WIDE:
        assert "q holds on 90.0 % of them, and by their labels on 0.0 % (wrongly on 90.0 %)" in found.verdict


def test_a_rule_that_the_labels_contradict_is_named_whatever_the_model_says():
    labels = {"p": torch.ones(20, dtype=torch.long), "q": (torch.arange(20) < 4).long()}
    for says in (torch.zeros(20), torch.ones(20)):
        found = dl.diagnose(RULE, labels=labels, p=torch.ones(20), q=says)
        assert found.kind == verdict.CONTRADICTED
        assert found.verdict == "by the labels, q is false on 80.0 % of the 20 samples on which p is true"
    found = dl.diagnose({"right": ~q, "wrong": p & q}, labels=labels, p=torch.ones(20), q=torch.ones(20))
    assert kinds(found.rules["wrong"].findings) == [verdict.CONTRADICTED]
    assert "by their labels, 80.0 % of the samples break the rule" in found.verdict
    assert verdict.CONTRADICTED not in kinds(found.rules["right"].findings)


# ---------------------------------------------------------------- worse than without


def test_rules_that_hold_less_often_are_worse_than_none():
    rules = {"one": p >> q, "two": q >> r}
    on, off, half = torch.ones(100), torch.zeros(100), (torch.arange(100) < 50).float()
    before = dl.diagnose(rules, p=on, q=on, r=half)
    after = dl.diagnose(rules, p=on, q=half, r=half)
    # Each sample breaks one rule or none: the second rule gains what the first loses.
    assert (before.satisfied, after.satisfied) == (0.5, 0.5)
    compared = after.compare(before)
    assert (compared.findings, compared.rules["one"].kind, compared.rules["two"].kind) == (
        (),
        verdict.WORSE,
        verdict.IN_KIND,
    ) or (compared.rules["one"].kind == verdict.WORSE)
    worse = dl.diagnose(rules, p=on, q=on, r=off).compare(before)
    assert worse.kind == verdict.WORSE
    assert worse.verdict == "worse than without the rules: all of them hold on 0.0 % of the samples, on 50.0 % without"
    assert worse.to_dict()["findings"][0]["kind"] == verdict.WORSE
    assert "All rules hold on 0.0 % of the samples, 50.0 % before." in str(worse)


@given(st.integers(0, 100), st.integers(0, 100))
def test_worse_is_never_said_of_rules_that_hold_as_often(before, after):
    first, second = (dl.diagnose(p, p=(torch.arange(100) < count).float()) for count in (before, after))
    found = kinds(second.compare(first).rules["rule"].findings)
    assert (verdict.WORSE in found) <= (after < before)
    if after < before - 20:
        assert found[0] == verdict.WORSE
        assert second.compare(first).verdict.startswith("worse than without the rule: it holds on ")


# ---------------------------------------------------------------- remedies


def test_findings_that_can_be_mended_say_how():
    switched = report(0.0, 0.0).compare(report(0.4, 0.0, asked_q=0.0))
    (finding,) = switched.rules["rule"].findings
    assert finding.kind == verdict.SWITCHED_OFF
    assert "dl.evidence(a) >> b" in finding.advice
    assert str(switched).count("To try: mark the antecedent as evidence") == 1
    fine = report(0.4, 0.0)
    assert fine.rules["rule"].findings[0].advice == ""
    assert "To try" not in str(fine)


# ---------------------------------------------------------------- in training


def look_at(monitor, asked, elsewhere, looks, asked_q=1.0, samples=200):
    place = torch.arange(samples)
    true = place < asked * samples
    says = torch.where(true, place < asked_q * asked * samples, place - asked * samples < elsewhere * (1 - asked) * samples)
    for _ in range(looks):
        logits = torch.where(says, 1.0, -1.0).requires_grad_()
        monitor.look(place, p=torch.where(true, 4.0, -4.0), q=logits)


def make_monitor(method, **options):
    a, b = dl.boolean("p", input="logits"), dl.boolean("q", input="logits")
    return dl.Monitor(dl.LogicLoss(a >> b, num_samples=200, method=method), warn=False, **options)


def test_the_monitor_blames_a_rule_that_pulled_there_and_no_other():
    for method, expected in ((dl.methods.Dual.paper(), [alarm.TOO_WIDE]), ("hard", [])):
        monitor = make_monitor(method)
        look_at(monitor, 0.05, 0.2, 10)
        look_at(monitor, 0.05, 0.9, watch.LASTING)
        assert [found.kind for found in monitor.findings if found.severity == alarm.WARNING] == expected
        if expected:
            (found,) = (each for each in monitor.findings if each.kind == alarm.TOO_WIDE)
            assert "20.0 % at its lowest" in found.message
            assert "of its pull so far went there, where it asks for nothing" in found.message


def test_labels_tell_the_monitor_that_what_came_is_right():
    for true in (0, 1):
        monitor = make_monitor(dl.methods.Dual.paper(), labels={"q": torch.full((200,), true)})
        look_at(monitor, 0.05, 0.2, 10)
        look_at(monitor, 0.05, 0.9, watch.LASTING)
        assert (alarm.TOO_WIDE in kinds(monitor.findings)) == (true == 0)


def test_a_rule_that_stays_broken_is_called_contradicted_and_one_that_is_being_learned_is_not():
    for learned in (False, True):
        monitor = make_monitor("lukasiewicz")
        for look in range(50):
            look_at(monitor, 0.4, 0.0, 1, asked_q=0.01 * look if learned else 0.1)
        assert (alarm.CONTRADICTED in kinds(monitor.findings)) == (not learned)


def test_labels_that_contradict_a_rule_are_named_soon():
    labels = {"p": torch.ones(200, dtype=torch.long), "q": torch.zeros(200, dtype=torch.long)}
    monitor = make_monitor("lukasiewicz", labels=labels)
    look_at(monitor, 1.0, 0.0, 13)
    (found,) = (each for each in monitor.findings if each.kind == alarm.CONTRADICTED)
    assert found.message == "by their labels, 100.0 % of the samples that the rule asks something of break it"
    assert "dl.diagnose" in found.advice


def test_a_rule_that_holds_back_is_said_to_and_not_called_contradicted():
    monitor = make_monitor("dual")
    for _ in range(50):
        monitor.logic._state["known"][6] = 0.02
        look_at(monitor, 0.4, 0.0, 1, asked_q=0.1)
    (found,) = (each for each in monitor.findings if each.kind == alarm.HELD_BACK)
    assert found.severity == "info"
    assert found.message.startswith("it pulls at 2.0 % of its strength")
    assert alarm.CONTRADICTED not in kinds(monitor.findings)
