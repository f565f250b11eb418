"""Consequents that no rule can change: the implication asks for its antecedent to be false where they are."""

import copy
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dualogic as dl
from dualogic.errors import MistakeWarning

kind, other = (dl.categorical(name, 3, input="logits") for name in ("kind", "other"))
a, b = dl.boolean("a", input="logits"), dl.boolean("b", input="logits")
score, age = dl.var("score"), dl.var("age")
card, same = dl.boolean("card"), dl.boolean("same")
PREDICTED = {"kind": (3,), "other": (3,), "a": (), "b": (), "score": ()}
TURNED = {
    "a class, a number": ((kind == 0) >> (age < 18), (age >= 18) >> (kind != 0)),
    "a Boolean": (a >> card, ~card >> ~a),
    "two facts": (a >> (card & (age < 18)), (~card | (age >= 18)) >> ~a),
    "a conjunction": ((a & b) >> card, ~card >> (~a | ~b)),
    "a predicted number": ((score >= 0.2) >> card, ~card >> (score < 0.2)),
    "an equivalence": (dl.Iff(same, kind == other), (same >> (kind == other)) & (~same >> (kind != other))),
    "within a chain": ((a >> card) & (b >> a), (~card >> ~a) & (b >> a)),
}


def draw(rule, seed, batch=6):
    """Tensors for a rule's symbols: what a network would predict, and facts."""
    generator = torch.Generator().manual_seed(seed)
    made = {name: torch.randn(batch, *shape, generator=generator).requires_grad_() for name, shape in PREDICTED.items()}
    made["age"] = torch.randint(5, 40, (batch,), generator=generator).float()
    made |= {name: torch.randint(2, (batch,), generator=generator).float() for name in ("card", "same")}
    return {name: made[name] for name in dl.LogicLoss(rule)._program.plan.symbols}


def train(logic, rule, seeds):
    """Losses and gradients of some steps."""
    found = []
    for seed in seeds:
        tensors = draw(rule, seed)
        loss = logic(torch.arange(6), **tensors)
        loss.backward()
        found.append((loss.detach(), {name: tensor.grad for name, tensor in tensors.items() if tensor.requires_grad}))
    return found


