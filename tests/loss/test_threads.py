"""Several threads that call one loss: every step counts, whatever they meet in."""

import copy
import pickle
import sys
import threading

import pytest
import torch

import dualogic as dl

X, Y = dl.var("x"), dl.var("y")
RULE = (X <= 0) | (Y <= 0)
# A delta that stays makes what a sample learns independent of the order of the threads.
METHOD = dl.methods.Dual(floor=1.0, ceiling=1.0)
THREADS, STEPS = 4, 60


@pytest.fixture
def _impatient():
    """Threads take turns after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*actions):
    errors = []

    def call(action):
        try:
            action()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=call, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def visit(logic, sample, steps=STEPS):
    value = torch.tensor([1.0 + sample], requires_grad=True)
    index = None if logic.num_samples is None else torch.tensor([sample])
    for _ in range(steps):
        logic(index, x=value, y=torch.tensor([0.5]))
        if logic.update == "manual":
            logic.step()


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("table", ["device", "host", "mapped"])
def test_no_step_is_lost(table):
    alone, shared = (dl.LogicLoss(RULE, THREADS, METHOD, table=table) for _ in range(2))
    for sample in range(THREADS):
        visit(alone, sample)
    together(*(lambda sample=sample: visit(shared, sample) for sample in range(THREADS)))
    assert shared.state_dict()["steps"] == THREADS * STEPS
    assert torch.equal(shared.state_dict()["table"], alone.state_dict()["table"])


@pytest.mark.usefixtures("_impatient")
def test_threads_that_share_a_sample_or_a_row_lose_nothing():
    for samples in (1, None):
        alone, shared = (dl.LogicLoss(RULE, samples, METHOD) for _ in range(2))
        for _ in range(THREADS):
            visit(alone, 0)
        together(*(lambda logic=shared: visit(logic, 0) for _ in range(THREADS)))
        assert shared.state_dict()["steps"] == THREADS * STEPS
        assert torch.equal(shared.state_dict()["table"], alone.state_dict()["table"])


@pytest.mark.usefixtures("_impatient")
def test_reading_and_saving_while_another_thread_trains():
    logic = dl.LogicLoss(RULE, THREADS, METHOD, table="host")

    def look():
        for _ in range(STEPS):
            logic.weights(torch.arange(THREADS))
            logic.prefetch(torch.tensor([1, 2]))
            logic.state_dict()
            with logic.frozen():
                pass

    together(look, lambda: visit(logic, 1), look)
    assert logic._run.frozen == 0
    assert torch.isfinite(logic.state_dict()["table"]).all()


def test_what_holds_a_lock_can_still_be_copied():
    logic = dl.LogicLoss(RULE, 2)
    visit(logic, 1, steps=2)
    for twin in (copy.deepcopy(logic), pickle.loads(pickle.dumps(logic))):
        assert torch.equal(twin.state_dict()["table"], logic.state_dict()["table"])
        visit(twin, 0, steps=1)


def test_a_function_in_a_rule_may_call_the_loss_itself():
    seen = []

    def look(x):
        seen.append(logic.weights(torch.tensor([0])))
        return x

    logic = dl.LogicLoss((dl.apply(look, X, name="look", shape=()) <= 0) | (Y <= 0), 2)
    visit(logic, 1, steps=1)
    assert len(seen) == 1
    assert logic.state_dict()["steps"] == 1
