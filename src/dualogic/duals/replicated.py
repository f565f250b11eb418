"""A table that every process holds in full: only the batch's moves travel, and all processes write the same rows."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from dualogic.duals.collective import Peers, eager
from dualogic.duals.table import Apply, DualTable, Update


@eager
def advance_together(
    table: DualTable,
    peers: Peers,
    index: Tensor | None,
    rows: Tensor,
    moves: Tensor,
    apply: Apply,
    counted: Tensor | None,
    selected: Tensor | None = None,
) -> Update:
    """The rows after a step of the global batch: what one process would compute on all parts at once.

    A sample that occurs several times, in whichever processes, moves by the mean of its moves; a shared row moves by the mean
    over the global batch. Sent are ``8 + width * itemsize`` bytes per sample of the longest part, or ``width + 1`` numbers for
    a shared row. The arguments are those of :meth:`DualTable.advance`, for this process's part; the processes have agreed on
    ``counts``.
    """
    if peers.size == 1:
        return table.advance(index, rows, moves, apply, counted, selected)  # type: ignore[arg-type]
    if index is None:
        number = moves.new_full((1,), moves.shape[0]) if counted is None else counted.sum(0).to(moves.dtype).view(-1)
        total, number = peers.sum(torch.cat([moves.sum(0), number])).split([moves.shape[1], len(number)])
        mean = total / number.clamp_min(1.0)
        return table.advance(index, rows, mean.unsqueeze(0), apply, None)  # type: ignore[arg-type]
    everywhere = peers.gather(index.to(moves.device))
    moves = peers.gather(moves)
    counted = None if counted is None else peers.gather(counted)
    selected = None if selected is None else peers.gather(selected)
    update = table.advance(everywhere, table.fetch(everywhere), moves, apply, counted, selected)
    return dataclasses.replace(update, local=update.local[peers.mine])