def assert_same(first, second):
    torch.testing.assert_close(first, second, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("case", TURNED)
def test_it_is_the_contrapositive(case):
    written, turned = TURNED[case]
    logics = [dl.LogicLoss(rule, num_samples=6) for rule in (written, turned)]
    if case == "an equivalence":  # of which no side is the other's evidence
        logics = [dl.LogicLoss(rule, 6, dl.methods.Dual(evidence=False)) for rule in (written, turned)]
    ours, theirs = (train(logic, rule, range(8)) for logic, rule in zip(logics, (written, turned)))
    assert_same(ours, theirs)
    assert_same(*(logic.delta for logic in logics))


@given(st.integers(0, 10_000))
def test_what_is_false_is_pulled_by_its_own_doubt_and_nothing_else_is(seed):
    logits, fact = draw(a >> card, seed)["a"], draw(a >> card, seed)["card"]
    logic = dl.LogicLoss(a >> card, num_samples=6, reduction="none")
    loss = logic(torch.arange(6), a=logits, card=fact)
    loss.sum().backward()
    assert bool((logits.grad[fact == 0] > 0).all())
    assert bool((logits.grad[fact == 1] == 0).all())
    # The cost is -log(1 - p), whatever unit a fact has: delta stays at its floor unless the network is sure and wrong.
    assert logic.statistics()["rule"]["cost"].item() == pytest.approx(
        (torch.nn.functional.softplus(logits.detach()) * (fact == 0)).mean().item(), rel=1e-4, abs=1e-6
    )


def test_the_unit_of_a_fact_does_not_matter():
    years, days = (dl.LogicLoss((kind == 0) >> (age < limit), num_samples=6) for limit in (18.0, 18.0 * 365))
    for seed in range(5):
        tensors = draw((kind == 0) >> (age < 18), seed)
        first = years(torch.arange(6), **tensors)
        second = days(torch.arange(6), kind=tensors["kind"], age=365 * tensors["age"])
        assert_same(first, second)


def test_weights_and_evidence_keep_the_order_of_what_was_written():
    logic = dl.LogicLoss((a & b) >> card, num_samples=6)
    train(logic, (a & b) >> card, range(3))
    weights = logic.weights(torch.arange(6))
    tensors = draw((a & b) >> card, 2)
    assert set(weights) == {"rule", "rule/0"}  # the ways to deny both stand where the antecedent was written
    assert bool((weights["rule"][tensors["card"] == 0][:, 0] > 0.99).all())
    assert logic.statistics()["rule"]["evidence"] == {"rule": torch.tensor(0.0)}


def test_it_stays_so_without_gradients_and_in_copies_and_checkpoints():
    rule = (kind == 0) >> (age < 18)
    logic = dl.LogicLoss(rule, num_samples=6)
    train(logic, rule, range(3))
    fresh = dl.LogicLoss(rule, num_samples=6)
    fresh.load_state_dict(logic.state_dict())
    twins = [logic, fresh, copy.deepcopy(logic), pickle.loads(pickle.dumps(logic))]
    tensors = draw(rule, 9)
    for twin in twins:
        twin.eval()
        with torch.no_grad():
            assert_same(twin(torch.arange(6), **tensors), logic(torch.arange(6), **tensors))
        twin.train()
    after = [train(twin, rule, range(3, 6)) for twin in twins]
    for found in after[1:]:
        assert_same(found, after[0])


def test_a_checkpoint_of_before_training_and_one_that_does_not_fit_change_nothing():
    rule = (a & b) >> card
    first, logic = dl.LogicLoss(rule, num_samples=6).state_dict(), dl.LogicLoss(rule, num_samples=6)
    train(logic, rule, range(3))
    broken = {**logic.state_dict(), "delta": torch.ones(7)}
    twin = dl.LogicLoss(rule, num_samples=6)
    with pytest.raises(RuntimeError, match="none of it was loaded"):
        twin.load_state_dict(broken)
    assert_same(train(twin, rule, range(3)), train(dl.LogicLoss(rule, num_samples=6), rule, range(3)))
    logic.load_state_dict(first)
    assert_same(train(logic, rule, range(3)), train(dl.LogicLoss(rule, num_samples=6), rule, range(3)))


@pytest.mark.filterwarnings("ignore::dualogic.errors.ShortcutWarning")
def test_what_has_a_gradient_and_what_is_evidence_are_left_as_they_are():
    for rule, options in ((a >> b, {}), (dl.evidence(a) >> card, {}), (a >> card, {"evidence": True})):
        logic = dl.LogicLoss(rule, 6, dl.methods.Dual(**options))
        before = logic._program
        train(logic, rule, range(2))
        assert logic._program is before


@pytest.mark.parametrize("table", ["host", "mapped", "file"])
def test_rows_may_lie_elsewhere(table, tmp_path):
    """A file with a name keeps the width that it was made with; there such a rule stays as it is written."""
    for rule, same in (((a & b) >> card, table != "file"), (a >> card, True)):
        place = dl.Mapped(tmp_path / f"{same}.duals") if table == "file" else table
        usual, logic = dl.LogicLoss(rule, num_samples=6), dl.LogicLoss(rule, num_samples=6, table=place)
        train(usual, rule, range(3))
        train(logic, rule, range(3))
        assert any(level.turned for level in logic._program.plan.levels) == same
        assert torch.equal(usual.delta, logic.delta) == same
        again = dl.LogicLoss(rule, num_samples=6, table=table if table != "file" else "host")
        again.load_state_dict(logic.state_dict())
        copy.deepcopy(logic)


def test_a_gradient_that_comes_later_is_told_and_reset_asks_anew():
    logic = dl.LogicLoss(a >> card, num_samples=6)
    train(logic, a >> card, range(2))
    late = {"a": torch.randn(6, requires_grad=True), "card": torch.full((6,), 0.3, requires_grad=True)}
    with pytest.warns(MistakeWarning, match=r"'card': had no gradient .* logic\.reset_\(\)"):
        logic(torch.arange(6), **late)
    logic.reset_()
    logic(torch.arange(6), **late).backward()
    assert bool(late["card"].grad.any())
