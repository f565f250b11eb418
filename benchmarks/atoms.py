"""10^3 to 10^6 atoms per sample: a step against the same mathematics by hand, batch 128, 256 samples, clauses of 3 atoms.

Up to 10^5 atoms the clauses are ``Or`` objects of their own (``step.clauses``); 10^6 are written with quantifiers, as nobody
would make a third of a million Python objects for a batch of numbers.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from report import SIZES, entry
from step import BATCH, Hand, clauses, median_times

import dualogic as dl

SAMPLES = 256
REPEATS = {
    "cpu": {"1e3": 400, "1e4": 150, "1e5": 30, "1e6": 9},
    "cuda": {"1e3": 300, "1e4": 300, "1e5": 100, "1e6": 40},
}


def quantified(device: str, count: int, repeats: int) -> tuple[float, float, float]:
    """``count`` clauses of 3 atoms as one formula; also the seconds to compile."""
    generator = torch.Generator().manual_seed(0)
    bounds = torch.rand(count, 3, generator=generator)
    start = time.perf_counter()
    rule = (dl.var("x", count, 3) <= dl.constant("bounds", bounds)).any(1).all()
    logic = dl.LogicLoss(rule, num_samples=SAMPLES).to(device)
    compiled = time.perf_counter() - start
    hand = Hand(SAMPLES, count, 3, device)
    bounds = bounds.to(device)
    batches = [torch.randperm(SAMPLES, generator=generator)[:BATCH].to(device) for _ in range(repeats)]
    values = torch.rand(BATCH, count, 3, generator=generator).to(device) * 2

    def ours(number: int) -> None:
        leaf = values.detach().requires_grad_()
        logic(batches[number], x=leaf).backward()

    def by_hand(number: int) -> None:
        leaf = values.detach().requires_grad_()
        hand(batches[number], (leaf - bounds).relu()).backward()

    times = median_times(ours, by_hand, repeats)
    some = batches[0][:4]
    weights = logic.weights(some)
    torch.testing.assert_close(weights["rule"], hand.table[some][:, :count].softmax(-1), rtol=1e-4, atol=1e-6)
    inner = hand.table[some][:, count:].view(-1, count, 3).softmax(-1)
    torch.testing.assert_close(weights["rule/0"], inner, rtol=1e-4, atol=1e-6)
    return (*times, compiled)


def compare(size: str, device: str) -> dict[str, Any]:
    """One size."""
    count, repeats = SIZES[size] // 3, REPEATS[device][size]
    make, form = (quantified, "quantifiers") if size == "1e6" else (clauses, "Or objects")
    ours, hand, compiled = make(device, count=count, repeats=repeats)
    detail = {"ms": 1e3 * ours, "ms by hand": 1e3 * hand, "seconds to compile": compiled, "form": form, "repeats": repeats}
    return {f"atoms_{size}": entry(f"atoms_{size}", ours / hand, detail)}
