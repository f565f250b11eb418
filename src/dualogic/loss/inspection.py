"""What can be read from a logic loss: weights, ``delta``, statistics of the latest batch, memory, and its text."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from dualogic.arguments import shorten
from dualogic.duals.memory import Memory
from dualogic.errors import SampleIndexError
from dualogic.loss.checks import CheckedModule


class ReadableModule(CheckedModule):
    """A module whose state can be looked at; nothing here changes it."""

    @property
    def together(self) -> bool:
        """Whether it was made for several processes, with ``process_group=``."""
        return self._peers is not None

    @property
    def listable(self) -> bool:
        """Whether this process alone can list the weights of all samples; not so for sharded tables."""
        return not self._table.collective and (self._table.shared or self.num_samples is not None)

    @property
    def delta(self) -> Tensor:
        """The scale of each rule's truncated normal, ``(rules,)``."""
        return self._state["delta"].clone()

    def weights(self, index: Tensor | None = None) -> dict[str, Tensor]:
        """How each connective weighs its operands.

        Args:
            index: training samples ``(batch,)``; not needed for a shared row.

        Returns:
            A mapping from paths to weights ``(batch, ..., k)`` that sum to 1. A path is the rule's name (``"rule"`` for a lone
            formula) followed by operand positions in its negation normal form, as in ``"rule/0"``.
        """
        if not self._program.width:
            return {}
        if not self._table.shared:
            if index is None:
                raise SampleIndexError("weights(index) needs the indices of training samples: each has weights of its own")
            check = functools.partial(self._check_index, index, _count(index), at_once=True)
            index = self._peers.agree(check) if self._peers is not None and self._table.collective else check()
        with torch.no_grad(), self._run.lock:
            return self._program.weights(self._table.fetch(index).to(self._state["delta"].dtype))  # type: ignore[arg-type]

    def statistics(self) -> dict[str, dict[str, Any]]:
        """Means over the latest batch (this process's part of it, and there the selected samples) for each rule: cost, loss and
        delta, on the device.

        With ``method="dual"`` a rule that has implications also has ``"evidence"``: a mapping from their paths, as in
        :meth:`weights`, to how much of the antecedent is taken for evidence. 1 means that the rule reads its antecedent and
        teaches its consequent alone; 0 that either may give way. It starts at 1 and falls as the consequent is seen to be known
        without the antecedent, unless ``evidence=`` or :func:`dualogic.evidence` says what it is.

        Waits for nothing.

        Example:
            >>> import dualogic as dl
            >>> logic = dl.LogicLoss(dl.boolean("rain") >> dl.boolean("wet"))
            >>> logic.statistics()["rule"]["evidence"]
            {'rule': tensor(1.)}
        """
        found: dict[str, dict[str, Any]] = {}
        selected = self._run.selected
        columns = {
            key: (value.mean(0) if selected is None else value.sum(0) / selected.sum()).unbind()
            for key, value in self._run.last.items()
        }
        columns["delta"] = self.delta.unbind()
        for position, name in enumerate(self.rules):
            found[name] = {key: values[position] for key, values in columns.items()}
        for path, share in self._program.evidence(self._state).items():
            name = path
            while name not in found:
                name = name.rpartition("/")[0]
            found[name].setdefault("evidence", {})[path] = share.clone()
        return found

    def memory(self) -> Memory:
        """The dual variables' bytes per sample and in total; ``print`` shows them in words."""
        return self._table.memory()

    def extra_repr(self) -> str:
        """The rules and the size of the table, for ``print``."""
        return self._summary()

    def __repr__(self) -> str:
        return f"LogicLoss({self._summary()})"

    def _summary(self) -> str:
        names = list(self.rules)
        shown = ", ".join(f"{name}: {shorten(str(self.rules[name]))}" for name in names[:3])
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        bytes_taken = f" ({self.memory()})" if self._program.width else ""
        return f"{shown}{more}; method={self.method.name}, {self._program.width} dual variables {self._table.owner}{bytes_taken}"


def _count(index: Any) -> int:
    try:
        return len(torch.as_tensor(index))
    except (TypeError, ValueError, RuntimeError) as error:
        raise SampleIndexError(
            f"weights(index) needs training samples as a tensor of shape (batch,), as in torch.tensor([7]); got {index!r}"
        ) from error
