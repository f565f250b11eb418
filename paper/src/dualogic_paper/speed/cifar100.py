"""A training step on CIFAR-100 as the runner takes it: what bounds it, and how long it takes with each rule and without.

    python -m dualogic_paper.speed.cifar100                                   # all networks and methods, profile and times
    python -m dualogic_paper.speed.cifar100 --networks resnet50 --no-profile  # some; the file keeps the other networks
    python -m dualogic_paper.speed.cifar100 --smoke --networks vgg16          # tiny, on made-up images, on any machine

Steps are those of the runner's own ``Loop``, recorded as a CUDA graph. Methods take turns in blocks of steps; the median block
counts. The profile is of an eager step with ``dual``. Results go to ``results/benchmarks/cifar100.json``, where ``dualogic table
cifar100`` finds them; a variant of another commit is replaced.
"""

import argparse
import copy
import dataclasses
import functools
import gc
import json
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from lightning.fabric import Fabric

from dualogic_paper.origin import find_commit, shorten
from dualogic_paper.runner import Config, Machine
from dualogic_paper.runner.step import WARM_UP, Step
from dualogic_paper.runner.train import Loop
from dualogic_paper.speed import kernels
from dualogic_paper.speed.clock import summarise, time_in_turn
from dualogic_paper.speed.report import NETWORKS, RESULTS
from dualogic_paper.speed.rule import gpu_time
from dualogic_paper.speed.run import describe_machine
from dualogic_paper.tasks import CIFAR100

ARMS = ("none", "dl2", "pd1", "pd2", "uniform", "hard", "dual")
PROFILED = "dual"
ROUNDS, BLOCK, PROFILED_STEPS = 8, 5, 5
_load = functools.cache(CIFAR100.make_problem)


class Shared(CIFAR100):
    """The task with its data loaded once for all methods and networks."""

    def make_problem(self, seed: int, folder: Path | None, device: torch.device) -> Any:
        problem = copy.copy(_load(dataclasses.replace(self, model="vgg16"), seed, folder, device))
        problem.task = self
        return problem


class Steps:
    """The runner's steps of one method on one network."""

    def __init__(self, fabric: Any, task: CIFAR100, arm: str, machine: Machine, precision: Any) -> None:
        self.loop = Loop(fabric, Config(task, arm, precision=precision), machine, None)
        self.loop.network.train()
        self.batches = [part.to(fabric.device) for part in self.loop.batches.epoch(0)]

    def __call__(self, number: int) -> None:
        """As in training: captured where the runner captures."""
        self.loop.step(*self._batch(number))

    def eager(self, number: int) -> None:
        """The same step without a graph, and with the same optimizer; only before the first captured one."""
        Step.__call__(self.loop.step, *self._batch(number))

    def _batch(self, number: int) -> list[torch.Tensor]:
        return [part[number % len(part)] for part in self.batches]


def profile(steps: Steps, device: str, block: int) -> dict[str, Any]:
    """An eager step by kind of work; must come before the step is captured."""
    step = steps.loop.step
    plain = step.rule
    for number in range(WARM_UP):
        steps.eager(number)
    eager = statistics.median(time_in_turn({"": steps.eager}, 3, block, device)[""])
    step.rule = None if plain is None else kernels.mark(plain)
    try:
        ms, count = kernels.group(steps.eager, device, PROFILED_STEPS)
        step.rule = None  # counting sees every operation as Python, which fused rules are not made for
        flops = kernels.convolution_flops(lambda: steps.eager(0))
    finally:
        step.rule = plain
    return {"ms": ms, "kernels": count, "eager_ms": eager, "convolution_flops": flops}


def measure(task: CIFAR100, options: argparse.Namespace, device: str) -> tuple[dict[str, Any], int]:
    """Profile and times of one network; and the steps of an epoch."""
    fabric = Fabric(accelerator=device, devices=1, precision=options.precision)
    machine = Machine(accelerator=device, data=options.data)  # type: ignore[arg-type]
    steps = {arm: Steps(fabric, task, arm, machine, options.precision) for arm in options.arms}
    found: dict[str, Any] = {}
    if options.profile and PROFILED in steps:
        try:
            found["profile"] = profile(steps[PROFILED], device, options.block)
        except Exception as error:  # the times are worth having without it
            traceback.print_exc()
            found["profile"] = {"error": f"{type(error).__name__}: {error}"[:2000]}
    for arm in steps.values():
        for number in range(WARM_UP + 1):  # the last one is recorded
            arm(number)
    blocks = time_in_turn(steps, options.rounds, options.block, device)
    found["times"] = {arm: summarise(values, options.block) for arm, values in blocks.items()}
    if "ms" in found.get("profile", {}):
        captured = (found["times"][PROFILED]["ms"], gpu_time(steps[PROFILED], 10)[0]) if device == "cuda" else None
        found["profile"] = kernels.summarise(found["profile"], captured)
    for arm in steps.values():
        if arm.loop.logic is not None:
            arm.loop.logic.check()
    return found, next(iter(steps.values())).loop.batches.steps


