"""Tables in host memory or in a file give what a table on the device gives, whenever copies arrive."""

import copy
import pickle

import pytest
import torch

import dualogic as dl
from dualogic.duals.host import MOST_ON_THE_WAY, HostTable, Link
from dualogic.duals.table import Update

X, Y = dl.var("x"), dl.var("y")
RULE = (X <= 0) | (Y <= 0)


def batches(steps, samples=7, size=4):
    """Few samples, so that a row is met again at once; also twice in a batch."""
    for number in range(steps):
        generator = torch.Generator().manual_seed(number)
        x, y = torch.rand(2, size, generator=generator) * 2
        yield torch.randint(samples, (size,), generator=generator), {"x": x.requires_grad_(), "y": y}


class Event:
    def __init__(self, link):
        self.link, self.due = link, link.now + link.delay

    def query(self):
        return self.link.now >= self.due

    def synchronize(self):
        self.link.now = max(self.link.now, self.due)


class SlowLink(Link):
    """Rows take some queries to reach the host, and are unreadable before."""

    def __init__(self, delay):
        super().__init__(torch.device("cpu"))
        self.delay, self.now, self.pending = delay, 0, []

    def tick(self):
        self.now += 1
        for event, staged, rows in self.pending:
            if event.query():
                staged.copy_(rows)

    def bring_back(self, rows):
        self.tick()
        staged, event = torch.full_like(rows, torch.nan), Event(self)
        event.synchronize = lambda: (Event.synchronize(event), staged.copy_(rows))
        self.pending.append((event, staged, rows))
        return staged, event


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("kind", ["host", "mapped", "file"])
@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_any_place_gives_the_same_as_the_device(kind, dtype, ahead, tmp_path):
    place = dl.Mapped(tmp_path / "table") if kind == "file" else kind
    here, there = (dl.LogicLoss(RULE, 7, dtype=dtype, table=table) for table in ("device", place))
    steps = list(batches(20))
    for number, (index, tensors) in enumerate(steps):
        if ahead and number % ahead == 0:
            for later, _ in steps[number : number + 2 * ahead]:
                there.prefetch(later)
        assert torch.equal(here(index, **tensors), there(index, **tensors))
    assert torch.equal(here.state_dict()["table"], there.state_dict()["table"])
    assert torch.equal(here.delta, there.delta)


@pytest.mark.parametrize("delay", [1, 3, 100])
@pytest.mark.parametrize("ahead", [0, 1, 4])
def test_a_row_fetched_again_has_its_newest_value_while_copies_are_late(delay, ahead):
    here, there = (dl.LogicLoss(RULE, 7, table=table) for table in ("device", "host"))
    there._table._link = SlowLink(delay)
    steps = list(batches(40))
    longest = 0
    for number, (index, tensors) in enumerate(steps):
        if ahead:
            there.prefetch(steps[min(number + ahead, 39)][0])
        assert torch.equal(here(index, **tensors), there(index, **tensors)), number
        longest = max(longest, sum(write.staged is not None for write in there._table._writes))
    assert 1 <= longest <= MOST_ON_THE_WAY
    assert torch.equal(here.state_dict()["table"], there.state_dict()["table"])
    assert not there._table._writes


def test_reads_that_nobody_asks_for_do_not_pile_up():
    table = HostTable(100, 2, torch.float32)
    for number in range(100):
        table.prefetch(torch.tensor([number]))
        table.commit(Update(torch.ones(1, 2), torch.tensor([number]), torch.ones(1, 2)), torch.tensor(number))
    assert len(table._reads) <= 8
    assert len(table._writes) <= 16


def test_the_index_may_be_overwritten_after_the_call():
    table = HostTable(4, 1, torch.float32)
    table._link = SlowLink(3)
    index = torch.tensor([1])
    table.commit(Update(torch.ones(1, 1), index, torch.ones(1, 1)), torch.tensor(0))
    index.fill_(2)
    assert table.state()["table"].flatten().tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("kind", ["host", "mapped", "file"])
def test_copies_are_independent_and_resume(kind, tmp_path):
    place = dl.Mapped(tmp_path / "table") if kind == "file" else kind
    whole = dl.LogicLoss(RULE, 7, dtype=torch.bfloat16)
    first = dl.LogicLoss(RULE, 7, dtype=torch.bfloat16, table=place)
    steps = list(batches(10))
    for index, tensors in steps[:5]:
        whole(index, **tensors)
        first.prefetch(index)
        first(index, **tensors)
    held = first.state_dict()["table"].clone()
    second = copy.deepcopy(first)
    for index, tensors in steps[5:]:
        assert torch.equal(whole(index, **tensors), second(index, **tensors))
    assert torch.equal(first.state_dict()["table"], held)
    third = pickle.loads(pickle.dumps(first))
    assert torch.equal(third.state_dict()["table"], held)


def test_loading_and_reset_forget_what_was_prefetched():
    logic = dl.LogicLoss(RULE, 7, table="host")
    index, tensors = next(batches(1))
    fresh = copy.deepcopy(logic.state_dict())
    logic(index, **tensors)
    trained = copy.deepcopy(logic.state_dict())
    logic.prefetch(index)
    logic.load_state_dict(fresh)
    assert (logic._table.fetch(index) == 0).all()
    logic.load_state_dict(trained)
    logic.prefetch(index)
    logic.reset_()
    assert (logic._table.fetch(index) == 0).all()


def test_a_bad_index_is_refused_in_prefetch_and_forward():
    logic = dl.LogicLoss(RULE, 7, table="host")
    with pytest.raises(dl.errors.SampleIndexError, match="sample index 7 is out of range"):
        logic.prefetch(torch.tensor([1, 7]))
    with pytest.raises(dl.errors.SampleIndexError, match="index must hold integers"):
        logic(torch.tensor([1.0]), x=torch.ones(1), y=torch.ones(1))
    dl.LogicLoss(RULE, 7).prefetch(torch.tensor([1]))
    dl.LogicLoss(RULE).prefetch(torch.tensor([1]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": "cloud"}, "table must be one of 'device', 'host', 'mapped'.*got 'cloud'"),
        ({"table": 3}, "table must be one of"),
        ({"table": "host"}, "table='host' keeps a row for each training sample; give num_samples"),
        ({"table": dl.Mapped()}, "keeps a row for each training sample"),
    ],
)
def test_bad_places_are_refused(options, message):
    with pytest.raises(dl.errors.OptionError, match=message):
        dl.LogicLoss(RULE, **options)


def test_the_table_is_not_cast_and_says_where_it_is(tmp_path):
    logic = dl.LogicLoss(RULE, 7, table="host").half()
    assert logic._table.values.dtype is torch.float32
    assert "8 B per sample, 56 B in total, float32 in host memory, for cpu" in repr(logic)
    assert f"float32 in {tmp_path / 'table'}, for cpu" in repr(dl.LogicLoss(RULE, 7, table=dl.Mapped(tmp_path / "table")))
