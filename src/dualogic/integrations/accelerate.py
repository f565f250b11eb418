"""Rules in a training loop with Hugging Face accelerate."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import torch

from dualogic.errors import MissingDataError, OptionError, needs
from dualogic.files import save_whole
from dualogic.integrations.common import check_processes, whole_state
from dualogic.loss import LogicLoss

with needs("accelerate", "dualogic.integrations.accelerate needs accelerate"):
    from accelerate import Accelerator


class Stateful(Protocol):
    """Something that a checkpoint can hold, such as a :class:`dualogic.data.Resumable` or a :class:`dualogic.data.IdMap`."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: Any) -> Any: ...


def attach(accelerator: Accelerator, logic: LogicLoss, *, file: str = "logic.pt", **others: Stateful) -> LogicLoss:
    """Let a loss take part in an accelerator's training: its device, its processes and its checkpoints.

    ``accelerator.save_state`` then also writes ``file``, whole or not at all, and ``accelerator.load_state`` reads it. The loss
    is not given to ``accelerator.prepare``: it has no parameters to wrap. Call it like any loss, and ``accelerator.backward`` on
    the sum; gradient accumulation, mixed precision and clipping do not touch the dual variables.

    For runs that go on exactly where they stopped, also in the middle of an epoch, give the prepared loader to
    :class:`dualogic.data.Resumable` and attach it: ``attach(accelerator, logic, loader=loader)``. In several processes each has
    a state of its own; ``accelerator.save_state`` is called by all of them.

    Args:
        accelerator: of the run.
        logic: the loss; with ``process_group="world"`` for several processes.
        file: its name in the folder of a checkpoint.
        others: further objects with ``state_dict()`` to keep with it, by name. They are loaded before the loss.

    Returns:
        The loss, on the accelerator's device.
    """
    check_processes(logic, accelerator.num_processes)
    logic = logic.to(accelerator.device)
    extra = f"{Path(file).stem}-rank{accelerator.process_index}{Path(file).suffix}"

    def save(models: Any, weights: Any, folder: str) -> None:
        # Parts of it are gathered from all processes; one of them writes.
        state = whole_state(logic)
        if accelerator.is_main_process:
            save_whole(state, Path(folder) / file)
        if others:
            save_whole({name: value.state_dict() for name, value in others.items()}, Path(folder) / extra)

    def load(models: Any, folder: str) -> None:
        saved = _load(Path(folder) / extra) if others else {}
        if missing := [name for name in others if name not in saved]:
            raise OptionError(f"{folder} has no state of {missing[0]!r}; it was saved with {', '.join(saved)} attached")
        for name, value in others.items():
            value.load_state_dict(saved[name])
        logic.load_state_dict(_load(Path(folder) / file))

    accelerator.register_save_state_pre_hook(save)
    accelerator.register_load_state_pre_hook(load)
    return logic


def _load(path: Path) -> Any:
    if not path.exists():
        raise MissingDataError(f"{path.parent} has no {path.name}: it was saved by a run without dualogic's attach, or in part")
    return torch.load(path, map_location="cpu", weights_only=True)
