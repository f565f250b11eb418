"""What a monitor costs: a training step of the demo (embedded digits, batch 70) with one against a step without, in turn."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import cross_entropy

import dualogic as dl
from dualogic.demo import RULE, load_split, make_network, rotate
from dualogic_paper.speed.clock import take_turns
from dualogic_paper.speed.report import entry, show_number

STEPS, ROUNDS = 100, 15


def make_steps(every: int | None) -> Callable[[int], None]:
    """A function that makes 100 steps, watched by a monitor that looks at one in ``every``."""
    split, network, generator = load_split("mixed", seed=0), make_network(0), torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    logic = dl.LogicLoss(RULE, num_samples=len(split.pool))
    if every is not None:
        dl.Monitor(logic, every, warn=False)

    def steps(number: int) -> None:
        for _ in range(STEPS):
            chosen = torch.randint(len(split.labelled), (64,), generator=generator)
            index = torch.randint(len(split.pool), (70,), generator=generator)
            pool = split.pool[index]
            logits, f, g = network(torch.cat([split.labelled[chosen], pool, rotate(pool)])).split([64, 70, 70])
            loss = cross_entropy(logits, split.labels[chosen]) + logic(index, f=f, g=g)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return steps


def compare(device: str) -> dict[str, Any]:
    """A look every 100 steps, and every 10."""
    found = take_turns({str(every): make_steps(every) for every in (None, 100, 10)}, ROUNDS)
    rare, often = (found["us"][every] / found["us"]["None"] for every in ("100", "10"))
    return {"monitor": entry("monitor", rare, {"how": f"{show_number(often)} with `every=10`", **found})}
