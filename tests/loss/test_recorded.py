"""Calls on a CPU are recorded when their shapes repeat: the same bits, errors, and second derivatives."""

import copy
import warnings

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch.utils.checkpoint import checkpoint

import dualogic as dl
from dualogic.errors import BindingError, NonFiniteError, StateError
from dualogic.loss.signature import TELLS_OF_HOOKS
from dualogic.methods import straight
from strategies import bindings, quantified

METHODS = [
    dl.methods.Dual(),
    dl.methods.Dual(evidence=0.25, local=False, share=0.1),
    dl.methods.Dual(class_cost="probability", first="equal", rule="projected", delta="square", warmup=3),
]
NAMES = ("left", "middle", "right")
A, B, C = (dl.boolean(name, input="logits") for name in NAMES)


def train(logic, batches, recorded):
    """Everything that a run leaves, and how many of its signatures were recorded."""
    logic = copy.deepcopy(logic)
    if not recorded:
        logic._program.recorded = None
    found = []
    for index, tensors in batches:
        leaves = {name: value.clone().requires_grad_(value.is_floating_point()) for name, value in tensors.items()}
        loss = logic(index, **leaves)
        if loss.requires_grad:
            loss.backward()
        found += [loss.detach(), *(leaf.grad for leaf in leaves.values()), logic._table.values.clone()]
        found += [value.clone() for value in logic._state.values()] + [value["cost"] for value in logic.statistics().values()]
    return found, [] if logic._program.recorded is None else [line for line in logic._program.recorded.known.values() if line]


