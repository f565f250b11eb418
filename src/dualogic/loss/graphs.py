"""Calls that repeat, as one launch: on a GPU a logic loss records what a call does as a CUDA graph and replays it afterwards.

A call's *signature* is all that decides which kernels it launches: names, shapes, strides and types of its tensors, and the
loss's own settings. The first calls of a signature run as they stand. The next one runs on buffers of its own, beside the
stream, which loads every kernel that the graph will need; the one after that is recorded, which executes nothing, and replayed.
Every call thus moves the duals exactly once. A graph holds the loss *and* its gradient; both are copied out, so that several
calls may come before a backward pass. Everything that cannot be recorded goes the plain way.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dualogic.compile.evaluate import autocast_off
from dualogic.duals.table import DualTable, SharedRow
from dualogic.errors import StateError
from dualogic.loss.graph_maker import Body, GraphMaker, Outputs
from dualogic.loss.signature import Layout, can_learn, can_stand_for, sign

if TYPE_CHECKING:
    from dualogic.loss.state import KeptModule

PLAIN_CALLS = 2
"""How often a signature is seen before it is worth a graph; the first calls also look at values."""
MOST_GRAPHS = 8
"""How many graphs a loss holds. One that was not used for ``RESTING`` calls gives way to another."""
RESTING = 100
MOST_SIGNATURES = 64
"""How many signatures are remembered."""
MOST_FAILURES = 3
"""After so many recordings that failed a loss tries no more."""


class Entry:
    """What is known about a signature.

    Attributes:
        calls: how often it ran the plain way.
        plain: it always does.
        used: when it was last seen, in calls of the loss.
        incoming: the gradient that the loss latest had in a backward pass, a scalar; decides nothing but rounding.
        recording: its graph, if it has one.
    """

    def __init__(self, plain: bool) -> None:
        self.calls = self.used = 0
        self.plain = plain
        self.incoming: Tensor | None = None
        self.recording: Recording | None = None

    def note(self, gradient: Tensor) -> None:
        """A backward pass of a plain call: ``create_graph=True`` asks for derivatives that no graph holds."""
        if torch.is_grad_enabled():
            self.plain = True
        else:
            self.incoming = gradient.detach().clone()


class Recording:
    """Buffers for the tensors of one signature, and the graph that computes with them.

    Args:
        given: the tensors of a call.
        slots: for each tensor, which buffer is its own; a tensor that is given twice has one.
        index: of the samples; ``None`` if it is not used.
        scale: of what type and on which device the loss is, and the gradient that it is expected to have.
        held: what a graph knows by its address and must outlive it.
    """

    def __init__(
        self, given: Sequence[Tensor], slots: tuple[int, ...], index: Tensor | None, scale: Tensor, held: tuple[Any, ...]
    ) -> None:
        self.slots = slots
        self.first = tuple(slots.index(slot) for slot in range(max(slots) + 1))
        self.statics = [torch.empty_like(given[position], requires_grad=False) for position in self.first]
        self.needy = [given[position].requires_grad for position in self.first]
        self.index = None if index is None else torch.empty(index.shape, dtype=torch.long, device=scale.device)
        self.scale, self.incoming = torch.ones_like(scale), scale
        self.held = held
        self.launch: Body | None = None
        self.groups = _by_type(self.statics)

    def body(self, owner: Any, layout: Layout) -> Outputs:
        """A call with the buffers for tensors, and its gradient; reads and changes nothing but what stays where it is."""
        self.scale.copy_(torch.where(self.incoming.isfinite() & (self.incoming != 0), self.incoming, self.scale))
        leaves = [static.detach().requires_grad_(needy) for static, needy in zip(self.statics, self.needy)]
        with torch.enable_grad():
            loss = owner._compute(self.index, **layout.rebuild([leaves[slot] for slot in self.slots]))
        places = [place for place, needy in enumerate(self.needy) if needy]
        with autocast_off(loss.device):
            found = torch.autograd.grad(loss, [leaves[place] for place in places], self.scale, allow_unused=True)
        pairs = [(self.first[place], gradient) for place, gradient in zip(places, found) if gradient is not None]
        taught, gradients = tuple(position for position, _ in pairs), [gradient for _, gradient in pairs]
        return Outputs(loss.detach(), self.scale, gradients, taught, owner._run.last, owner._run.selected)

    def run(self, launch: Body, given: Sequence[Tensor], index: Tensor | None) -> tuple[Tensor, Outputs]:
        """The loss of a call, differentiable; what ``launch`` leaves is copied."""
        with torch.no_grad():
            for group in self.groups:
                torch._foreach_copy_([self.statics[slot] for slot in group], [given[self.first[slot]] for slot in group])
            if self.index is not None and index is not None:
                self.index.copy_(index)
            found = launch()
            # A product with 1 is a copy to the bit, and the only one that takes a list.
            loss, *kept = _scaled([found.loss, found.scale, *found.gradients], 1.0)
        loss = _Loss.apply(loss, self.incoming, kept, *(given[position] for position in found.taught))  # type: ignore[no-untyped-call]
        return loss, found


class _Loss(torch.autograd.Function):
    """A loss whose gradient is known already."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        loss: Tensor = arguments[0]
        ctx.incoming = arguments[1]
        ctx.save_for_backward(*arguments[2])
        return loss.detach()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise StateError(
                "a call that runs as a recorded graph can be differentiated once only; for second derivatives "
                "(create_graph=True) make the loss with LogicLoss(..., capture=False)"
            )
        scale, *kept = ctx.saved_tensors
        # Gradients are made for the gradient that the loss had before, so that this is 1 in all but a few steps: a small factor
        # of the loss, or the large one of a gradient scaler, comes before rounding to 16 bits, not after.
        ratio = gradients[0] / scale
        ctx.incoming.copy_(gradients[0])
        return None, None, None, *_scaled(kept, ratio)


