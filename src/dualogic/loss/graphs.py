"""Calls that repeat, as one launch: on a GPU a logic loss records what a call does as a CUDA graph and replays it afterwards.

A call's *signature* is all that decides which kernels it launches: names, shapes, strides and types of its tensors, and the
loss's own settings. The first calls of a signature run as they stand. The next one runs on buffers of its own, beside the
stream, which loads every kernel that the graph will need; the one after that is recorded, which executes nothing, and replayed.
Every call thus moves the duals exactly once. A graph holds the loss *and* its gradient; both are copied out, so that several
calls may come before a backward pass. Everything that cannot be recorded goes the plain way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from dualogic.compile.evaluate import autocast_off
from dualogic.duals.table import DualTable, SharedRow
from dualogic.errors import StateError

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
MOST_BYTES = 2**28
"""A graph keeps its memory from everybody else. A rule that needs more than this is not bound by launches."""

_saving_hooks: Callable[[bool], Any] = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", lambda traced: None)
"""Those that change what a backward pass finds, as activation checkpointing does; early versions of torch do not tell."""


class Outputs(NamedTuple):
    """What a recorded call leaves behind, in tensors that the next replay overwrites.

    Attributes:
        loss: a scalar.
        scale: the gradient of the loss that ``gradients`` are for, a scalar.
        gradients: with respect to some of the tensors.
        taught: which ones.
        last: costs and losses for ``statistics()``.
        selected: which samples those are about.
    """

    loss: Tensor
    scale: Tensor
    gradients: list[Tensor]
    taught: tuple[int, ...]
    last: dict[str, Tensor]
    selected: Tensor | None


Body = Callable[[], Outputs]


class GraphMaker:
    """All that is asked of CUDA, for one device."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._side: Any = None
        self._pools: dict[int, Any] = {}

    @staticmethod
    def suits(device: torch.device) -> bool:
        """Whether this kind of device can record."""
        return device.type == "cuda"

    def place(self) -> int | None:
        """The stream that a call would run on; ``None`` if somebody records it already, or works on another device.

        Two streams never share a graph, whose buffers they would overwrite under each other's feet.
        """
        if torch.cuda.current_device() != self.device.index or torch.cuda.is_current_stream_capturing():
            return None
        return int(torch._C._cuda_getCurrentRawStream(self.device.index))

    def rehearse(self, body: Body) -> Outputs:
        """Run it once, for real, on the stream that recordings take place on."""
        here, side = torch.cuda.current_stream(), self._aside()
        side.wait_stream(here)
        with torch.cuda.stream(side):
            found = body()
        here.wait_stream(side)
        for tensor in (found.loss, found.scale, *found.gradients, *found.last.values()):
            tensor.record_stream(here)
        return found

    def record(self, body: Body) -> Body:
        """The same as one launch; runs nothing."""
        here, graph = torch.cuda.current_stream(), torch.cuda.CUDAGraph()
        pool = self._pools.get(here.cuda_stream) or torch.cuda.graph_pool_handle()
        try:
            # Other threads, such as those that pin memory for a data loader, must not break a recording.
            with torch.cuda.graph(graph, pool=pool, stream=self._aside(), capture_error_mode="thread_local"):
                before = torch.cuda.memory_reserved(self.device)
                found = body()
                size = torch.cuda.memory_reserved(self.device) - before
        except BaseException:
            self._recover(here, pool)
            raise
        if size > MOST_BYTES:
            raise MemoryError(f"the graph would keep {size} bytes")
        self._pools[here.cuda_stream] = pool

        def replay() -> Outputs:
            graph.replay()
            return found

        return replay

    def _aside(self) -> Any:
        if self._side is None:
            self._side = torch.cuda.Stream(self.device)
        return self._side

    def _recover(self, here: Any, pool: Any) -> None:
        """After a recording that broke off: everything as it was before."""
        self._pools.pop(here.cuda_stream, None)
        try:
            # torch leaves these open: the allocator still fills the pool, and the random generator takes no ordinary draws until
            # a recording has ended well.
            with contextlib.suppress(RuntimeError, AttributeError):
                torch._C._cuda_endAllocateToPool(self.device.index, pool)
            with contextlib.suppress(RuntimeError):
                side = torch.cuda.Stream(self.device)
                with torch.cuda.graph(torch.cuda.CUDAGraph(), stream=side, capture_error_mode="thread_local"):
                    torch.zeros(1, device=self.device)
        finally:
            torch.cuda.set_stream(here)
            self._side = None


