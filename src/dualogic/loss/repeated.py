"""Calls that repeat, on a CPU: recorded at the second, from the tensors to the loss and back, and made again without the walk.

What is unusual about a call, or wrong with it, is left to the walk: nothing is changed before all was looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from dualogic.compile.straight_ways import Tensors
from dualogic.duals.table import DualTable, SharedRow, Update, check_range, has_duplicates
from dualogic.errors import StateError
from dualogic.loss.signature import TELLS_OF_HOOKS, is_watched
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
    program, table, run, training = owner._program, owner._table, owner._run, owner.training
    steps, graded = program.recorded, torch.is_grad_enabled()
    if steps is None or not _is_usual(owner):
        return None
    learning, optimal = training and graded, index is None and not (training or table.shared)
    if program.width and not (learning or optimal):
        return None
    given = list(tensors.values())
    try:
        described = [(each.shape, each.stride(), each.dtype, each.requires_grad, each.is_cpu, type(each)) for each in given]
        batch: int = described[0][0][0]
        versions = [each._version for each in given]  # which what inference mode made has not
    except (AttributeError, RuntimeError, IndexError):
        return None
    if learning and owner._given is None and any(each[3] for each in described):
        return None  # the walk finds out what is given, and the units of costs
    if table.shared:
        index = None
    elif training if index is None else not _is_index(index, batch):
        return None
    state, stepping = owner._state, learning and program.width > 0
    try:
        if index is not None and not stepping:
            check_range(index, table.samples)
        held = [*([table.fetch(index)] if stepping else []), *state.values(), *([owner._factors] if owner._weighted else [])]
    except IndexError:
        return None
    told = steps.tell(state, stepping)
    key = (learning, graded, optimal, told, owner._weighted, owner.reduction, *tensors, *described)
    if (found := steps.known.get(key)) is None:
        found = _record(owner, steps, key, held, given, list(tensors), stepping)
    if not found:
        return None
    line, form = found
    if line.continues:
        results: list[Any] = []
        call = (program, state, line, form, key, versions, results)
        loss: Tensor = _apply(call, [*held, *given], *given)  # type: ignore[no-untyped-call]
    else:
        with torch.no_grad():
            loss, *results = line.first([*held, *given])[0]
    # If a value is suspicious the walk tells what is wrong.
    for number, (low, high) in zip(results[form.last :], form.bounds):
        if not low <= number.item() <= high:
            return None
    losses, costs, _, rows, *_ = results
    run.validated = True
    if learning:
        owner._write(None if rows is None else Update(rows, index, rows), results[4 : form.after])
    run.last, run.selected = {"cost": costs, "loss": losses}, None
    return loss


def _is_usual(owner: LogicLoss) -> bool:
    """Whether nothing about the loss, or the way it is called, asks for the walk."""
    if owner._off or owner._peers is not None or owner.update != "forward" or owner._run.frozen or not owner._factors.is_cpu:
        return False
    if type(owner._table) not in (DualTable, SharedRow) or torch.is_autocast_enabled("cpu") or torch.is_inference_mode_enabled():
        return False
    return (TELLS_OF_HOOKS or owner.training) and not is_watched()  # in eval() it may be computed again in the backward pass


def _is_index(index: Any, batch: int) -> bool:
    """Whether this is an ordinary index in which no sample occurs twice."""
    usual = type(index) is Tensor and index.dtype is torch.int64 and index.is_cpu and index.shape == (batch,)
    return usual and not has_duplicates(index)


def _record(owner: LogicLoss, steps: Steps, key: Any, held: Tensors, given: Tensors, names: list[str], stepping: bool) -> Any:
    program, states, weighted = owner._program, tuple(owner._state), owner._weighted
    learning, _, optimal, told, *_ = key
    if not all(type(each) in ORDINARY and each.is_cpu and len(each) for each in given):
        return None
    needy = [each.requires_grad and torch.is_grad_enabled() for each in given]
    join = JOINS[owner.reduction]

    def walk(*all_of_it: Tensor) -> tuple[Seen, Any]:
        rest = list(all_of_it)
        rows = rest.pop(0) if stepping else None
        state = {name: rest.pop(0) for name in states}
        factors = rest.pop(0) if weighted else None
        leaves = {name: each.detach().requires_grad_(flag) for name, each, flag in zip(names, rest, needy)}
        if stepping:
            return walk_step(program, state, rows, told, factors, leaves, join)  # type: ignore[arg-type]
        return walk_plain(program, state, optimal, learning, told, factors, leaves, join)

    return steps.find(key, held, given, walk, program.plan.fixed())


def _remake(call: tuple[Any, ...], tensors: Tensors) -> Tensor:
    """The loss once more, from tensors that it can be differentiated by twice."""
    program, state, _, form, (learning, _, optimal, told, _, reduction, *names), _, results = call
    _, _, scale, rows, *_ = results
    kept = results[form.after : form.last]
    values = program.evaluate(program.plan.bind(dict(zip(names, tensors)), False))
    if rows is not None:
        losses = losses_again(program, rows, kept, told, values)
    else:
        losses = plain_losses(program, dict(zip(state, kept)), values, optimal, learning)[0]
    return JOINS[reduction](losses if scale is None else losses * scale)


class _Again(torch.autograd.Function):
    """A recorded call as one node of autograd's."""

    @staticmethod
    def forward(ctx: Any, call: tuple[Any, ...], given: Tensors, *tensors: Tensor) -> Tensor:
        _, _, line, *_, results = call
        found, ctx.kept = line.first(given)
        results += found[1:]  # with the loss it would hold itself
        if line.late:  # only what the backward pass reads may not be changed until then
            ctx.save_for_backward(*[given[place] for place in line.late])
        ctx.call, ctx.tensors = call, tensors
        return found[0]  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        _ = ctx.saved_tensors  # which refuses what was changed meanwhile
        if not torch.is_grad_enabled():
            return (None, None, *ctx.call[2].second(ctx.kept, gradients[0].contiguous()))
        # A second derivative is wanted: give a first one that can be differentiated, by each tensor apart from the others.
        tensors, needed = ctx.tensors, ctx.needs_input_grad[2:]
        if ctx.call[5] != [tensor._version for tensor in tensors]:
            raise StateError(
                "a tensor that was given to the loss has been modified by an inplace operation since, so that there is no second "
                "derivative (create_graph=True); give the loss a clone of it"
            )
        apart = [tensor.view_as(tensor) for tensor in tensors]
        moving = [tensor for tensor, wanted in zip(apart, needed) if wanted]
        found = iter(torch.autograd.grad(_remake(ctx.call, apart), moving, gradients[0], create_graph=True, allow_unused=True))
        return (None, None, *(next(found) if wanted else None for wanted in needed))


_apply = super(torch.autograd.Function, _Again).apply
"""Without a look for transformations of torch's: there are none where this is called."""
