"""Calls that repeat run from buffers of their own; here what records is replaced by one that simply computes again."""

import copy
import pickle
import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

import dualogic as dl
from dualogic.loss import graphs
from dualogic.loss.signature import TELLS_OF_HOOKS

P, Q = dl.boolean("p"), dl.boolean("q")
X, F = dl.var("x", 4), dl.categorical("f", 5, input="logits")
RULES = {
    "implication": P >> Q,
    "several": {"one": P >> Q, "two": (X[0] <= X[1]) | Q, "three": ((X == 0) | (X == 1)).all()},
    "classes": (F == 1) >> (F.isin([2, 3]) | (X[2] <= 0.1)),
}
METHODS = ["dual", "hard", "dl2", "lukasiewicz", dl.methods.Dual.paper()]
SAMPLES = 12


class Again:
    """Records by remembering what to compute."""

    recorded = 0

    def __init__(self, device):
        self.device = device

    @staticmethod
    def suits(device):
        return True

    def place(self):
        return 0

    def rehearse(self, body):
        return body()

    def record(self, body):
        Again.recorded += 1
        return body


@pytest.fixture(autouse=True)
def _again(monkeypatch):
    monkeypatch.setattr(graphs, "GraphMaker", Again)
    Again.recorded = 0


def batch(rules, seed, size=6, **options):
    generator = torch.Generator().manual_seed(seed)
    index = torch.randint(SAMPLES, (size,), generator=generator)
    made = {
        "p": torch.rand(size, generator=generator),
        "q": torch.rand(size, generator=generator),
        "x": torch.rand(size, 4, generator=generator),
        "f": torch.randn(size, 5, generator=generator),
    }
    formulas = rules.values() if isinstance(rules, dict) else [rules]
    names = {name for formula in formulas for name in formula.symbols}
    return index, {name: value.to(**options).requires_grad_() for name, value in made.items() if name in names}


def step(logic, index, tensors, factor=1.0, **options):
    leaves = {name: value.detach().clone().requires_grad_() for name, value in tensors.items()}
    loss = logic(index, **options, **leaves)
    (loss * factor).backward()
    return loss.detach(), {name: value.grad for name, value in leaves.items()}


