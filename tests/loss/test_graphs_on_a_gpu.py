"""On a GPU: calls that repeat run as recorded graphs, with the result of plain calls.

Skipped without CUDA; run on a GPU machine with ``python -m pytest tests/loss/test_graphs_on_a_gpu.py``.
"""

import copy
import gc
import pickle
import warnings

import pytest
import torch

import dualogic as dl
from dualogic.loss import graph_maker, graphs

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
    pytest.mark.filterwarnings("ignore:.*deterministic:UserWarning"),
]

P, Q = dl.boolean("p"), dl.boolean("q")
X, F = dl.var("x", 4), dl.categorical("f", 5, input="logits")
N = dl.axis("n", max=5)
Z, VALID = dl.var("z", N), dl.mask("valid", N)
RULES = {
    "implication": P >> Q,
    "several": {"one": P >> Q, "two": (X[0] <= X[1]) | Q, "three": ((X == 0) | (X == 1)).all()},
    "nested": (F == 1) >> ((F.isin([2, 3]) & ~P) | ((X[2] <= 0.1) & (X[3] <= X[1]))),
    "two levels": ((X == 0) | (X == 1)).all(),
    "padded": ((Z <= 0.1) | (Z >= 0.8)).all(where=VALID),
}
METHODS = ["dual", "hard", "dl2", "lukasiewicz", dl.methods.Dual.paper()]
SAMPLES, SIZE = 40, 16


