"""A call of a logic loss as a value: what it brings, checked before anything is computed or changed."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dualogic.arguments import shorten
from dualogic.compile.binding import Bound
from dualogic.duals.guard import Guard
from dualogic.duals.table import DualTable
from dualogic.errors import BindingError, SampleIndexError, ShortcutWarning, StateError
from dualogic.formula.connective import Formula
from dualogic.formula.node import Node
from dualogic.formula.symbol import Mask
from dualogic.loss.beliefs import split, tile_where
from dualogic.methods.base import Program, State
from dualogic.numerics import is_mapped, wide

if TYPE_CHECKING:
    from dualogic.duals.collective import Peers


@dataclasses.dataclass
class Parts:
    """A loss as a call finds it: its parts, the rules that are switched off, how it updates, and whether the values of an earlier
    call have been looked at.
    """

    program: Program
    table: DualTable
    state: State
    guard: Guard
    peers: Peers | None
    off: tuple[str, ...]
    manual: bool
    training: bool
    frozen: bool
    validated: bool

    @property
    def learning(self) -> bool:
        """In training mode, with gradients enabled."""
        return self.training and torch.is_grad_enabled()


@dataclasses.dataclass(frozen=True)
class Selection:
    """The samples that a call of a loss is about.

    Everything is done by masks: a selection by indexing would have to wait for the device to say how many there are.
    """

    mask: Tensor  # which samples any rule is about, `(batch,)` bool
    count: Tensor  # how many samples are selected, in all processes together, `()`; or for each rule, `(rules,)`
    # Which samples each rule is about, `(batch, rules)` bool; `None` if the mask is that of all rules.
    ruled: Tensor | None = None

    @classmethod
    def of(cls, mask: Tensor, ruled: Tensor | None = None) -> Selection:
        """The selection of one process."""
        return cls(mask, mask.sum() if ruled is None else ruled.sum(0), ruled)

    @property
    def each(self) -> Tensor:
        """What counts, for all rules ``(batch, 1)`` or for each ``(batch, rules)``."""
        return wide(self.mask if self.ruled is None else self.ruled)

    def only(self, values: Tensor) -> Tensor:
        """Values ``(batch, rules)`` of the selected samples, and 0 elsewhere."""
        return torch.where(self.each, values, 0.0)

    def among(self, other: Tensor | None) -> Tensor:
        """What counts of another mask ``(batch,)``: samples ``(batch,)``, or ``(batch, rules)``; ``None`` stands for all."""
        if self.ruled is None:
            return self.mask if other is None else self.mask & other
        return self.ruled if other is None else self.ruled & other.unsqueeze(1)

    def columns(self, owners: Tensor) -> Tensor:
        """Which stored numbers count, for all ``(batch,)`` or for each ``(batch, width)``, by the rule that owns each.

        The number of rules, as an owner, stands for all of them.
        """
        if self.ruled is None:
            return self.mask
        return torch.cat([self.ruled, self.mask.unsqueeze(1)], 1).index_select(1, owners)

    def gate(self, new: dict[str, Tensor], old: dict[str, Tensor]) -> dict[str, Tensor]:
        """``new`` if anything is selected, else ``old``."""
        some = (self.count > 0).any()
        return {name: torch.where(some, value, old[name]) for name, value in new.items()}

    def mean(self, total: Tensor) -> Tensor:
        """A sum over the selected samples, divided by their number, 0 if there is none; or the sum of that over rules."""
        return (total / self.count.clamp_min(1)).sum()


@dataclasses.dataclass
class Call:
    """One call, after all checks that can be made before anything is computed."""

    index: Tensor | None  # the rows of the table that it is about; `None` for a shared row, or if nothing is stored
    bound: Bound  # the tensors, of what is taught
    believed: Bound | None  # those of what is believed; `None` for the same
    views: int  # how many times `bound` holds each sample, one block after the other
    selection: Selection | None  # the samples that count; `None` for all
    peers: Peers | None  # the processes that share in it
    batch: int  # the number of samples, in all processes together
    updating: bool  # it changes the state
    optimal: bool  # it uses the optimal duals, not stored ones
    at_once: bool  # tensors may be read without waiting, so that problems are raised here and now

    @property
    def samples(self) -> Bound:
        """Tensors that hold each sample once."""
        return self.bound if self.believed is None else self.believed


def prepare(parts: Parts, index: Any, where: Any, believe: Any, tensors: dict[str, Tensor]) -> Call:
    """What a user gave to a loss, as a call; with several processes, what is wrong in one is raised in all."""
    optimal = index is None and not parts.training and not parts.table.shared
    check = functools.partial(_check, parts, index, where, believe, tensors)
    if parts.peers is None or not (parts.learning or (parts.table.collective and index is not None)):
        bound, believed, views, index = check()
    else:
        bound, believed, views, index = parts.peers.agree(
            check, lambda ready: (ready[1] or ready[0]).batch, lambda ready: ready[0].selected is not None
        )
    samples = bound if believed is None else believed
    peers = parts.peers if parts.learning else None
    selection = None
    if samples.selected is not None or (peers and peers.marked):
        selection = _select(samples, len(parts.program.plan.names), peers)
    batch = samples.batch if peers is None else peers.total
    updating = parts.learning and not parts.frozen and batch > 0
    at_once = reads_at_once(bound.device)
    return Call(index, bound, believed, views, selection, peers, batch, updating, optimal, at_once)


def find_given(symbols: Mapping[str, Node], predicted: tuple[str, ...]) -> tuple[str, ...]:
    """The symbols that no rule can change: those without a gradient, where others have one. What a mask says is no belief."""
    return tuple(name for name, symbol in symbols.items() if name not in predicted and not isinstance(symbol, Mask))


def find_units(program: Program, call: Call) -> tuple[float, ...]:
    """In which units the rules cost, by a first call; see :meth:`~dualogic.methods.base.Program.find_units`."""
    bound, selection = call.samples, call.selection
    if not program.measures or (bound.device.type == "cuda" and torch.cuda.is_current_stream_capturing()):
        return ()
    numbers = {name: bound.tensors[name].detach() for name in bound.predicted}
    counted = None if selection is None else selection.each
    if call.peers is not None:
        numbers = {name: call.peers.gather(part) for name, part in numbers.items()}
        counted = None if counted is None else call.peers.gather(counted)
    return program.find_units(numbers, counted)


def reads_at_once(device: torch.device) -> bool:
    """Whether a tensor can be read without waiting for the device, or breaking a graph."""
    return device.type == "cpu" and not (torch.compiler.is_compiling() or is_mapped())


def _check(
    parts: Parts, index: Any, where: Any, believe: Any, tensors: dict[str, Tensor]
) -> tuple[Bound, Bound | None, int, Tensor | None]:
    compiling = torch.compiler.is_compiling()
    if isinstance(index, Mapping):
        raise BindingError("tensors are bound by name; a mapping of them is unpacked by two stars: logic(index, **tensors)")
    if parts.off:
        named = where if isinstance(where, Mapping) else dict.fromkeys(parts.program.plan.names, where)
        where = {**named, **dict.fromkeys(parts.off, False)}
    if parts.learning and not (parts.frozen or parts.manual or compiling):
        _refuse_other_passes()
    plan, validate = parts.program.plan, False if compiling else None if parts.validated else True
    believed, views = None, 1
    if believe is not None:
        tensors, beliefs, views = split(plan.symbols, tensors, believe)
        believed = plan.bind(beliefs, validate, where)
    bound = plan.bind(tensors, validate, tile_where(where, views))
    if believed is not None:
        believed = dataclasses.replace(believed, predicted=bound.predicted)
    samples = bound if believed is None else believed
    if parts.table.device != bound.device:
        raise StateError(
            f"the tensors are on {bound.device} and the dual variables on {parts.table.device}; call .to({str(bound.device)!r}) "
            f"on the LogicLoss, as on any module"
        )
    at_once = reads_at_once(bound.device)
    if not at_once and not compiling:
        parts.guard.poll()
    index = check_index(parts, index, samples.batch, at_once, samples.selected if samples.ruled is not None else where)
    if at_once and samples.selected is not None and not bool(samples.selected.any()):
        index = None if index is None else index[:0]
        return bound.emptied(), None if believed is None else believed.emptied(), 1, index
    return bound, believed, views, index


def check_index(parts: Parts, index: Any, batch: int, at_once: bool, where: Any = None) -> Tensor | None:
    """The index as a tensor on the right device; its range is checked here only if that needs no waiting."""
    if parts.table.shared:
        return None
    if index is None:
        if parts.training:
            raise SampleIndexError(parts.table.missing_index(batch))
        return None
    if parts.program.width:
        return parts.table.check_index(index, batch, at_once, where)
    # Nothing is kept for the samples, but a wrong index would show when the method is changed.
    if at_once and parts.guard.samples is not None:
        parts.table.check_index(index, batch, at_once, where)
    return None


def _select(bound: Bound, rules: int, peers: Peers | None) -> Selection:
    mask, ruled = bound.selected, bound.ruled
    if mask is None:  # another process selects, this one takes all of its part
        mask = torch.ones(bound.batch, dtype=torch.bool, device=bound.device)
    if rules == 1:  # for which the mask says all, in each process
        ruled = None
    elif peers is not None and ruled is None:  # another process may select for each rule
        ruled = mask.unsqueeze(1).expand(-1, rules)
    selection = Selection.of(mask, ruled)
    return selection if peers is None else dataclasses.replace(selection, count=peers.sum(selection.count))


def _refuse_other_passes() -> None:
    if torch._C._are_functorch_transforms_active():
        raise StateError(
            "LogicLoss cannot learn inside of torch.func.grad, torch.vmap and their kin, which let nothing be changed; call it "
            'in `with logic.frozen():` or in eval(), or use update="manual" and call logic.step() after torch.func.grad'
        )
    # Inside a backward pass forward runs again only because activation checkpointing recomputes it; a second update would
    # change the duals twice and the loss under the gradient's feet.
    if torch._C._current_graph_task_id() != -1:
        raise StateError(
            'LogicLoss is inside a region that activation checkpointing computes again; use update="manual" and call '
            "logic.step() after backward, or keep the loss outside of the checkpointed region"
        )


def warn_untaught(rules: Mapping[str, Formula], program: Program, bound: Bound, losses: Tensor) -> bool:
    """Whether no gradient can reach any tensor: antecedents that are evidence are read, and get none. If some tensor could be
    taught, a warning says so.
    """
    if losses.requires_grad and any(bound.tensors[name].requires_grad for name in program.plan.teachable):
        return False
    needy = [name for name, tensor in bound.tensors.items() if tensor.requires_grad]
    rest = [name for name, tensor in bound.tensors.items() if not tensor.requires_grad and tensor.is_floating_point()]
    if needy:
        shown = "; ".join(f"{name}: {shorten(str(formula))}" for name, formula in list(rules.items())[:3])
        warnings.warn(
            f"no gradient flows from the rules ({shown}) into any tensor: {', '.join(map(repr, needy))} can be taught but is "
            f"read as evidence only, as the antecedent of dl.evidence(a) >> b is, and with Dual(evidence=True) that of every "
            f">>. Check that the other tensors "
            f"({', '.join(map(repr, rest)) or 'none'}) require a gradient and were not detached or made under no_grad; or "
            f"let the rule teach its antecedent: dl.evidence(a, False) >> b, or dl.methods.Dual(evidence=False)",
            ShortcutWarning,
            stacklevel=6,
        )
    return True