def assert_same(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def assert_same_state(ours, theirs):
    assert_same(*({key: value for key, value in each.state_dict().items() if "extra" not in key} for each in (ours, theirs)))


def pair(rules, num_samples=SAMPLES, method="dual", **options):
    return [dl.LogicLoss(rules, num_samples, method, capture=capture, **options) for capture in (True, False)]


@pytest.mark.parametrize("samples", [SAMPLES, None])
@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@settings(max_examples=5)
@given(
    seed=st.integers(0, 2**20), factor=st.sampled_from([1.0, 0.1, 3.0]), dtype=st.sampled_from([torch.float32, torch.bfloat16])
)
def test_the_same_to_the_bit(rules, method, samples, seed, factor, dtype):
    ours, theirs = pair(rules, samples, method)
    for number in range(7):
        index, tensors = batch(rules, seed + number, dtype=dtype)
        assert_same(step(ours, index, tensors, factor), step(theirs, index, tensors, factor))
        assert_same(ours.statistics(), theirs.statistics())
    assert len(ours._run.graphs) == 1
    assert len(theirs._run.graphs) == 0
    assert_same_state(ours, theirs)


def test_recorded_once_after_two_plain_calls_and_a_rehearsal(monkeypatch):
    logic = dl.LogicLoss(P >> Q, SAMPLES)
    plain = []
    monkeypatch.setattr(graphs.Graphs, "watch", lambda self, loss, old=graphs.Graphs.watch: (plain.append(1), old(self, loss)))
    for number in range(6):
        assert Again.recorded == (number > 3)
        step(logic, *batch(P >> Q, number))
    assert len(plain) == 2


@pytest.mark.parametrize(
    "options",
    [
        lambda number: {"where": torch.arange(6) % 3 != number % 3},
        lambda number: {"where": {"one": torch.arange(6) % 3 != number % 3}},
        lambda number: {"believe": {"q": torch.full((6,), 0.1 * number)}},
    ],
    ids=["where", "where for a rule", "believe"],
)
def test_masks_and_beliefs_are_buffers_too(options):
    rules = RULES["several"]
    ours, theirs = pair(rules)
    for number in range(8):
        given = batch(rules, number)
        assert_same(step(ours, *given, **options(number)), step(theirs, *given, **options(number)))
        assert_same(ours.statistics(), theirs.statistics())
    assert Again.recorded == 1
    assert_same_state(ours, theirs)


def test_a_tensor_for_two_symbols():
    rule = (dl.categorical("f", 5, input="logits") == 1) >> (dl.categorical("g", 5, input="logits") == 2)
    ours, theirs = pair(rule)
    for number in range(6):
        index, tensors = batch(F == 1, number)
        found = []
        for logic in (ours, theirs):
            leaf = tensors["f"].detach().clone().requires_grad_()
            logic(index, f=leaf, g=leaf).backward()
            found.append(leaf.grad)
        assert_same(*found)
    assert Again.recorded == 1


def test_several_calls_before_a_backward_pass():
    ours, theirs = pair(P >> Q)
    for number in range(8):
        found = []
        for logic in (ours, theirs):
            parts = [batch(P >> Q, 2 * number + part) for part in range(2)]
            sum(logic(index, **tensors) for index, tensors in parts).backward()
            found.append([value.grad for _, tensors in parts for value in tensors.values()])
        assert_same(*found)
    assert Again.recorded == 1


def test_changes_in_the_middle():
    rules = RULES["several"]
    ours, theirs = pair(rules)
    for number in range(40):
        if number == 5:
            saved = [copy.deepcopy(logic.state_dict()) for logic in (ours, theirs)]
        for place, logic in enumerate((ours, theirs)):
            if number == 9:
                logic.set_weight("two", 0.25)
            if number == 18:
                logic.set_weight("one", 0.0)
            if number == 28:
                logic.load_state_dict(saved[place])
            if number == 35:
                logic.reset_()
        given = batch(rules, number, size=3 if number % 4 == 3 else 6)
        assert_same(step(ours, *given), step(theirs, *given))
    assert_same_state(ours, theirs)
    assert Again.recorded > 2


def test_more_samples_are_other_tensors():
    ours, theirs = pair(P >> Q)
    for number in range(12):
        if number == 6:
            for logic in (ours, theirs):
                logic.extend(2 * SAMPLES)
        assert_same(step(ours, *batch(P >> Q, number)), step(theirs, *batch(P >> Q, number)))
    assert Again.recorded == 2
    assert_same_state(ours, theirs)


def test_what_a_gradient_is_multiplied_by_comes_before_rounding():
    """A gradient below the smallest number of 16 bits is there with the factor of a gradient scaler."""
    rule = dl.var("y") <= 0
    ours, theirs = pair(rule, None, "dl2")
    for _ in range(7):
        given = {"y": torch.full((2000,), 1e-3, dtype=torch.float16)}
        found, expected = (step(logic, None, given, factor=2.0**14) for logic in (ours, theirs))
        assert_same(found, expected)
    assert expected[1]["y"].abs().min() > 0
    assert Again.recorded == 1


def test_a_gradient_of_zero_or_infinity_is_forgotten():
    ours, theirs = pair(P >> Q)
    for number, factor in enumerate([1.0, 1.0, 1.0, 1.0, 0.0, 1.0, torch.inf, 1.0, 1.0]):
        found, expected = (step(logic, *batch(P >> Q, number), factor) for logic in (ours, theirs))
        torch.testing.assert_close(found[1], expected[1], equal_nan=True, rtol=0, atol=0)


def test_second_derivatives_are_seen_in_time_or_refused():
    def differentiate(logic, create_graph):
        index, tensors = batch(X[0] <= X[1], 0)
        torch.autograd.grad(logic(index, **tensors), tensors["x"], create_graph=create_graph)

    rule = X[0] <= X[1]
    early = dl.LogicLoss(rule, SAMPLES)
    for _ in range(6):
        differentiate(early, create_graph=True)
    late, never = pair(rule)
    for _ in range(5):
        differentiate(late, create_graph=False)
        differentiate(never, create_graph=True)
    with pytest.raises(dl.errors.StateError, match="capture=False"):
        differentiate(late, create_graph=True)


def test_a_recording_that_fails_is_not_tried_again(monkeypatch):
    tried = []

    def fail(self, body):
        tried.append(body)
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(Again, "record", fail)
    ours, theirs = pair(P >> Q)
    for number in range(40):
        given = batch(P >> Q, number, size=(4 if number < 20 else 10) + number % 3)
        assert_same(step(ours, *given), step(theirs, *given))
        assert_same(ours.statistics(), theirs.statistics())
    assert len(tried) == graphs.MOST_FAILURES
    assert len(ours._run.graphs) == 0
    assert_same_state(ours, theirs)


def test_graphs_and_signatures_are_bounded():
    logic = dl.LogicLoss(P >> Q, SAMPLES)
    for _ in range(6):
        for size in range(1, 100):
            step(logic, *batch(P >> Q, size, size=size))
    for size in range(1, 30):
        for number in range(6):
            step(logic, *batch(P >> Q, number, size=size))
        assert len(logic._run.graphs) <= graphs.MOST_GRAPHS
        assert len(logic._run.graphs._entries) <= graphs.MOST_SIGNATURES
    assert len(logic._run.graphs) == graphs.MOST_GRAPHS


@pytest.mark.parametrize(
    "how",
    [
        lambda logic, index, tensors: logic.eval()(index, **tensors),
        lambda logic, index, tensors: torch.no_grad()(logic)(index, **tensors),
        lambda logic, index, tensors: _within(logic.frozen(), logic, index, tensors),
        lambda logic, index, tensors: _within(torch.autograd.set_detect_anomaly(True), logic, index, tensors),
        lambda logic, index, tensors: logic(index.tolist(), **tensors),
        lambda logic, index, tensors: logic(index, **{name: value.tolist() for name, value in tensors.items()}),
        lambda logic, index, tensors: logic(index[:0], **{name: value[:0] for name, value in tensors.items()}),
        pytest.param(
            lambda logic, index, tensors: _within(torch.autograd.graph.save_on_cpu(), logic, index, tensors),
            marks=pytest.mark.skipif(not TELLS_OF_HOOKS, reason="this torch does not tell of hooks"),
        ),
        lambda logic, index, tensors: _within(FlopCounterMode(display=False), logic, index, tensors),
    ],
    ids=["eval", "no_grad", "frozen", "anomaly", "list", "lists", "empty", "saved elsewhere", "counted"],
)
@pytest.mark.filterwarnings("ignore:Anomaly")
def test_what_runs_the_plain_way(how):
    logic = dl.LogicLoss(P >> Q, SAMPLES)
    for _ in range(6):
        how(logic, *batch(P >> Q, 0))
    assert len(logic._run.graphs) == 0


def _within(context, logic, index, tensors):
    with context:
        logic(index, **tensors)


def test_a_transform_is_refused_as_ever():
    logic = dl.LogicLoss(P >> Q, method="lukasiewicz")
    for number in range(6):
        step(logic, None, batch(P >> Q, number)[1])
    _, tensors = batch(P >> Q, 0)
    with pytest.raises(dl.errors.StateError, match=r"cannot learn inside of torch.func.grad.*logic.frozen\(\)"):
        torch.func.grad(lambda p: logic(p=p, q=tensors["q"]))(tensors["p"].detach())


@pytest.mark.parametrize("options", [{"update": "manual"}, {"reduction": "none"}, {"capture": False}], ids=str)
def test_losses_without_graphs(options):
    logic = dl.LogicLoss(P >> Q, SAMPLES, **options)
    for number in range(6):
        logic(*[batch(P >> Q, number)[0]], **batch(P >> Q, number)[1])
    assert len(logic._run.graphs) == 0


def test_tables_elsewhere_and_methods_of_others_have_none():
    class Own(dl.methods.Dual):
        pass

    assert dl.LogicLoss(P >> Q, SAMPLES, table="host")._run.graphs is None
    assert dl.LogicLoss(P >> Q, SAMPLES, Own())._run.graphs is None


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda logic: pickle.loads(pickle.dumps(logic))])
@pytest.mark.parametrize("capture", [True, False])
def test_copies_have_the_choice_and_no_graph(twin, capture):
    logic = dl.LogicLoss(P >> Q, SAMPLES, capture=capture)
    for number in range(6):
        step(logic, *batch(P >> Q, number))
    other = twin(logic)
    assert other.capture is capture
    assert len(other._run.graphs) == 0
    assert len(logic._run.graphs) == capture
    for number in range(6):
        step(other, *batch(P >> Q, number))
    assert len(other._run.graphs) == capture


