"""The variants of the dual steps that the study tries: each does what it says, and none does more."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dualogic as dl
from dualogic.experiments.demo.measures import RULE
from dualogic.experiments.study import ascent, variants
from dualogic.experiments.study.digits import EPOCHS, load_bench
from dualogic.experiments.study.options import EPOCH
from dualogic.experiments.study.variants import (
    Adaptive,
    Averaged,
    Entropic,
    Extragradient,
    Normalised,
    Optimistic,
    Ordered,
    Tempered,
)
from dualogic.losses import truncated_normal_slope

SAMPLES = 6
EVERY = torch.arange(SAMPLES)
seeds = st.integers(0, 2**16)


def make_logits(seed, count):
    """For each of ``count`` visits, the logits ``f`` and ``g`` of every sample."""
    generator = torch.Generator().manual_seed(seed)
    return [{name: 3.0 * torch.randn(SAMPLES, 10, generator=generator) for name in "fg"} for _ in range(count)]


def visit(logic, logits):
    """One training call; the losses of the samples."""
    return logic(EVERY, **{name: tensor.requires_grad_() for name, tensor in logits.items()}).detach()


def make(method):
    return dl.LogicLoss(RULE, num_samples=SAMPLES, method=method, reduction="none")


def default_step(duals, delta, costs, step=0.7):
    """The default's step of an ``or`` of two costs ``(batch, 2)``, by its formula."""
    weights = duals.softmax(1)
    mixed = (weights * costs).sum(1, keepdim=True)
    return step * truncated_normal_slope(mixed, delta) * weights * (mixed - costs)


def log_costs(logits):
    """Of not-P and Q, ``(batch, 2)``."""
    nine, six = logits["g"].softmax(1)[:, 9], logits["f"].log_softmax(1)[:, 6]
    return torch.stack([-torch.log1p(-nine), -six], 1).detach()


def state_of(logic):
    return logic._table.values[:, :2].clone(), logic.delta.clone()


@pytest.mark.parametrize(
    "neutral",
    [Averaged(decay=0.0), Tempered(start=1.0, end=1.0), Entropic(entropy=0.0), Ordered(late="")],
    ids=lambda method: type(method).__name__,
)
@given(seed=seeds)
def test_with_nothing_changed_it_is_the_default(neutral, seed):
    variant, default = make(neutral), make(dl.methods.Dual())
    for logits in make_logits(seed, 4):
        torch.testing.assert_close(visit(variant, logits), visit(default, logits))
    torch.testing.assert_close(variant.weights(EVERY)["rule"], default.weights(EVERY)["rule"], atol=1e-6, rtol=1e-5)


@given(seed=seeds)
def test_an_optimistic_step_is_twice_this_one_less_the_one_before(seed):
    logic, before = make(Optimistic()), None
    for logits in make_logits(seed, 4):
        duals, delta = state_of(logic)
        now = default_step(duals, delta, log_costs(logits))
        visit(logic, logits)
        expected = duals + (now if before is None else 2 * now - before)
        torch.testing.assert_close(state_of(logic)[0], expected, atol=1e-4, rtol=1e-4)
        before = now