def show(name: str, found: Mapping[str, Any], steps: int, variant: str) -> str:
    """The table of one network, for the terminal."""
    lines = [f"{NETWORKS[name]}, {variant}: ms / step, s / epoch ({steps} steps)"]
    times, profiled = {arm: timing["ms"] for arm, timing in found["times"].items()}, found.get("profile", {})
    lines += [f"  {arm:8s} {ms:9.3f} {ms * steps / 1e3:8.3f}" for arm, ms in times.items()]
    if profiled:
        lines.append(f"  {profiled['bound']}" if "bound" in profiled else f"  the profile failed: {profiled['error']}")
    return "\n".join(lines)


def store(path: Path, variant: str, machine: dict[str, Any], steps: int, name: str, found: dict[str, Any]) -> None:
    """Add one network to the file; what another commit or machine measured in the same variant goes."""
    content = json.loads(path.read_text()) if path.exists() else {"variants": {}}
    old = content["variants"].get(variant, {})
    same = all(old.get("machine", {}).get(key) == machine[key] for key in ("commit", "name", "torch"))
    networks = {**(old["networks"] if same else {}), name: found}
    ordered = {key: networks[key] for key in sorted(networks, key=list(CIFAR100.parts).index)}
    content["variants"][variant] = {"machine": machine, "steps_per_epoch": steps, "networks": ordered}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(shorten(content), indent=1) + "\n")


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=list(CIFAR100.parts), default=list(CIFAR100.parts))
    parser.add_argument("--arms", nargs="+", default=list(ARMS), help="methods whose steps are timed")
    parser.add_argument("--no-profile", dest="profile", action="store_false", help="times only")
    parser.add_argument("--precision", default="bf16-mixed", choices=("bf16-mixed", "32-true"))
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="blocks of steps of each method")
    parser.add_argument("--block", type=int, default=BLOCK, help="steps in a block")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--data", type=Path, help="folder of the data sets; the usual place by default")
    parser.add_argument("--smoke", action="store_true", help="tiny, on made-up images; for tests")
    parser.add_argument("--out", type=Path, default=RESULTS / "cifar100.json")
    return parser.parse_args(words)


def describe_command(options: argparse.Namespace) -> str:
    """What a reader types to measure again; where files lie does not matter to them."""
    words = ["python -m dualogic_paper.speed.cifar100"]
    for name, value in vars(options).items():
        if name in ("out", "data", "device") or value == getattr(parse([]), name):
            continue
        flag = "--no-profile" if name == "profile" else f"--{name}"
        words += [flag] if isinstance(value, bool) else [flag, *map(str, value if isinstance(value, list) else [value])]
    return " ".join(words)


def main(words: Sequence[str] | None = None) -> int:
    options = parse(words)
    started = time.perf_counter()
    if options.device == "cpu":
        torch.set_num_threads(1)
    else:
        torch.set_float32_matmul_precision("high")  # as the runner does
    variant = "captured" if options.device == "cuda" else "eager"
    machine = describe_machine(options.device, find_commit(), describe_command(options))
    print(json.dumps(machine, indent=2), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        # Times do not depend on the rate, and a small one keeps every method finite.
        task = Shared(learning_rate=1e-3)
        if options.smoke:
            options.data = Path(folder)
            task = task.make_smoke(options.data)  # type: ignore[assignment]
        for name in options.networks:
            begun = time.perf_counter()
            found, steps = measure(dataclasses.replace(task, model=name), options, options.device)
            found["seconds"] = time.perf_counter() - begun
            store(options.out, variant, machine, steps, name, found)
            print(f"{show(name, found, steps, variant)}\n  measured in {found['seconds']:.0f} s", flush=True)
            gc.collect()
            if options.device == "cuda":
                torch.cuda.empty_cache()
    print(f"written to {options.out.name} after {time.perf_counter() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
