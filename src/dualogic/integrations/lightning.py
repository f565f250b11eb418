"""Rules in Lightning's ``Trainer``."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from dualogic.data.resumable import Resumable, get_random_state, set_random_state
from dualogic.errors import StateError, needs
from dualogic.integrations.common import Count, check_processes
from dualogic.loss import LogicLoss
from dualogic.loss.beliefs import first_view
from dualogic.report import Recorder

with needs("lightning", "dualogic.integrations.lightning needs lightning"):
    from lightning.pytorch import Callback, LightningModule, Trainer


class LogicCallback(Callback):
    """Looks after every ``LogicLoss`` of a ``LightningModule``.

    The loss itself is an attribute of the module, called in ``training_step`` like any other loss (with ``index``) and in
    ``validation_step`` (without). Being part of the module, its duals and ``delta`` are in every checkpoint. This callback

    - logs each rule's cost and ``delta`` in training, and the fraction of validation samples on which it holds
      (``logic/satisfied/NAME``), from the tensors that ``validation_step`` gives to the loss;
    - refuses to train in several processes with a loss that knows of one (give it ``process_group="world"``);
    - keeps the random numbers that validation draws from changing training. With a train loader in
      :class:`dualogic.data.Resumable`, a run that was stopped after any step goes on as if it had not been. (In several
      processes, give such a loader its ``DistributedSampler`` yourself.)

    Args:
        prefix: of the logged names; with several losses, the name of the attribute comes after it.
        tol: for satisfaction; see :meth:`dualogic.Formula.satisfied`.
        lead: likewise.
        events: a folder for TensorBoard events: what is logged at each validation, and histograms of the weights. Off by default.
        record: a folder for ``dualogic report``; see :class:`dualogic.Recorder`. With several losses, each has a folder in it.
            After the training ``recorders`` has them, for their ``diagnose(...)`` with pictures or texts. Off by default.
    """

    def __init__(
        self,
        prefix: str = "logic",
        *,
        tol: float = 0.0,
        lead: float = 0.0,
        events: str | Path | None = None,
        record: str | Path | None = None,
    ) -> None:
        self.prefix = prefix
        self.tol, self.lead = tol, lead
        self.events = events
        self.record = record
        self.recorders: dict[str, Recorder] = {}
        self._losses: dict[str, LogicLoss] = {}
        self._counts: dict[str, Count] = {}
        self._hooks = contextlib.ExitStack()
        self._random: dict[str, Any] | None = None
        self._loaders: list[dict[str, Any]] = []
        self._writer: Any = None

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Find the losses."""
        found = {name: module for name, module in pl_module.named_modules() if isinstance(module, LogicLoss)}
        if not found:
            raise StateError(
                f"LogicCallback found no LogicLoss in {type(pl_module).__name__}; make one an attribute in its __init__, as in "
                f"self.logic = dl.LogicLoss(rule, num_samples=len(data))"
            )
        for logic in found.values():
            check_processes(logic, trainer.world_size if stage == "fit" else 1)
        alone = len(found) == 1
        self._losses = {self.prefix if alone else f"{self.prefix}/{name}": logic for name, logic in found.items()}

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin to record."""
        if self.record is None or not trainer.is_global_zero:
            return
        options: dict[str, Any] = {"tol": self.tol, "lead": self.lead, "epochs_done": trainer.current_epoch}
        for prefix, logic in self._losses.items():
            folder = Path(self.record) / prefix.removeprefix(self.prefix).strip("/").replace("/", "-")
            self.recorders[prefix] = Recorder(folder, logic, title=type(pl_module).__name__, **options).open()

    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Remember where the loaders were."""
        self._loaders = checkpoint.get("loops", {}).get("fit_loop", {}).get("state_dict", {}).get("combined_loader", [])

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Put the loaders there: from a checkpoint that was written at the end of an epoch Lightning does not."""
        loaders = [loader for loader in tree_leaves(trainer.train_dataloader) if hasattr(loader, "load_state_dict")]
        for loader, state in zip(loaders, self._loaders):
            if isinstance(loader, Resumable) and not state["done"]:
                loader.load_state_dict(state)

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Log what the latest batch cost; nothing waits for the device."""
        # A validation's loader draws before any hook of the validation is called.
        period = trainer.val_check_batch
        if trainer.fit_loop.epoch_loop.batch_progress.is_last_batch or (period and (batch_idx + 1) % period == 0):
            self._random = get_random_state()
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        for recorder in self.recorders.values():
            recorder.step(**({"total_loss": loss} if isinstance(loss, Tensor) else {}))
        for prefix, logic in self._losses.items():
            for name, values in logic.statistics().items():
                for key in ("cost", "delta"):
                    if key in values:
                        pl_module.log(f"{prefix}/{key}/{name}", values[key], on_step=True, batch_size=1)

    def on_sanity_check_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Remember the random number generators."""
        self._random = get_random_state()

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start counting."""
        self._counts = {prefix: Count(logic.rules, self.tol, self.lead) for prefix, logic in self._losses.items()}
        for prefix, logic in self._losses.items():
            recorder = None if trainer.sanity_checking else self.recorders.get(prefix)
            hook = logic.register_forward_hook(_counting(self._counts[prefix], recorder), with_kwargs=True)
            self._hooks.callback(hook.remove)

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Log how many samples the rules hold on."""
        logged: dict[str, float] = {}
        for prefix, count in self._counts.items():
            totals = trainer.strategy.reduce(count.totals(pl_module.device), reduce_op="sum")
            assert isinstance(totals, Tensor)
            logged |= {f"{prefix}/satisfied/{name}": fraction for name, fraction in count.fractions(totals).items()}
        for name, value in logged.items():
            pl_module.log(name, value, batch_size=1)
        if self.events is not None and trainer.is_global_zero and not trainer.sanity_checking:
            self._write(trainer, logged)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Stop counting, and put the random number generators back."""
        self._hooks.close()
        if self._random is not None:
            set_random_state(self._random)
            self._random = None

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Record the epoch, with what the module has logged; its validation is over."""
        own = tuple(f"{prefix}/" for prefix in self._losses)
        measures = {name: value for name, value in trainer.callback_metrics.items() if not name.startswith(own)}
        for recorder in self.recorders.values():
            recorder.epoch(trainer.current_epoch + 1, measures=measures)

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write the end."""
        for recorder in self.recorders.values():
            recorder.close()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Leave no hook behind."""
        self._hooks.close()
        for recorder in self.recorders.values():
            recorder.close(failed=True)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Close the events."""
        self._random, self._loaders = None, []
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _write(self, trainer: Trainer, scalars: dict[str, float]) -> None:
        from dualogic.diagnosis.events import Events

        if self._writer is None:
            assert self.events is not None
            self._writer = Events(Path(self.events), first=trainer.global_step)
        for prefix, logic in self._losses.items():
            deltas = {f"{prefix}/delta/{name}": float(value) for name, value in zip(logic.rules, logic.delta)}
            # One process has not all rows of a sharded table.
            self._writer.write(trainer.global_step, {**scalars, **deltas}, logic if logic.listable else None)


def _counting(count: Count, recorder: Recorder | None) -> Any:
    def hook(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor) -> None:
        if not module.training:
            tensors = {name: value for name, value in kwargs.items() if name not in ("index", "where", "believe")}
            tensors = first_view(tensors, kwargs.get("believe"))
            count.update(tensors, kwargs.get("where"))
            if recorder is not None:
                recorder.held_out(where=kwargs.get("where"), **tensors)

    return hook
