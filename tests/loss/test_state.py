"""Saving, loading, copying, moving: all state is kept, and a checkpoint that does not fit is refused."""

import copy
import io
import pickle

import pytest
import torch

import dualogic as dl

X, Y = dl.var("x"), dl.var("y")
RULES = {"either": (X <= 0) | (Y <= 0), "both": (X <= 1) & (Y <= 1)}
METHODS = [
    dl.methods.Dual(),
    dl.methods.Dual(rule="projected", delta="exact", warmup=3),
    dl.methods.Uniform(),
    dl.methods.Hard(),
]


def make(method="dual", samples=8, rules=RULES, **options):
    return dl.LogicLoss(rules, num_samples=samples, method=method, **options)


def run(logic, steps, start=0):
    losses = []
    for number in range(start, start + steps):
        generator = torch.Generator().manual_seed(number)
        index = torch.randperm(8, generator=generator)[:4]
        x, y = torch.rand(2, 4, generator=generator) * 2
        losses.append(logic(index, x=x.requires_grad_(), y=y).detach())
    return torch.stack(losses)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: repr(method)[:60])
@pytest.mark.parametrize("how", ["state_dict", "pickle", "deepcopy"])
def test_a_resumed_run_equals_an_uninterrupted_one(method, how):
    whole = make(method)
    expected = run(whole, 10)
    first = make(method)
    run(first, 5)
    if how == "state_dict":
        stream = io.BytesIO()
        torch.save(first.state_dict(), stream)
        stream.seek(0)
        second = make(method)
        second.load_state_dict(torch.load(stream, weights_only=True))
    else:
        second = pickle.loads(pickle.dumps(first)) if how == "pickle" else copy.deepcopy(first)
    assert torch.equal(run(second, 5, start=5), expected[5:])
    assert torch.equal(second.delta, whole.delta)


def test_a_copy_is_independent():
    first = make()
    run(first, 2)
    second = copy.deepcopy(first)
    run(second, 1, start=2)
    assert not torch.equal(first.state_dict()["table"], second.state_dict()["table"])


