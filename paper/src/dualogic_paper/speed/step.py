"""One full step of a rule against the same mathematics written by hand.

A step is the forward pass from logits or values, the backward pass to them, and the update of duals and delta. Both sides run
eagerly in one process, alternating, on the same inputs; their duals are compared at the end.

    python -m dualogic_paper.speed.step            # both rules
    python -m dualogic_paper.speed.step cifar      # the CIFAR-100 rule: batch 128, 30,000 samples
    python -m dualogic_paper.speed.step clauses    # 10,000 separate clauses of 3 atoms: batch 128, 256 samples
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence

import torch

import dualogic as dl
from dualogic.compile import compile_rules
from dualogic_paper.speed.hand import Clauses, LongClauses

BATCH = 128


def time_in_turn(functions: Sequence[Callable[[int], None]], repeats: int) -> list[float]:
    """Median seconds of each function, called in turn so that all meet the same machine."""
    times: list[list[float]] = [[] for _ in functions]
    for number in range(repeats):
        for function, record in zip(functions, times):
            start = time.perf_counter()
            function(number)
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            record.append(time.perf_counter() - start)
    warm = max(3, repeats // 10)
    return [statistics.median(record[warm:]) for record in times]


def median_times(first: Callable[[int], None], second: Callable[[int], None], repeats: int) -> tuple[float, float]:
    """Median seconds of two functions, called in turn."""
    one, two = time_in_turn((first, second), repeats)
    return one, two


def cifar(device: str, repeats: int = 300, samples: int = 30_000) -> tuple[float, float]:
    """The CIFAR-100 rule: each of 20 superclasses has all of the mass or none."""
    generator = torch.Generator().manual_seed(0)
    membership = torch.zeros(100, 20)
    membership[torch.arange(100), torch.arange(100) % 20] = 1
    p = dl.var("p", 100)
    mass = p @ dl.constant("membership", membership)
    logic = dl.LogicLoss(((mass == 0) | (mass == 1)).all(), num_samples=samples).to(device)
    hand = LongClauses(samples, 20, 2, device)
    batches = [torch.randperm(samples, generator=generator)[:BATCH].to(device) for _ in range(repeats)]
    logits = (3 * torch.randn(repeats, BATCH, 100, generator=generator)).to(device)
    membership = membership.to(device)

    def ours(number: int) -> None:
        leaf = logits[number].detach().requires_grad_()
        logic(batches[number], p=leaf.softmax(-1)).backward()

    def by_hand(number: int) -> None:
        leaf = logits[number].detach().requires_grad_()
        total = leaf.softmax(-1) @ membership
        hand(batches[number], torch.stack([total.abs(), (total - 1).abs()], 1)).backward()

    times = median_times(ours, by_hand, repeats)
    every = torch.cat(batches).unique()
    weights = logic.weights(every)
    rows = hand.table[every]
    torch.testing.assert_close(weights["rule"], rows[:, :20].softmax(-1), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(weights["rule/0"], hand.inner(rows), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(logic.delta[0], hand.delta, rtol=1e-4, atol=1e-5)
    return times


def clauses(device: str, count: int = 10_000, repeats: int = 20, samples: int = 256) -> tuple[float, float, float]:
    """Separate ``Or`` objects of 3 atoms each, every atom on a variable of its own; also the seconds to compile."""
    generator = torch.Generator().manual_seed(0)
    bounds = torch.rand(3 * count, generator=generator)
    x = dl.var("x", 3 * count)
    rule = dl.And([dl.Or(*(x[3 * i + j] <= bounds[3 * i + j].item() for j in range(3))) for i in range(count)])
    start = time.perf_counter()
    compile_rules([("rule", rule)], "log")
    compiled = time.perf_counter() - start
    logic = dl.LogicLoss(rule, num_samples=samples).to(device)
    hand = Clauses(samples, count, 3, device)
    bounds = bounds.to(device)
    batches = [torch.randperm(samples, generator=generator)[:BATCH].to(device) for _ in range(repeats)]
    values = torch.rand(BATCH, 3 * count, generator=generator).to(device) * 2

    def ours(number: int) -> None:
        leaf = values.detach().requires_grad_()
        logic(batches[number], x=leaf).backward()

    def by_hand(number: int) -> None:
        leaf = values.detach().requires_grad_()
        hand(batches[number], (leaf - bounds).relu().view(BATCH, count, 3)).backward()

    times = median_times(ours, by_hand, repeats)
    some = batches[0][:4]
    weights = logic.weights(some)
    torch.testing.assert_close(weights["rule"], hand.table[some][:, :count].softmax(-1), rtol=1e-4, atol=1e-6)
    inner = hand.table[some][:, count:].view(-1, count, 3).softmax(-1)
    for place in (0, count // 2, count - 1):
        torch.testing.assert_close(weights[f"rule/{place}"], inner[:, place], rtol=1e-4, atol=1e-6)
    return (*times, compiled)


def main() -> None:
    """Print the ratios asked for."""
    chosen = sys.argv[1:] or ["cifar", "clauses"]
    torch.set_num_threads(1)  # two threads that wait for each other on a busy machine measure the machine
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if "cifar" in chosen:
        ours, hand = cifar(device)
        print(f"CIFAR-100 rule, {device}: {1e3 * ours:.3f} ms, by hand {1e3 * hand:.3f} ms, ratio {ours / hand:.2f}")
    if "clauses" in chosen:
        ours, hand, compiled = clauses(device)
        print(
            f"10,000 clauses, {device}: {1e3 * ours:.1f} ms, by hand {1e3 * hand:.1f} ms, ratio {ours / hand:.2f}; "
            f"compiled in {compiled:.2f} s"
        )


if __name__ == "__main__":
    main()