@pytest.fixture
def _exact():
    """Sums in a fixed order, so that bits can be compared at all."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.use_deterministic_algorithms(False)


def batch(rules, seed, size=SIZE):
    generator = torch.Generator().manual_seed(seed)
    index = torch.randint(SAMPLES // 2, (size,), generator=generator).cuda()  # with duplicates
    made = {
        "p": torch.rand(size, generator=generator),
        "q": torch.rand(size, generator=generator),
        "x": torch.rand(size, 4, generator=generator),
        "f": torch.randn(size, 5, generator=generator),
        "z": torch.rand(size, 4, generator=generator),
        "valid": torch.arange(4) < torch.randint(1, 5, (size, 1), generator=generator),
    }
    formulas = rules.values() if isinstance(rules, dict) else [rules]
    names = {name for formula in formulas for name in formula.symbols}
    return index, {name: value.cuda() for name, value in made.items() if name in names}


def step(logic, index, tensors, factor=1.0, **options):
    leaves = {name: value.detach().clone().requires_grad_(value.is_floating_point()) for name, value in tensors.items()}
    loss = logic(index, **options, **leaves)
    (loss * factor).backward()
    return loss.detach(), {name: value.grad for name, value in leaves.items()}


def pair(rules, num_samples=SAMPLES, method="dual", **options):
    return [dl.LogicLoss(rules, num_samples, method, capture=capture, **options).cuda() for capture in (True, False)]


def assert_same(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def assert_same_state(ours, theirs):
    ours.check()
    theirs.check()
    assert_same(*({key: value for key, value in each.state_dict().items() if "extra" not in key} for each in (ours, theirs)))


def count(logic):
    """Graphs that were recorded, not only rehearsed."""
    entries = logic._run.graphs._entries.values()
    return sum(entry.recording is not None and entry.recording.launch is not None for entry in entries)


def record(rules=P >> Q, steps=6, **options):
    logic = dl.LogicLoss(rules, SAMPLES, **options).cuda()
    for number in range(steps):
        step(logic, *batch(rules, number))
    assert count(logic) == 1
    return logic


@pytest.mark.usefixtures("_exact")
@pytest.mark.parametrize("samples", [SAMPLES, None], ids=["a table", "a shared row"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: str(method)[:20])
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_the_same_to_the_bit(rules, method, samples):
    ours, theirs = pair(rules, samples, method)
    for number in range(20):
        given = batch(rules, number)
        factor = 0.1 if number < 12 else 1.0
        found, expected = (step(logic, *given, factor) for logic in (ours, theirs))
        assert_same(found[0], expected[0])
        # When the factor changes, one step rounds in another order.
        exact = {} if number == 12 else {"rtol": 0, "atol": 0}
        torch.testing.assert_close(found[1], expected[1], **exact)
        assert_same(ours.statistics(), theirs.statistics())
    assert count(ours) == 1
    assert count(theirs) == 0
    assert_same_state(ours, theirs)


@pytest.mark.usefixtures("_exact")
@pytest.mark.parametrize("options", [{"dtype": torch.bfloat16}, {"dtype": torch.float64}, {"reduction": "sum"}], ids=str)
def test_other_tables_and_sums(options):
    ours, theirs = pair(RULES["several"], **options)
    for number in range(20):
        given = batch(RULES["several"], number)
        assert_same(step(ours, *given), step(theirs, *given))
    assert count(ours) == 1
    assert_same_state(ours, theirs)


@pytest.mark.usefixtures("_exact")
@pytest.mark.parametrize(
    "options",
    [
        lambda number: {"where": torch.arange(SIZE, device="cuda") % 3 != number % 3},
        lambda number: {"where": {"one": torch.arange(SIZE, device="cuda") % 3 != number % 3}},
        lambda number: {"believe": {"q": torch.full((SIZE,), 0.04 * number, device="cuda")}},
    ],
    ids=["where", "where for a rule", "believe"],
)
def test_masks_and_beliefs(options):
    rules = RULES["several"]
    ours, theirs = pair(rules)
    for number in range(20):
        given = batch(rules, number)
        assert_same(step(ours, *given, **options(number)), step(theirs, *given, **options(number)))
        assert_same(ours.statistics(), theirs.statistics())
    assert count(ours) == 1
    assert_same_state(ours, theirs)


@pytest.mark.usefixtures("_exact")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_networks_under_autocast(dtype):
    rule = (F == 1) >> F.isin([2, 3])
    losses = pair(rule)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.Dropout(0.5), torch.nn.Linear(32, 5)).cuda()
    networks = [network, copy.deepcopy(network)]
    scale = 2.0**12 if dtype is torch.float16 else 0.1
    for number in range(20):
        inputs, index = torch.randn(SIZE, 6, device="cuda"), batch(rule, number)[0]
        for logic, network in zip(losses, networks):
            torch.manual_seed(number)
            network.zero_grad()
            with torch.autocast("cuda", dtype):
                loss = logic(index, f=network(inputs))
            (loss * scale).backward()
        assert_same(*([parameter.grad for parameter in network.parameters()] for network in networks))
    assert count(losses[0]) == 1
    assert_same_state(*losses)


@pytest.mark.usefixtures("_exact")
def test_a_smaller_last_batch_and_an_index_on_the_host():
    ours, theirs = pair(P >> Q)
    for number in range(30):
        index, tensors = batch(P >> Q, number, size=5 if number % 4 == 3 else SIZE)
        index = index.int().cpu() if number >= 15 else index
        assert_same(step(ours, index, tensors), step(theirs, index, tensors))
        assert_same(ours.statistics(), theirs.statistics())
    assert count(ours) >= 3
    assert_same_state(ours, theirs)


@pytest.mark.usefixtures("_exact")
def test_several_calls_before_a_backward_pass():
    ours, theirs = pair(RULES["several"])
    for number in range(10):
        found = []
        for logic in (ours, theirs):
            parts = [batch(RULES["several"], 2 * number + part) for part in range(2)]
            for _, tensors in parts:
                for value in tensors.values():
                    value.requires_grad_()
            sum(logic(index, **tensors) for index, tensors in parts).backward()
            found.append([value.grad for _, tensors in parts for value in tensors.values()])
        assert_same(*found)
    assert count(ours) == 1
    assert_same_state(ours, theirs)


@pytest.mark.usefixtures("_exact")
def test_changes_in_the_middle():
    rules = RULES["several"]
    ours, theirs = pair(rules)
    for number in range(48):
        if number == 5:
            saved = [copy.deepcopy(logic.state_dict()) for logic in (ours, theirs)]
        for place, logic in enumerate((ours, theirs)):
            if number == 8:
                logic.set_weight("two", 0.25)
            if number == 14:
                logic.set_weight("one", 0.0)
            if number == 22:
                logic.load_state_dict(saved[place])
            if number == 28:
                logic.reset_()
            if number == 34:
                logic.extend(2 * SAMPLES)
            if number == 42:
                logic.cpu().cuda()
        assert_same(step(ours, *batch(rules, number)), step(theirs, *batch(rules, number)))
    assert_same_state(ours, theirs)


@pytest.mark.usefixtures("_exact")
def test_two_losses_on_two_streams():
    ours, theirs = zip(pair(P >> Q), pair(RULES["two levels"]))
    side = torch.cuda.Stream()
    for number in range(16):
        for which, rules in enumerate((P >> Q, RULES["two levels"])):
            given = batch(rules, number)
            torch.cuda.synchronize()
            with torch.cuda.stream(side if number % 2 else torch.cuda.default_stream()):
                found = step(ours[which], *given)
            torch.cuda.synchronize()
            assert_same(found, step(theirs[which], *given))
    for one, other in zip(ours, theirs):
        assert count(one) == 2
        assert_same_state(one, other)


@pytest.mark.parametrize("bad", ["index", "cost"])
def test_problems_are_reported_later_and_change_nothing(bad):
    rules = RULES["two levels"] | (X[2] <= 0.5)
    logic = record(rules)
    before = logic.state_dict()["table"].clone()
    index, tensors = batch(rules, 0)
    if bad == "index":
        index = torch.full_like(index, 77)
    else:
        tensors["x"][:] = torch.nan
    logic(index, **{name: value.requires_grad_() for name, value in tensors.items()})
    error = dl.errors.SampleIndexError if bad == "index" else dl.errors.NonFiniteError
    assert torch.equal(logic.state_dict()["table"], before)
    with pytest.raises(error, match="a recent batch had"):  # noqa: PT012
        for number in range(30):
            torch.cuda.synchronize()
            step(logic, *batch(rules, number))
    logic.check()


def test_graphs_are_bounded_and_go_with_their_loss():
    warm = record()
    del warm
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    logic = dl.LogicLoss(P >> Q, SAMPLES).cuda()
    for size in range(1, 51):
        for number in range(5):
            step(logic, *batch(P >> Q, number, size=size))
        assert len(logic._run.graphs) <= graphs.MOST_GRAPHS
    assert len(logic._run.graphs) == graphs.MOST_GRAPHS
    assert torch.cuda.memory_reserved() - before[1] < 2**27
    del logic
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated() <= before[0]
    assert torch.cuda.memory_reserved() <= before[1] + 2**22


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning")
def test_a_step_is_a_few_launches(rules):
    logic = record(rules)
    index, tensors = batch(rules, 0)
    leaves = {name: value.requires_grad_(value.is_floating_point()) for name, value in tensors.items()}

    def run():
        for leaf in leaves.values():
            leaf.grad = None
        logic(index, **leaves).backward()

    for _ in range(8):
        run()
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(8):
            run()
        torch.cuda.synchronize()
    kinds = ("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch", "cudaMemcpyAsync", "cudaMemsetAsync")
    launches = [event.name for event in profile.events() if event.name.startswith(kinds)]
    assert launches.count("cudaGraphLaunch") == 8
    assert len(launches) / 8 < 16


@pytest.mark.parametrize("fault", ["waiting", "error"])
@pytest.mark.usefixtures("_exact")
def test_a_recording_that_fails_changes_nothing(fault, monkeypatch):
    def body(self, owner, layout, usual=graphs.Recording.body):
        found = usual(self, owner, layout)
        if torch.cuda.is_current_stream_capturing():
            if fault == "error":
                raise ValueError("no graph today")
            found.loss.item()
        return found

    monkeypatch.setattr(graphs.Recording, "body", body)
    ours, theirs = pair(P >> Q)
    stream = torch.cuda.current_stream()
    for number in range(10):
        assert_same(step(ours, *batch(P >> Q, number)), step(theirs, *batch(P >> Q, number)))
        assert torch.cuda.current_stream() == stream
        torch.nn.functional.dropout(torch.randn(8, device="cuda"))
    assert count(ours) == 0
    assert_same_state(ours, theirs)
    monkeypatch.undo()
    record()
    torch.randn(8, device="cuda")


@pytest.mark.usefixtures("_exact")
@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda logic: pickle.loads(pickle.dumps(logic))])
def test_copies_start_without_graphs(twin):
    other = twin(record())
    assert len(other._run.graphs) == 0
    expected = copy.deepcopy(other)
    expected.capture = False
    for number in range(8):
        assert_same(step(other, *batch(P >> Q, number)), step(expected, *batch(P >> Q, number)))
    assert count(other) == 1
    assert_same_state(other, expected)


def test_a_whole_step_can_still_be_captured():
    logic = record()
    index, tensors = batch(P >> Q, 0)
    leaves = {name: value.requires_grad_() for name, value in tensors.items()}
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            logic(index, **leaves).backward()
    torch.cuda.current_stream().wait_stream(side)
    steps = int(logic.state_dict()["steps"])
    whole = torch.cuda.CUDAGraph()
    with torch.cuda.graph(whole):
        logic(index, **leaves).backward()
    whole.replay()
    whole.replay()
    assert int(logic.state_dict()["steps"]) == steps + 2


def test_a_large_rule_keeps_no_memory(monkeypatch):
    monkeypatch.setattr(graph_maker, "MOST_BYTES", -1)
    logic = dl.LogicLoss(P >> Q, SAMPLES).cuda()
    for number in range(8):
        step(logic, *batch(P >> Q, number))
    assert count(logic) == 0


def test_second_derivatives():
    rule = (X[0] <= X[1]) | (X[2] <= X[3])

    def differentiate(logic, create_graph):
        index, tensors = batch(rule, 0)
        leaf = tensors["x"].requires_grad_()
        return torch.autograd.grad(logic(index, x=leaf), leaf, create_graph=create_graph)

    early = dl.LogicLoss(rule, SAMPLES).cuda()
    for _ in range(6):
        differentiate(early, create_graph=True)
    assert count(early) == 0
    with pytest.raises(dl.errors.StateError, match="capture=False"):
        differentiate(record(rule), create_graph=True)
