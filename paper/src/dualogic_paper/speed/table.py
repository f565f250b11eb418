"""Large tables: 1,281,167 samples (ImageNet's) with 2,000 dual variables each in bfloat16, and where they are held.

A step is the forward pass from values, the backward pass to them, and the update of duals and delta, batch 128. Both sizes run
in one process, alternating, on the same inputs. Tables in host memory and in a file serve a loop over a data loader with two
workers, in which a linear network makes the values; they take turns with such a loop whose table is on the device.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

import dualogic as dl
from dualogic_paper.speed.clock import median_seconds
from dualogic_paper.speed.report import entry

SMALL, LARGE, BATCH, CLAUSES, ATOMS, FEATURES, REPEATS = 30_000, 1_281_167, 128, 500, 3, 8, 200


def make(samples: int, device: str, place: str = "device") -> dl.LogicLoss:
    """500 clauses of 3 atoms: 500 + 1,500 dual variables."""
    x = dl.var("x", CLAUSES, ATOMS)
    return dl.LogicLoss((x <= 0.5).any(1).all(), samples, dtype=torch.bfloat16, table=place).to(device)


def steps(logic: dl.LogicLoss, device: str) -> Callable[[int], None]:
    """A function that makes the step of a given number, each with samples of its own."""
    torch.manual_seed(0)
    batches = torch.randperm(logic.num_samples or 0)[: BATCH * REPEATS].to(device).split(BATCH)
    values = 2 * torch.rand(BATCH, CLAUSES, ATOMS).to(device)
    return lambda number: logic(batches[number], x=values.detach().requires_grad_()).backward()


def compare(device: str) -> dict[str, Any]:
    """The large table's size, and its step against that of a smaller one."""
    both = [make(samples, device) for samples in (SMALL, LARGE)]
    for block in (block for logic in both for block in logic.state_dict()["table"].split(10_000)):
        block.zero_()  # so that the system has given out all memory
    fast, slow = median_seconds([steps(logic, device) for logic in both], REPEATS)
    ratio = entry("table_ratio", slow / fast, {"ms": 1e3 * slow, "ms at 30,000": 1e3 * fast})
    return {"table_bytes": entry("table_bytes", both[1].memory().total / 1e9, {}), "table_ratio": ratio}


def loop(place: str, device: str, samples: int = LARGE) -> Iterator[torch.Tensor]:
    """The losses of a training loop's steps; rows of the next batch are fetched ahead."""
    torch.manual_seed(0)
    data = dl.data.WithIndex(TensorDataset(torch.randn(samples, FEATURES)))
    logic, network = make(samples, device, place), torch.nn.Linear(FEATURES, CLAUSES * ATOMS).to(device)
    batches = iter(DataLoader(data, BATCH, shuffle=True, num_workers=2, pin_memory=device == "cuda", prefetch_factor=8))
    index, x = next(batches)
    for following in batches:
        logic.prefetch(following[0])
        network.zero_grad()
        yield logic(index, x=network(x.to(device, non_blocking=True)).view(-1, CLAUSES, ATOMS))
        index, x = following


def compare_places(device: str) -> dict[str, Any]:
    """A step with the table in host memory, and in a file, against one with the table on the device."""
    loops = [loop(place, device) for place in ("device", "host", "mapped")]
    plain, *others = median_seconds([lambda _, each=each: next(each).backward() for each in loops], REPEATS)  # type: ignore[misc]
    found = dict(zip(("table_host", "table_mapped"), others))
    return {name: entry(name, slow / plain, {"ms": 1e3 * slow, "ms on the device": 1e3 * plain}) for name, slow in found.items()}