def test_errors_are_those_of_a_plain_call():
    logic = dl.LogicLoss(P >> Q, SAMPLES)
    for number in range(6):
        step(logic, *batch(P >> Q, number))
    index, tensors = batch(P >> Q, 0)
    with pytest.raises(dl.errors.SampleIndexError, match="out of range"):
        logic(index + SAMPLES, **tensors)
    with pytest.raises(dl.errors.SampleIndexError, match="shape"):
        logic(index[:2], **tensors)
    with pytest.raises(dl.errors.SampleIndexError, match="indices"):
        logic(**tensors)
    with pytest.raises(dl.errors.SymbolError):
        logic(index, p=tensors["p"])
    with pytest.raises(dl.errors.BindingError):
        logic(index, p=tensors["p"], q=tensors["q"].detach().to_sparse())


def test_a_backward_pass_in_which_it_is_computed_again_is_refused():
    logic = dl.LogicLoss(P >> Q, SAMPLES)
    for number in range(6):
        step(logic, *batch(P >> Q, number))
    index, tensors = batch(P >> Q, 0)

    def run(reentrant):
        checkpoint(lambda p: logic(index, p=p, q=tensors["q"]), tensors["p"] * 1.0, use_reentrant=reentrant).backward()

    for reentrant in (False, True):
        with pytest.raises(dl.errors.StateError, match="checkpointing"):
            run(reentrant)


if __name__ == "__main__":  # how long the Python of a replay takes
    torch.set_num_threads(1)
    graphs.GraphMaker = Again
    logic = dl.LogicLoss(P >> Q, SAMPLES)
    index, tensors = batch(P >> Q, 0, size=64)
    for _ in range(6):
        logic(index, **tensors)
    (entry,) = logic._run.graphs._entries.values()
    found = entry.recording.launch()
    entry.recording.launch = lambda: found
    for name in ("forward", "forward and backward"):
        times = []
        for _ in range(2000):
            start = time.perf_counter()
            loss = logic(index, **tensors)
            if name != "forward":
                loss.backward()
            times.append(time.perf_counter() - start)
        print(f"{name}: {1e6 * sorted(times)[1000]:.1f} us")