class Graphs:
    """The graphs of one loss; whoever uses it holds the loss's lock."""

    def __init__(self, device: torch.device) -> None:
        self._maker = GraphMaker(device)
        self._device = device
        self._entries: dict[Hashable, Entry] = {}
        self._watched: Entry | None = None
        self._clock = self._failures = 0

    @classmethod
    def of(cls, owner: KeptModule) -> Graphs | None:
        """Those of a loss that can have some; made anew whenever a tensor that it keeps is another one."""
        fits = owner._peers is None and type(owner._table) in (DualTable, SharedRow)
        # Methods that others wrote may count or draw in Python, which a graph would never do again.
        fits = fits and all(type(part).__module__.startswith("dualogic.") for part in (owner.method, owner._program))
        return cls(owner._table.device) if fits and GraphMaker.suits(owner._table.device) else None

    def __len__(self) -> int:
        return sum(entry.recording is not None for entry in self._entries.values())

    def __call__(self, owner: Any, index: Any, where: Any, believe: Any, tensors: dict[str, Any]) -> Tensor | None:
        """The loss of a call; ``None`` for one that must run the plain way, after which :meth:`watch` is told."""
        self._watched = None
        place = self._maker.place() if can_learn(owner) else None
        signed = None if place is None else sign(owner, self._device, index, where, believe, tensors)
        if signed is None:
            return None
        key, layout, given, slots = signed
        self._clock += 1
        if (entry := self._entries.get((place, key))) is None:
            entry = self._add((place, key), can_stand_for(given, self._device))
        entry.used = self._clock
        if entry.plain:
            return None
        recording = entry.recording
        if recording is None:
            if entry.calls < PLAIN_CALLS or not self._make_room():
                self._watched = entry
                return None
            assert entry.incoming is not None
            used = None if owner._table.shared else index
            held = (owner._program, owner._table.values, owner._state, owner._factors, owner._guard.flags)
            recording = Recording(given, slots, used, entry.incoming, held)
            entry.plain = True  # until it has gone well
            loss, found = recording.run(lambda: self._maker.rehearse(lambda: recording.body(owner, layout)), given, used)
            entry.recording, entry.plain = recording, not found.taught
            return loss
        if recording.launch is None and not self._record(owner, entry, recording, layout):
            return None
        assert recording.launch is not None
        owner._guard.poll()
        loss, found = recording.run(recording.launch, given, index)
        owner._run.last, owner._run.selected = found.last, found.selected
        return loss

    def watch(self, loss: Tensor) -> None:
        """The plain call went well."""
        entry, self._watched = self._watched, None
        if entry is None:
            return
        if loss.dim() or not loss.requires_grad:
            entry.plain = True
            return
        entry.calls += 1
        if entry.incoming is None:
            entry.incoming = torch.ones_like(loss, requires_grad=False)
        if entry.calls <= PLAIN_CALLS:
            loss.register_hook(entry.note)

    def _add(self, key: Hashable, fits: bool) -> Entry:
        if len(self._entries) >= MOST_SIGNATURES:
            rare = [known for known, entry in self._entries.items() if entry.recording is None]
            del self._entries[min(rare, key=lambda known: self._entries[known].used)]
        return self._entries.setdefault(key, Entry(plain=not fits))

    def _make_room(self) -> bool:
        """Whether another graph may be made; drops one that rests."""
        recorded = [(entry.used, key) for key, entry in self._entries.items() if entry.recording is not None]
        if len(recorded) >= MOST_GRAPHS:
            used, key = min(recorded, key=lambda pair: pair[0])
            if self._clock - used < RESTING:
                return False
            del self._entries[key]
        return self._failures < MOST_FAILURES

    def _record(self, owner: Any, entry: Entry, recording: Recording, layout: Layout) -> bool:
        run = owner._run
        before = run.pending, run.last, run.selected
        try:
            recording.launch = self._maker.record(lambda: recording.body(owner, layout))
        except Exception:
            # Nothing was computed, and nothing is lost but time: the call runs the plain way, now and from now on.
            entry.recording, entry.plain = None, True
            self._failures += 1
            run.pending, run.last, run.selected = before
        return recording.launch is not None


def _by_type(tensors: Sequence[Tensor]) -> list[list[int]]:
    """Positions in groups of one type: only those take one launch together."""
    groups: dict[torch.dtype, list[int]] = {}
    for position, tensor in enumerate(tensors):
        groups.setdefault(tensor.dtype, []).append(position)
    return list(groups.values())


def _scaled(tensors: Sequence[Tensor], factor: Any) -> list[Tensor]:
    """New tensors, the given ones times a number or a scalar on their device."""
    first = tensors[0].dtype
    if all(tensor.dtype is first for tensor in tensors):
        return list(torch._foreach_mul(list(tensors), factor))
    found: list[Any] = [None] * len(tensors)
    for group in _by_type(tensors):
        for position, value in zip(group, torch._foreach_mul([tensors[position] for position in group], factor)):
            found[position] = value
    return found