def test_loading_inside_a_larger_module():
    class Whole(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(2, 2)
            self.logic = make()

    one, two = Whole(), Whole()
    run(one.logic, 3)
    state = one.state_dict()
    assert {"logic.table", "logic.delta", "logic.steps"} <= set(state)
    two.load_state_dict(state)
    assert torch.equal(two.logic.state_dict()["table"], one.logic.state_dict()["table"])
    del state["logic.table"]
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "logic.table"'):
        two.load_state_dict(state)
    two.load_state_dict(state, strict=False)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            {"rules": {**RULES, "both": (X <= 2) & (Y <= 1)}},
            r"rule 'both' is \(x <= 1\) & \(y <= 1\) in the checkpoint and \(x <= 2\)",
        ),
        ({"rules": {"either": RULES["either"]}}, r"rule 'both' is .* in the checkpoint and nothing here"),
        (
            {"samples": 9},
            r"num_samples is 8 in the checkpoint and 9 here .*LogicLoss with num_samples=8 and call logic.extend\(9\)",
        ),
        ({"samples": 7}, "num_samples is 8 in the checkpoint and 7 here; table has shape"),
        (
            {"method": dl.methods.Dual(rule="projected")},
            "a row holds logits of weights in the checkpoint and differences from equal weights here",
        ),
        ({"method": "hard"}, "method is 'dual' in the checkpoint and 'hard' here"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused_and_changes_nothing(other, message):
    source, target = make(), make(**other)
    run(source, 3)
    before = {name: value.clone() for name, value in target.state_dict().items() if isinstance(value, torch.Tensor)}
    with pytest.raises(RuntimeError, match=message):
        target.load_state_dict(source.state_dict())
    assert all(torch.equal(target.state_dict()[name], value) for name, value in before.items())


def test_unexpected_keys_are_refused():
    logic = make()
    with pytest.raises(RuntimeError, match="Unexpected key"):
        logic.load_state_dict({**logic.state_dict(), "surplus": torch.zeros(1)})


def test_reset_forgets_everything():
    logic = make()
    fresh = {name: value.clone() for name, value in logic.state_dict().items() if isinstance(value, torch.Tensor)}
    run(logic, 3)
    logic.reset_()
    assert all(torch.equal(logic.state_dict()[name], value) for name, value in fresh.items())


def test_the_table_is_not_a_buffer_and_keeps_its_dtype():
    logic = make()
    assert list(logic.buffers()) == []
    assert list(logic.parameters()) == []
    run(logic, 2)
    logic.half()
    assert logic.state_dict()["table"].dtype is torch.float32
    assert logic.delta.dtype is torch.float32
    logic.to(torch.float64)
    assert logic.state_dict()["table"].dtype is torch.float32
    logic.to("meta")
    assert logic.state_dict()["table"].device.type == "meta"


def test_statistics_are_tensors_of_the_latest_batch():
    logic = make()
    run(logic, 1)
    found = logic.statistics()
    assert set(found) == set(RULES)
    assert set(found["both"]) == {"cost", "loss", "delta"}
    assert all(isinstance(value, torch.Tensor) and value.dim() == 0 for entry in found.values() for value in entry.values())
    assert torch.equal(found["both"]["delta"], logic.delta[1])


@pytest.mark.parametrize("delta", ["mean", "square", "exact"])
def test_delta_follows_the_costs_within_its_bounds(delta):
    logic = dl.LogicLoss(X <= 0, method=dl.methods.Dual(delta=delta, floor=0.25, ceiling=3.0))
    assert logic.delta.tolist() == [1.0]
    logic(x=torch.tensor([1e-4, 1e-3], requires_grad=True))
    assert logic.delta.tolist() == [0.25]
    logic(x=torch.tensor([1e4, 1e3], requires_grad=True))
    assert logic.delta.tolist() == [3.0]


def test_a_warm_up_scales_the_step():
    plain, warm = (make(dl.methods.Dual(floor=1.0, ceiling=1.0, warmup=updates), samples=1) for updates in (0, 4))
    for logic in (plain, warm):
        logic(torch.tensor([0]), x=torch.tensor([1.0], requires_grad=True), y=torch.tensor([0.2]))
    torch.testing.assert_close(warm.state_dict()["table"], plain.state_dict()["table"] / 4)


def test_rules_in_another_order_are_refused():
    rules = {"a": X <= 0, "b": X >= 1}
    logic = dl.LogicLoss(rules)
    logic(x=torch.tensor([2.0, 3.0], requires_grad=True))
    other = dl.LogicLoss(dict(reversed(rules.items())))
    with pytest.raises(RuntimeError, match="rules are in the order 'a', 'b' in the checkpoint and 'b', 'a' here"):
        other.load_state_dict(logic.state_dict())
    assert other.delta.tolist() == [1.0, 1.0]


def tensors_of(logic):
    return {name: value.clone() for name, value in logic.state_dict().items() if isinstance(value, torch.Tensor)}


def assert_unchanged(logic, before):
    assert all(torch.equal(value, before[name]) for name, value in tensors_of(logic).items())


@pytest.mark.parametrize("missing", ["table", "delta", "steps", "_extra_state"])
@pytest.mark.parametrize("place", ["device", "host", "mapped"])
def test_a_checkpoint_without_a_part_changes_nothing(missing, place):
    source, target = make(), make(table=place)
    run(source, 3)
    run(target, 1)
    state, before = dict(source.state_dict()), tensors_of(target)
    del state[missing]
    with pytest.raises(RuntimeError, match=rf'Missing key\(s\) in state_dict: "{missing}"'):
        target.load_state_dict(state)
    assert_unchanged(target, before)
    # Not strict, a loss still takes all of its state or none of it.
    assert target.load_state_dict(state, strict=False).missing_keys == [missing]
    assert_unchanged(target, before)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("delta", torch.tensor([1.0, -1.0]), "delta must be above 0; the checkpoint has -1"),
        ("delta", torch.tensor([0.0, 1.0]), "delta must be above 0; the checkpoint has 0"),
        ("delta", torch.tensor([1.0, torch.nan]), "delta must hold finite numbers of torch.float32; .* nan to nan"),
        ("delta", torch.tensor([1.0, 1e300], dtype=torch.float64), r"delta must hold finite .* from 1 to 1e\+300"),
        ("delta", torch.ones(3), r"delta has shape \(3,\) in the checkpoint and \(2,\) here"),
        ("delta", [1.0, 1.0], r"delta must be a tensor; the checkpoint has \[1.0, 1.0\]"),
        ("steps", torch.tensor(-4), "steps must be at least 0; the checkpoint has -4"),
        ("steps", torch.tensor(4.0), "steps is of torch.float32 in the checkpoint and of torch.int64 here"),
        ("table", torch.full((8, 4), torch.nan), "table must hold finite numbers of torch.float32"),
        ("table", torch.full((8, 4), torch.inf), "table must hold finite .* from inf to inf"),
        ("table", torch.full((8, 4), -torch.inf), "table must hold finite .* from -inf to -inf"),
        ("table", torch.full((8, 4), 1e39, dtype=torch.float64), r"table must hold finite .*1e\+39"),
        ("table", torch.ones(8, 4, dtype=torch.complex64), "table is of torch.complex64"),
        (
            "steps",
            torch.empty((), dtype=torch.int64, device="meta"),
            "steps must be a tensor that holds all its numbers; .* meta",
        ),
        ("table", torch.zeros(8, 4).to_sparse(), "table must be a tensor that holds all .* one of torch.sparse_coo"),
        ("_extra_state", {"rules": 3, "num_samples": 8, "method": "dual"}, "its _extra_state is not that of a LogicLoss"),
        ("_extra_state", {"rules": {}}, "its _extra_state is not that of a LogicLoss"),
        ("_extra_state", 3, "its _extra_state is not that of a LogicLoss: 3"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_damaged_checkpoint_is_refused_and_changes_nothing(name, value, message):
    source, target = make(), make()
    run(source, 3)
    run(target, 1)
    before = tensors_of(target)
    with pytest.raises(RuntimeError, match=f"none of it was loaded: .*{message}"):
        target.load_state_dict({**source.state_dict(), name: value})
    assert_unchanged(target, before)


def test_the_mark_of_an_operand_that_does_not_exist_can_be_loaded():
    x, valid = dl.var("x", 3), dl.mask("valid", 3)
    logic = dl.LogicLoss((x <= 0).all(where=valid), 2)
    logic(torch.tensor([0]), x=torch.rand(1, 3, requires_grad=True), valid=torch.tensor([[True, True, False]]))
    assert (logic.state_dict()["table"] == -torch.inf).any()
    other = dl.LogicLoss((x <= 0).all(where=valid), 2)
    other.load_state_dict(logic.state_dict())
    assert torch.equal(other.state_dict()["table"], logic.state_dict()["table"])


def test_a_pending_update_does_not_survive_a_load_but_survives_a_failed_one():
    source, target = make(), make(update="manual")
    run(source, 3)
    run(target, 1)
    damaged = {**source.state_dict(), "delta": torch.tensor([-1.0, 1.0])}
    with pytest.raises(RuntimeError, match="delta must be above 0"):
        target.load_state_dict(damaged)
    target.step()
    assert target.state_dict()["steps"] == 1
    run(target, 1, start=1)
    target.load_state_dict(source.state_dict())
    with pytest.raises(dl.errors.StateError, match=r"step\(\) has nothing to apply"):
        target.step()
    assert_unchanged(target, tensors_of(source))


@pytest.mark.parametrize("where", ["device", "reset"])
def test_a_pending_update_does_not_survive_what_replaces_the_state(where):
    logic = make(update="manual")
    run(logic, 1)
    _ = logic.reset_() if where == "reset" else logic.to("meta")
    with pytest.raises(dl.errors.StateError, match=r"step\(\) has nothing to apply"):
        logic.step()


def test_statistics_say_how_much_of_each_antecedent_is_evidence():
    a, b, c = (dl.boolean(name) for name in "abc")
    rules = {"either/or": (a >> b) & (dl.evidence(b, 0.5) >> c), "plain": a | b}
    logic = dl.LogicLoss(rules)
    found = logic.statistics()
    assert {path: share.item() for path, share in found["either/or"]["evidence"].items()} == {
        "either/or/0": 1.0,
        "either/or/1": 0.5,
    }
    assert "evidence" not in found["plain"]
    for _ in range(200):  # a consequent that is known whether or not its antecedent holds
        logic(a=torch.tensor([0.1, 0.9]), b=torch.tensor([0.95, 0.95], requires_grad=True), c=torch.tensor([0.5, 0.5]))
    assert logic.statistics()["either/or"]["evidence"]["either/or/0"] == 0.0
    assert "evidence" not in dl.LogicLoss(rules, method=dl.methods.Dual.paper()).statistics()["either/or"]


@pytest.mark.parametrize("table", ["device", "host"])
@pytest.mark.parametrize("how", ["to_empty", "assign"])
def test_what_was_made_on_the_device_meta_can_be_filled(how, table):
    def made():
        return make(rules={**RULES, "if": (X >= 1) >> (Y >= 1)}, weight={"both": 2.0}, table=table)

    whole = made()
    with torch.device("meta"):
        model = torch.nn.ModuleDict({"logic": made()})
    with pytest.raises(dl.errors.StateError, match="the dual variables on meta"):
        run(model["logic"], 1)
    if how == "to_empty":
        model.to_empty(device="cpu")
    else:
        run(whole, 3)
        saved = {f"logic.{name}": value for name, value in whole.state_dict().items()}
        with pytest.raises(RuntimeError, match="this loss is on the device meta: give assign=True"):
            model.load_state_dict(saved)
        model.load_state_dict(saved, assign=True)
    assert torch.equal(run(model["logic"], 4, start=3), run(whole, 4, start=3))
    assert_unchanged(model["logic"], tensors_of(whole))