class Layout(NamedTuple):
    """Which tensors a call has, by name: for symbols, as beliefs, as masks of samples; ``where`` may be a lone one."""

    tensors: tuple[str, ...]
    believe: tuple[str, ...] | None
    where: tuple[str, ...] | bool | None

    def rebuild(self, given: Sequence[Tensor]) -> dict[str, Any]:
        """The arguments of a call from its tensors."""
        rest = iter(given)
        tensors = {name: next(rest) for name in self.tensors}
        believe = None if self.believe is None else {name: next(rest) for name in self.believe}
        where: Any = None
        if self.where is not None:
            where = next(rest) if isinstance(self.where, bool) else {name: next(rest) for name in self.where}
        return {"where": where, "believe": believe, "tensors": tensors}


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
        usual = self.incoming.isfinite() & (self.incoming != 0)
        self.scale.copy_(torch.where(usual, self.incoming, self.scale))
        leaves = [static.detach().requires_grad_(needy) for static, needy in zip(self.statics, self.needy)]
        arguments = layout.rebuild([leaves[slot] for slot in self.slots])
        with torch.enable_grad():
            loss = owner._compute(self.index, **arguments)
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
        plain = owner._peers is None and type(owner._table) in (DualTable, SharedRow)
        return cls(owner._table.device) if plain and GraphMaker.suits(owner._table.device) else None

    def __len__(self) -> int:
        return sum(entry.recording is not None for entry in self._entries.values())

    def __call__(self, owner: Any, index: Any, where: Any, believe: Any, tensors: dict[str, Any]) -> Tensor | None:
        """The loss of a call; ``None`` for one that must run the plain way, after which :meth:`watch` is told."""
        self._watched = None
        place = self._maker.place() if _can_learn(owner) else None
        signed = None if place is None else _sign(owner, self._device, index, where, believe, tensors)
        if signed is None:
            return None
        key, layout, given, slots = signed
        self._clock += 1
        entry = self._entries.get((place, key))
        if entry is None:
            entry = self._add((place, key), _can_stand_for(given, self._device))
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


def _can_learn(owner: Any) -> bool:
    """Whether this is an ordinary call of a training loop: not traced, transformed, inspected or computed again."""
    if not (owner.capture and owner.training and owner.update == "forward" and owner.reduction != "none"):
        return False
    ordinary = torch.is_grad_enabled() and not owner._run.frozen and torch._C._current_graph_task_id() == -1
    return ordinary and not (
        torch._C._functorch.peek_interpreter_stack() is not None
        or torch._C._len_torch_dispatch_stack()
        or forward_ad._current_level >= 0
        or torch.is_anomaly_enabled()
        or _saving_hooks(False) is not None
        or torch._C._get_tracing_state() is not None
    )


def _sign(
    owner: Any, device: torch.device, index: Any, where: Any, believe: Any, tensors: dict[str, Any]
) -> tuple[Hashable, Layout, list[Tensor], tuple[int, ...]] | None:
    """The signature of a call, and its tensors in order; ``None`` if something in it is no ordinary tensor."""
    given = list(tensors.values())
    believed: tuple[str, ...] | None = None
    masks: tuple[str, ...] | bool | None = None
    if believe is not None:
        if not isinstance(believe, Mapping):
            return None
        believed = tuple(believe)
        given += believe.values()
    if where is not None:
        masks = tuple(where) if isinstance(where, Mapping) else True
        given += where.values() if isinstance(where, Mapping) else (where,)
    layout = Layout(tuple(tensors), believed, masks)
    try:
        described = tuple([(each.shape, each.stride(), each.dtype, each.requires_grad, each.device) for each in given])
        indexed = None if index is None else (index.shape, index.dtype, index.device)
    except (AttributeError, RuntimeError, TypeError):
        return None
    if not all(type(each) in (Tensor, nn.Parameter) for each in given) or not (index is None or type(index) is Tensor):
        return None
    numbers = [id(each) for each in given]
    slots = tuple(range(len(given)))
    if len(set(numbers)) < len(numbers):
        order = list(dict.fromkeys(numbers))
        slots = tuple(order.index(number) for number in numbers)
    kind = device.type
    settings = (
        owner.reduction,
        owner._off,
        owner._weighted,
        torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
    )
    return (layout, described, indexed, slots, settings), layout, given, slots


def _can_stand_for(given: Iterable[Tensor], device: torch.device) -> bool:
    """Whether buffers can take the place of these tensors."""
    return all(each.device == device and each.layout is torch.strided and each.numel() for each in given)


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
