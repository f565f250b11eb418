"""One step of training: run as it stands, or recorded once as a CUDA graph and replayed; and a slow copy of the network."""

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from dualogic_paper.tasks.task import Problem

DECAY = 0.999


class Teacher(nn.Module):
    """An exponential average of a network's parameters; its norms go by the statistics of each batch.

    With averaged running statistics it would be unsure of nearly everything. :class:`torch.optim.swa_utils.AveragedModel` waits
    for the device at each update, which a recorded step cannot do.
    """

    def __init__(self, network: nn.Module, fabric: Any) -> None:
        super().__init__()
        self.copy = fabric.setup_module(copy.deepcopy(network).requires_grad_(False)).train()
        for module in self.copy.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.momentum = 0.0  # running statistics stay as they are
        self._mine: list[Tensor] = list(self.copy.parameters())
        self._theirs: list[Tensor] = list(network.parameters())

    def forward(self, inputs: Tensor) -> Tensor:
        """What the copy says, without a gradient."""
        with torch.no_grad():
            said: Tensor = self.copy(inputs)
            return said

    def follow(self) -> None:
        """Move towards the network."""
        with torch.no_grad():
            torch._foreach_lerp_(self._mine, self._theirs, 1 - DECAY)


WARM_UP = 3  # steps before recording, in which libraries choose and load their kernels


@dataclasses.dataclass(eq=False)
class Step:
    """Task loss plus rule, backward, and a step of the optimizer."""

    problem: Problem  # gives the losses
    network: nn.Module  # as Fabric wraps it
    optimizer: Any  # as Fabric wraps it
    rule: Callable[..., Tensor] | None  # the rule's loss from table rows and bound tensors; ``None`` without a rule
    backward: Callable[[Tensor], None]  # Fabric's
    labelled: Tensor  # numbers of the labelled samples, on the device
    pool: Tensor  # numbers of the samples that are rows of the table, on the device
    show_pool: bool = False  # the pool passes through the network even where no rule is taught
    teacher: Teacher | None = None  # follows the network after each step, and is believed while the rule is taught

    def __post_init__(self) -> None:
        self.active = self.rule is not None  # the rule is taught
        device = self.labelled.device
        self.totals = torch.zeros(2, dtype=torch.float64 if device.type == "cpu" else torch.float32, device=device)

    def __call__(self, chosen: Tensor, rows: Tensor) -> None:
        """Train on positions in the list of labelled samples and on rows of the table, ``(batch,)`` each, on the device."""
        self.optimizer.zero_grad(set_to_none=True)
        seen = self.pool[rows] if self.active or self.show_pool else None
        believed = self.teacher if self.active else None
        task_loss, bound = self.problem.outputs(self.network, self.labelled[chosen], seen, believed)
        loss, rule_loss = task_loss, torch.zeros_like(task_loss)
        if self.active and self.rule is not None:
            rule_loss = self.rule(rows, **bound)
            loss = task_loss + rule_loss
        self.backward(loss)
        self.optimizer.step()
        if self.teacher is not None:
            self.teacher.follow()
        self.totals += torch.stack([task_loss.detach(), rule_loss.detach()])

    def read(self, steps: int) -> tuple[float, float]:
        """The mean losses of task and rule since the last call; waits for the device."""
        task_loss, rule_loss = (self.totals / steps).tolist()
        self.totals.zero_()
        return task_loss, rule_loss


class CapturedStep(Step):
    """The same, recorded after a few steps; a replay costs one launch instead of some hundred."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._calls = {True: 0, False: 0}
        self._graphs: dict[bool, torch.cuda.CUDAGraph] = {}
        self._chosen = self._rows = torch.empty(0)

    def __call__(self, chosen: Tensor, rows: Tensor) -> None:
        self._calls[self.active] += 1
        if self._calls[self.active] <= WARM_UP:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                super().__call__(chosen, rows)
            torch.cuda.current_stream().wait_stream(stream)
            return
        if not self._graphs:
            self._chosen, self._rows = chosen.clone(), rows.clone()
        if self.active not in self._graphs:
            self.optimizer.zero_grad(set_to_none=True)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                super().__call__(self._chosen, self._rows)
            self._graphs[self.active] = graph
        self._chosen.copy_(chosen)
        self._rows.copy_(rows)
        self._graphs[self.active].replay()
