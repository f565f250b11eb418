"""Where the time of a training step goes: kernels of an eager step by what they are for, and what bounds the step.

A kernel belongs to the rule if the operation that launched it, or its forward operation, ran within the range ``RULE``.
"""

import collections
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.profiler import record_function
from torch.utils.flop_counter import FlopCounterMode

from dualogic_paper.speed.rule import device_work, profile

RULE = "dualogic rule"
OPTIMIZER, CONVOLUTION, BATCH_NORM, PRODUCT = "optimizer", "convolution", "batch norm", "matrix product"
REST, UNKNOWN = "elementwise and memory", "not attributed"
MEMORY_BOUND = (BATCH_NORM, REST, OPTIMIZER)
WORDS = {  # in names of operations or kernels, in lower case; the first that fits counts
    **dict.fromkeys(("optimizer.", "multi_tensor_apply"), OPTIMIZER),
    "convolution": CONVOLUTION,
    **dict.fromkeys(("batch_norm", "batchnorm"), BATCH_NORM),
    **dict.fromkeys(("aten::mm", "addmm", "bmm", "gemm"), PRODUCT),
}
BACKWARD = 1  # the profiler's scope of backward functions
BUSY = 0.9  # a device that works for a larger share of a step is what bounds it
Step = Callable[[int], None]


def mark(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule, visible to the profiler."""

    def call(*arguments: Any, **bound: Any) -> Any:
        with record_function(RULE):
            return rule(*arguments, **bound)

    return call


def group(step: Step, device: str, steps: int) -> tuple[dict[str, float], float]:
    """Milliseconds of one eager step by kind of work, and the number of kernels; on a CPU, of operations."""
    profiled = profile(step, steps, device)
    events = [event for event in profiled.events() if event.device_type == torch.autograd.DeviceType.CPU]
    found, count = attribute(events, device)
    if device == "cuda":
        whole = [event for event in device_work(profiled) if event.name != RULE]
        found[UNKNOWN], count = max(0.0, sum(event.device_time for event in whole) - sum(found.values())), len(whole)
    return {kind: value / steps / 1e3 for kind, value in found.most_common()}, count / steps


def attribute(events: list[Any], device: str) -> tuple[collections.Counter[str], int]:
    """Microseconds by kind of work, and the number of pieces: kernels that operations launched, or on a CPU the operations."""
    of_the_rule = _numbers_of_the_rule(events)
    found: collections.Counter[str] = collections.Counter()
    count = 0
    for event in events:
        if device == "cuda":  # a range has a kernel of its own name, which spans others
            work = [(kernel.name, kernel.duration) for kernel in event.kernels if kernel.name != event.name]
        else:
            work = [(event.name, event.self_cpu_time_total)]
        for name, microseconds in work:
            found[_kind(event, name, of_the_rule)] += microseconds
            count += 1
    return found, count


def convolution_flops(run: Callable[[], object]) -> float:
    """Floating-point operations of all convolutions in what is run, backward passes included."""
    with FlopCounterMode(display=False) as counter:
        run()
    return float(sum(value for name, value in counter.get_flop_counts()["Global"].items() if "convolution" in str(name)))


def summarise(raw: Mapping[str, Any], captured: tuple[float, float] | None) -> dict[str, Any]:
    """What is kept of a profile of an eager step, and of the milliseconds and busy milliseconds of a captured one."""
    ms = raw["ms"]
    total = sum(ms.values())
    found = {
        **raw,
        "device_ms": total,
        "share": {kind: value / total for kind, value in ms.items()},
        "memory_bound_share": sum(ms.get(kind, 0.0) for kind in MEMORY_BOUND) / total,
        "eager_busy": min(1.0, total / raw["eager_ms"]),
    }
    if "convolution_flops" in raw and ms.get(CONVOLUTION):
        found["convolution_tflops"] = raw["convolution_flops"] / ms[CONVOLUTION] / 1e9
    if captured is not None:
        whole, busy = captured
        found |= {"captured_ms": whole, "captured_device_ms": busy, "captured_busy": min(1.0, busy / whole)}
    return {**found, "bound": describe(found)}


def describe(found: Mapping[str, Any]) -> str:
    """In words, what bounds a step.

    >>> share = {"convolution": 0.3, "batch norm": 0.4, "elementwise and memory": 0.25, "optimizer": 0.04, "dualogic rule": 0.01}
    >>> describe({"share": share, "memory_bound_share": 0.69, "eager_busy": 0.5, "eager_ms": 30.0, "captured_busy": 0.98,
    ...           "captured_ms": 15.0}).partition(":")[0]
    'bound by memory traffic'
    """
    share = found["share"]
    memory, convolution = found["memory_bound_share"], share.get(CONVOLUTION, 0.0)
    busiest = found.get("captured_busy", found["eager_busy"])
    by = "launches" if busiest < BUSY else "memory traffic" if memory > convolution else "convolutions"
    words = f"bound by {by}: {', '.join(MEMORY_BOUND)} take {memory:.1%} of the kernels' time, convolutions {convolution:.1%}"
    if "convolution_tflops" in found:
        words += f" (at {found['convolution_tflops']:.0f} TFLOP/s)"
    words += f", the rule {share.get(RULE, 0.0):.2%}; the device works {found['eager_busy']:.0%} of an eager step "
    words += f"({found['eager_ms']:.1f} ms)"
    if "captured_busy" in found:
        words += f" and {found['captured_busy']:.0%} of a captured one ({found['captured_ms']:.1f} ms)"
    return words.replace("%", " %")


def _lineage(event: Any) -> Iterator[Any]:
    while event is not None:
        yield event
        event = event.cpu_parent


def _numbers_of_the_rule(events: list[Any]) -> set[int]:
    """Sequence numbers of forward operations within the rule; their backward passes carry the same."""
    numbers: dict[int, list[int]] = {}
    for event in events:
        root = next((parent for parent in _lineage(event) if parent.name == RULE), None)
        if root is not None and event.sequence_nr >= 0:
            numbers.setdefault(id(root), []).append(event.sequence_nr)
    return {number for found in numbers.values() for number in range(min(found), max(found) + 1)}


def _kind(event: Any, kernel: str, of_the_rule: set[int]) -> str:
    lineage = list(_lineage(event))
    if any(parent.name == RULE or (parent.scope == BACKWARD and parent.sequence_nr in of_the_rule) for parent in lineage):
        return RULE
    names = [parent.name.lower() for parent in lineage] + [kernel.lower()]
    return next((kind for word, kind in WORDS.items() if any(word in name for name in names)), REST)
