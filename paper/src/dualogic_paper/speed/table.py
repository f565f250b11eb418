"""A step at 30,000 samples against a step at 1,281,167 (ImageNet's), with 2,000 dual variables per sample in bfloat16.

A step is the forward pass from values, the backward pass to them, and the update of duals and delta, batch 128. Both sizes run
in one process, alternating, on the same inputs. On a CPU they are measured twice: on rows that were never touched, which the
system has yet to give out, and once all memory is taken up.
"""

from collections.abc import Callable
from typing import Any

import torch

import dualogic as dl
from dualogic_paper.speed.clock import median_seconds
from dualogic_paper.speed.report import entry

SMALL, LARGE, BATCH, CLAUSES, ATOMS, REPEATS = 30_000, 1_281_167, 128, 500, 3, 200


def make(samples: int, device: str) -> dl.LogicLoss:
    """500 clauses of 3 atoms: 500 + 1,500 dual variables."""
    x = dl.var("x", CLAUSES, ATOMS)
    return dl.LogicLoss((x <= 0.5).any(1).all(), samples, dtype=torch.bfloat16).to(device)


def take_up(logic: dl.LogicLoss) -> None:
    """Write every row of a fresh table, so that its memory is there."""
    for block in logic.state_dict()["table"].split(10_000):
        block.zero_()


def steps(logic: dl.LogicLoss, device: str) -> Callable[[int], None]:
    """A function that makes the step of a given number, each with samples of its own."""
    generator = torch.Generator().manual_seed(0)
    batches = torch.randperm(logic.num_samples or 0, generator=generator)[: BATCH * REPEATS].to(device).split(BATCH)
    values = 2 * torch.rand(BATCH, CLAUSES, ATOMS, generator=generator).to(device)
    return lambda number: logic(batches[number], x=values.detach().requires_grad_()).backward()


def compare(device: str) -> dict[str, Any]:
    """The large table's size, and its step against that of a smaller one."""
    both = [make(samples, device) for samples in (SMALL, LARGE)]
    take_up(both[0])
    detail: dict[str, dict[str, float]] = {}
    for name in (", rows never touched before", "") if device == "cpu" else ("",):
        if not name:
            take_up(both[1])
        fast, slow = median_seconds([steps(logic, device) for logic in both], REPEATS)
        detail[f"device, {device}{name}"] = {"ms": 1e3 * slow, "ms at 30,000": 1e3 * fast}
    size = entry("table_bytes", both[1].memory().total / 1e9, {})
    return {"table_bytes": size, "table_ratio": entry("table_ratio", slow / fast, detail)}
