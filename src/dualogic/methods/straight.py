"""What is recorded of a call on a CPU: from the tensors to the loss, new rows, what all samples share, and the gradient."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from dualogic.compile.binding import FINITE, watch, watch_whole
from dualogic.compile.instructions import Apply
from dualogic.compile.straight import Later, Straight, Unrecordable
from dualogic.compile.straight_ways import Found, Tensors
from dualogic.errors import DualogicError
from dualogic.losses.truncated_normal import truncated_normal_loss
from dualogic.methods.base import Program, State
from dualogic.methods.closed_form import lose
from dualogic.methods.lean import CLOSED, OPEN, Stand
from dualogic.methods.mixture import Mixture
from dualogic.numerics import largest_move, narrower

if TYPE_CHECKING:
    from dualogic.methods.dual_program import DualProgram

Named = dict[str, Tensor]
Join = Callable[[Tensor], Tensor]
Bounded = tuple[Tensor, float, float]
MOST = 24
"""So many signatures of calls are recorded."""
LARGEST = 32_000_000
"""Of numbers in the tensors of a batch: to record a call takes about twice the memory of a walk, once."""


class Told(NamedTuple):
    """What the state tells of implications, as far as that decides which operations a call makes."""

    share: float | None = 1.0  # of their antecedents, that is evidence; `None` if the state has to be asked
    full: bool = True  # whether no rule holds back


@dataclasses.dataclass
class Seen:
    """What a call comes to; nothing is changed yet."""

    loss: Tensor  # of the batch
    losses: Tensor  # of samples and rules
    costs: Tensor  # likewise
    scale: Tensor | None  # what losses are multiplied by before they are joined; `None` for 1
    rows: Tensor | None  # that moved; `None` if there are none
    state: list[Tensor]  # what all samples share from now on; empty if nothing is learned
    kept: list[Tensor]  # what is needed to make the losses again
    numbers: list[Bounded]  # to be read, with the bounds that they are within if nothing is suspicious

    def __post_init__(self) -> None:
        self.bounds = [bounds for _, *bounds in self.numbers]
        self.after, self.last = 4 + len(self.state), 4 + len(self.state) + len(self.kept)

    def flat(self) -> list[Tensor | None]:
        """The tensors in order; without the loss, ``kept`` starts at ``after`` and ``numbers`` at ``last``."""
        numbers = [number for number, *_ in self.numbers]
        return [self.loss, self.losses, self.costs, self.scale, self.rows, *self.state, *self.kept, *numbers]


class Steps:
    """The recorded calls of a program, by what their tensors look like; one that is seen for the second time is recorded."""

    @classmethod
    def of(cls, program: Program) -> Steps | None:
        """Those of a program; ``None`` if its rules apply functions of a user's, which may do anything."""
        return None if any(isinstance(each, Apply) for each in program.plan.instructions) else cls()

    def __init__(self) -> None:
        self.known: dict[Any, tuple[Any, ...] | bool | None] = {}
        self.nothing = Told()
        self.known_of: tuple[Tensor, Tensor] | None = None  # implications, and the rows of it that tell

    def tell(self, state: State, stepping: bool) -> Told:
        """What a state tells, in two rows of what :func:`~dualogic.methods.lean.start_known` makes; of shares, to a step only."""
        known = state.get("known")
        if known is None:
            return self.nothing
        if self.known_of is None or self.known_of[0] is not known:
            self.known_of = known, known[4:7:2]
        highest, pulls = self.known_of[1].tolist()
        none = min(highest) > OPEN and known.dtype is torch.float32  # a wider share would widen what it is multiplied by
        return Told(1.0 if not stepping or max(highest) <= CLOSED else 0.0 if none else None, pulls.count(1.0) == len(pulls))

    def find(self, key: Any, held: Tensors, given: Tensors, walk: Callable[..., tuple[Seen, Later]], fixed: Tensors) -> Any:
        """The recorded call and the form of its results; nothing, if it is not recorded.

        ``key`` decides which operations it makes; ``held``, the first of its tensors, may change before a backward pass, and
        ``fixed`` ones never do.
        """
        if key not in self.known:
            if len(self.known) < MOST and 0 < sum(tensor.numel() for tensor in (*held, *given)) <= LARGEST:
                self.known[key] = None
            return None
        forms: list[Seen] = []

        def record(*tensors: Tensor) -> tuple[Found, Later]:
            seen, later = walk(*tensors)
            forms.append(seen)
            return seen.flat(), later

        self.known[key] = False  # what is wrong with a call, the walk tells
        with contextlib.suppress(Unrecordable, DualogicError), torch.device("cpu"):
            line = Straight(record, [*held, *given], fixed)
            if all(place >= len(held) for place in line.late):
                self.known[key] = (line, forms[0])
        return self.known[key]


