"""What the default of ``dual`` costs beside its former default and beside ``hard``: training steps in turn, on one thread.

    python -m dualogic_paper.speed.defaults

Three rules: ``P >> Q`` between two classes of ten (batch 64), the CIFAR-100 rule (batch 128), and 45 implications between 36
truth values (batch 100). Prints medians of the processor's time for a forward and a backward pass, and their ratios.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

import dualogic as dl

STEPS, SAMPLES = 300, 3000
FORMER = dl.methods.Dual(implication="or", evidence=True, first="equal", step=0.7, floor=0.7, delta="mean", rules="sum")
METHODS = {"dual": "dual", "former default": FORMER, "hard": "hard"}

Case = tuple[dl.Formula | Mapping[str, dl.Formula], int, Callable[[], dict[str, Tensor]]]


def implication() -> Case:
    f, g = dl.categorical("f", 10, input="logits"), dl.categorical("g", 10, input="logits")
    return (g == 9) >> (f == 6), 64, lambda: {name: torch.randn(64, 10, requires_grad=True) for name in "fg"}


def superclasses() -> Case:
    membership = torch.zeros(100, 20)
    membership[torch.arange(100), torch.arange(100) % 20] = 1.0
    s = dl.var("p", 100) @ membership
    return ((s == 0) | (s == 1)).all(), 128, lambda: {"p": torch.randn(128, 100).softmax(-1).requires_grad_()}


def many() -> Case:
    beliefs = [dl.boolean(f"b{number}", input="logits") for number in range(36)]
    rules = {f"r{number}": beliefs[number % 36] >> beliefs[(7 * number + 1) % 36] for number in range(45)}
    return rules, 100, lambda: {f"b{number}": torch.randn(100, requires_grad=True) for number in range(36)}


def measure(case: Case) -> dict[str, float]:
    """Microseconds of a step by method."""
    rules, batch, draw = case
    losses = {name: dl.LogicLoss(rules, SAMPLES, method) for name, method in METHODS.items()}
    times: dict[str, list[float]] = {name: [] for name in losses}
    for _ in range(STEPS):
        index, tensors = torch.randint(0, SAMPLES, (batch,)), draw()
        for name, logic in losses.items():
            started = time.process_time()
            logic(index, **tensors).backward()
            times[name].append(time.process_time() - started)
    return {name: 1e6 * statistics.median(found[STEPS // 6 :]) for name, found in times.items()}


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for name, case in (("P >> Q", implication()), ("CIFAR-100 rule", superclasses()), ("45 implications", many())):
        found = measure(case)
        print(name, ", ".join(f"{method} {value:.0f} us" for method, value in found.items()))
        ratios = (f"{found['dual'] / found[other]:.2f} of {other}" for other in ("former default", "hard"))
        print(f"    dual: {', '.join(ratios)}")


if __name__ == "__main__":
    main()
