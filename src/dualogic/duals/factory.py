"""From the arguments ``table=`` and ``process_group=`` of ``LogicLoss`` to a table and to processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from dualogic.duals.options import Mapped
from dualogic.duals.table import DualTable, SharedRow
from dualogic.errors import OptionError

if TYPE_CHECKING:
    from dualogic.duals.collective import Peers

PLACES = ("device", "host", "mapped", "sharded")


def make_table(
    choice: Any,
    samples: int | None,
    width: int,
    dtype: torch.dtype,
    peers: Peers | None = None,
    owner: Mapping[str, Any] | None = None,
) -> DualTable:
    """The table that holds the dual variables.

    Args:
        choice: ``"device"``, ``"host"``, ``"mapped"``, ``"sharded"`` (over the processes of a group), or a
            :class:`~dualogic.duals.options.Mapped`.
        samples: the number of training samples; ``None`` for one row that serves all.
        width: dual variables per sample.
        dtype: of the storage.
        peers: the processes that train together, if there are several.
        owner: what a loss says about itself in a checkpoint; a file remembers it.

    Example:
        >>> import torch
        >>> make_table("host", 3, 2, torch.float32).values.shape
        torch.Size([3, 2])
    """
    if not isinstance(choice, Mapped) and choice not in PLACES:
        names = ", ".join(map(repr, PLACES))
        raise OptionError(f"table must be one of {names}, or dl.Mapped(...); got {choice!r}")
    if samples is None:
        if choice != "device":
            raise OptionError(f"table={choice!r} keeps a row for each training sample; give num_samples, or leave table out")
        return SharedRow(width, dtype)
    # Imported where used: what they keep out of torch.compile's hands loads the compiler, which takes longer than all else.
    if choice == "host":
        from dualogic.duals.host import HostTable

        return HostTable(samples, width, dtype)
    if choice == "mapped" or isinstance(choice, Mapped):
        from dualogic.duals.mapped import MappedTable
        from dualogic.duals.table_file import Owner

        options = choice if isinstance(choice, Mapped) else Mapped()
        return MappedTable(samples, width, dtype, options, None if owner is None else Owner.of(owner))
    if choice == "sharded":
        if peers is None:
            raise OptionError("table='sharded' spreads rows over several processes; give process_group, or leave table out")
        if width:
            from dualogic.duals.sharded import ShardedTable

            return ShardedTable(samples, width, dtype, peers)
    return DualTable(samples, width, dtype)


def find_peers(group: Any) -> Peers | None:
    """The processes that train together, if there are several."""
    # One process needs none of this, and importing it loads a compiler that may never be used.
    if group is None:
        return None
    from dualogic.duals.collective import make_peers

    return make_peers(group)