def walk_step(
    program: DualProgram, state: State, rows: Tensor, told: Told, factors: Tensor | None, tensors: Named, join: Join
) -> tuple[Seen, Later]:
    """A training step of weighted rules; see :mod:`dualogic.loss.step`, of which this is the shortest way through."""
    bound = program.plan.bind(tensors, False)
    registers = program.evaluate(bound)
    values = program.settle(state, [register.detach() for register in registers], told)
    with torch.no_grad():
        costs, moves, noted = program.moves(rows, state, values)
        new = program.apply_moves(rows, moves.sum(0, keepdim=True) / moves.shape[0] if program.shared else moves, values)
        mixture = program.mixture(new, state, values, remember=True, sloped=True)
        delta = state["delta"].to(costs.dtype, copy=True)
        losses, seen, slopes = lose(program.plan, mixture, delta, values, program.taught)
        after = program.advance(state, seen, None, noted, told.share)
        stands = [each for stand in values.stands.values() for each in stand if isinstance(each, Tensor)]
        # Of one rule ``delta`` needs the same sum.
        sums = [each.sum(0) if each.shape[1] == 1 else each.sum() for each in ([costs] if seen is costs else [costs, seen])]
        scale = scale_of(program, state, seen, factors, told.full)
        stored = narrower(costs.dtype, state["delta"].dtype)
        numbers = _below(program.largest_cost(stored), *sums)
        # Rows in which nothing is learned move by finite numbers, if what they held was finite.
        numbers += [(moves.sum(), *FINITE)] if program.still else _below(largest_move(stored), moves.amax())
        if told.share == 1.0 and "known" in state:
            highest = after["known"][4]
            numbers.append(
                (highest if len(highest) == 1 else highest.amax(), -math.inf, CLOSED)
            )  # from here on a share is no evidence
        numbers += watch(program.plan.symbols, bound.tensors) + watch_whole(program.plan.symbols, tensors, bound.tensors)
    leaf, given = losses.detach().requires_grad_(), [*tensors.values()]
    loss = join(leaf if scale is None else leaf * scale)
    atoms = [(place, registers[number]) for place, number in enumerate(program.taught) if registers[number].requires_grad]

    def later(one_more: Tensor) -> Found:
        (gradient,) = torch.autograd.grad(loss, leaf, one_more)
        with torch.no_grad():
            ways = [slopes(gradient, held) for held in (True, False)]
        whole, found = (_reach(given, [each for _, each in atoms], [way[place] for place, _ in atoms]) for way in ways)
        # Where nothing but evidence leads to, all is 0 without a computation.
        pairs = zip(whole, found)
        return [torch.zeros(one.shape, dtype=one.dtype) if two is None and one is not None else two for one, two in pairs]

    return Seen(loss.detach(), losses, seen, scale, new, [*after.values()], [delta, *stands], numbers), later


def walk_plain(
    program: Program, state: State, optimal: bool, learning: bool, told: Told, factors: Tensor | None, tensors: Named, join: Join
) -> tuple[Seen, Later]:
    """A call that moves no rows."""
    bound = program.plan.bind(tensors, False)
    losses, costs = plain_losses(program, state, program.evaluate(bound), optimal, learning)
    with torch.no_grad():
        seen = costs.detach()
        scale = scale_of(program, state, seen, factors, told.full)
        after = program.advance(state, seen, None)
        delta = state["delta"]
        kept = state if after["delta"] is delta else {**state, "delta": delta.to(seen.dtype, copy=True)}
        limit = program.largest_cost(narrower(seen.dtype, delta.dtype) if learning else seen.dtype)
        numbers = _below(limit, seen.sum()) + watch(program.plan.symbols, bound.tensors)
        numbers += watch_whole(program.plan.symbols, tensors, bound.tensors)
    loss = join(losses if scale is None else losses * scale)

    def later(one_more: Tensor) -> Found:
        return _reach([*tensors.values()], [loss], [one_more])

    new = [*after.values()] if learning else []
    return Seen(loss.detach(), losses.detach(), seen, scale, None, new, [*kept.values()], numbers), later


def plain_losses(program: Program, state: State, values: Any, optimal: bool, learning: bool) -> tuple[Tensor, Tensor]:
    """Losses and costs of a call that moves no rows."""
    rows = None if optimal else state["delta"].new_empty(1, 0)
    return program.losses(rows, state, program.settle(state, values) if learning and not optimal else values)


def losses_again(program: DualProgram, rows: Tensor, kept: Tensors, told: Told, values: Any) -> Tensor:
    """The losses of a step, to be differentiated twice."""
    delta, *tensors = kept
    parts = iter(tensors)
    stands = {level.number: Stand(level.share) for level in program.leaning if level.share is not None}
    for level in program.leaning:
        if level.share is None:
            share = next(parts) if told.share is None else told.share
            stands[level.number] = Stand(share, next(parts) if told.share != 1.0 and any(level.yes_or_no) else None)
    mixture = Mixture(program.rule, rows, leads=program.leads, stands=stands)
    return truncated_normal_loss(program.plan.fold(values, mixture), delta)


def scale_of(program: Program, state: State, costs: Tensor, factors: Tensor | None, full: bool) -> Tensor | None:
    """What the losses of samples and rules are multiplied by, as a tensor of its own."""
    emphasis = program.emphasis({"delta": state["delta"]} if full else state, costs)
    if factors is None:
        return emphasis
    return factors.to(costs.dtype, copy=True) if emphasis is None else factors.to(costs.dtype) * emphasis


def _below(limit: float, *numbers: Tensor) -> list[Bounded]:
    return [(number, -math.inf, math.nextafter(limit, 0.0)) for number in numbers]


def _reach(tensors: Tensors, results: Tensors, slopes: Sequence[Any]) -> list[Tensor | None]:
    needy = [tensor for tensor in tensors if tensor.requires_grad]
    moving = [(result, slope) for result, slope in zip(results, slopes) if result.requires_grad and slope is not None]
    if not moving or not needy:
        return [None] * len(tensors)
    found = iter(torch.autograd.grad([each for each, _ in moving], needy, [each for _, each in moving], True, allow_unused=True))
    return [next(found) if tensor.requires_grad else None for tensor in tensors]
