"""What a call of a logic loss must bring, checked before anything is computed or changed."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dualogic.arguments import shorten
from dualogic.compile.binding import Bound
from dualogic.errors import SampleIndexError, ShortcutWarning, StateError
from dualogic.loss.checkpoint import KeptModule

if TYPE_CHECKING:
    from dualogic.duals.collective import Peers


class CheckedModule(KeptModule):
    """A module that refuses tensors, indices and devices that do not fit."""

    update: str
    _peers: Peers | None

    def _prepare(self, index: Any, where: Any, tensors: dict[str, Tensor]) -> tuple[Bound, Tensor | None]:
        """Bound tensors and the index, after all checks that can be made before anything is computed."""
        compiling = torch.compiler.is_compiling()
        if self.training and torch.is_grad_enabled() and not self._run.frozen and self.update == "forward" and not compiling:
            _refuse_recomputation()
        bound = self._program.plan.bind(tensors, False if compiling else None if self._run.validated else True, where)
        self._run.validated = self._run.validated or not compiling
        self._check_device(bound.device)
        at_once = bound.device.type == "cpu" and not compiling
        if not at_once and not compiling:
            self._guard.poll()
        index = self._check_index(index, bound.batch, at_once, where)
        if at_once and bound.selected is not None and not bool(bound.selected.any()):
            return bound.emptied(), None if index is None else index[:0]
        return bound, index

    def _check_device(self, device: torch.device) -> None:
        if self._table.device != device:
            raise StateError(
                f"the tensors are on {device} and the dual variables on {self._table.device}; call .to({str(device)!r}) on "
                f"the LogicLoss, as on any module"
            )

    def _check_index(self, index: Any, batch: int, at_once: bool, where: Any = None) -> Tensor | None:
        """The index as a tensor on the right device; its range is checked here only if that needs no waiting."""
        if self._table.shared:
            return None
        if index is None:
            if self.training:
                raise SampleIndexError(self._table.missing_index(batch))
            return None
        if not self._program.width:
            # Nothing is kept for the samples, but a wrong index would show when the method is changed.
            if at_once and self.num_samples is not None:
                self._table.check_index(index, batch, at_once, where)
            return None
        return self._table.check_index(index, batch, at_once, where)

    def _teaches(self, bound: Bound, losses: Tensor) -> bool:
        """Whether a gradient can reach a tensor; antecedents that are evidence are read, and get none."""
        if not losses.requires_grad:
            return False
        return any(bound.tensors[name].requires_grad for name in self._program.plan.teachable)

    def _tell_untaught(self, bound: Bound) -> None:
        """Warn, once, that the rules teach nothing although some tensor could be taught."""
        self._run.told = True
        needy = [name for name, tensor in bound.tensors.items() if tensor.requires_grad]
        rest = [name for name, tensor in bound.tensors.items() if not tensor.requires_grad and tensor.is_floating_point()]
        if needy:
            rules = "; ".join(f"{name}: {shorten(str(formula))}" for name, formula in list(self.rules.items())[:3])
            warnings.warn(
                f"no gradient flows from the rules ({rules}) into any tensor: {', '.join(map(repr, needy))} can be taught but is "
                f"read as evidence only, as the antecedent of dl.evidence(a) >> b is, and with Dual(evidence=True) that of every "
                f">>. Check that the other tensors "
                f"({', '.join(map(repr, rest)) or 'none'}) require a gradient and were not detached or made under no_grad; or "
                f"let the rule teach its antecedent: dl.evidence(a, False) >> b, or dl.methods.Dual(evidence=False)",
                ShortcutWarning,
                stacklevel=6,
            )

    def check(self) -> None:
        """Wait for the device and raise an error if a step so far met a bad index or a cost that is not finite.

        On a CPU such problems are raised at once; on an accelerator, a few steps later, or here.
        """
        if self._peers is None:
            self._guard.check()
        else:
            self._peers.agree(self._guard.check)


def _refuse_recomputation() -> None:
    # Inside a backward pass forward runs again only because activation checkpointing recomputes it; a second update would
    # change the duals twice and the loss under the gradient's feet.
    if torch._C._current_graph_task_id() != -1:
        raise StateError(
            'LogicLoss is inside a region that activation checkpointing computes again; use update="manual" and call '
            "logic.step() after backward, or keep the loss outside of the checkpointed region"
        )
