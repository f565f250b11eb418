"""What a monitor costs: training steps with one against the same without, in turn, on one thread.

    python -m dualogic_paper.speed.monitor

Two cases: the demo's network on the embedded digits (batch 70), and the loss alone, without any network: 20 superclasses of 100
classes, batch 128. Prints the ratio of the median times of 100 steps.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch.nn.functional import cross_entropy

import dualogic as dl
from dualogic.demo import RULE, load_split, make_network, rotate

STEPS, ROUNDS = 100, 15


def digits(every: int | None) -> Callable[[], None]:
    """A step of the demo."""
    split = load_split("mixed", seed=0)
    network = make_network(0)
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    logic = dl.LogicLoss(RULE, num_samples=len(split.pool))
    if every is not None:
        dl.Monitor(logic, every, warn=False)
    generator = torch.Generator().manual_seed(0)

    def step() -> None:
        chosen = torch.randint(len(split.labelled), (64,), generator=generator)
        index = torch.randint(len(split.pool), (70,), generator=generator)
        pool = split.pool[index]
        logits, f, g = network(torch.cat([split.labelled[chosen], pool, rotate(pool)])).split([64, 70, 70])
        loss = cross_entropy(logits, split.labels[chosen]) + logic(index, f=f, g=g)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def alone(every: int | None) -> Callable[[], None]:
    """A step of the loss without a network."""
    membership = torch.zeros(100, 20)
    membership[torch.arange(100), torch.arange(100) % 20] = 1.0
    s = dl.var("p", 100) @ membership
    logic = dl.LogicLoss(((s == 0) | (s == 1)).all(), num_samples=10_000)
    if every is not None:
        dl.Monitor(logic, every, warn=False)
    logits = torch.randn(128, 100).requires_grad_()
    generator = torch.Generator().manual_seed(0)

    def step() -> None:
        logits.grad = None
        logic(torch.randint(10_000, (128,), generator=generator), p=logits.softmax(-1)).backward()

    return step


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    for name, make in (("digits with their network", digits), ("superclasses, the loss alone", alone)):
        steps = {every: make(every) for every in (None, 100, 10)}
        times: dict[int | None, list[float]] = {every: [] for every in steps}
        for _ in range(ROUNDS):
            for every, step in steps.items():
                started = time.process_time()
                for _ in range(STEPS):
                    step()
                times[every].append((time.process_time() - started) / STEPS)
        plain = statistics.median(times[None])
        ratios = ", ".join(f"every={every}: {statistics.median(times[every]) / plain:.3f}" for every in (100, 10))
        print(f"{name}: {1e3 * plain:.2f} ms a step; ratio with a monitor, {ratios}")


if __name__ == "__main__":
    main()
