"""A rule holds back while the belief in its antecedent falls: it would be met by what the network calls things."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from torch import nn

import dualogic as dl
from dualogic.methods import lean
from dualogic.methods.lean import PACES, advance_known, start_known

a, b, c = (dl.boolean(name) for name in "abc")
STRENGTH = 6


def follow(beliefs, known=None, first=0, count=64, firm=0.5, claiming=None):
    """The state after batches whose antecedents are believed so much on average; one column for each implication.

    Their consequents are believed firmly so often, with the antecedent and without.
    """
    claiming = None if claiming is None else torch.tensor(claiming)
    known = start_known([0] * len(beliefs[0]), torch.float64) if known is None else known
    for step, row in enumerate(beliefs, first):
        p = torch.tensor(row, dtype=torch.float64)
        noted = torch.stack([1 - p, firm * (1 - p), p, firm * p, p])
        known = advance_known(known, noted, count, torch.tensor(step), torch.tensor(PACES), claiming=claiming)
    return known


@given(st.floats(1e-4, 1.0), st.integers(1, 60))
def test_a_belief_that_stays_takes_nothing(belief, steps):
    assert follow([[belief]] * steps)[STRENGTH].item() == 1.0


def test_a_belief_that_falls_does_and_may_settle_there():
    known = follow([[0.4 - 0.3 * step / 60] for step in range(60)], count=10_000)
    assert known[STRENGTH].item() < 0.01
    assert follow([[0.1]] * 2000, known, 60)[STRENGTH].item() == 1.0


def test_a_belief_that_rises_does_not():
    """Labels teach it, in a pool in which it always holds."""
    assert follow([[0.1 + 0.01 * step] for step in range(80)], count=10_000)[STRENGTH].item() == 1.0


def test_evidence_falls_without_the_rule():
    """A consequent that is not known leaves its antecedent alone."""
    assert follow([[0.9 - 0.01 * step] for step in range(89)], firm=0.0)[STRENGTH].item() == 1.0
    assert follow([[0.9 - 0.01 * step] for step in range(89)])[STRENGTH].item() < 0.01


@pytest.mark.parametrize(("rule", "falling", "expected"), [
    (dl.Iff(a, b), "ab", 0.0),
    (dl.Iff(a, b), "a", 1.0),  # the sides may come nearer to each other
    (dl.boolean("a", 3)[:-1] >> dl.boolean("a", 3)[1:], "a", 0.0),
    (dl.Implies(a, b, evidence=False), "ab", None),
])  # fmt: skip
def test_so_does_a_rule_both_of_whose_sides_teach(rule, falling, expected):
    """Neither of both is how an `Iff` may be met, whatever it is about."""
    rule = rule.all() if rule.shape else rule
    logic = dl.LogicLoss(rule)
    for step in range(100):
        beliefs = {name: 0.5 - 0.004 * step * (name in falling) for name in logic.symbols}
        logic(**{name: torch.full((10_000, *symbol.shape), beliefs[name]) for name, symbol in logic.symbols.items()})
    found = logic.statistics()["rule"]
    assert found.get("strength") == (None if expected is None else pytest.approx(expected, abs=0.01))


def test_chance_is_no_fall():
    """One antecedent in a hundred, in batches of 16: most have none of them."""
    generator = torch.Generator().manual_seed(0)
    known, strengths = start_known([0], torch.float64), []
    for step in range(1000):
        p = (torch.rand(16, generator=generator) < 0.01).double().mean().item()
        known = follow([[p]], known, step, 16)
        strengths.append(known[STRENGTH].item())
    assert sum(strengths[100:]) / 900 > 0.8


FALLS = [[0.4 - 0.001 * step] + [0.3] * 9 for step in range(100)]  # one antecedent of ten


def test_classes_that_fall_hold_back_others_less():
    """Nine antecedents that stay, among ten that claim classes, are held back by a ninth of it."""
    strength = follow(FALLS, count=10_000_000, claiming=[1] * 10)[STRENGTH]
    torch.testing.assert_close(strength[1], strength[0] ** (1 / 9))
    assert strength[0] < strength[1] < 1.0
    assert (strength[1:] == strength[1]).all()


def test_booleans_that_fall_hold_back_nothing_else():
    """Two of ten rules claim classes; only these hear of each other."""
    alone = follow(FALLS, count=10_000_000)[STRENGTH]
    assert alone[0] < 0.1
    assert (alone[1:] == 1.0).all()
    some = follow(FALLS, count=10_000_000, claiming=[1, 1] + [0] * 8)[STRENGTH]
    torch.testing.assert_close(some[1], some[0])
    assert (some[2:] == 1.0).all()


@pytest.mark.parametrize("classes", [False, True])
def test_rules_are_told_apart_by_what_they_claim(classes):
    """The antecedent of the first rule falls, that of the second stays."""
    p, r = [dl.categorical(name, 2) == 1 if classes else dl.boolean(name) for name in "pr"]
    q, s = [dl.boolean(name) for name in "qs"]
    logic = dl.LogicLoss({"falls": p >> q, "stays": r >> s})
    known = torch.full((20_000,), 0.5)
    followed = torch.where(torch.arange(20_000) % 2 > 0, 0.95, 0.05)
    for step in range(200):
        beliefs = {"p": known * (1 - step / 400), "r": known}
        given = {name: torch.stack([1 - each, each], 1) if classes else each for name, each in beliefs.items()}
        logic(**given, q=followed, s=followed)
    found = {name: statistics["strength"].item() for name, statistics in logic.statistics().items()}
    assert found["falls"] < 0.1
    assert (found["stays"] < 0.1) == classes


def hold(logic, strengths):
    logic._state["known"][STRENGTH] = torch.tensor(strengths)


def pull(logic):
    tensors = {name: torch.tensor([0.8, 0.3]).log().requires_grad_() for name in "abc"}
    bound = {name: tensor.exp() if name != "b" else tensor.exp() * 0.1 for name, tensor in tensors.items()}
    with logic.frozen():
        loss = logic(torch.arange(2), **bound)
    return torch.cat(torch.autograd.grad(loss, list(tensors.values())))


RULES = {
    "an implication": (a >> (b & c), [0.25], 0.25),
    "two in a rule": ((a >> b) & (c >> b), [0.25, 0.75], 0.5),
    "beside another rule": ({"one": a >> b, "two": a | c, "three": c >> b}, [0.5, 0.5], None),
}


@pytest.mark.parametrize(("rules", "strengths", "expected"), RULES.values(), ids=RULES)
def test_the_pull_is_that_much_weaker(rules, strengths, expected):
    logic = dl.LogicLoss(rules, 2)
    for _ in range(3):
        with torch.enable_grad():
            logic(torch.arange(2), a=torch.tensor([0.8, 0.3]), b=torch.tensor([0.1, 0.2]), c=torch.tensor([0.8, 0.3]))
    hold(logic, [1.0] * len(strengths))
    before = pull(logic)
    hold(logic, strengths)
    after, told = pull(logic), {name: found["strength"].item() for name, found in logic.statistics().items()}
    if expected is None:
        assert told == {"one": 0.5, "two": 1.0, "three": 0.5}
        hold(logic, [0.0] * len(strengths))
        kept = pull(logic)  # the rule without an implication
        torch.testing.assert_close(after - kept, 0.5 * (before - kept))
    else:
        assert told == {"rule": expected}
        torch.testing.assert_close(after, expected * before)


def test_only_what_is_found_out_has_a_strength():
    for rule, method in ((a | b, "dual"), (a >> b, "hard"), (a >> b, dl.methods.Dual.paper()), (dl.evidence(a) >> b, "dual")):
        assert "strength" not in dl.LogicLoss(rule, 2, method).statistics()["rule"]


def test_a_network_that_could_call_everything_the_same_does_not(monkeypatch):
    """Which of six phases may follow which: all of it is met by a network that says one of them always."""
    classes, length = 6, 12
    phase = dl.categorical("phase", classes, shape=(length,), input="logits")
    rules = {str(k): ((phase[1:] == k) >> phase[:-1].isin([k, (k - 1) % classes])).all() for k in range(classes)}

    def train():
        generator = torch.Generator().manual_seed(120)
        centres = torch.randn(classes, 8, generator=generator)

        def make(count):
            stays = torch.rand(count, length, generator=generator) >= 0.4
            phases = (torch.randint(classes, (count, 1), generator=generator) + (~stays).cumsum(1)) % classes
            return centres[phases] + 1.6 * torch.randn(count, length, 8, generator=generator), phases

        (inputs, labels), (pool, truth) = make(6), make(300)
        torch.manual_seed(20)
        network = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, classes))
        optimizer = torch.optim.Adam(network.parameters(), 3e-3)
        logic = dl.LogicLoss(rules, 300)
        for _ in range(40):
            for index in torch.randperm(300, generator=generator).split(50):
                task = nn.functional.cross_entropy(network(inputs).flatten(0, 1), labels.flatten())
                optimizer.zero_grad()
                (task + logic(index, phase=network(pool[index]))).backward()
                optimizer.step()
        return 100 * (network(pool).argmax(-1) == truth).float().mean().item()

    held = train()
    monkeypatch.setattr(lean, "HOLD_BACK", 0.0)
    assert held > train() + 5