def are_equal(one, other):
    return all((a is None and b is None) or torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("method", METHODS, ids=["default", "divided", "projected"])
@given(data=st.data(), shared=st.booleans(), dtype=st.sampled_from([torch.float32, torch.float64]))
def test_a_run_is_the_same_to_the_bit(method, data, shared, dtype):
    rule = data.draw(quantified(shapes=[(3,), (2, 3)], masked=False))
    tensors = data.draw(bindings(rule, batch=3, dtype=dtype))
    logic = dl.LogicLoss({"one": rule, "two": A >> (B | C)}, num_samples=None if shared else 6, method=method)
    assume(logic._program.recorded is not None)
    generator = torch.Generator().manual_seed(0)
    batches = []
    for number in range(8):
        tensors = {name: value[torch.randperm(3, generator=generator)] for name, value in tensors.items()}
        tensors.update((name, torch.randn(3, generator=generator)) for name in NAMES)
        size = 2 if number % 3 == 2 else 3
        index = torch.tensor([1, 1, 4]) if number == 4 else torch.randperm(6, generator=generator)[:3]
        batches.append((None if shared else index[:size], {name: value[:size] for name, value in tensors.items()}))
    walked, _ = train(logic, batches, recorded=False)
    found, lines = train(logic, batches, recorded=True)
    assert lines
    assert are_equal(found, walked)


X, Y, V = dl.var("x"), dl.var("y"), dl.var("v", 3)
TERMS = [X**Y, 2**Y, X**2, X**2.0, X**3, X**0.5, X**-1, X**0, (X * Y) ** 2, V.sum() ** X, (V ** [2, 1, 0.5]).max(), (V**X).min()]
TERMS += [X / Y, 1 / Y, (V / [4, 2, 1]).sum(), X / V.max(), abs(X - Y) / (X + Y), -X + Y, 1 - X]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("term", TERMS, ids=str)
def test_all_arithmetic_is_recorded(term, dtype):
    names = sorted((term >= 0.5).symbols)
    logic = dl.LogicLoss({"one": term >= 0.9, "two": (term <= 0.4) | (X + Y >= 0.5)}, num_samples=8)
    generator = torch.Generator().manual_seed(0)
    batches = []
    for _ in range(4):
        tensors = {name: 0.2 + torch.rand(4, *([3] if name == "v" else []), generator=generator) for name in {*names, "x", "y"}}
        batches.append((torch.arange(4) + 2, {name: tensors[name].to(dtype) for name in sorted(tensors)}))
    walked, _ = train(logic, batches, recorded=False)
    found, lines = train(logic, batches, recorded=True)
    assert lines
    assert are_equal(found, walked)


@pytest.mark.parametrize(("fall", "dtype"), [(0.0, torch.float32), (0.03, torch.float32), (0.0, torch.float64)])
def test_an_antecedent_that_opens_and_falls(fall, dtype):
    """What a state tells decides what is recorded; from one to the next nothing but the walk knows how."""
    f, g = (dl.categorical(name, 10, input="logits") for name in "fg")
    logic = dl.LogicLoss({"one": (g == 9) >> (f == 6), "two": (f == 3) >> (g == 0)}, num_samples=32, dtype=dtype)
    generator = torch.Generator().manual_seed(0)
    batches = []
    for number in range(150):
        tensors = {name: 2 * torch.randn(16, 10, generator=generator) for name in "fg"}
        tensors["g"][:, 9] += fall * (100 - number)
        batches.append((torch.randperm(32, generator=generator)[:16], tensors))
    walked, _ = train(logic, batches, recorded=False)
    found, lines = train(logic, batches, recorded=True)
    assert are_equal(found, walked)
    assert len(lines) > (dtype is torch.float32) + 1


@pytest.mark.parametrize("evidence", [False, 0.5, "found"])
def test_an_antecedent_that_cedes(evidence):
    f, g = (dl.categorical(name, 5, input="logits") for name in "fg")
    rules = {"one": (f == 1) >> (g == 2), "two": (f == 3) >> (g == 0), "three": f.isin([0, 2]) >> (g == 1)}
    logic = dl.LogicLoss(rules, num_samples=8, method=dl.methods.Dual(evidence=evidence))
    generator = torch.Generator().manual_seed(0)
    batches = [(torch.arange(4) + 2, {name: 2 * torch.randn(4, 5, generator=generator) for name in "fg"}) for _ in range(6)]
    walked, _ = train(logic, batches, recorded=False)
    found, lines = train(logic, batches, recorded=True)
    assert lines
    assert are_equal(found, walked)


@pytest.mark.parametrize("evidence", [False, "found"])
def test_evidence_has_a_gradient_of_zeros_that_nothing_computes(evidence):
    f, g = (dl.categorical(name, 5, input="logits") for name in "fg")
    logic = dl.LogicLoss((f == 1) >> (g == 2), num_samples=8, method=dl.methods.Dual(evidence=evidence))
    generator = torch.Generator().manual_seed(0)
    batches = [(torch.arange(8), {name: 2 * torch.randn(8, 5, generator=generator) for name in "fg"}) for _ in range(3)]
    walked, _ = train(logic, batches, recorded=False)
    found, ((line, *_),) = train(logic, batches, recorded=True)
    assert are_equal(found, walked)
    gradients = found[1 :: len(found) // 3]
    assert all((gradient == 0).all() == (evidence == "found") for gradient in gradients)
    assert ("scatter" in line.source) == (evidence is False)


def test_many_rules_are_emphasised_in_both():
    rules = {"violated": A, **{f"met {number}": B | C for number in range(11)}}
    logic = dl.LogicLoss(rules, num_samples=8)
    generator = torch.Generator().manual_seed(0)
    shift = dict(zip(NAMES, (-3.0, 20.0, 0.0)))
    batches = [
        (torch.arange(4) + 2, {name: shift[name] + torch.randn(4, generator=generator) for name in NAMES}) for _ in range(5)
    ]
    walked, _ = train(logic, batches, recorded=False)
    found, lines = train(logic, batches, recorded=True)
    assert lines
    assert are_equal(found, walked)
    plain, _ = train(dl.LogicLoss(rules, 8, dl.methods.Dual(rules="mean")), batches, recorded=True)
    assert not are_equal(found, plain)


def make(rule=(A >> (B | C)), **options):
    """A loss whose steps of four samples are recorded, and a batch."""
    logic = dl.LogicLoss(rule, num_samples=8, **options)
    generator = torch.Generator().manual_seed(0)
    tensors = {name: torch.randn(4, generator=generator).requires_grad_() for name in NAMES}
    for _ in range(3):
        logic(torch.arange(4) + 4, **tensors)
    assert any(logic._program.recorded.known.values())
    return logic, tensors


@pytest.mark.parametrize(("evidence", "opened"), [(False, False), ("found", False), ("found", True)])
def test_second_derivatives_and_a_gradient_after_later_steps(evidence, opened):
    logic, tensors = make(method=dl.methods.Dual(evidence=evidence))
    leaves = [leaf for name, leaf in tensors.items() if name != "left" or opened or not evidence]
    if opened:
        logic._state["known"][4] = 0.07
        for _ in range(2):
            logic(torch.arange(4), **tensors)
    twin = copy.deepcopy(logic)
    twin._program.recorded = None
    found = []
    for each in (logic, twin):
        loss = each(torch.arange(4), **tensors)
        early = torch.autograd.grad(loss, leaves, retain_graph=True)
        for _ in range(5):
            each(torch.arange(4), **tensors)
        late = torch.autograd.grad(loss, leaves, retain_graph=True)
        assert are_equal(early, late)
        first = torch.autograd.grad(loss, leaves, create_graph=True)
        torch.testing.assert_close(first, early)
        found.append([*first, *torch.autograd.grad(sum(slope.square().sum() for slope in first), leaves)])
    torch.testing.assert_close(*found)


@pytest.mark.parametrize(
    "wrong", [[[0.5, 0.5], [torch.inf, 0.5]], [[1e30, -1e30], [0.5, 0.5]], [[0.5, torch.nan], [0.5, 0.5]], [[0.5] * 3]]
)
def test_errors_are_those_of_the_walk_and_nothing_changes(wrong):
    x = dl.var("x", 2)
    logic = dl.LogicLoss((x[0] <= 0) | (x[1] >= 1), num_samples=4)
    index, fine = torch.arange(2), torch.full((2, 2), 0.5)
    for _ in range(3):
        logic(index, x=fine.clone().requires_grad_())
    assert any(logic._program.recorded.known.values())
    before = copy.deepcopy(logic.state_dict())
    messages = []
    for recorded in (logic._program.recorded, None):
        logic._program.recorded = recorded
        with pytest.raises((BindingError, NonFiniteError)) as caught:
            logic(index, x=torch.tensor(wrong, requires_grad=True))
        messages.append((caught.type, str(caught.value)))
    assert messages[0] == messages[1]
    assert all(torch.equal(value, before[name]) for name, value in logic.state_dict().items() if isinstance(value, torch.Tensor))


def test_it_is_bounded_in_number_and_size(monkeypatch):
    logic, tensors = make()
    for size in range(1, 40):
        for _ in range(2):
            logic(torch.arange(size) % 8, **{name: leaf[:1].expand(size) for name, leaf in tensors.items()})
    assert len(logic._program.recorded.known) <= straight.MOST
    monkeypatch.setattr(straight, "LARGEST", 3)
    with pytest.raises(AssertionError):
        make()


def test_frozen_manual_and_masked_calls_walk():
    for options, call in (({"update": "manual"}, {}), ({}, {"where": torch.tensor([True] * 3 + [False])})):
        logic = dl.LogicLoss(A >> (B | C), num_samples=8, **options)
        tensors = {name: torch.randn(4).requires_grad_() for name in NAMES}
        for _ in range(3):
            logic(torch.arange(4), **tensors, **call)
        assert not logic._program.recorded.known
    with logic.frozen():
        logic(torch.arange(4), **tensors)
    assert not logic._program.recorded.known


def call(logic, tensors, recorded, graded):
    """Losses and gradients of eight batches in ``eval()``, or of a method that keeps nothing."""
    logic = copy.deepcopy(logic)
    if not recorded:
        logic._program.recorded = None
    found = []
    for number in range(8):
        leaves = {name: value.roll(number, 0).clone() for name, value in tensors.items()}
        leaves = {name: value.requires_grad_(graded and value.is_floating_point()) for name, value in leaves.items()}
        loss = logic(**leaves)
        if loss.requires_grad:
            (loss * (number + 1)).sum().backward()
        found += [loss.detach(), *(leaf.grad for leaf in leaves.values()), *logic._state.values()]
    return found, logic._program.recorded and any(logic._program.recorded.known.values())


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("method", ["dual", "dl2"])
@given(data=st.data(), graded=st.booleans(), reduction=st.sampled_from(["mean", "sum", "none"]))
def test_calls_that_move_nothing_are_the_same_to_the_bit(method, data, graded, reduction):
    rule = data.draw(quantified(shapes=[(3,), (2, 3)], masked=False))
    tensors = data.draw(bindings(rule, batch=3))
    logic = dl.LogicLoss({"one": rule, "two": A | ~B}, num_samples=6, method=method, reduction=reduction, weight={"two": 0.3})
    logic = logic.eval() if method == "dual" else dl.LogicLoss(rule, method=method, reduction=reduction)
    tensors.update({name: torch.linspace(-1, 1, 3) for name in NAMES[:2]} if method == "dual" else {})
    assume(logic._program.recorded is not None)
    walked, _ = call(logic, tensors, False, graded)
    found, recorded = call(logic, tensors, True, graded)
    assert recorded or not TELLS_OF_HOOKS
    assert are_equal(found, walked)


def test_what_cannot_be_repeated_is_walked():
    x = dl.var("x")
    double = dl.LogicLoss(dl.apply(torch.exp, x) <= 1, method="dl2")
    plain = dl.LogicLoss(x <= 1, method="dl2")
    values = torch.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(3):
        double(x=values)
        with torch.autocast("cpu", torch.bfloat16), torch.inference_mode(), plain.frozen():
            plain(x=values)
    assert double._program.recorded is None
    assert not plain._program.recorded.known


def test_a_tensor_that_the_backward_pass_reads_may_not_be_changed_before_it():
    x = dl.var("x")
    refused = []
    for rule in (x * x <= 1, x + x <= 1):
        logic = dl.LogicLoss(rule, method="dl2")
        for _ in range(4):
            leaf = torch.randn(3).requires_grad_()
            given = leaf * 1.0
            loss = logic(x=given)
            given.mul_(2.0)
            try:
                loss.backward()
            except RuntimeError as error:
                refused.append("modified by an inplace operation" in str(error))
        assert any(logic._program.recorded.known.values())
    assert refused == [True] * 4
    given = leaf * 1.0
    loss = logic(x=given)
    given.mul_(2.0)
    with pytest.raises(StateError, match="modified by an inplace operation"):
        torch.autograd.grad(loss, leaf, create_graph=True)


@pytest.mark.parametrize("method", ["dual", "dl2"])
@pytest.mark.parametrize("derive", [lambda first: first, torch.sin], ids=["one tensor", "one of the other"])
def test_symbols_that_share_a_tensor_are_not_counted_twice(method, derive):
    logic = dl.LogicLoss(A | B, num_samples=8, method=method)
    leaf = torch.tensor([-1.0, -0.5, 0.3, -2.0], requires_grad=True)
    for _ in range(4):
        first = leaf * 1.0
        loss = logic(torch.arange(4) + 4, left=first, middle=derive(first))
        once, twice = (torch.autograd.grad(loss, leaf, retain_graph=True, create_graph=second)[0] for second in (False, True))
        torch.testing.assert_close(twice, once)


@pytest.mark.parametrize("method", ["dual", "dl2"])
def test_tensors_that_are_expanded(method):
    x, y = dl.var("x", 3), dl.var("y")
    logic = dl.LogicLoss((x <= y).all() | (y >= 1), num_samples=8, method=method)
    for _ in range(4):
        bound = torch.tensor([0.7], requires_grad=True)
        logic(torch.arange(4) + 4, x=torch.ones(4, 3), y=bound.expand(4)).backward()
        assert bound.grad < 0
    assert any(logic._program.recorded.known.values())


@pytest.mark.parametrize("method", ["dual", "dl2"])
@pytest.mark.parametrize("rule", [A >> B, A | B, dl.Iff(A, B)], ids=str)
def test_what_inference_mode_made_is_walked(method, rule):
    """As the outputs of a network that is not trained are; they have no versions."""
    logic = dl.LogicLoss(rule, method=method)
    with torch.inference_mode():
        given = torch.randn(4)
    for _ in range(5):
        leaf = torch.randn(4, requires_grad=True)
        logic(left=leaf, middle=given).backward()
        assert leaf.grad is not None


@pytest.mark.parametrize("method", ["dual", "dl2"])
def test_checkpointing_computes_an_evaluation_again(method):
    logic = dl.LogicLoss(A | B, method=method).eval()
    for _ in range(4):
        leaf = torch.randn(4, requires_grad=True)
        checkpoint(lambda given: logic(left=given, middle=2 * given), leaf * 1.0, use_reentrant=False).backward()
        assert leaf.grad is not None


def test_after_a_reset_the_first_batch_tells_its_unit():
    logic = dl.LogicLoss(dl.var("price") <= 0)
    batch = torch.tensor([1.0, 2.0, 3.0])
    for _ in range(3):
        logic(price=batch.clone().requires_grad_())
    logic.reset_()
    logic(price=(1000 * batch).requires_grad_())
    assert logic.delta > 900


def test_a_default_device_changes_nothing():
    logic, tensors = make()
    losses = [logic(torch.arange(4), **tensors)]
    with torch.device("meta"):
        losses += [logic(torch.arange(4, device="cpu"), **tensors) for _ in range(2)]  # each keeps memory of its own
        sum(losses).backward()


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_default_type_changes_nothing(dtype, recorded):
    """Also not what counts as impossible, as a comparison that does not hold does in an antecedent."""
    x, y = dl.var("x"), dl.var("y")
    rules = {"belief": A >> B, "fact": (A & (x <= 0)) >> B, "nested": ((y <= 0) >> (x <= 0)) >> C}
    generator = torch.Generator().manual_seed(0)
    batches = [(torch.arange(4), {name: torch.randn(4, generator=generator) for name in (*NAMES, *"xy")}) for _ in range(5)]
    expected, _ = train(dl.LogicLoss(rules, 4), batches, recorded)
    logic = dl.LogicLoss(rules, 4)
    torch.set_default_dtype(dtype)
    try:
        found, _ = train(logic, batches, recorded)
    finally:
        torch.set_default_dtype(torch.float32)
    assert are_equal(found, expected)


def test_what_no_rule_teaches_gets_no_gradient():
    logic = dl.LogicLoss(dl.evidence(A) >> B, method="dl2")
    fact = torch.tensor([0.5, -0.5])
    with pytest.warns(dl.errors.ShortcutWarning):
        assert not any(logic(left=torch.randn(2, requires_grad=True), middle=fact).requires_grad for _ in range(4))


def test_a_search_for_anomalies_finds_none():
    """What is tried while a call is recorded may fail, which torch would warn of."""
    logic = dl.LogicLoss({"first": A >> B, "second": A | B})
    with warnings.catch_warnings(record=True) as heard, torch.autograd.set_detect_anomaly(True):
        warnings.simplefilter("always")
        for _ in range(4):
            logic(left=torch.rand(4, requires_grad=True), middle=torch.rand(4, requires_grad=True)).backward()
    assert not heard


def test_whole_numbers_that_grow_beyond_float32_leave_the_recorded_call():
    start, end = dl.var("start"), dl.var("end")
    losses = []
    for recorded in (True, False):
        logic = dl.LogicLoss(start - end <= -50)
        losses.append([])
        for step in range(8):
            times = torch.tensor([0, 10, 100]) + (1_700_000_000 if step > 4 else 0)
            with torch.autograd.set_detect_anomaly(not recorded, check_nan=False):  # which is walked
                losses[-1].append(logic(start=times, end=torch.full_like(times, times[0] + 60)).item())
    assert losses[0] == losses[1]
