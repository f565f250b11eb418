"""What the default of ``dual`` costs beside its former default and beside ``hard``: training steps in turn, on one thread.

    python -m dualogic_paper.speed.defaults

Three rules: ``P >> Q`` between two classes of ten (batch 64), the CIFAR-100 rule (batch 128), and 45 implications between 36
truth values (batch 100). Prints medians of the processor's time for a forward and a backward pass, and their ratios.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor

import dualogic as dl
from dualogic_paper.speed.clock import take_turns
from dualogic_paper.speed.rule import write_rule

STEPS, SAMPLES = 300, 3000
FORMER = dl.methods.Dual(implication="or", evidence=True, first="equal", step=0.7, floor=0.7, delta="mean", rules="sum")
METHODS = {"dual": "dual", "former default": FORMER, "hard": "hard"}

Case = tuple[dl.Formula | Mapping[str, dl.Formula], int, Callable[[], dict[str, Tensor]]]


def implication() -> Case:
    f, g = dl.categorical("f", 10, input="logits"), dl.categorical("g", 10, input="logits")
    return (g == 9) >> (f == 6), 64, lambda: {name: torch.randn(64, 10, requires_grad=True) for name in "fg"}


def superclasses() -> Case:
    return write_rule(), 128, lambda: {"p": torch.randn(128, 100).softmax(-1).requires_grad_()}


def many() -> Case:
    beliefs = [dl.boolean(f"b{number}", input="logits") for number in range(36)]
    rules = {f"r{number}": beliefs[number % 36] >> beliefs[(7 * number + 1) % 36] for number in range(45)}
    return rules, 100, lambda: {f"b{number}": torch.randn(100, requires_grad=True) for number in range(36)}


def measure(case: Case) -> dict[str, float]:
    """Microseconds of a step by method."""
    rules, batch, draw = case
    losses = {name: dl.LogicLoss(rules, SAMPLES, method) for name, method in METHODS.items()}
    drawn = [(torch.randint(0, SAMPLES, (batch,)), draw()) for _ in range(STEPS)]

    def take(logic: dl.LogicLoss, number: int) -> None:
        index, tensors = drawn[number]
        logic(index, **tensors).backward()

    found: dict[str, float] = take_turns({name: partial(take, logic) for name, logic in losses.items()}, STEPS)["us"]
    return found


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
