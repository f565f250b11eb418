"""Calls that repeat, on a CPU: recorded at the second, from the tensors to the loss and back, and made again without the walk.

What is unusual about a call, or wrong with it, is left to the walk: nothing is changed before all was looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from dualogic import numerics
from dualogic.compile.binding import is_within
from dualogic.compile.straight import Straight
from dualogic.compile.straight_ways import Tensors
from dualogic.duals.table import SHORT_BATCH, DualTable, SharedRow, Update, has_duplicates
from dualogic.errors import StateError
from dualogic.methods.base import State
from dualogic.methods.lean import CLOSED
from dualogic.methods.straight import Join, Seen, Steps, losses_again, plain_losses, walk_plain, walk_step

if TYPE_CHECKING:
    from dualogic.loss.module import LogicLoss

ORDINARY = (Tensor, nn.Parameter)
JOINS: dict[str, Join] = {
    "none": lambda losses: losses.sum(1),
    "sum": lambda losses: losses.sum(),
    "mean": lambda losses: losses.sum() / len(losses),
}
"""The loss of a batch; see :func:`~dualogic.loss.step.join_losses`."""


def call_again(owner: LogicLoss, index: Any, tensors: dict[str, Any]) -> Tensor | None:
    """The loss of a call that was recorded, with all that it changes; ``None`` if it is to be walked."""
    program, table, run = owner._program, owner._table, owner._run
    steps, graded = program.recorded, torch.is_grad_enabled()
    if steps is None or not _is_usual(owner):
        return None
    learning = owner.training and graded
    optimal = index is None and not owner.training and not table.shared
    if program.width and not (learning or optimal):
        return None
    given = list(tensors.values())
    try:
        described = [(each.shape, each.stride(), each.dtype, each.requires_grad, each.is_cpu, type(each)) for each in given]
        batch: int = described[0][0][0]
    except (AttributeError, RuntimeError, IndexError):
        return None
    if not batch or not all(each[4] and each[5] in ORDINARY for each in described):
        return None
    if table.shared:
        index = None
    elif owner.training if index is None else not _is_index(index, batch, table.samples):
        return None
    state, stepping = owner._state, learning and program.width > 0
    evident = not stepping or _is_all_evidence(steps, state)
    key = (learning, graded, optimal, evident, owner._weighted, owner.reduction, *tensors, *described)
    factors = [owner._factors] if owner._weighted else []
    held = [*([table.fetch(index)] if stepping else []), *state.values(), *factors]
    found = steps.known.get(key)
    if found is None:
        found = _record(owner, steps, key, held, given, list(tensors), stepping)
    if not found:
        return None
    line, form, limits = found
    if graded and any(each[3] for each in described):
        results: list[Any] = []
        remake = _remake(owner, form, list(tensors), results, optimal, learning)
        loss: Tensor = _Again.apply(line, [*held, *given], results, remake, *given)  # type: ignore[no-untyped-call]
    else:
        loss, *results = line.first([*held, *given])[0]
    seen = form.filled(loss, results)
    if not _is_fine(seen, *limits):
        return None
    run.validated = True
    if learning:
        update = None if seen.rows is None else Update(seen.rows, index, seen.rows)
        run.pending = (update, dict(zip(state, seen.state)))
        owner._commit()
    run.last, run.selected = {"cost": seen.costs, "loss": seen.losses}, None
    return loss


def _is_usual(owner: LogicLoss) -> bool:
    """Whether nothing about the loss, or the way it is called, asks for the walk."""
    if owner._off or owner._peers is not None or owner.update != "forward" or owner._run.frozen or not owner._factors.is_cpu:
        return False
    if type(owner._table) not in (DualTable, SharedRow) or torch._C._current_graph_task_id() != -1 or numerics.is_transformed():
        return False
    return not (
        torch.is_autocast_enabled("cpu")
        or torch.is_inference_mode_enabled()
        or forward_ad._current_level >= 0
        or torch._C._len_torch_dispatch_stack()
        or torch._C._get_tracing_state() is not None
    )


def _is_index(index: Any, batch: int, samples: int) -> bool:
    """Whether all is well with an index, and no sample occurs twice; of a short one Python knows sooner."""
    if type(index) is not Tensor or index.dtype is not torch.int64 or not index.is_cpu or index.shape != (batch,) or not batch:
        return False
    if batch <= SHORT_BATCH:
        each = set(index.tolist())
        return len(each) == batch and min(each) >= 0 and max(each) < samples
    low, high = torch.aminmax(index)
    return low.item() >= 0 and high.item() < samples and not has_duplicates(index)


def _is_all_evidence(steps: Steps, state: State) -> bool:
    known = state.get("known")
    if known is None:
        return True
    if steps.evidence is None or steps.evidence[0] is not known:
        steps.evidence = (known, known[4])
    return bool(max(steps.evidence[1].tolist()) <= CLOSED)


def _is_fine(seen: Seen, limit: float, most: float) -> bool:
    """Whether no value is suspicious: if one is, the walk tells what is wrong."""
    # Costs are not negative: if their sum is small enough, so are they.
    fine = all(total.item() < limit for total in seen.sums) and (seen.move is None or seen.move.item() < most)
    return fine and is_within([each.item() for each in seen.watched], [each.item() for each in seen.extremes])


def _record(owner: LogicLoss, steps: Steps, key: Any, held: Tensors, given: Tensors, names: list[str], stepping: bool) -> Any:
    program, states, weighted = owner._program, tuple(owner._state), owner._weighted
    learning, _, optimal, evident, *_ = key
    needy = [each.requires_grad and torch.is_grad_enabled() for each in given]
    join = JOINS[owner.reduction]

    def walk(*all_of_it: Tensor) -> tuple[Seen, Any]:
        rest = list(all_of_it)
        rows = rest.pop(0) if stepping else None
        state = {name: rest.pop(0) for name in states}
        factors = rest.pop(0) if weighted else None
        leaves = {name: each.detach().requires_grad_(flag) for name, each, flag in zip(names, rest, needy)}
        if stepping:
            return walk_step(program, state, rows, evident, factors, leaves, join)  # type: ignore[arg-type]
        return walk_plain(program, state, optimal, learning, factors, leaves, join)

    found = steps.find(key, held, given, walk, program.plan.fixed())
    if found:
        dtype = found[1].costs.dtype
        narrow = numerics.narrower(dtype, owner._state["delta"].dtype) if learning else dtype
        found = steps.known[key] = (*found, (program.largest_cost(narrow), numerics.largest_move(narrow)))
    return found


def _remake(
    owner: LogicLoss, form: Seen, names: list[str], results: list[Tensor], optimal: bool, learning: bool
) -> Callable[[Tensors], Tensor]:
    """Gives the loss again, from tensors that it can be differentiated by twice."""
    program, states, join = owner._program, tuple(owner._state), JOINS[owner.reduction]

    def remake(tensors: Tensors) -> Tensor:
        seen = form.filled(form.loss, results)
        values = program.evaluate(program.plan.bind(dict(zip(names, tensors)), False))
        if seen.rows is not None:
            losses = losses_again(program, seen, values)  # type: ignore[arg-type]
        else:
            losses = plain_losses(program, dict(zip(states, seen.kept)), values, optimal, learning)[0]
        return join(losses if seen.scale is None else losses * seen.scale)

    return remake


class _Again(torch.autograd.Function):
    """A recorded call as one node of autograd's."""

    @staticmethod
    def forward(
        ctx: Any, line: Straight, given: Tensors, results: list[Tensor], remake: Callable[[Tensors], Tensor], *tensors: Tensor
    ) -> Tensor:
        found, ctx.kept = line.first(given)
        results.extend(found[1:])  # with the loss it would hold itself
        ctx.line, ctx.remake = line, remake
        # Only what the backward pass reads may not be changed until then.
        ctx.save_for_backward(*[given[place] for place in line.late])
        ctx.tensors, ctx.versions = tensors, [tensor._version for tensor in tensors]
        return found[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        _ = ctx.saved_tensors  # which refuses what was changed meanwhile
        if not torch.is_grad_enabled():
            return (None, None, None, None, *ctx.line.second(ctx.kept, gradients[0].contiguous()))
        # A second derivative is wanted: give a first one that can be differentiated.
        tensors, needed = ctx.tensors, ctx.needs_input_grad[4:]
        if ctx.versions != [tensor._version for tensor in tensors]:
            raise StateError(
                "a tensor that was given to the loss has been modified by an inplace operation since, so that there is no second "
                "derivative (create_graph=True); give the loss a clone of it"
            )
        moving = [tensor for tensor, wanted in zip(tensors, needed) if wanted]
        found = iter(torch.autograd.grad(ctx.remake(tensors), moving, gradients[0], create_graph=True, allow_unused=True))
        return (None, None, None, None, *(next(found) if wanted else None for wanted in needed))
