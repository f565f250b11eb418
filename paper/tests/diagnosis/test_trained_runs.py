"""Reports on networks that were really trained: a shortcut is called one, and a rule that was learned is not."""

import pytest
import torch

import dualogic as dl
from dualogic.demo import load_split, training
from dualogic.demo.data import SIX, rotate
from dualogic.demo.training import LEAD, RULE, measure
from dualogic.diagnosis import verdict

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def split():
    return load_split("mixed", seed=0)


def train(split, method):
    """The network and the loss of a short run of the demo."""
    made = {}

    def keep(key, make):
        def build(*arguments, **options):
            made[key] = make(*arguments, **options)
            return made[key]

        return build

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "make_network", keep("network", training.make_network))
        patch.setattr(training, "LogicLoss", keep("logic", training.LogicLoss))
        training.train(split, "mixed", method, epochs=10, seed=0)
    return made["network"], made.get("logic")


def report(network, split):
    with torch.no_grad():
        f, g = network(split.held_out), network(rotate(split.held_out))
    return dl.diagnose(RULE, lead=LEAD, labels=split.held_out_labels, f=f, g=g)


@pytest.fixture(scope="module")
def baseline(split):
    return report(train(split, None)[0], split)


def test_without_the_rule_it_is_broken_on_sixes(baseline):
    assert baseline.kind == verdict.VIOLATED
    assert "of class 6" in baseline.verdict


@pytest.mark.parametrize("method", ["hard", "dl2"])
def test_a_shortcut_is_called_one(split, baseline, method):
    network, _ = train(split, method)
    after = report(network, split)
    compared = after.compare(baseline).rules["rule"]
    assert (compared.label, compared.kind) == (SIX, verdict.SWITCHED_OFF)
    assert compared.verdict.startswith("the antecedent g == 9 held on ")
    assert "of the samples of class 6 before" in compared.verdict
    assert "satisfied by switching the antecedent off" in compared.verdict
    # The same numbers as the demo's own measures.
    sixes, found = after.rules["rule"].classes[SIX], measure(network, split, None)
    assert 100 * sixes.antecedent.holds == pytest.approx(found.p)
    assert 100 * sixes.antecedent.denied == pytest.approx(found.not_p)
    assert 100 * sixes.choices[0].operands[1].holds == pytest.approx(found.q)
    assert 100 * (sixes.satisfied - sixes.undecided) == pytest.approx(found.satisfied)


def test_a_rule_that_was_learned_is_not(split, baseline):
    network, logic = train(split, "dual")
    compared = report(network, split).compare(baseline).rules["rule"]
    assert compared.kind in (verdict.BOTH_WAYS, verdict.IN_KIND)
    assert "switching" not in compared.verdict
    with torch.no_grad():
        f, g = network(split.pool), network(rotate(split.pool))
    index = torch.arange(len(split.pool))
    found = dl.diagnose(logic, index=index, labels=split.pool_is_six.long(), lead=LEAD, f=f, g=g).rules["rule"]
    on_q = {label: part.choices[0].operands[1].weight for label, part in found.classes.items()}
    measured = measure(network, split, logic)
    assert on_q == pytest.approx({0: measured.weight_others, 1: measured.weight_sixes}, abs=1e-6)
    assert on_q[1] > on_q[0]
