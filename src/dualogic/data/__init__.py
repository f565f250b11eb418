"""Which sample is which, and where a loader is: positions and ids as rows of a table of dual variables, and exact restarts."""

from __future__ import annotations

from dualogic.data.id_map import IdMap
from dualogic.data.resumable import Resumable
from dualogic.data.with_index import WithIndex, divide_by_class

__all__ = ["IdMap", "Resumable", "WithIndex", "divide_by_class"]
