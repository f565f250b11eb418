"""Saving, loading, copying, moving: all state is kept, and a checkpoint that does not fit is refused."""

import copy
import io
import pickle

import pytest
import torch

import dualogic as dl
from dualogic.duals.schedule import inverse_square_root

X, Y = dl.var("x"), dl.var("y")
RULES = {"either": (X <= 0) | (Y <= 0), "both": (X <= 1) & (Y <= 1)}
METHODS = [
    dl.methods.Dual(),
    dl.methods.Dual(rule="projected", delta="exact", warmup=3),
    dl.methods.Dual(delta="released", epoch=6),
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


def test_the_released_rule_sets_delta_once_an_epoch_and_never_raises_it():
    logic = dl.LogicLoss(X <= 0, method=dl.methods.Dual(delta="released", epoch=4, floor=0.01))
    logic(x=torch.tensor([0.5, 0.7], requires_grad=True))
    assert logic.delta.tolist() == [1.0]
    logic(x=torch.tensor([0.3, 0.5], requires_grad=True))
    assert logic.delta.tolist() == pytest.approx([0.25])
    logic(x=torch.tensor([5.0, 5.0, 5.0, 5.0], requires_grad=True))
    assert logic.delta.tolist() == pytest.approx([0.25])
    with pytest.raises(dl.errors.OptionError, match="once per epoch"):
        dl.LogicLoss(X <= 0, method=dl.methods.Dual(delta="released"))(x=torch.ones(2, requires_grad=True))


def test_warm_up_and_schedule_scale_the_step():
    plain = make(dl.methods.Dual(floor=1.0, ceiling=1.0), samples=1)
    warm = make(dl.methods.Dual(floor=1.0, ceiling=1.0, warmup=4), samples=1)
    decayed = make(dl.methods.Dual(floor=1.0, ceiling=1.0, schedule=inverse_square_root(1)), samples=1)
    index = torch.tensor([0])
    for logic in (plain, warm, decayed):
        logic(index, x=torch.tensor([1.0], requires_grad=True), y=torch.tensor([0.2]))
    table = {name: logic.state_dict()["table"] for name, logic in (("plain", plain), ("warm", warm), ("decayed", decayed))}
    torch.testing.assert_close(table["warm"], table["plain"] / 4)
    torch.testing.assert_close(table["decayed"], table["plain"])


def test_rules_in_another_order_are_refused():
    rules = {"a": X <= 0, "b": X >= 1}
    logic = dl.LogicLoss(rules)
    logic(x=torch.tensor([2.0, 3.0], requires_grad=True))
    other = dl.LogicLoss(dict(reversed(rules.items())))
    with pytest.raises(RuntimeError, match="rules are in the order 'a', 'b' in the checkpoint and 'b', 'a' here"):
        other.load_state_dict(logic.state_dict())
    assert other.delta.tolist() == [1.0, 1.0]
