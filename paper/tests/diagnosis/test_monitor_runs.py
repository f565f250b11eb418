"""Monitors of networks that are really trained: falling into the shortcut is called so, and learning the rule is not."""

import dataclasses

import pytest
import torch

import dualogic as dl
from dualogic.demo import load_split, training
from dualogic.diagnosis import alarm

EPOCHS = 11
EVERY = 5

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def mixed():
    return load_split("mixed", seed=0)


def watched(split, method, **options):
    """The run of the demo, and its monitor."""
    made = []

    def build(*arguments, **keywords):
        logic = dl.LogicLoss(*arguments, **keywords)
        made.append(dl.Monitor(logic, EVERY, warn=False, **options))
        return logic

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "LogicLoss", build)
        run = training.train(split, "mixed", method, epochs=EPOCHS, seed=0)
    return run, made[0]


@pytest.mark.parametrize("method", ["hard", "dl2", "godel"])
def test_a_run_that_falls_is_named(mixed, method):
    raised = []
    run, monitor = watched(mixed, method, on_finding=raised.append)
    assert run.final.q == 0, "the run did not fall, so it shows nothing"
    first = next(found for found in raised if found.kind == alarm.SWITCHED_OFF)
    assert (first.rule, first.path, first.severity) == ("rule", "rule", alarm.WARNING)
    assert "of the rule's pull makes the antecedent g == 9 less true" in first.message
    assert "the consequent f == 6 has not gained" in first.message
    assert "Dual(evidence=True)" in first.advice
    assert alarm.SWITCHED_OFF in [found.kind for found in monitor.findings]
    assert [found.kind for found in raised].count(alarm.SWITCHED_OFF) == 1


def test_learning_the_rule_raises_nothing(mixed):
    run, monitor = watched(mixed, "dual")
    assert run.final.q > 90
    assert monitor.findings == ()
    assert len(monitor.history) == -(-EPOCHS * 18 // EVERY)
    rates = [entry["rule"]["antecedent"] for entry in monitor.history]
    assert max(rates[:5]) == 0.0 < sum(rates[-5:]), "the antecedent came while the rule was taught"


def test_a_rule_that_is_rightly_vacuous_raises_nothing(mixed):
    never = torch.isin(mixed.labels, torch.tensor([0, 1, 8]))  # no 9 when turned
    pool = mixed.labelled[never]
    split = dataclasses.replace(mixed, pool=pool, pool_is_six=torch.zeros(len(pool), dtype=torch.bool))
    _, monitor = watched(split, "hard")
    assert [found for found in monitor.findings if found.severity == alarm.WARNING] == []
