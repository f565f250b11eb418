"""A table whose rows live in one process each, in contiguous blocks; rows and moves travel to and from their owners."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from dualogic.duals.collective import Peers, eager
from dualogic.duals.rounding import to_storage
from dualogic.duals.table import Apply, DualTable, Update
from dualogic.errors import StateError


class ShardedTable(DualTable):
    """Rows ``rank * block`` to ``(rank + 1) * block`` of a table, where ``block = ceil(samples / processes)``.

    :meth:`fetch` and :meth:`advance` must be called in all processes at once, also with an empty index. The blocks are those
    of a ``DTensor`` with ``Shard(0)``, which is what a checkpoint holds.
    """

    choice, collective = "sharded", True

    def __init__(self, samples: int, width: int, dtype: torch.dtype, peers: Peers) -> None:
        self.peers = peers
        self.parts, self.rank = peers.size, peers.rank
        self.block = -(-samples // self.parts)
        super().__init__(min(self.block, max(0, samples - self.rank * self.block)), width, dtype)
        self.samples = samples
        self._route: Route | None = None

    @eager
    def fetch(self, index: Tensor) -> Tensor:
        route = self._find_route(index)
        return route.bring_back(super().fetch(route.positions))

    @eager
    def advance(
        self, index: Tensor, rows: Tensor, moves: Tensor, apply: Apply, counted: Tensor | None, selected: Tensor | None = None
    ) -> Update:
        route = self._find_route(index)
        chosen = selected if counted is None else counted
        arrived = None if chosen is None else route.send(chosen.to(torch.uint8)).bool()
        update = super().advance(route.positions, super().fetch(route.positions), route.send(moves), apply, None, arrived)
        return dataclasses.replace(update, local=route.bring_back(update.local))

    def commit(self, update: Update, step: Tensor) -> None:
        assert update.index is not None
        # Rounding depends on a row's place in the whole table, so that it is that of one process.
        rows = to_storage(update.rows, self.values.dtype, step, update.index + self.rank * self.block)
        self.values.index_copy_(0, update.index, rows)

    def _find_route(self, index: Tensor) -> Route:
        if self.peers.size != self.parts or self.peers.rank != self.rank:
            raise StateError(
                f"this table was sharded over {self.parts} processes and is process {self.rank}'s part, but the group now has "
                f"{self.peers.size}; make the LogicLoss after init_process_group, and carry it over by its state_dict()"
            )
        # A step fetches and advances with the same index; its route is worked out once.
        if self._route is None or self._route.index is not index:
            self._route = Route(self.peers, index, self.block)
        return self._route

    def state(self) -> dict[str, Tensor]:
        """The whole table as a ``DTensor`` over the group, which shares memory with this block."""
        if self.parts == 1:
            return super().state()
        from torch.distributed.tensor import DTensor, Shard

        whole = torch.Size((self.samples, self.width))
        mesh = self.peers.mesh(self.device)
        return {"table": DTensor.from_local(self.values, mesh, [Shard(0)], run_check=False, shape=whole, stride=(self.width, 1))}

    def extend_(self, samples: int) -> None:
        """Grow to more samples, which moves rows between processes: all call it together, and see the whole old table once."""
        whole = self.state()["table"]
        rows = whole.full_tensor() if hasattr(whole, "full_tensor") else whole
        with self.device:
            bigger = ShardedTable(samples, self.width, self.values.dtype, self.peers)
        mine = rows[self.rank * bigger.block :][: bigger.values.shape[0]]
        bigger.values[: mine.shape[0]].copy_(mine)
        self.__dict__.update(bigger.__dict__)

    @property
    def place(self) -> str:
        return f"{super().place}, sharded over {self.parts} processes"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_route": None}


class Route:
    """Which process asks which other for which rows ``(part,)``, for one batch.

    ``positions`` are the rows of this process's block that are asked for, ordered by who asks.
    """

    def __init__(self, peers: Peers, index: Tensor, block: int) -> None:
        self.peers = peers
        self.index = index
        if peers.size == 1:
            self.positions = index
            return
        owner = index // block
        self.order = owner.argsort(stable=True)
        asked = torch.bincount(owner, minlength=peers.size)
        asking = torch.empty_like(asked)
        dist.all_to_all_single(asking, asked, group=peers.group)
        self.asked: list[int] = asked.tolist()
        self.asking: list[int] = asking.tolist()
        self.positions = self.send(index) - peers.rank * block

    def send(self, values: Tensor) -> Tensor:
        """Values of this process's part ``(part, ...)``, to the owners of its rows; returns what arrives here."""
        if self.peers.size == 1:
            return values
        return self._exchange(values[self.order], self.asked, self.asking)

    def bring_back(self, values: Tensor) -> Tensor:
        """Values for ``positions``, to those who asked; returns what arrives here, ``(part, ...)`` in the order of the part."""
        if self.peers.size == 1:
            return values
        arrived = self._exchange(values, self.asking, self.asked)
        ordered = torch.empty_like(arrived)
        ordered[self.order] = arrived
        return ordered

    def _exchange(self, values: Tensor, giving: list[int], getting: list[int]) -> Tensor:
        arrived = values.new_empty(sum(getting), *values.shape[1:])
        dist.all_to_all_single(arrived, values.contiguous(), getting, giving, group=self.peers.group)
        return arrived
