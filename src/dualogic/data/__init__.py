"""Which sample is which: positions and ids of training data as rows of a table of dual variables."""

from __future__ import annotations

from dualogic.data.id_map import IdMap
from dualogic.data.with_index import WithIndex

__all__ = ["IdMap", "WithIndex"]
