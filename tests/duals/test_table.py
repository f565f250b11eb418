"""Indices of a batch: out of range, and samples that occur twice, in batches short and long."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dualogic.duals.table import SHORT_BATCH, average_moves, check_range, has_duplicates
from dualogic.errors import SampleIndexError


@given(st.lists(st.integers(0, 40), max_size=12))
def test_duplicates_are_found(samples):
    assert has_duplicates(torch.tensor(samples, dtype=torch.long)) == (len(set(samples)) < len(samples))


@pytest.mark.parametrize("batch", [SHORT_BATCH - 1, SHORT_BATCH, SHORT_BATCH + 1])
def test_one_duplicate_is_found_on_either_side_of_a_short_batch(batch):
    index = torch.randperm(10 * batch, generator=torch.Generator().manual_seed(0))[:batch]
    assert not has_duplicates(index)
    index[-1] = index[0]
    assert has_duplicates(index)
    moves = torch.arange(float(batch)).unsqueeze(1)
    averaged, _ = average_moves(index, moves)
    assert averaged[0] == averaged[-1] == (batch - 1) / 2
    assert torch.equal(averaged[1:-1], moves[1:-1])


@given(st.lists(st.integers(-2, 6), max_size=6))
def test_the_first_index_out_of_range_is_named(samples):
    wrong = [sample for sample in samples if not 0 <= sample < 5]
    index = torch.tensor(samples, dtype=torch.long)
    if not wrong:
        check_range(index, 5)
        return
    with pytest.raises(SampleIndexError, match=f"^sample index {wrong[0]} is out of range for num_samples=5;"):
        check_range(index, 5)
