"""What is said about a rule: each kind of verdict on data made to deserve it."""

import io
import itertools
import json

import pytest
import torch

import dualogic as dl
from dualogic.diagnosis import Diagnosis, verdict
from dualogic.errors import BindingError, OptionError, SampleIndexError, ShapeError, StateError, SymbolError

f, g = dl.categorical("f", 3), dl.categorical("g", 3)
RULE = (g == 2) >> (f == 1)
x, y = dl.var("x"), dl.var("y")
s = dl.var("s", 4)


def one_hot(*labels):
    return torch.nn.functional.one_hot(torch.tensor(labels), 3).float()


def report(f, g, **options):
    return dl.diagnose(RULE, f=one_hot(*f), g=one_hot(*g), **options)


BEFORE = report([0] * 10, [2] * 9 + [0])


@pytest.mark.parametrize(
    ("f", "g", "kind", "words"),
    [
        ([0] * 10, [0] * 10, verdict.VACUOUS, "only a baseline or labels of its symbols can tell"),
        ([0] * 10, [2] * 5 + [0] * 5, verdict.VIOLATED, "violated on 50.0 % of the samples"),
        ([1] * 10, [2] * 5 + [0] * 5, verdict.IN_KIND, "true for 50.0 % of the samples, and for 100.0 % of these f == 1 holds"),
        ([0] + [1] * 9, [2] * 2 + [0] * 8, verdict.SATISFIED, "satisfied on 90.0 % of the samples"),
    ],
)
def test_one_report(f, g, kind, words):
    found = report(f, g)
    assert found.kind == found.rules["rule"].kind == kind
    assert words in found.verdict


@pytest.mark.parametrize(
    ("f", "g", "kind"),
    [
        ([0] * 10, [0] * 10, verdict.SWITCHED_OFF),
        ([1] * 10, [0] * 10, verdict.BOTH_WAYS),
        ([1] * 10, [2] * 9 + [0], verdict.IN_KIND),
        ([0] * 10, [2] * 9 + [0], verdict.VIOLATED),
        ([1] * 2 + [0] * 8, [0] * 9 + [2], verdict.SWITCHED_OFF),
    ],
)
def test_against_a_baseline(f, g, kind):
    assert report(f, g).compare(BEFORE).kind == kind


def test_the_numbers_stand_in_the_sentence():
    found = report([0] * 10, [0] * 10).compare(BEFORE).verdict
    assert "g == 2 held on 90.0 % of the samples before, 0.0 % after" in found
    assert found.endswith("the rule was satisfied by switching the antecedent off")


def test_switching_off_says_what_is_left():
    found = report([0] * 10, [2] * 4 + [0] * 6).compare(BEFORE)
    assert found.kind == verdict.SWITCHED_OFF
    assert "still violated on 40.0 %" in found.verdict


def test_an_antecedent_that_mostly_stays_was_switched_off_only_where_the_rule_was_violated():
    f = [1] * 6 + [0] * 4
    found = report(f, [2] * 6 + [0] * 4).compare(report(f, [2] * 9 + [0]))
    assert found.kind == verdict.SWITCHED_OFF
    assert found.verdict.endswith("by switching the antecedent off where the rule was violated")


@pytest.mark.parametrize(
    ("samples", "q", "before", "after", "kind"),
    [(40, 38, 39, 38, verdict.SATISFIED), (40, 34, 40, 35, verdict.SWITCHED_OFF), (2000, 1800, 2000, 1900, verdict.SWITCHED_OFF)],
)
def test_an_antecedent_that_falls_by_little_and_within_chance_was_not_switched_off(samples, q, before, after, kind):
    f = [1] * q + [0] * (samples - q)
    old, new = (report(f, [2] * p + [0] * (samples - p)) for p in (before, after))
    assert new.compare(old).kind == kind


@pytest.mark.parametrize(("left", "kind"), [(4, verdict.IN_KIND), (5, verdict.VIOLATED)])
def test_a_handful_of_violations_that_stay_does_not_make_a_rule_violated(left, kind):
    before = report([0] * 6 + [1] * 94, [2] * 100)
    assert report([0] * left + [1] * (100 - left), [2] * 100).compare(before).kind == kind


