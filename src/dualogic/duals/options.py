"""What a user says about a table; apart from the tables, whose modules load a compiler that may never be used."""

from __future__ import annotations

import dataclasses
import os


@dataclasses.dataclass(frozen=True)
class Mapped:
    """Keep the dual variables in a file, as in ``LogicLoss(..., table=dl.Mapped("duals.table"))``.

    All of its disk space is taken when the file is made, so that a disk that is too small shows then. A later run that opens it
    goes on with its rows; it must have the same rules, in the same order, and the same kind of rows (as for a checkpoint), or the
    file is refused. One run at a time may use it, and of several processes each needs a path of its own. ``table="mapped"`` uses
    a temporary file that is gone when the run ends.

    Args:
        path: of the file; made if it does not exist. ``None`` for a temporary one.
        in_checkpoint: put the whole table into ``state_dict()`` as usual (``logic.memory().total`` bytes). If ``False``,
            ``state_dict()`` only writes what is in memory back to the file, so a checkpoint goes with the file as it is then, and
            later steps change that file. It loads only beside that file or a copy of it.
    """

    path: str | os.PathLike[str] | None = None
    in_checkpoint: bool = True
