"""10^3 to 10^6 atoms per sample: a step against the same mathematics by hand, batch 128, 256 samples, clauses of 3 atoms.

Up to 10^5 atoms the clauses are ``Or`` objects of their own; 10^6 are written with quantifiers. By hand the weights within
clauses are laid out in the order of the inputs, or with the long axis last, whichever is faster.
"""

import time
from typing import Any

import torch
from torch import Tensor

import dualogic as dl
from dualogic_paper.speed.clock import median_seconds
from dualogic_paper.speed.hand import Clauses, LongClauses
from dualogic_paper.speed.report import SIZES, entry
from dualogic_paper.speed.rule import BATCH

SAMPLES, ATOMS = 256, 3
REPEATS = {"cpu": {"1e3": 300, "1e4": 80, "1e5": 20, "1e6": 6}, "cuda": {"1e3": 300, "1e4": 300, "1e5": 100, "1e6": 30}}


def compare(size: str, device: str) -> dict[str, Any]:
    """One size, with the rule ``x[i, j] <= bounds[i, j]`` for some ``j``, for all ``i``."""
    count, repeats, quantified = SIZES[size] // ATOMS, REPEATS[device][size], size == "1e6"
    generator = torch.Generator().manual_seed(0)
    bounds = torch.rand(count, ATOMS, generator=generator)
    x = dl.var("x", *bounds.shape)
    rule: dl.Formula = (x <= dl.constant("bounds", bounds)).any(1).all()
    if not quantified:
        rows = enumerate(bounds.tolist())
        rule = dl.And([dl.Or(*(x[i, j] <= bound for j, bound in enumerate(row))) for i, row in rows])
    start = time.perf_counter()
    logic = dl.LogicLoss(rule, num_samples=SAMPLES)
    compiled = time.perf_counter() - start
    logic.to(device)
    bounds = bounds.to(device)
    short, long = Clauses(SAMPLES, count, ATOMS, device), LongClauses(SAMPLES, count, ATOMS, device)
    batches = [torch.randperm(SAMPLES, generator=generator)[:BATCH].to(device) for _ in range(repeats)]
    values = torch.rand(BATCH, count, ATOMS, generator=generator).mul_(2).to(device)

    def costs() -> Tensor:
        return (values.detach().requires_grad_() - bounds).relu()

    steps = (
        lambda number: logic(batches[number], x=values.detach().requires_grad_()).backward(),
        lambda number: short(batches[number], costs()).backward(),
        lambda number: long(batches[number], costs().transpose(1, 2).contiguous()).backward(),
    )
    mine, *hands = median_seconds(steps, repeats)
    some = batches[0][:4]
    weights = logic.weights(some)
    outer, inner = long.split(long.table[some])
    torch.testing.assert_close(weights["rule"], outer, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(outer, short.table[some][:, :count].softmax(-1), rtol=1e-4, atol=1e-6)
    for place in (0, count // 2, count - 1):
        found = weights["rule/0"][:, place] if quantified else weights[f"rule/{place}"]
        torch.testing.assert_close(found, inner[:, :, place], rtol=1e-4, atol=1e-6)
    detail = {
        "ms": 1e3 * mine,
        "ms by hand (clauses, 3)": 1e3 * hands[0],
        "ms by hand (3, clauses)": 1e3 * hands[1],
        "seconds to compile": compiled,
        "form": "quantifiers" if quantified else "Or objects",
    }
    return {f"atoms_{size}": entry(f"atoms_{size}", mine / min(hands), detail)}
