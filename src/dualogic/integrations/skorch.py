"""Rules in skorch's scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dualogic.data.randomness import random_state_kept
from dualogic.data.resumable import Resumable
from dualogic.data.with_index import WithIndex
from dualogic.errors import MissingExtraError, StateError
from dualogic.files import save_whole
from dualogic.loss import LogicLoss

try:
    from skorch import NeuralNet, NeuralNetClassifier, NeuralNetRegressor
    from skorch.callbacks import Callback, PassthroughScoring
except ImportError as error:
    raise MissingExtraError(
        "dualogic.integrations.skorch needs skorch; install it with: pip install 'dualogic[skorch]'"
    ) from error

INDEX, VALUE = "_dualogic_index", "_dualogic_value"


class LogicMixin:
    """Adds the loss of rules to a skorch net: ``class Net(LogicMixin, NeuralNetClassifier)``.

    The samples' indices are their positions in what ``fit`` is given. ``logic_`` is the loss, saved by
    ``save_params(f_logic=...)``; the history has the fraction of validation samples on which all rules hold
    (``valid_satisfied``). With an optimizer that evaluates the loss several times per step, such as LBFGS, give
    ``logic__update="manual"``: the duals then move once per step.

    Args:
        args: those of the net.
        tensors: what to bind to the rules' symbols: ``tensors(net, X, y_pred)``, where ``X`` is the batch and ``y_pred`` the
            module's output, in training and in validation.
        logic: the class of the loss; its arguments are given as ``logic__rules=...``, ``logic__num_samples=...``.
        kwargs: those of the net.
    """

    history: Any
    logic_: LogicLoss

    def __init__(self, *args: Any, tensors: Any, logic: Any = LogicLoss, **kwargs: Any) -> None:
        self.tensors = tensors
        self.logic = logic
        super().__init__(*args, **kwargs)

    @property
    def _default_callbacks(self) -> list[tuple[str, Any]]:
        satisfied = PassthroughScoring(name="valid_satisfied", lower_is_better=False)
        *before, last = super()._default_callbacks  # type: ignore[misc]
        return [*before, ("valid_satisfied", satisfied), last]  # the last one prints

    def initialize_module(self) -> Any:
        """Make the loss with the module."""
        super().initialize_module()  # type: ignore[misc]
        self.logic_ = self.initialized_instance(self.logic, self.get_params_for("logic"))  # type: ignore[attr-defined]
        self._resume: dict[str, Any] | None = None
        self._loader: Resumable | None = None
        self._indexing = False
        return self

    def get_dataset(self, X: Any, y: Any = None) -> Any:  # noqa: N803
        """The data set; in training its items say which they are."""
        dataset = super().get_dataset(X, y)  # type: ignore[misc]
        return WithIndex(dataset, join=_with_index) if self._indexing else dataset

    def get_split_datasets(self, X: Any, y: Any = None, **fit_params: Any) -> Any:  # noqa: N803
        """As in skorch; positions are those before the split."""
        self._indexing = True
        try:
            return super().get_split_datasets(X, y, **fit_params)  # type: ignore[misc]
        finally:
            self._indexing = False

    def get_iterator(self, dataset: Any, training: bool = False) -> Any:
        """As in skorch; that of training knows where it is."""
        iterator = super().get_iterator(dataset, training=training)  # type: ignore[misc]
        if not training:
            return iterator
        self._loader = Resumable(iterator)
        if self._resume is not None:
            self._loader.load_state_dict(self._resume)
            self._resume = None
        return self._loader

    def infer(self, x: Any, **fit_params: Any) -> Any:
        """The module's output; the index is not for the module."""
        return super().infer(_without_index(x)[0], **fit_params)  # type: ignore[misc]

    def get_loss(self, y_pred: Any, y_true: Any, X: Any = None, training: bool = False) -> Tensor:  # noqa: N803
        """The loss of the net, plus that of the rules in training."""
        value, index = _without_index(X)
        loss: Tensor = super().get_loss(y_pred, y_true, X=value, training=training)  # type: ignore[misc]
        if not training:
            return loss
        rule: Tensor = self.logic_(index, **self.tensors(self, value, y_pred))
        return loss + rule

    def train_step(self, batch: Any, **fit_params: Any) -> Any:
        """As in skorch; manual updates are applied after the optimizer's step."""
        step = super().train_step(batch, **fit_params)  # type: ignore[misc]
        if self.logic_.update == "manual":
            self.logic_.step()
        return step

    def validation_step(self, batch: Any, **fit_params: Any) -> Any:
        """As in skorch; also counts on how many samples all rules hold."""
        step = super().validation_step(batch, **fit_params)  # type: ignore[misc]
        rules = self.logic_.rules.values()
        with torch.no_grad():
            tensors = self.tensors(self, _without_index(batch[0])[0], step["y_pred"])
            holds = [formula.satisfied(**{name: tensors[name] for name in formula.symbols}) for formula in rules]
        self.history.record_batch("valid_satisfied", torch.stack(holds).all(0).float().mean().item())
        return step

    def run_single_epoch(self, iterator: Any, training: bool, prefix: str, step_fn: Any, **fit_params: Any) -> None:
        """As in skorch; random numbers that validation draws do not change training."""
        if training:
            super().run_single_epoch(iterator, training, prefix, step_fn, **fit_params)  # type: ignore[misc]
            return
        with random_state_kept():
            super().run_single_epoch(iterator, training, prefix, step_fn, **fit_params)  # type: ignore[misc]

    def save_run(self, path: str | Path) -> None:
        """Write all that is needed to go on after the latest step: modules, optimizers, duals, position and random numbers.

        The file is whole or not there, and loads with ``weights_only=True``. :class:`SaveRun` calls this during training.
        """
        if self._loader is None:
            raise StateError("save_run has nothing to save before training: call fit or partial_fit first")
        save_whole(
            {**{name: part.state_dict() for name, part in self._parts().items()}, "loader": self._loader.state_dict()}, path
        )

    def load_run(self, path: str | Path) -> int:
        """Take over what :meth:`save_run` wrote; the net must be initialised.

        Returns:
            How many epochs were complete; ``net.set_params(max_epochs=total - complete).partial_fit(X, y)`` does the rest.
        """
        saved = torch.load(path, map_location="cpu", weights_only=True)
        for name, part in self._parts().items():
            part.load_state_dict(saved[name])
        self._resume = saved["loader"]
        return int(saved["loader"]["epoch"])

    def __getstate__(self) -> dict[str, Any]:
        # A pickled net does not carry its training data.
        return {**super().__getstate__(), "_loader": None}  # type: ignore[misc]

    def _parts(self) -> dict[str, Any]:
        names = [*self._modules, *self._criteria, *self._optimizers]  # type: ignore[attr-defined]
        return {name: getattr(self, f"{name}_") for name in names}


