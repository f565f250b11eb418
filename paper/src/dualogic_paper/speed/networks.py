"""Networks on CIFAR-100 shapes with and without the rule: what a training step pays for it.

Both steps compute the same forward pass over 128 labelled and 128 unlabelled images under bfloat16 autocast, channels last, and
the same cross entropy on the labelled ones; one adds the rule on the unlabelled outputs. They alternate in one run, and CUDA
events around each step give the median of 200.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from dualogic_paper.models import NETWORKS
from dualogic_paper.speed.report import entry
from dualogic_paper.speed.rule import SAMPLES, Setting, capture

LABELLED, UNLABELLED, STEPS, WARM = 128, 128, 200, 20


class Training:
    """A network, a batch on the device, and the rule."""

    def __init__(self, name: str) -> None:
        torch.manual_seed(0)
        self.network = NETWORKS[name](100).cuda().to(memory_format=torch.channels_last).train()
        images = torch.randn(LABELLED + UNLABELLED, 3, 32, 32, device="cuda")
        self.images = images.contiguous(memory_format=torch.channels_last)
        self.labels = torch.randint(100, (LABELLED,), device="cuda")
        self.logic: nn.Module = Setting("cuda", batches=1).logic
        self.index = torch.randperm(SAMPLES, device="cuda")[:UNLABELLED]

    def clear(self) -> None:
        self.network.zero_grad(set_to_none=True)

    def step(self, rule: Callable[..., Tensor] | None) -> None:
        """Forward and backward; gradients were cleared before."""
        # A cache of cast weights would tie a captured graph to the step in which it was filled.
        with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
            logits = self.network(self.images)
            loss = nn.functional.cross_entropy(logits[:LABELLED], self.labels)
            if rule is not None:
                loss = loss + rule(self.index, p=logits[LABELLED:].softmax(-1))
        loss.backward()

    def eager(self, rule: Callable[..., Tensor] | None) -> Callable[[], None]:
        def run() -> None:
            self.clear()
            self.step(rule)

        return run

    def captured(self, rule: Callable[..., Tensor] | None) -> Callable[[], None]:
        return capture(lambda: self.step(rule), self.clear).replay


def paired(with_rule: Callable[[], None], without: Callable[[], None]) -> tuple[float, float]:
    """Median milliseconds of both, taking turns at going first."""
    events: dict[Callable[[], None], list[tuple[torch.cuda.Event, torch.cuda.Event]]] = {with_rule: [], without: []}
    for number in range(WARM + STEPS):
        for run in (with_rule, without) if number % 2 else (without, with_rule):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            run()
            end.record()
            events[run].append((start, end))
    torch.cuda.synchronize()
    first, second = (statistics.median(start.elapsed_time(end) for start, end in pairs[WARM:]) for pairs in events.values())
    return first, second


def compare(name: str) -> dict[str, Any]:
    """A network eagerly, eagerly with the rule compiled, and with both steps as CUDA graphs; the best ratio counts."""
    torch.backends.cudnn.benchmark = True
    detail: dict[str, Any] = {}
    ratios: dict[str, float] = {}

    def measure(how: str, make: Callable[[Training], tuple[Callable[[], None], Callable[[], None]]]) -> None:
        try:
            training = Training(name)  # held here: a graph knows addresses only
            ours, plain = paired(*make(training))
            ratios[how] = ours / plain
            detail[how] = {"ratio": ours / plain, "ms": ours, "ms without rule": plain}
        except Exception as error:
            detail[how] = {"error": f"{type(error).__name__}: {error}"[:2000]}
        print(f"    {how}: {detail[how]}", flush=True)

    def compiled(training: Training) -> tuple[Callable[[], None], Callable[[], None]]:
        torch._dynamo.reset()
        rule = torch.compile(training.logic, fullgraph=True, mode="reduce-overhead")
        return training.eager(rule), training.eager(None)

    measure("eager", lambda training: (training.eager(training.logic), training.eager(None)))
    measure("rule compiled", compiled)
    measure("both captured", lambda training: (training.captured(training.logic), training.captured(None)))
    if not ratios:
        raise RuntimeError(f"no variant worked: {detail}")
    best = min(ratios, key=ratios.__getitem__)
    return {f"network_{name}": entry(f"network_{name}", ratios[best], {"how": best, **detail})}
