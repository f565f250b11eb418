"""Rules in the ``Trainer`` of Hugging Face transformers."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dualogic.errors import SampleIndexError, needs
from dualogic.files import save_whole
from dualogic.integrations.common import Count, check_processes, whole_state
from dualogic.loss import LogicLoss
from dualogic.report import Recorder

with needs("transformers", "dualogic.integrations.transformers needs transformers"):
    from transformers import Trainer, TrainerCallback

FILE = "logic.pt"

Tensors = Callable[[nn.Module, dict[str, Any], Any], Mapping[str, Tensor]]
"""The model, its inputs and its outputs, to one tensor for each symbol of the rules."""


class LogicTrainer(Trainer):
    """A ``Trainer`` that adds the loss of rules to that of the model.

    Every item of the training set says which sample it is under ``index``, as :class:`dualogic.data.WithIndex` makes it, and may
    say under ``where`` whether the rules are about it. Both are kept from the model. Checkpoints hold the state of the loss
    (``logic.pt``), and a resumed run goes on from it. Evaluation reports the fraction of samples on which each rule holds as
    ``eval_satisfied_NAME``; ``eval_loss`` is the model's own.

    Args:
        args: those of ``Trainer``.
        logic: the loss; with ``process_group="world"`` for several processes.
        tensors: what to bind to the rules' symbols, from the model, its inputs and its outputs, in training and in evaluation.
        columns: further entries of an item that ``tensors`` reads and the model does not take.
        tol: for satisfaction; see :meth:`dualogic.Formula.satisfied`.
        lead: likewise.
        record: a folder for ``dualogic report``; see :class:`dualogic.Recorder`, which is then ``recorder``. Off by default.
        kwargs: those of ``Trainer``.
    """

    def __init__(
        self,
        *args: Any,
        logic: LogicLoss,
        tensors: Tensors,
        columns: tuple[str, ...] = (),
        tol: float = 0.0,
        lead: float = 0.0,
        record: str | Path | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        check_processes(logic, self.args.world_size)
        self.logic = logic.to(self.args.device)
        self.rule_tensors = tensors
        self.rule_columns = ("index", "where", *columns)
        self.satisfied = Count(logic.rules, tol, lead)
        self.recorder: Recorder | None = None
        if record is not None:
            self.recorder = Recorder(record, logic, title=type(self.model).__name__, tol=tol, lead=lead)
            self.add_callback(_Recording(self.recorder))

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        known = self._signature_columns or ()
        self._signature_columns = list(dict.fromkeys([*known, *self.rule_columns]))  # type: ignore[assignment]

    def compute_loss(
        self, model: nn.Module, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The loss of the model, plus that of the rules in training."""
        own = {name: value for name, value in inputs.items() if name not in self.rule_columns}
        loss, outputs = super().compute_loss(model, own, return_outputs=True, num_items_in_batch=num_items_in_batch)
        tensors = self.rule_tensors(model, inputs, outputs)
        where = inputs.get("where")
        if model.training:
            if self.logic.num_samples is not None and "index" not in inputs:
                raise SampleIndexError(
                    f"the rules need to know which samples a batch is of, but its entries are {', '.join(inputs)}; wrap the data "
                    f"set, train_dataset=dl.data.WithIndex(dataset), and let the data collator keep 'index'"
                )
            rule = self.logic(inputs.get("index"), where=where, **tensors)
            if self.recorder is not None:
                self.recorder.step(task_loss=loss)
            # Where the model's loss is already a share of the accumulated batch, that of the rules must be one too.
            steps = getattr(self, "current_gradient_accumulation_steps", self.args.gradient_accumulation_steps)
            loss = loss + (rule / steps if self._is_scaled(num_items_in_batch) else rule)
        else:
            self.satisfied.update(tensors, where)
            if self.recorder is not None:
                self.recorder.held_out(where=where, **tensors)
        return (loss, outputs) if return_outputs else loss

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """As in ``Trainer``; a training that fails is recorded as one that has not ended."""
        try:
            return super().train(*args, **kwargs)
        except BaseException:
            if self.recorder is not None:
                self.recorder.close(failed=True)
            raise

    def _is_scaled(self, num_items_in_batch: Any) -> bool:
        if (told := getattr(self, "loss_is_scaled_for_ga", None)) is not None:
            return bool(told)
        return (self.model_accepts_loss_kwargs and num_items_in_batch is not None) or self.compute_loss_func is not None

    def prediction_step(self, model: nn.Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """As in ``Trainer``; without labels there is no loss, and the model must not see what is the rules'."""
        loss = self.can_return_loss if not self.label_names else all(inputs.get(name) is not None for name in self.label_names)
        if not loss:
            inputs = {name: value for name, value in inputs.items() if name not in self.rule_columns}
        return super().prediction_step(model, inputs, *args, **kwargs)

    def evaluation_loop(self, *args: Any, **kwargs: Any) -> Any:
        """As in ``Trainer``, with the rules' satisfaction among the metrics."""
        self.satisfied.reset()
        found = super().evaluation_loop(*args, **kwargs)
        prefix = kwargs.get("metric_key_prefix", "eval")
        totals = self.accelerator.reduce(self.satisfied.totals(self.args.device), reduction="sum")
        satisfied = {f"{prefix}_satisfied_{name}": value for name, value in self.satisfied.fractions(totals).items()}
        return found._replace(metrics={**(found.metrics or {}), **satisfied})

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        state = whole_state(self.logic)
        if self.args.should_save:
            save_whole(state, Path(output_dir) / FILE)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None:
            self.logic.load_state_dict(torch.load(os.path.join(checkpoint, FILE), map_location="cpu", weights_only=True))


class _Recording(TrainerCallback):
    """Tells a recorder of epochs; an epoch's evaluation comes after its end, so it is closed when the next one begins."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin, after what was trained before."""
        self.recorder.open(epochs_done=math.floor(state.epoch or 0.0))

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Close the epoch before."""
        self._close(state)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Close the last epoch, and write the end."""
        self._close(state)
        self.recorder.close()

    def _close(self, state: Any) -> None:
        if self.recorder.steps:
            evaluated: dict[str, Any] = next((entry for entry in reversed(state.log_history) if "eval_loss" in entry), {})
            of_the_machine = ("eval_runtime", "eval_samples_per_second", "eval_steps_per_second")
            names = [name for name in evaluated if name.startswith("eval_") and name not in of_the_machine]
            self.recorder.epoch(state.epoch, measures={name: evaluated[name] for name in names})