class LogicNet(LogicMixin, NeuralNet):  # type: ignore[misc]
    """A ``NeuralNet`` with rules; see :class:`LogicMixin`."""


class LogicClassifier(LogicMixin, NeuralNetClassifier):  # type: ignore[misc]
    """A ``NeuralNetClassifier`` with rules; see :class:`LogicMixin`."""


class LogicRegressor(LogicMixin, NeuralNetRegressor):  # type: ignore[misc]
    """A ``NeuralNetRegressor`` with rules; see :class:`LogicMixin`."""


class SaveRun(Callback):  # type: ignore[misc]
    """Saves a net with rules during training, by :meth:`LogicMixin.save_run`.

    Args:
        path: of the file, written over each time.
        every: after how many steps.
    """

    def __init__(self, path: str | Path, every: int = 1) -> None:
        self.path = path
        self.every = every

    def initialize(self) -> SaveRun:
        """Count from 0."""
        self.steps_ = 0
        return self

    def on_batch_end(self, net: Any, batch: Any = None, training: bool | None = None, **kwargs: Any) -> None:
        """Save after a training step."""
        if training:
            self.steps_ += 1
            if self.steps_ % self.every == 0:
                net.save_run(self.path)


def _with_index(index: int, item: Any) -> Any:
    value, target = item
    return ({INDEX: index, **value} if isinstance(value, Mapping) else {INDEX: index, VALUE: value}), target


def _without_index(value: Any) -> tuple[Any, Tensor | None]:
    if not isinstance(value, Mapping) or INDEX not in value:
        return value, None
    if VALUE in value:
        return value[VALUE], value[INDEX]
    return {name: part for name, part in value.items() if name != INDEX}, value[INDEX]
