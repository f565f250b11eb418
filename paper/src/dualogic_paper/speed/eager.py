"""What a rule costs in an ordinary training loop on a GPU: steps with it and without, eager and captured as a whole.

    python -m dualogic_paper.speed.eager                                # three networks
    python -m dualogic_paper.speed.eager --networks vgg16 --rounds 50   # one, more exactly

A step is the forward pass over 128 labelled and 128 unlabelled images under bfloat16 autocast, channels last, cross entropy on
the labelled ones, the backward pass and a step of SGD; ``none`` ends there, the others add a rule on the unlabelled outputs. All
take turns in blocks of steps, the order turning round each time; the median block counts. ``recorded`` is an ordinary
``LogicLoss``, ``plain`` one with ``capture=False``; in ``whole`` the entire step is a CUDA graph, with the rule and without.
Results are printed and written as JSON, with the machine.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import dualogic as dl
from dualogic_paper.models import NETWORKS
from dualogic_paper.speed.report import RESULTS
from dualogic_paper.speed.rule import capture
from dualogic_paper.speed.run import describe_machine
from dualogic_paper.speed.turns import summarise, time_in_turn
from dualogic_paper.tasks.cifar100 import NAMES, make_mass, write_rules

MEASURED = ("vgg16", "resnet50", "densenet100")
FORMS = ("published", "each")
BATCH, SAMPLES, BATCHES = 128, 30_000, 16
ROUNDS, BLOCK = 24, 4


class Loop:
    """One network that all steps of it share, with their batches.

    Args:
        name: of the network.
        device: where it trains.
        size: labelled images in a batch, and as many unlabelled ones.
    """

    def __init__(self, name: str, device: str, size: int) -> None:
        torch.manual_seed(0)
        self.device, self.size = device, size
        self.network: nn.Module = NETWORKS[name](100).to(device).to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=1e-3, momentum=0.9)
        images = torch.randn(BATCHES, 2 * size, 3, 32, 32, device=device)
        self.images = [each.contiguous(memory_format=torch.channels_last) for each in images]
        self.labels = torch.randint(100, (BATCHES, size), device=device)
        self.index = torch.stack([torch.randperm(SAMPLES)[:size] for _ in range(BATCHES)]).to(device)

    def step(self, number: int, logic: dl.LogicLoss | None) -> None:
        """Forward, backward, update; gradients were cleared before."""
        place = number % BATCHES
        # A cache of cast weights would tie a captured step to the one in which it was filled.
        with torch.autocast(self.device, torch.bfloat16, cache_enabled=False):
            logits = self.network(self.images[place])
            loss = functional.cross_entropy(logits[: self.size], self.labels[place])
            if logic is not None:
                loss = loss + logic(self.index[place], p=logits[self.size :])
        loss.backward()
        self.optimizer.step()

    def eager(self, logic: dl.LogicLoss | None) -> Callable[[int], None]:
        def run(number: int) -> None:
            self.optimizer.zero_grad(set_to_none=True)
            self.step(number, logic)

        return run

    def whole(self, logic: dl.LogicLoss | None) -> Callable[[int], None]:
        """The same step captured, always with the first batch: copies of inputs are not what is measured."""
        graph = capture(lambda: self.step(0, logic), lambda: self.optimizer.zero_grad(set_to_none=True))
        return lambda number: graph.replay()


def make_logic(form: str, device: str, captured: bool) -> dl.LogicLoss:
    """The rule of CIFAR-100 in one of its forms; any twenty groups of five classes will do."""
    rules = write_rules(make_mass(torch.arange(100) // 5), form, NAMES)
    return dl.LogicLoss(rules, SAMPLES, capture=captured).to(device)


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of a step of one network, and ratios to the step without a rule."""
    loop = Loop(name, options.device, options.batch)
    losses = {
        f"{form}, {how}": make_logic(form, options.device, how == "recorded") for form in FORMS for how in ("recorded", "plain")
    }
    steps = {"none": loop.eager(None), **{key: loop.eager(logic) for key, logic in losses.items()}}
    found = take_turns(steps, options, "none")
    if options.device == "cuda":
        captured = {"none, whole": loop.whole(None)}
        for form in FORMS:
            losses[f"{form}, whole"] = logic = make_logic(form, options.device, False)
            captured[f"{form}, whole"] = loop.whole(logic)
        found |= take_turns(captured, options, "none, whole")
    for logic in losses.values():
        logic.check()
    return found


def take_turns(steps: Mapping[str, Callable[[int], None]], options: argparse.Namespace, base: str) -> dict[str, Any]:
    """Times of steps, and their ratios to one of them: medians over the ratios of blocks of one round."""
    for step in steps.values():
        for number in range(8):
            step(number)
    blocks = time_in_turn(steps, options.rounds, options.block, options.device)
    found = {key: summarise(values, options.block) for key, values in blocks.items()}
    for key, values in blocks.items():
        found[key]["ratio"] = statistics.median(ours / plain for ours, plain in zip(values, blocks[base], strict=True))
    return found


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=list(NETWORKS), default=list(MEASURED))
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="blocks of steps of each kind")
    parser.add_argument("--block", type=int, default=BLOCK, help="steps in a block")
    parser.add_argument("--batch", type=int, default=BATCH, help="labelled images, and as many unlabelled ones")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=RESULTS / "eager.json")
    options = parser.parse_args(words)
    torch.set_float32_matmul_precision("high")  # as the runner does
    machine = describe_machine(options.device, None, None)
    machine["command"] = "python -m dualogic_paper.speed.eager"
    content: dict[str, Any] = {"machine": machine, "batch": options.batch, "networks": {}}
    for name in options.networks:
        start = time.perf_counter()
        found = measure(name, options)
        content["networks"][name] = found
        print(f"{name}: {time.perf_counter() - start:.0f} s")
        for key, timing in found.items():
            print(f"  {key:20s} {timing['ms']:8.3f} ms {timing['ratio']:7.3f}", flush=True)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(content, indent=1) + "\n")
        gc.collect()
        if options.device == "cuda":
            torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
