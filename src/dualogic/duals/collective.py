"""Several processes that train on parts of one batch: how they speak to each other.

Only a loss with ``process_group=`` has :class:`Peers`; without it nothing here is called.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from dualogic.duals.table import Apply, DualTable, Update
from dualogic.errors import OptionError, StateError

WORLD = "world"
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def eager(function: F) -> F:
    """Leave a function that exchanges lengths known only at run time out of ``torch.compile``."""
    disabled: F = torch.compiler.disable(function)
    return disabled


class Peers:
    """The processes of a group, each with a part of the same global batch, possibly of different sizes and possibly empty.

    The group is a ``torch.distributed.ProcessGroup``, or ``"world"`` for the default one, which is looked up when it is used, so
    that a loss may be made before ``init_process_group`` (as Lightning does); while there is none, or in a group of one, nothing
    is sent.
    """

    def __init__(self, group: Any) -> None:
        self._group = group
        self._mesh: Any = None
        self.counts: list[int] = [0]  # the sizes of the parts of the latest batch, by rank
        self.marked = False  # whether any process marked its part of it

    @property
    def group(self) -> Any:
        """The group; of the default one, what it is by now."""
        return dist.group.WORLD if isinstance(self._group, str) else self._group

    @property
    def size(self) -> int:
        """How many processes there are."""
        if isinstance(self._group, str) and not (dist.is_available() and dist.is_initialized()):
            return 1
        return dist.get_world_size(self.group)

    @property
    def rank(self) -> int:
        """Which of them this is."""
        return 0 if self.size == 1 else dist.get_rank(self.group)

    @property
    def total(self) -> int:
        """The size of the latest global batch."""
        return sum(self.counts)

    @property
    def mine(self) -> slice:
        """Where this process's part lies in the latest global batch."""
        start = sum(self.counts[: self.rank])
        return slice(start, start + self.counts[self.rank])

    @eager
    def agree(
        self, action: Callable[[], T], size_of: Callable[[T], int] | None = None, is_marked: Callable[[T], bool] | None = None
    ) -> T:
        """Do something that may fail in every process, and fail everywhere if it fails anywhere; nobody is left waiting.

        ``size_of`` its result is the size of this process's part of the batch, kept in ``counts``; whether one part ``is_marked``
        is kept in ``marked``. Raised is what ``action`` raised here, or a :class:`StateError` if it failed elsewhere only.
        """
        failure: Exception | None = None
        number = 0
        try:
            result = action()
            # One number travels: the size, and the mark as its last bit.
            number = 0 if size_of is None else 2 * size_of(result) + (is_marked is not None and is_marked(result))
        except Exception as error:
            failure, number = error, -1
        numbers = self._tell(number)
        if failure is not None:
            raise failure
        if failed := [rank for rank, told in enumerate(numbers) if told < 0]:
            raise StateError(
                f"process {failed[0]} of {self.size} met an error in its part of the batch, which its own message explains; "
                f"nothing was changed in any process"
            )
        if size_of is not None:
            self.counts = [told // 2 for told in numbers]
            self.marked = any(told % 2 for told in numbers)
        return result

    def _tell(self, number: int) -> list[int]:
        if self.size == 1:
            return [number]
        # On the host where the group has a backend for it, so that no process waits for its accelerator.
        devices: list[torch.device] = self.group._device_types
        host = torch.device("cpu")
        device = host if host in devices else devices[0]
        parts = [torch.empty(1, dtype=torch.long, device=device) for _ in range(self.size)]
        dist.all_gather(parts, torch.tensor([number], device=device), group=self.group)
        return [int(part) for part in torch.cat(parts).tolist()]

    @eager
    def gather(self, part: Tensor) -> Tensor:
        """The whole from the parts of all processes, in the order of ranks, ``(total, ...)``, without gradients."""
        if self.size == 1:
            return part
        if part.dtype is torch.bool:
            return self.gather(part.to(torch.uint8)).bool()
        padded = part.new_zeros(max(self.counts), *part.shape[1:])
        padded[: part.shape[0]] = part.detach()
        whole = [torch.empty_like(padded) for _ in self.counts]
        dist.all_gather(whole, padded, group=self.group)
        return torch.cat([theirs[:count] for theirs, count in zip(whole, self.counts)])

    @eager
    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all processes."""
        if self.size == 1:
            return tensor
        total = tensor.clone()
        dist.all_reduce(total, group=self.group)
        return total

    def mesh(self, device: torch.device) -> Any:
        """The group as a one-dimensional device mesh, for sharded checkpoints."""
        if self._mesh is None or self._mesh.device_type != device.type:
            from torch.distributed.device_mesh import DeviceMesh

            self._mesh = DeviceMesh.from_group(self.group, device.type)
        return self._mesh

    def __deepcopy__(self, memo: dict[int, Any]) -> Peers:
        return Peers(self._group)

    def __getstate__(self) -> dict[str, Any]:
        if not isinstance(self._group, str):
            raise StateError(
                "a LogicLoss with a process group of its own cannot be pickled, because the group cannot; save its "
                "state_dict(), or use process_group='world' for the default group"
            )
        return {"_group": self._group, "_mesh": None, "counts": [0], "marked": False}


def make_peers(group: Any) -> Peers:
    """The processes that an argument ``process_group=`` stands for."""
    if group is True or (isinstance(group, str) and group == WORLD):
        return Peers(WORLD)
    if not (dist.is_available() and isinstance(group, dist.ProcessGroup)):
        raise OptionError(
            f"process_group must be a torch.distributed.ProcessGroup that this process belongs to, 'world' or True for the "
            f"default group, or None for one process; got {group!r}"
        )
    return Peers(WORLD if group is dist.group.WORLD else group)


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
    over the global batch. The arguments are those of :meth:`DualTable.advance`, for this process's part; the processes have
    agreed on ``counts``.
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
