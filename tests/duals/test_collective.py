"""What needs no second process: options, and a group that is not there."""

import warnings

import pytest
import torch

import dualogic as dl
from dualogic.duals.collective import Peers
from dualogic.duals.sharded import ShardedTable

X, Y = dl.var("x"), dl.var("y")
RULE = (X <= 0) | (Y <= 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"process_group": "universe"}, r"process_group must be a torch.distributed.ProcessGroup .* got 'universe'"),
        ({"process_group": False}, "process_group must be .* or None for one process; got False"),
        ({"table": "sharded"}, "table='sharded' spreads rows over several processes; give process_group"),
        (
            {"table": "sharded", "process_group": True, "num_samples": None},
            "keeps a row for each training sample; give num_samples",
        ),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(dl.errors.OptionError, match=message):
        dl.LogicLoss(RULE, **{"num_samples": 5, **options})


@pytest.mark.parametrize("options", [{"process_group": "world"}, {"process_group": True, "table": "sharded"}])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_without_other_processes_nothing_changes(options, reduction):
    one, other = dl.LogicLoss(RULE, 5, reduction=reduction), dl.LogicLoss(RULE, 5, reduction=reduction, **options)
    for _ in range(3):
        x = torch.tensor([1.0, 0.5, 2.0], requires_grad=True)
        y = torch.tensor([0.2, 2.0, 1.0])
        assert torch.equal(one([4, 1, 4], x=x, y=y), other([4, 1, 4], x=x, y=y))
    assert torch.equal(one.state_dict()["table"], other.state_dict()["table"])
    assert torch.equal(one.delta, other.delta)
    other.load_state_dict(one.state_dict())


def test_compiled_steps_leave_out_what_is_exchanged():
    eager, compiled = dl.LogicLoss(RULE, 5), dl.LogicLoss(RULE, 5, process_group="world")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler itself looks at gradients of tensors that have none
        compiled.compile(backend="eager")
        for value in (1.0, 2.0):
            x, y = torch.tensor([value, 0.5, 2.0], requires_grad=True), torch.tensor([0.2, 2.0, 1.0])
            torch.testing.assert_close(compiled([4, 1, 4], x=x, y=y), eager([4, 1, 4], x=x, y=y))
    torch.testing.assert_close(compiled.state_dict()["table"], eager.state_dict()["table"])


def test_a_sharded_table_made_before_its_group_is_refused_in_use(monkeypatch):
    table = ShardedTable(5, 2, torch.float32, Peers("world"))
    monkeypatch.setattr(Peers, "size", 2)
    monkeypatch.setattr(Peers, "rank", 1)
    with pytest.raises(dl.errors.StateError, match=r"sharded over 1 processes .* the group now has 2; make the LogicLoss after"):
        table.fetch(torch.tensor([1]))


def test_the_text_says_where_the_rows_are():
    logic = dl.LogicLoss(RULE, 5, process_group=True, table="sharded")
    assert "sharded over 1 process" in str(logic)


def test_a_flag_on_the_host_names_its_rule():
    logic = dl.LogicLoss({"good": RULE, "bad": X <= 1}, 5)
    logic._guard.flags[2] = True
    with pytest.raises(dl.errors.NonFiniteError, match="rule 'bad'"):
        logic.check()
    logic.check()