@given(seed=seeds)
def test_an_extragradient_step_is_that_of_duals_that_have_moved(seed):
    logic = make(Extragradient())
    for logits in make_logits(seed, 3):
        duals, delta = state_of(logic)
        costs = log_costs(logits)
        trial = duals + default_step(duals, delta, costs)
        visit(logic, logits)
        torch.testing.assert_close(state_of(logic)[0], duals + default_step(trial, delta, costs), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("decay", [None, 0.9])
@given(seed=seeds)
def test_the_loss_has_averaged_weights_and_the_steps_have_their_own(decay, seed):
    logic, seen, average = make(Averaged(decay=decay)), [], torch.full((SAMPLES, 2), 0.5)
    for logits in make_logits(seed, 4):
        duals, delta = state_of(logic)
        costs = log_costs(logits)
        visit(logic, logits)
        moved = duals + default_step(duals, delta, costs)
        torch.testing.assert_close(state_of(logic)[0], moved, atol=1e-4, rtol=1e-4)
        seen.append(moved.softmax(1))
        average = torch.stack(seen).mean(0) if decay is None else decay * average + (1 - decay) * seen[-1]
        torch.testing.assert_close(logic.weights(EVERY)["rule"], average, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(logic._run.last["cost"][:, 0], (average * costs).sum(1), atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("decay", [None, 0.9])
@given(seed=seeds)
def test_adaptive_steps_are_those_of_adagrad_and_rmsprop(decay, seed):
    logic, squares = make(Adaptive(step=0.3, decay=decay)), torch.zeros(SAMPLES, 2)
    for number, logits in enumerate(make_logits(seed, 4), start=1):
        duals, delta = state_of(logic)
        gradient = default_step(duals, delta, log_costs(logits), step=1.0)
        visit(logic, logits)
        squares = squares + gradient**2 if decay is None else decay * squares + (1 - decay) * gradient**2
        scale = squares if decay is None else squares / (1 - decay**number)
        torch.testing.assert_close(state_of(logic)[0], duals + 0.3 * gradient / (scale.sqrt() + 1e-8), atol=2e-3, rtol=1e-3)


@given(seed=seeds)
def test_normalised_steps_have_the_same_size_in_each_batch_or_relative_to_the_cost(seed):
    by_batch, by_cost = make(Normalised(step=0.1, by="batch")), make(Normalised(step=0.1, by="cost"))
    for logits in make_logits(seed, 3):
        duals, _ = state_of(by_batch)
        visit(by_batch, logits)
        assert (state_of(by_batch)[0] - duals).abs().mean().item() == pytest.approx(0.1, rel=1e-3)
        (duals, delta), costs = state_of(by_cost), log_costs(logits)
        visit(by_cost, logits)
        mixed = (duals.softmax(1) * costs).sum(1, keepdim=True)
        moved = duals + default_step(duals, delta, costs, step=0.1) / mixed.clamp_min(0.01)
        torch.testing.assert_close(state_of(by_cost)[0], moved, atol=1e-4, rtol=1e-3)


@given(seed=seeds)
def test_the_temperature_divides_logits_and_steps_and_falls_by_one_factor(seed):
    logic = make(Tempered(start=4.0, end=1.0))
    for number, logits in enumerate(make_logits(seed, 3), start=1):
        duals, delta = state_of(logic)
        temperature = 4.0 ** (1 - number / EPOCHS)
        moved = duals + default_step(duals / temperature, delta, log_costs(logits)) / temperature
        visit(logic, logits)
        torch.testing.assert_close(state_of(logic)[0], moved, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(logic.weights(EVERY)["rule"], (moved / temperature).softmax(1), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("start", "end"), [(4.0, 1.0), (1.0, 0.25)])
def test_the_temperature_goes_from_its_start_to_its_end(start, end):
    program = Tempered(start=start, end=end).program({"rule": RULE})
    found = program.temperature(torch.tensor([0.0, EPOCHS / 2, EPOCHS, 2 * EPOCHS]))
    torch.testing.assert_close(found, torch.tensor([start, math.sqrt(start * end), end, end]))


@given(seed=seeds, done=st.integers(0, 2 * variants.UPDATES))
def test_the_entropys_gradient_is_added_and_vanishes(seed, done):
    entropy, program, default = 4.0, *(method.program({"rule": RULE}) for method in (Entropic(entropy=4.0), dl.methods.Dual()))
    rows = torch.randn(SAMPLES, 2, generator=torch.Generator().manual_seed(seed)).requires_grad_()
    state = {**program.initial_state(torch.float32), "steps": torch.tensor(done)}
    values = program.evaluate(program.plan.bind(make_logits(seed, 1)[0], None))
    weights = rows.softmax(1)
    (slope,) = torch.autograd.grad(-(weights * weights.log()).sum(), rows)
    rows = rows.detach()
    added = program.moves(rows, state, values)[1] - default.moves(rows, state, values)[1]
    expected = 0.7 * entropy * max(0.0, 1 - done / variants.UPDATES) * slope
    torch.testing.assert_close(added, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("options", [{"class_cost": "probability"}, {"unfold": True}], ids=str)
@pytest.mark.parametrize("late", ["inner", "outer", ""])
@given(seed=seeds)
def test_late_connectives_stay_equal_for_half_of_training(options, late, seed):
    program = Ordered(late=late, **options).program({"rule": RULE})
    default = Ordered(**options).program({"rule": RULE})
    assert [level.operands for level in program.plan.levels] == [2, 9]
    columns = {"outer": slice(0, 2), "inner": slice(2, 11), "": slice(0, 0)}[late]
    rows = torch.zeros(SAMPLES, 11)
    values = program.evaluate(program.plan.bind(make_logits(seed, 1)[0], None))
    for done, held in ((0, True), (variants.UPDATES // 2 - 1, True), (variants.UPDATES // 2, False)):
        state = {**program.initial_state(torch.float32), "steps": torch.tensor(done)}
        expected = default.moves(rows, state, values)[1].clone()
        assert expected.abs().sum() > 0
        if held:
            expected[:, columns] = 0.0
        torch.testing.assert_close(program.moves(rows, state, values)[1], expected)


def test_written_as_nine_classes_the_rule_costs_their_mean_and_the_antecedent_stays_evidence():
    logits = make_logits(0, 1)[0]
    logic = make(Ordered(unfold=True))
    f, g = (tensor.requires_grad_() for tensor in logits.values())
    with logic.frozen():
        logic(EVERY, f=f, g=g).sum().backward()
    others = -g.detach().log_softmax(1)[:, :9].mean(1)
    torch.testing.assert_close(logic._run.last["cost"][:, 0], 0.5 * (others - f.detach().log_softmax(1)[:, 6]))
    assert f.grad.abs().sum() > 0
    assert g.grad is None


def test_an_epoch_has_as_many_updates_as_the_schedules_take_it_to_have():
    labelled = len(load_bench("mixed", 0).split.labelled)
    assert -(-labelled // 64) == EPOCH
    assert EPOCHS * EPOCH == variants.UPDATES


def test_settings_differ():
    assert len({repr(method) for method in ascent.SETTINGS.values()}) == len(ascent.SETTINGS)
