"""What a monitor costs: training steps with one against the same without, in turn, on one thread.

    python -m dualogic_paper.speed.monitor

Two cases: the demo's network on the embedded digits (batch 70), and the loss of the CIFAR-100 rule alone, batch 128.
"""

from collections.abc import Callable

import torch
from torch.nn.functional import cross_entropy

import dualogic as dl
from dualogic.demo import RULE, load_split, make_network, rotate
from dualogic_paper.speed.clock import take_turns
from dualogic_paper.speed.rule import write_rule

STEPS, ROUNDS = 100, 15


def watch(rule: dl.Formula, samples: int, every: int | None) -> dl.LogicLoss:
    """A loss, with a monitor if asked for."""
    logic = dl.LogicLoss(rule, num_samples=samples)
    if every is not None:
        dl.Monitor(logic, every, warn=False)
    return logic


def digits(every: int | None) -> Callable[[int], None]:
    """Steps of the demo."""
    split, network, generator = load_split("mixed", seed=0), make_network(0), torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    logic = watch(RULE, len(split.pool), every)

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


def alone(every: int | None) -> Callable[[int], None]:
    """Steps of the loss without a network."""
    logic, generator = watch(write_rule(), 10_000, every), torch.Generator().manual_seed(0)
    logits = torch.randn(128, 100).requires_grad_()

    def steps(number: int) -> None:
        for _ in range(STEPS):
            logits.grad = None
            logic(torch.randint(10_000, (128,), generator=generator), p=logits.softmax(-1)).backward()

    return steps


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    for name, make in (("digits with their network", digits), ("superclasses, the loss alone", alone)):
        times = take_turns({f"every={every}": make(every) for every in (None, 100, 10)}, ROUNDS)["us"]
        plain = times.pop("every=None")
        ratios = ", ".join(f"{every}: {value / plain:.3f}" for every, value in times.items())
        print(f"{name}: {1e-3 * plain / STEPS:.2f} ms a step; ratio with a monitor, {ratios}")


if __name__ == "__main__":
    main()
