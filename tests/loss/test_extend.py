"""A table grows; what was learned stays."""

import copy

import pytest
import torch

import dualogic as dl
from dualogic.duals.memory import LAZY_FROM

X, Y = dl.var("x"), dl.var("y")
RULE = (X <= 0) | (Y <= 0) | (X + Y <= 0.5)


def train(logic, steps, samples, start=0):
    for step in range(start, start + steps):
        generator = torch.Generator().manual_seed(step)
        index = torch.randint(samples, (4,), generator=generator)
        x, y = torch.rand(2, 4, generator=generator)
        logic(index, x=x.requires_grad_(), y=y)
    return logic


@pytest.mark.parametrize("table", ["device", "host", "mapped", "path"])
@pytest.mark.parametrize("method", ["dual", dl.methods.PD2.released(), "hard"], ids=["dual", "pd2", "hard"])
def test_it_goes_on_as_if_it_had_been_larger_from_the_start(table, method, tmp_path):
    def make(samples, name):
        kept = dl.Mapped(tmp_path / name) if table == "path" else table
        return dl.LogicLoss(RULE, samples, method, table=kept)

    small, large = make(6, "small"), make(9, "large")
    for logic in (small, large):
        train(logic, 5, samples=6)
    assert small.extend(9) is small
    for logic in (small, large):
        train(logic, 10, samples=9, start=5)
    assert small.num_samples == 9
    state, expected = small.state_dict(), large.state_dict()
    assert all(torch.equal(state[name], value) for name, value in expected.items() if isinstance(value, torch.Tensor))
    large.load_state_dict(state)
    if table == "path":
        again = make(9, "small")
        assert torch.equal(again._table.state()["table"], expected["table"])
    with pytest.raises(IndexError, match="out of range for num_samples=9"):
        train(small, 10, samples=30)


def test_a_grown_file_that_was_not_finished_still_opens(tmp_path):
    path = tmp_path / "duals.table"
    logic = train(dl.LogicLoss(RULE, 6, table=dl.Mapped(path)), 5, samples=6)
    expected = logic.state_dict()["table"].clone()
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + 100)  # extend() stops after making room
    assert torch.equal(dl.LogicLoss(RULE, 6, table=dl.Mapped(path)).state_dict()["table"], expected)


def test_large_tables_stay_sparse():
    samples = LAZY_FROM
    logic = dl.LogicLoss(RULE, samples)
    index = torch.tensor([0, samples - 1, samples // 2])
    logic(index, x=torch.tensor([0.3, 0.6, 0.9], requires_grad=True), y=torch.tensor([0.5, 0.2, 0.1]))
    before = logic.weights(index)["rule"]
    logic.extend(2 * samples)
    assert torch.equal(logic.weights(index)["rule"], before)
    assert int((logic._table.values != 0).any(1).sum()) == 3


def test_copies_and_bfloat16():
    logic = train(dl.LogicLoss(RULE, 6, dtype=torch.bfloat16), 5, samples=6)
    twin = copy.deepcopy(logic)
    logic.extend(8)
    assert twin.num_samples == 6
    assert logic._table.values.dtype == torch.bfloat16
    assert torch.equal(logic._table.values[:6], twin._table.values)


def test_an_update_on_its_way_is_kept():
    logic, expected = (dl.LogicLoss(RULE, 6, update="manual") for _ in range(2))
    for one in (logic, expected):
        train(one, 1, samples=6)
    logic.extend(8).step()
    expected.step()
    assert torch.equal(logic._table.values[:6], expected._table.values)


def test_what_cannot_grow():
    logic = dl.LogicLoss(RULE, 6)
    assert logic.extend(6).num_samples == 6
    with pytest.raises(
        dl.errors.StateError, match=r"extend only grows: .* num_samples=6, and 4 would forget .* the last 2 samples"
    ):
        logic.extend(4)
    with pytest.raises(ValueError, match="num_samples must be a number of at least 1"):
        logic.extend(0)
    with pytest.raises(ValueError, match="needs a number of samples; got None"):
        logic.extend(None)
    with pytest.raises(dl.errors.StateError, match="one row serves all samples"):
        dl.LogicLoss(RULE).extend(8)
