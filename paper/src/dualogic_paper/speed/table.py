"""A step at 30,000 samples against a step at 1,281,167 (ImageNet's), with 2,000 dual variables per sample in bfloat16.

A step is the forward pass from values, the backward pass to them, and the update of duals and delta, batch 128. Both sizes run
in one process, alternating, on the same inputs; the ratio of their medians should be at most 1.2 and the large table take at most
5.2 GB. Large tables on a CPU are measured twice: on rows that were never touched, which the system has yet to give out, and once
all memory is taken up. On an accelerator a table in host memory is also measured with ``prefetch`` of the next batch.

    python -m dualogic_paper.speed.table                 # on the device
    python -m dualogic_paper.speed.table device host     # also in host memory
    python -m dualogic_paper.speed.table mapped          # in a temporary file
"""

import sys
from collections.abc import Callable
from typing import Any

import torch

import dualogic as dl
from dualogic_paper.speed.clock import median_seconds
from dualogic_paper.speed.report import entry

SMALL, LARGE, BATCH, CLAUSES, ATOMS = 30_000, 1_281_167, 128, 500, 3


def make(samples: int, place: str, device: str) -> dl.LogicLoss:
    """500 clauses of 3 atoms: 500 + 1,500 dual variables."""
    x = dl.var("x", CLAUSES, ATOMS)
    return dl.LogicLoss((x <= 0.5).any(1).all(), samples, dtype=torch.bfloat16, table=place).to(device)


def take_up(logic: dl.LogicLoss) -> None:
    """Write every row of a fresh table, so that its memory is there."""
    for block in logic.state_dict()["table"].split(10_000):
        block.zero_()


def steps(logic: dl.LogicLoss, device: str, repeats: int, prefetch: bool) -> Callable[[int], None]:
    """A function that makes the step of a given number, each with samples of its own."""
    generator = torch.Generator().manual_seed(0)
    samples = logic.num_samples or 0
    drawn = torch.cat(
        [torch.randperm(samples, generator=generator)[: BATCH * (repeats + 1)] for _ in range(1 + BATCH * repeats // samples)]
    )
    batches = list(drawn[: BATCH * (repeats + 1)].split(BATCH))
    if logic.memory().place.endswith(f"on {logic.delta.device}"):
        batches = [index.to(device) for index in batches]
    values = 2 * torch.rand(BATCH, CLAUSES, ATOMS, generator=generator).to(device)

    def step(number: int) -> None:
        if prefetch:
            logic.prefetch(batches[number + 1])
        logic(batches[number], x=values.detach().requires_grad_()).backward()

    return step


def measure(place: str, device: str, repeats: int = 200) -> tuple[dict[str, list[float]], float]:
    """Median milliseconds of a step with tables held at one place, the small and the large one; and the gigabytes of that."""
    small, large = make(SMALL, place, device), make(LARGE, place, device)
    size = large.memory().total / 1e9
    take_up(small)
    found: dict[str, list[float]] = {}

    def add(name: str, prefetch: bool = False) -> None:
        times = median_seconds([steps(logic, device, repeats, prefetch) for logic in (small, large)], repeats)
        found[f"{place}, {device}{name}"] = [1e3 * seconds for seconds in times]

    if device == "cpu" or place != "device":
        add(", rows never touched before")
        if place == "mapped":  # would write all of the file
            return found, size
        take_up(large)
    add("")
    if device != "cpu" and place != "device":
        add(", prefetched", prefetch=True)
    return found, size


def compare(device: str) -> dict[str, Any]:
    """The large table's size, and its step against that of a smaller one."""
    found, size = measure("device", device)
    small, large = list(found.values())[-1]  # on a CPU, once the system has given out all memory
    detail = {name: {"ms": slow, "ms at 30,000": fast} for name, (fast, slow) in found.items()}
    return {"table_bytes": entry("table_bytes", size, {}), "table_ratio": entry("table_ratio", large / small, detail)}


def main() -> None:
    """Print the figures asked for."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        torch.set_num_threads(1)
    for place in sys.argv[1:] or ["device"]:
        found, size = measure(place, device)
        for name, (small, large) in found.items():
            times = f"{small:.3f} ms at {SMALL:,} samples, {large:.3f} ms at {LARGE:,}, ratio {large / small:.3f}"
            print(f"{name}: {times}; {size:.2f} GB")


if __name__ == "__main__":
    main()
