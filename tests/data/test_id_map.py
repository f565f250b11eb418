"""Ids become rows: in order of appearance, the same after a restart, never more than there is room for."""

import io

import hypothesis
import hypothesis.strategies as st
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

import dualogic as dl
from dualogic.data import IdMap

X = dl.var("x")
RULE = (X <= 0) | (X >= 1)
IDS = st.lists(st.lists(st.one_of(st.text(max_size=3), st.integers(-5, 5)), max_size=6), max_size=6)


@hypothesis.given(batches=IDS)
def test_rows_are_given_in_order_of_appearance(batches):
    ids = IdMap(100)
    expected: dict = {}
    for batch in batches:
        rows = ids(batch)
        for key in batch:
            expected.setdefault((type(key), key), len(expected))
        assert rows.dtype == torch.int64
        assert rows.tolist() == [expected[type(key), key] for key in batch]
        assert ids.find(batch).tolist() == rows.tolist()
    assert len(ids) == len(expected)


@hypothesis.given(batches=IDS, stop=st.integers(0, 6))
def test_a_restarted_map_goes_on_with_the_same_rows(batches, stop):
    whole, first, second = IdMap(100), IdMap(100), IdMap(100)
    expected = [whole(batch).tolist() for batch in batches]
    found = [first(batch).tolist() for batch in batches[:stop]]
    stream = io.BytesIO()
    torch.save(first.state_dict(), stream)
    stream.seek(0)
    second.load_state_dict(torch.load(stream, weights_only=True))
    assert found + [second(batch).tolist() for batch in batches[stop:]] == expected


def test_a_full_map_says_so_and_gives_out_nothing():
    ids = IdMap(3).add(["a", "b"])
    with pytest.raises(
        IndexError, match=r"full: it has 2 of 3 ids, and this batch brings 2 new ones, such as 'c'; .*IdMap\(logic="
    ):
        ids(["a", "c", "d"])
    assert "c" not in ids
    assert ids(["b", "d"]).tolist() == [1, 2]
    assert ids.find(["a", "x"]).tolist() == [0, -1]
    assert repr(ids) == "IdMap(3 of 3 ids)"


def test_a_table_grows_with_its_ids_and_is_restored():
    logic = dl.LogicLoss(RULE, num_samples=2)
    ids = IdMap(logic=logic)
    for step, batch in enumerate((["a", "b"], ["b", "c"], ["d", "e", "f", "g", "h", "i"])):
        x = torch.linspace(0.1, 0.4, len(batch)) + 0.01 * step
        before = logic.state_dict()["table"].clone()
        logic(ids(batch), x=x.requires_grad_())
        if step == 1:
            assert torch.equal(logic.state_dict()["table"][0], before[0])
    assert logic.num_samples == ids.num_samples == 9
    assert bool((logic.state_dict()["table"] != 0).all())
    state = {"ids": ids.state_dict(), "logic": logic.state_dict()}
    again = dl.LogicLoss(RULE, num_samples=2)
    others = IdMap(logic=again)
    others.load_state_dict(state["ids"])
    again.load_state_dict(state["logic"])
    assert torch.equal(again.weights(others(["c"]))["rule"], logic.weights(ids(["c"]))["rule"])


def test_tensors_and_numpy_ids():
    numpy = pytest.importorskip("numpy")
    ids = IdMap(10)
    assert ids(torch.tensor([2**60, 7])).tolist() == [0, 1]
    assert ids(numpy.array([7, 2**60])).tolist() == [1, 0]
    assert ids(numpy.array(["seven", "7"])).tolist() == [2, 3]
    stream = io.BytesIO()
    torch.save(ids.state_dict(), stream)
    stream.seek(0)
    assert torch.load(stream, weights_only=True) == {"ids": [2**60, 7, "seven", "7"], "num_samples": 10}


@pytest.mark.parametrize(
    "wrong", [[("a", 1)], [b"a"], [1.5], [True], [None], torch.tensor([0.5]), torch.tensor(3), "abc", b"abc", 7, None]
)
def test_what_is_no_id_is_refused(wrong):
    ids = IdMap(10)
    with pytest.raises(dl.errors.SampleIndexError, match=r"id must be a string|tensor of ids must be|must be those of a batch"):
        ids(wrong)
    assert len(ids) == 0


class Stream(IterableDataset):
    """Gives rows by itself, in a worker."""

    def __init__(self, ids):
        self.ids = ids

    def __iter__(self):
        yield self.ids(["a", "b"])


def test_a_worker_may_look_up_but_not_give_out():
    known = IdMap(5).add(["b", "a"])
    assert next(iter(DataLoader(Stream(known), num_workers=1, batch_size=None))).tolist() == [1, 0]
    with pytest.raises(dl.errors.StateError, match="'a' is a new id, met in a worker of a data loader"):
        next(iter(DataLoader(Stream(IdMap(5)), num_workers=1, batch_size=None)))


def test_wrong_arguments():
    logic = dl.LogicLoss(RULE, num_samples=2)
    with pytest.raises(ValueError, match="either num_samples=, or logic="):
        IdMap()
    with pytest.raises(ValueError, match="either num_samples=, or logic="):
        IdMap(3, logic=logic)
    with pytest.raises(ValueError, match="a row for each sample"):
        IdMap(logic=dl.LogicLoss(RULE))
    with pytest.raises(dl.errors.StateError, match="room for 3 ids and this one for 4"):
        IdMap(4).load_state_dict(IdMap(3).state_dict())


@pytest.mark.parametrize("state", [{"ids": ["a", "a"], "num_samples": 9}, {"ids": ["a", "b"], "num_samples": 1}], ids=str)
def test_a_damaged_map_is_refused_and_changes_nothing(state):
    logic = dl.LogicLoss((dl.var("x") <= 0) | (dl.var("y") <= 0), 3)
    ids = IdMap(logic=logic)
    ids(["c"])
    before = ids.state_dict()
    with pytest.raises(dl.errors.StateError, match=r"the saved id map is damaged: it has 2 ids"):
        ids.load_state_dict(state)
    assert ids.state_dict() == before
    assert logic.num_samples == 3
