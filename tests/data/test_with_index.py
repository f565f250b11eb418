"""Positions of samples survive everything that a data loader does."""

from typing import NamedTuple

import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset, TensorDataset, WeightedRandomSampler

import dualogic as dl
from dualogic.data import WithIndex

VALUES = torch.arange(20.0)


class Pair(NamedTuple):
    x: float
    y: int


class Items(Dataset):
    """Items of a given form, each of which says its own number."""

    def __init__(self, form):
        self.form = form

    def __len__(self):
        return len(VALUES)

    def __getitem__(self, position):
        assert type(position) is int
        if position >= len(VALUES):
            raise IndexError
        return self.form(float(position), position % 2)


FORMS = {
    "tuple": lambda x, y: (x, y),
    "list": lambda x, y: [x, y],
    "named": Pair,
    "mapping": lambda x, y: {"x": x, "y": y},
    "alone": lambda x, y: x,
}


def read(batch, form):
    return (batch["index"], batch["x"]) if form == "mapping" else (batch[0], batch[1])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "options",
    [
        {"shuffle": True},
        {"batch_size": None},
        {"sampler": WeightedRandomSampler([1.0] * 20, 30)},
        {"sampler": torch.tensor([3, 3, 19])},
    ],
    ids=["shuffled", "unbatched", "sampler", "tensor"],
)
def test_each_item_keeps_its_position(form, options):
    seen = 0
    for batch in DataLoader(WithIndex(Items(FORMS[form])), **{"batch_size": 6, **options}):
        index, x = read(batch, form)
        index, x = torch.as_tensor(index), torch.as_tensor(x)
        assert index.dtype == torch.int64
        assert torch.equal(index.double(), x.double())
        seen += index.numel()
    assert seen == {"sampler": 3 if isinstance(options.get("sampler"), torch.Tensor) else 30}.get(next(iter(options)), 20)


def test_workers_give_the_same():
    loader = DataLoader(WithIndex(Items(FORMS["tuple"])), batch_size=7, num_workers=1)
    assert torch.equal(torch.cat([index for index, _, _ in loader]), torch.arange(20))


def test_subsets_count_from_where_they_are_wrapped():
    rows = [5, 2, 11]
    outside = Subset(WithIndex(TensorDataset(VALUES)), rows)
    inside = WithIndex(Subset(TensorDataset(VALUES), rows))
    for data, expected in ((outside, rows), (inside, [0, 1, 2])):
        (index, x), *_ = DataLoader(data, batch_size=3)
        assert index.tolist() == expected
        assert x.tolist() == rows
    assert inside.stop == 3


def test_two_data_sets_on_one_table():
    first = WithIndex(TensorDataset(VALUES[:5]))
    second = WithIndex(TensorDataset(VALUES[5:]), start=first.stop)
    assert second.stop == 20
    together = ConcatDataset([first, second])
    assert [together[position][0] for position in range(20)] == list(range(20))
    rule = (dl.var("x") <= 3) | (dl.var("x") >= 10.5)
    apart = dl.LogicLoss(rule, num_samples=second.stop)
    for data in (first, second):
        for index, x in DataLoader(data, batch_size=5):
            apart(index, x=x.requires_grad_())
    assert bool((apart.state_dict()["table"][4:11] != 0).all())


def test_a_form_of_ones_own():
    data = WithIndex(Items(FORMS["mapping"]), join=lambda index, item: (item["x"], f"sample {index}"))
    assert data[3] == (3.0, "sample 3")
    assert WithIndex(Items(FORMS["mapping"]), key="sample")[3]["sample"] == 3


def test_positions_from_the_end_and_past_it():
    data = WithIndex(TensorDataset(VALUES), start=100)
    assert data[-1][0] == 119
    assert data[torch.tensor(4)][0] == 104
    for wrong in (20, -21):
        with pytest.raises(IndexError, match=f"position {wrong} is out of range for a data set of 20 items"):
            data[wrong]
    with pytest.raises(IndexError, match="positions that are integers; got 'a'"):
        data["a"]
    assert len(list(data)) == 20


class Batched(Items):
    """Fetches a whole batch at once, as data sets on disk do."""

    def __getitem__(self, position):
        raise AssertionError

    def __getitems__(self, positions):
        return [self.form(float(position), 0) for position in positions]


def test_a_batch_is_fetched_at_once_where_it_can_be():
    for index, x, _ in DataLoader(WithIndex(Batched(FORMS["tuple"])), batch_size=8, shuffle=True):
        assert torch.equal(index.double(), x)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(3))


def test_what_has_no_positions_is_refused():
    with pytest.raises(TypeError, match=r"needs a data set with positions .* got Stream. For a stream, .* dl.data.IdMap"):
        WithIndex(Stream())
    with pytest.raises(ValueError, match="start must be a whole number of at least 0; got -1"):
        WithIndex([1], start=-1)
    with pytest.raises(ValueError, match="has an entry 'index' already"):
        WithIndex([{"index": 5}])[0]


def test_a_loader_without_indices_is_told_where_to_find_them():
    logic = dl.LogicLoss(dl.var("x") <= 0, num_samples=20)
    for (x,) in DataLoader(TensorDataset(VALUES), batch_size=4):
        with pytest.raises(IndexError, match=r"needs the samples' indices: logic\(index, ...\).* dl.data.WithIndex\(dataset\)"):
            logic(x=x)
        with pytest.raises(IndexError, match=r"index must hold integers; got torch.float32"):
            logic(x, x=x)
        break
