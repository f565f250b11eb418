"""The CIFAR-100 rule on a GPU: eager, and captured in a CUDA graph; and a thousand compiled steps on any device.

A step is softmax, rule, backward pass, and the update of duals and delta. It takes turns with the eager step by hand.
"""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import dualogic as dl
from dualogic_paper.speed.clock import median_seconds
from dualogic_paper.speed.hand import LongClauses
from dualogic_paper.speed.report import entry

BATCH, SAMPLES, REPEATS, THOUSAND = 128, 30_000, 400, 1000
SUPERCLASSES = torch.eye(20).repeat(5, 1)  # which of 20 superclasses each of 100 classes belongs to, ``(100, 20)``


def write_rule(membership: Tensor = SUPERCLASSES) -> dl.Formula:
    """The CIFAR-100 rule: each superclass has all of the mass or none."""
    mass = dl.var("p", 100) @ dl.constant("membership", membership)
    return ((mass == 0) | (mass == 1)).all()


class Setting:
    """A fresh rule, the by-hand one, and batches, on a device."""

    def __init__(self, device: str, batches: int = REPEATS) -> None:
        generator = torch.Generator().manual_seed(0)
        self.logic = dl.LogicLoss(write_rule(), num_samples=SAMPLES).to(device)
        self.hand = LongClauses(SAMPLES, 20, 2, device)
        self.membership = SUPERCLASSES.to(device)
        self.index = [torch.randperm(SAMPLES, generator=generator)[:BATCH].to(device) for _ in range(batches)]
        self.logits = (3 * torch.randn(batches, BATCH, 100, generator=generator)).to(device)

    def loss(self, index: Tensor, logits: Tensor) -> Tensor:
        """What is compiled or captured."""
        return self.logic(index, p=logits.softmax(-1))  # type: ignore[no-any-return]

    def by_hand(self, number: int) -> None:
        leaf = self.logits[number].detach().requires_grad_()
        total = leaf.softmax(-1) @ self.membership
        self.hand(self.index[number], torch.stack([total.abs(), (total - 1).abs()], 1)).backward()

    def eager(self, number: int) -> None:
        self.loss(self.index[number], self.logits[number].detach().requires_grad_()).backward()

    def compiled(self, mode: str | None) -> Callable[[int], None]:
        """A step whose forward and backward pass are compiled."""
        torch._dynamo.reset()
        function = torch.compile(self.loss, fullgraph=True, mode=mode)

        def step(number: int) -> None:
            function(self.index[number], self.logits[number].detach().requires_grad_()).backward()

        return step

    def captured(self) -> Callable[[int], None]:
        """A step replayed from a CUDA graph; the batch is copied to where the graph expects it."""
        index, logits = self.index[0].clone(), self.logits[0].clone().requires_grad_()
        graph = capture(lambda: self.loss(index, logits).backward(), lambda: setattr(logits, "grad", None))
        self.logic.reset_()

        def step(number: int) -> None:
            index.copy_(self.index[number])
            with torch.no_grad():
                logits.copy_(self.logits[number])
            graph.replay()

        return step

    def check(self) -> None:
        """The variant's duals and delta are those by hand."""
        self.hand.compare(self.logic, torch.cat(self.index).unique())


def capture(run: Callable[[], object], clear: Callable[[], object]) -> torch.cuda.CUDAGraph:
    """A CUDA graph of what ``run`` launches; ``clear`` drops gradients, so that the graph makes its own."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            clear()
            run()
    torch.cuda.current_stream().wait_stream(side)
    clear()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph


def profile(step: Callable[[int], None], steps: int, device: str) -> Any:
    """Some steps under the profiler, after a few that are not."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    activities = [torch.profiler.ProfilerActivity.CPU] + [torch.profiler.ProfilerActivity.CUDA] * (device == "cuda")
    for number in range(3):
        step(number)
    wait()
    with torch.profiler.profile(activities=activities) as found:
        for number in range(steps):
            step(number)
        wait()
    return found


def gpu_time(step: Callable[[int], None], steps: int = 20) -> tuple[float, float]:
    """Milliseconds of GPU work (kernels, copies, fills) and their number, per step, from the profiler."""
    work = device_work(profile(step, steps, "cuda"))
    if not work:
        raise RuntimeError("the profiler saw no work on the GPU")
    return sum(event.device_time for event in work) / steps / 1e3, len(work) / steps


def device_work(found: Any) -> list[Any]:
    """Events of work on the GPU; annotations span kernels on the device's time line and are no work of their own."""
    return [
        event
        for event in found.events()
        if event.device_type == torch.autograd.DeviceType.CUDA
        and not getattr(event, "is_user_annotation", False)
        and not event.name.startswith(("##", "Torch-Compiled", "ProfilerStep", "CompiledFunction", "Optimizer."))
    ]


def eager(device: str) -> dict[str, Any]:
    """The eager step against by hand."""
    setting = Setting(device)
    ours, hand = median_seconds([setting.eager, setting.by_hand], REPEATS)
    setting.check()
    detail = {"ms": 1e3 * ours, "ms by hand": 1e3 * hand}
    for name, step in (("", setting.eager), (" by hand", setting.by_hand)):
        detail[f"GPU ms{name}"], detail[f"kernels{name}"] = gpu_time(step)
    return {"rule_eager": entry("rule_eager", ours / hand, detail)}


def captured(device: str) -> dict[str, Any]:
    """The step captured in a CUDA graph against by hand, eager; and how long the GPU works for it."""
    setting = Setting(device)
    step = setting.captured()
    ours, hand = median_seconds([step, setting.by_hand], REPEATS)
    setting.check()
    spent, kernels = gpu_time(step)
    detail = {"ms": 1e3 * ours, "ms by hand": 1e3 * hand, "GPU ms": spent, "kernels": kernels}
    return {"rule_fastest": entry("rule_fastest", ours / hand, detail), "rule_gpu_time": entry("rule_gpu_time", spent, {})}


def watch(device: str, mode: str) -> None:
    """On a GPU: ``"error"`` if anything waits for it, from here on, or not, ``"default"``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a prototype feature, says torch
        if device == "cuda":
            torch.cuda.set_sync_debug_mode(mode)


def thousand(device: str) -> dict[str, Any]:
    """What interrupts a thousand compiled steps after the first five; ``fullgraph`` makes a graph break an error."""
    detail: dict[str, Any] = {}
    total = 0
    for mode in (None, "reduce-overhead") if device == "cuda" else (None,):
        setting = Setting(device, batches=50)
        step = setting.compiled(mode)
        counters = torch._dynamo.utils.counters
        counters.clear()
        for number in range(5):
            step(number)
        before = dict(counters["frames"]), counters["stats"]["unique_graphs"]
        interrupted = 0
        watch(device, "error")
        for number in range(THOUSAND):
            try:
                step(number % 50)
            except RuntimeError as error:
                if "synchroniz" not in str(error):
                    raise
                interrupted += 1
                detail["first synchronisation"] = str(error)[:500]
        watch(device, "default")
        breaks = sum(counters["graph_break"].values())
        frames, graphs = dict(counters["frames"]), counters["stats"]["unique_graphs"]
        again = max(frames.get("total", 0) - before[0].get("total", 0), graphs - before[1])
        found = {"steps": THOUSAND, "graphs": graphs, "graph breaks": breaks, "recompilations": again}
        if device == "cuda":
            found["synchronisations"] = interrupted
        detail[mode or "default"] = found
        total += breaks + again + interrupted
        if not graphs:
            raise RuntimeError(f"nothing was compiled: {found}")
    return {"compiled_steps": entry("compiled_steps", total, detail)}
