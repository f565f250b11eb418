"""What a rule costs in an ordinary training loop on a GPU: steps with it and without, eager and captured as a whole.

A step is the forward pass over 128 labelled and 128 unlabelled images under bfloat16 autocast, channels last, cross entropy on
the labelled ones, the rule on the others, the backward pass and a step of SGD. ``recorded`` is an ordinary ``LogicLoss``,
``plain`` one with ``capture=False``; in ``whole`` the entire step is a CUDA graph, with the rule and without. ``other`` has a
mean square of the others' logits in the place of the rule: what the smallest second loss costs.
"""

import statistics
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import dualogic as dl
from dualogic_paper.models.convolutional import NETWORKS
from dualogic_paper.speed.clock import summarise, time_in_turn
from dualogic_paper.speed.report import entry, show_number
from dualogic_paper.speed.rule import capture
from dualogic_paper.tasks.cifar100 import NAMES, make_mass, write_rules

FORMS = ("published", "each")
BATCH, SAMPLES, BATCHES = 128, 30_000, 16
ROUNDS, BLOCK = 24, 4
Other = Callable[..., torch.Tensor]  # a loss of the unlabelled images, from their numbers and logits
SQUARE: Other = lambda index, p: p.float().square().mean()  # noqa: E731


class Loop:
    """One network that all steps of it share, with their batches of ``size`` labelled images and as many unlabelled ones."""

    def __init__(self, name: str, device: str, size: int) -> None:
        torch.manual_seed(0)
        self.device, self.size = device, size
        self.network: nn.Module = NETWORKS[name](100).to(device).to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=1e-3, momentum=0.9)
        images = torch.randn(BATCHES, 2 * size, 3, 32, 32, device=device)
        self.images = [each.contiguous(memory_format=torch.channels_last) for each in images]
        self.labels = torch.randint(100, (BATCHES, size), device=device)
        self.index = torch.stack([torch.randperm(SAMPLES)[:size] for _ in range(BATCHES)]).to(device)

    def step(self, number: int, other: Other | None) -> None:
        """Forward, backward, update; gradients were cleared before."""
        place = number % BATCHES
        # A cache of cast weights would tie a captured step to the one in which it was filled.
        with torch.autocast(self.device, torch.bfloat16, cache_enabled=False):
            logits = self.network(self.images[place])
            loss = functional.cross_entropy(logits[: self.size], self.labels[place])
            if other is not None:
                loss = loss + other(self.index[place], p=logits[self.size :])
        loss.backward()
        self.optimizer.step()

    def eager(self, other: Other | None) -> Callable[[int], None]:
        def run(number: int) -> None:
            self.optimizer.zero_grad(set_to_none=True)
            self.step(number, other)

        return run

    def whole(self, other: Other | None) -> Callable[[int], None]:
        """The same step captured, always with the first batch: copies of inputs are not what is measured."""
        graph = capture(lambda: self.step(0, other), lambda: self.optimizer.zero_grad(set_to_none=True))
        return lambda number: graph.replay()


def make_logic(form: str, device: str, captured: bool) -> dl.LogicLoss:
    """The rule of CIFAR-100 in one of its forms; any twenty groups of five classes will do."""
    rules = write_rules(make_mass(torch.arange(100) // 5), form, NAMES)
    return dl.LogicLoss(rules, SAMPLES, capture=captured).to(device)


def compare(name: str, device: str) -> dict[str, Any]:
    """What the published rule costs in an eager loop, and where the whole step is captured; other forms stand in the details."""
    torch.set_float32_matmul_precision("high")  # as the runner does
    found = measure(name, device, rounds=4 * ROUNDS if name == "vgg16" else ROUNDS)  # its steps are short
    shown = {key: show_number(found[key]["ratio"]) for key in ("published, plain", "other", "other, whole")}
    how = f"{shown['published, plain']} with `capture=False`; {shown['other']} with another loss in the rule's place"
    return {
        f"eager_{name}": entry(f"eager_{name}", found["published, recorded"]["ratio"], {"how": how, **found}),
        f"network_{name}": entry(
            f"network_{name}", found["published, whole"]["ratio"], {"how": f"{shown['other, whole']} with another loss", **found}
        ),
    }


def measure(name: str, device: str, batch: int = BATCH, rounds: int = ROUNDS, block: int = BLOCK) -> dict[str, Any]:
    """Milliseconds of a step of one network, and ratios to the step without a rule; on a CPU nothing is captured."""
    loop = Loop(name, device, batch)
    losses = {f"{form}, {how}": make_logic(form, device, how == "recorded") for form in FORMS for how in ("recorded", "plain")}
    steps = {"none": loop.eager(None), "other": loop.eager(SQUARE), **{key: loop.eager(logic) for key, logic in losses.items()}}
    found = take_turns(steps, "none", device, rounds, block)
    if device == "cuda":
        captured = {"none, whole": loop.whole(None), "other, whole": loop.whole(SQUARE)}
        for form in FORMS:
            losses[f"{form}, whole"] = logic = make_logic(form, device, False)
            captured[f"{form}, whole"] = loop.whole(logic)
        found |= take_turns(captured, "none, whole", device, rounds, block)
    for logic in losses.values():
        logic.check()
    return found


def take_turns(steps: Mapping[str, Callable[[int], None]], base: str, device: str, rounds: int, block: int) -> dict[str, Any]:
    """Times of steps, and their ratios to one of them: medians over the ratios of blocks of one round."""
    for step in steps.values():
        for number in range(8):
            step(number)
    blocks = time_in_turn(steps, rounds, block, device)
    found = {key: summarise(values, block) for key, values in blocks.items()}
    for key, values in blocks.items():
        found[key]["ratio"] = statistics.median(ours / plain for ours, plain in zip(values, blocks[base], strict=True))
    return found
