"""A loader that stopped anywhere goes on as if it had not."""

import io
import random

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler

import dualogic as dl
from dualogic.data.resumable import get_random_state, set_random_state


class Noisy(Dataset):
    """Items that depend on every generator there is."""

    def __len__(self):
        return 10

    def __getitem__(self, position):
        return position, torch.rand(()), random.random()


def make(kind):
    data = dl.data.WithIndex(Noisy())
    if kind == "generator":
        return dl.data.Resumable(DataLoader(data, 3, shuffle=True, generator=torch.Generator().manual_seed(5)))
    if kind == "distributed":
        return dl.data.Resumable(DataLoader(data, 2, sampler=DistributedSampler(data, 2, 1)))
    return dl.data.Resumable(DataLoader(data, 3, shuffle=True, num_workers=int(kind == "workers")))


def run(loader, steps, epochs=3):
    """Batches and a random number after each, for so many steps."""
    found = []
    while loader.epoch < epochs:
        for batch in loader:
            found.append((*[torch.as_tensor(part).tolist() for part in batch], torch.rand(()).item(), random.random()))
            if len(found) == steps:
                return found
    return found


@pytest.mark.parametrize("kind", ["global", "generator", "distributed", "workers"])
def test_a_stopped_loader_goes_on_as_if_it_had_not(kind):
    torch.manual_seed(1)
    random.seed(1)
    whole = run(make(kind), 100)
    size = len(make(kind))
    assert len(whole) == 3 * size
    for stop in (1, size - 1, size, size + 2) if kind != "workers" else (2,):
        torch.manual_seed(1)
        random.seed(1)
        first = make(kind)
        found = run(first, stop)
        stream = io.BytesIO()
        torch.save(first.state_dict(), stream)
        stream.seek(0)
        torch.rand(7)
        random.random()
        second = make(kind)
        second.load_state_dict(torch.load(stream, weights_only=True))
        assert second.state_dict()["done"] == stop % size
        assert found + run(second, 100) == whole


def test_it_looks_like_its_loader():
    loader = DataLoader(range(5), 2)
    resumable = dl.data.Resumable(loader)
    assert resumable.batch_size == 2
    assert len(resumable) == 3
    assert resumable.sampler is loader.sampler
    iter(resumable)  # frameworks do so without asking for a batch
    assert [batch.tolist() for batch in resumable] == [[0, 1], [2, 3], [4]]
    assert resumable.epoch == 1


def test_wrong_states_and_loaders():
    loader = dl.data.Resumable(DataLoader(range(6), 2))
    with pytest.raises(dl.errors.StateError, match="after 3 batches of an epoch, but this loader has 3"):
        loader.load_state_dict({**loader.state_dict(), "done": 3})
    with pytest.raises(TypeError, match="can be gone through again; got generator"):
        dl.data.Resumable(batch for batch in range(3))


def test_numbers_drawn_aside_leave_no_trace():
    numpy = pytest.importorskip("numpy")
    torch.manual_seed(3)
    numpy.random.seed(3)
    expected = torch.rand(2), numpy.random.rand()
    torch.manual_seed(3)
    numpy.random.seed(3)
    state = get_random_state()
    torch.rand(5)
    numpy.random.rand(5)
    set_random_state(state)
    assert torch.equal(torch.rand(2), expected[0])
    assert numpy.random.rand() == expected[1]