def test_every_outcome_of_an_implication_is_judged_by_what_moved():
    """All pairs of small models: "switched off" only where the antecedent went, "in kind" only where the consequent came."""
    models = [report([1] * q + [0] * (4 - q), [2] * p + [0] * (4 - p)) for p, q in itertools.product(range(5), repeat=2)]
    seen = set()
    for before, after in itertools.product(models, repeat=2):
        kind = after.compare(before).kind
        old, new = (each.rules["rule"] for each in (before, after))
        fallen = old.antecedent.holds - new.antecedent.holds
        risen = new.choices[0].operands[1].holds - old.choices[0].operands[1].holds
        seen.add(kind)
        if kind == verdict.SWITCHED_OFF:
            assert fallen > 0
            assert new.violated < old.violated
            assert risen < fallen
        if kind in (verdict.IN_KIND, verdict.BOTH_WAYS):
            assert risen > 0
            assert new.violated < old.violated
        if kind == verdict.BOTH_WAYS:
            assert fallen > 0
        if kind == verdict.WORSE:
            assert new.violated > old.violated
    said = {verdict.SWITCHED_OFF, verdict.IN_KIND, verdict.BOTH_WAYS, verdict.WORSE, verdict.VIOLATED, verdict.SATISFIED}
    assert seen == said


def test_labels_point_at_the_class_where_the_rule_had_something_to_teach():
    labels = torch.tensor([0] * 90 + [1] * 10)
    before = report([0] * 100, [0] * 90 + [2] * 10, labels=labels)
    after = report([0] * 100, [0] * 100, labels=labels)
    assert "and on 100.0 % of class 1" in before.verdict
    compared = after.compare(before).rules["rule"]
    assert (compared.label, compared.kind) == (1, verdict.SWITCHED_OFF)
    assert "held on 100.0 % of the samples of class 1 before, 0.0 % after" in compared.verdict


def test_a_rare_class_keeps_a_rule_from_being_called_vacuous():
    g = [0] * 995 + [2] * 5
    labels = torch.tensor([0] * 995 + [1] * 5)
    assert report([1] * 1000, g).kind == verdict.VACUOUS
    assert report([1] * 1000, g, labels=labels).kind == verdict.IN_KIND


def test_class_names():
    diagnosis = Diagnosis(RULE, classes=["cat", "dog"])
    diagnosis.update(labels=[1, 1, 0, 5], f=one_hot(0, 0, 0, 0), g=one_hot(2, 2, 0, 0))
    found = diagnosis.compute()
    assert "100.0 % of class dog" in found.verdict
    assert "| class 5 |" in found.to_markdown()


def test_one_branch_takes_every_entry():
    rule = ((s == 0) | (s == 1)).all()
    before = dl.diagnose(rule, s=torch.tensor([[0.0, 0.0, 1.0, 0.5]]).repeat(5, 1))
    after = dl.diagnose(rule, s=torch.zeros(5, 4))
    assert before.kind == verdict.VIOLATED
    choice = before.rules["rule"].choices[0]
    assert (choice.path, choice.counted, choice.total) == ("rule/0", "entries", 20)
    assert [operand.alone for operand in choice.operands] == [0.5, 0.25]
    assert (choice.together, choice.none) == (0, 0.25)
    assert after.kind == verdict.ONE_BRANCH
    assert "s == 0 alone satisfies 100.0 % of the entries" in after.verdict
    compared = after.compare(before)
    assert compared.kind == verdict.TAKEN_OVER
    assert "alone satisfied 66.7 % of the satisfied entries before, 100.0 % after" in compared.verdict


def test_a_conjunction_names_the_part_that_fails_most():
    found = dl.diagnose((x >= 0) & (y >= 0) & (x + y <= 1), x=torch.tensor([-1.0, 2.0, 0.0]), y=torch.tensor([-1.0, 2.0, 2.0]))
    assert "the part that fails most is x + y <= 1, on 66.7 %" in found.verdict
    (part,) = found.rules["rule"].connectives
    assert [operand.holds for operand in part.operands] == pytest.approx([2 / 3, 2 / 3, 1 / 3])
    assert [operand.alone for operand in part.operands] == pytest.approx([0, 0, 2 / 3])


def test_several_rules_are_summed_up_by_the_most_serious():
    found = dl.diagnose({"fine": x >= 0, "broken": x >= 5}, x=torch.ones(3))
    assert found.kind == verdict.VIOLATED
    assert found.verdict == "broken: violated on 100.0 % of the samples"
    assert found.rules["fine"].kind == verdict.SATISFIED


def test_no_sample_is_no_verdict():
    found = dl.diagnose(RULE, f=torch.zeros(0, 3), g=torch.zeros(0, 3))
    assert (found.kind, found.samples, found.rules["rule"].satisfied) == (verdict.NO_SAMPLES, 0, None)
    assert found.compare(found).kind == verdict.NO_SAMPLES
    assert "no sample" in str(found).lower()


