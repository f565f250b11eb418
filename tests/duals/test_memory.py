"""What a table takes: bytes per sample, and nothing before it is used."""

import re
import sys
from pathlib import Path

import pytest
import torch

import dualogic as dl
from dualogic.duals.memory import Memory, format_bytes, lazy_zeros

WIDE = (dl.var("p", 2000) <= 0).all()


def resident():
    return int(re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024


def test_bytes_are_counted_and_shown():
    logic = dl.LogicLoss(WIDE, 1_281_167, dtype=torch.bfloat16)
    assert logic.memory() == Memory(4000, 5_124_668_000, "bfloat16 on cpu")
    assert "2000 dual variables for each of 1281167 samples (4.00 kB per sample, 5.12 GB in total, bfloat16 on cpu)" in repr(
        logic
    )
    shared = dl.LogicLoss(WIDE)
    assert shared.memory() == Memory(0, 8000, "float32 on cpu")
    assert "shared by all samples (8.00 kB in total, float32 on cpu)" in repr(shared)
    assert dl.LogicLoss(WIDE, 10, method="hard").memory().total == 0
    assert [format_bytes(count) for count in (0, 999, 1000, 2_500_000, 10**12)] == [
        "0 B",
        "999 B",
        "1.00 kB",
        "2.50 MB",
        "1.00 TB",
    ]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("place", ["device", "host"])
def test_a_large_table_takes_no_memory_before_use(place):
    index, values = torch.randperm(100_000)[:64], torch.rand(64, 2000, requires_grad=True)
    dl.LogicLoss(WIDE, 100, dtype=torch.bfloat16)(index % 100, p=values).backward()
    before = resident()
    logic = dl.LogicLoss(WIDE, 100_000, dtype=torch.bfloat16, table=place)
    assert logic.memory().total == 400_000_000
    assert resident() - before < 8_000_000
    logic(index, p=values).backward()
    assert (logic._table.values[index] != 0).any()
    assert resident() - before < 40_000_000, "64 rows of 4 kB, and what a step allocates"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_lazy_zeros_are_ordinary_tensors(dtype):
    table = lazy_zeros(1000, 2000, dtype)
    assert table.shape == (1000, 2000)
    assert table.dtype is dtype
    assert (table == 0).all()
    table[999, 1999] = 1
    assert table.sum() == 1
    assert table.clone()[999, 1999] == 1
    assert lazy_zeros(3, 0, dtype).shape == (3, 0)
    with torch.device("meta"):
        assert lazy_zeros(1000, 2000, dtype).device.type == "meta"
