"""From the arguments ``table=`` and ``process_group=`` of ``LogicLoss`` to a table and to processes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from dualogic.duals.table import DualTable, SharedRow
from dualogic.errors import OptionError

if TYPE_CHECKING:
    from dualogic.duals.collective import Peers

PLACES = ("device", "host", "mapped", "sharded")


@dataclasses.dataclass(frozen=True)
class Mapped:
    """Keep the dual variables in a file, as in ``LogicLoss(..., table=dl.Mapped("duals.table"))``.

    All of its disk space is taken when the file is made, so that a disk that is too small shows then. A later run that opens it
    goes on with its rows; it must have the same rules, in the same order, and the same kind of rows (as for a checkpoint), or the
    file is refused. One run at a time may use it, and of several processes each needs a path of its own. ``table="mapped"`` uses
    a temporary file that is gone when the run ends.
    """

    path: str | os.PathLike[str] | None = None


def make_table(
    choice: Any,
    samples: int | None,
    width: int,
    dtype: torch.dtype,
    peers: Peers | None = None,
    owner: Mapping[str, Any] | None = None,
) -> DualTable:
    """The table that holds the dual variables, with a row for each sample, or one row for all without ``samples``.

    ``choice`` is one of :data:`PLACES` or a :class:`Mapped`; a sharded table is spread over ``peers``, and a file remembers the
    ``owner``, what a loss says about itself in a checkpoint.
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
        from dualogic.duals.mapped import MappedTable, Owner

        path = choice.path if isinstance(choice, Mapped) else None
        return MappedTable(samples, width, dtype, path, None if owner is None else Owner.of(owner))
    if choice == "sharded":
        if peers is None:
            raise OptionError("table='sharded' spreads rows over several processes; give process_group, or leave table out")
        if width:
            from dualogic.duals.sharded import ShardedTable

            return ShardedTable(samples, width, dtype, peers)
    return DualTable(samples, width, dtype)


def find_peers(group: Any) -> Peers | None:
    """The processes that train together, if there are several."""
    if group is None:
        return None
    # One process needs none of this, and importing it loads a compiler that may never be used.
    from dualogic.duals.collective import make_peers

    return make_peers(group)