def test_dictionary_is_json_and_complete():
    n = dl.axis("n", max=2)
    r, valid = dl.var("r", n), dl.mask("valid", n)
    rule = (r >= 0).any(where=valid)
    found = dl.diagnose(
        {"some": rule, "pair": RULE},
        labels=[0, 1],
        index=[7, 9],
        r=torch.zeros(2, 2),
        valid=torch.tensor([[True, True], [False, False]]),
        f=one_hot(0, 0),
        g=one_hot(2, 0),
    )
    plain = found.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    # Nothing exists for the second sample, so "some entry" cannot hold and costs infinity, which JSON does not know.
    assert plain["rules"]["some"]["worst"][0] == {"position": 1, "index": 9, "label": 1, "cost": None, "satisfied": False}
    assert plain["rules"]["some"]["connectives"][0]["empty"] == 0.5
    assert plain["rules"]["pair"]["classes"]["0"]["connectives"][0]["antecedent"]["holds"] == 1.0
    assert plain["rules"]["pair"]["verdict"] == found.rules["pair"].verdict
    compared = found.compare(found).to_dict()
    assert json.loads(json.dumps(compared, allow_nan=False)) == compared


def test_markdown_text_and_rich_say_the_same():
    console = pytest.importorskip("rich.console")
    found = dl.diagnose(
        {"a": RULE, "b": ((s == 0) | (s == 1)).all()}, labels=[0, 1], f=one_hot(0, 1), g=one_hot(2, 2), s=torch.zeros(2, 4)
    )
    for each in (found, found.compare(found)):
        screen = io.StringIO()
        console.Console(width=300, file=screen).print(each)
        texts = [each.to_markdown(), str(each), screen.getvalue()]
        for text in texts:
            assert "50.0 %" in text
            for rule in each.rules.values():
                assert rule.verdict[1:] in text
    rows = [line for line in found.to_markdown().splitlines() if line.startswith("|")]
    header = next(row for row in rows if "antecedent" in row)
    assert r"(s == 0) \| (s == 1)" not in header
    for table in found.to_markdown().split("\n\n"):
        cells = [line.replace(r"\|", "").count("|") for line in table.splitlines() if line.startswith("|")]
        assert len(set(cells)) <= 1, table


def test_refusals():
    tensors = {"f": one_hot(0, 1), "g": one_hot(0, 1)}
    with pytest.raises(
        BindingError, match=r"labels must hold one integer for each sample, shape \(2,\); got torch.int64 of shape"
    ):
        dl.diagnose(RULE, labels=[0], **tensors)
    with pytest.raises(BindingError, match="labels must be a tensor of integers"):
        dl.diagnose(RULE, labels=["cat", "dog"], **tensors)
    with pytest.raises(OptionError, match="worst must be a whole number of at least 0"):
        dl.diagnose(RULE, worst=-1, **tensors)
    with pytest.raises(OptionError, match="lead must be at least 0"):
        dl.diagnose(RULE, lead=-0.1, **tensors)
    with pytest.raises(OptionError, match="class_cost must be one of"):
        dl.diagnose(RULE, class_cost="square", **tensors)
    with pytest.raises(ShapeError, match="still has axes"):
        dl.diagnose(s >= 0, s=torch.zeros(2, 4))
    with pytest.raises(SymbolError, match="no tensor was given for 'g'"):
        dl.diagnose(RULE, f=one_hot(0))
    with pytest.raises(SymbolError, match="symbol named 'worst'"):
        dl.diagnose(dl.var("worst") >= 0, worst=torch.zeros(2))
    diagnosis = Diagnosis(dl.LogicLoss(RULE, num_samples=2))
    with pytest.raises(SampleIndexError, match=r"between 0 and 1, the training samples.*leave it out"):
        diagnosis.update(index=[0, 2], **tensors)
    assert diagnosis.samples == 0
    with pytest.raises(StateError, match="different rules"):
        report([0], [0]).compare(dl.diagnose(x >= 0, x=torch.zeros(1)))
    with pytest.raises(StateError, match="2 and 1 samples"):
        report([0], [0]).compare(report([0, 0], [0, 0]))
    with pytest.raises(StateError, match="same rules"):
        Diagnosis(RULE).merge_(Diagnosis(x >= 0))


def test_a_symbol_may_be_called_worst_in_a_stream():
    diagnosis = Diagnosis(dl.var("worst") >= 0)
    diagnosis.update(worst=torch.tensor([1.0, -1.0]))
    assert diagnosis.compute().rules["rule"].satisfied == 0.5


def test_negative_labels_count_in_the_total_alone():
    found = report([0, 0, 0], [2, 0, 0], labels=[-1, 4, -100]).rules["rule"]
    assert (found.samples, list(found.classes), found.classes[4].samples) == (3, [4], 1)
