"""Rows of a table for samples that have names instead of positions: ids, hashes, streams."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from dualogic.arguments import check_samples
from dualogic.duals.factory import find_peers
from dualogic.errors import OptionError, SampleIndexError, StateError

if TYPE_CHECKING:
    from dualogic.loss import LogicLoss

Id = str | int


class IdMap:
    """Gives each id a row of its own, in the order in which ids first appear.

    Call it in the training loop, on the ids of a batch; it must not give out rows in the workers of a data loader, which have
    copies. With ``state_dict()`` in the checkpoint a restarted run uses the same rows.

    Args:
        num_samples: how many ids there may be.
        logic: instead, the loss whose table grows (:meth:`~dualogic.LogicLoss.extend`, to twice the size) when it is full. Load
            the map's state before that of the loss: it makes room for it.
        process_group: the ``torch.distributed`` group whose processes call this together on parts of a batch, so that all give
            out the same rows; ``True`` or ``"world"`` for the default group. Without it, several processes agree only if all
            :meth:`add` the same ids first.

    Example:
        >>> import dualogic as dl
        >>> ids = dl.data.IdMap(num_samples=3)
        >>> ids(["img-7", "img-2", "img-7"])
        tensor([0, 1, 0])
        >>> ids.find(["img-2", "img-9"])
        tensor([ 1, -1])
        >>> ids(["a", "b"])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        dualogic.errors.SampleIndexError: the id map is full: it has 2 of 3 ids, and this batch brings 2 new ones, ...
    """

    def __init__(self, num_samples: int | None = None, *, logic: LogicLoss | None = None, process_group: Any = None) -> None:
        if (num_samples is None) == (logic is None):
            raise OptionError("IdMap needs either num_samples=, or logic= whose table may grow")
        if logic is not None and logic.num_samples is None:
            raise OptionError("IdMap(logic=...) needs a loss with a row for each sample; this one has num_samples=None")
        self._capacity = check_samples(num_samples)
        self._logic = logic
        self._rows: dict[Id, int] = {}
        self._peers = find_peers(process_group)

    @property
    def num_samples(self) -> int:
        """How many ids there is room for."""
        found = self._capacity if self._logic is None else self._logic.num_samples
        assert found is not None, "the constructor saw to it"
        return found

    def __call__(self, ids: Any) -> Tensor:
        """The rows of a batch, ``(batch,)`` int64, giving new ids rows of their own; none of them if the map is full.

        Ids are strings or integers, or an integer tensor ``(batch,)``.
        """
        batch = as_ids(ids) if self._peers is None else self._peers.agree(lambda: as_ids(ids))
        self._admit(self._gather([key for key in dict.fromkeys(batch) if key not in self._rows]))
        return torch.tensor([self._rows[key] for key in batch], dtype=torch.long)

    def add(self, ids: Iterable[Id]) -> IdMap:
        """Give rows to ids that are known beforehand, in this order."""
        self(list(ids))
        return self

    def find(self, ids: Any) -> Tensor:
        """The rows of a batch, and -1 for ids without one, as for ``logic(index, where=index >= 0, ...)``."""
        return torch.tensor([self._rows.get(key, -1) for key in as_ids(ids)], dtype=torch.long)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def __repr__(self) -> str:
        return f"IdMap({len(self)} of {self.num_samples} ids)"

    def _gather(self, new: list[Id]) -> list[Id]:
        """The new ids of all processes, in the order of ranks."""
        if self._peers is None or self._peers.size == 1:
            return new
        parts: list[list[Id]] = [[] for _ in range(self._peers.size)]
        torch.distributed.all_gather_object(parts, new, group=self._peers.group)
        return list(dict.fromkeys(key for part in parts for key in part))

    def _admit(self, new: list[Id]) -> None:
        if not new:
            return
        if get_worker_info() is not None:
            raise StateError(
                f"{new[0]!r} is a new id, met in a worker of a data loader, whose copy of the map is its own; let the loader "
                f"give ids and call the map in the training loop, or add all ids before"
            )
        needed = len(self._rows) + len(new)
        if needed > self.num_samples:
            if self._logic is None:
                raise SampleIndexError(
                    f"the id map is full: it has {len(self._rows)} of {self.num_samples} ids, and this batch brings {len(new)} "
                    f"new ones, such as {new[0]!r}; make room with a larger num_samples, let the table grow with "
                    f"IdMap(logic=logic), or leave unknown ids out with find and where=index >= 0. Nothing was changed"
                )
            self._logic.extend(max(needed, 2 * self.num_samples))
        for key in new:
            self._rows[key] = len(self._rows)

    def state_dict(self) -> dict[str, Any]:
        """The ids in the order of their rows, and the room; loads with ``weights_only=True``."""
        return {"ids": list(self._rows), "num_samples": self.num_samples}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over saved rows, unless they are damaged or do not fit; a growing table gets the room that it had."""
        ids = as_ids(state["ids"])
        if len(set(ids)) < len(ids) or len(ids) > state["num_samples"]:
            raise StateError(
                f"the saved id map is damaged: it has {len(ids)} ids, {len(set(ids))} of them different, and room for "
                f"{state['num_samples']}; load another checkpoint. Nothing was changed"
            )
        if self._logic is not None:
            if state["num_samples"] > self.num_samples:
                self._logic.extend(state["num_samples"])
        elif state["num_samples"] != self.num_samples:
            raise StateError(
                f"the saved id map has room for {state['num_samples']} ids and this one for {self.num_samples}; make it with "
                f"num_samples={state['num_samples']}, as it was, and the loss likewise"
            )
        self._rows = {key: row for row, key in enumerate(ids)}


def as_ids(ids: Any) -> list[Id]:
    """Ids as plain strings and integers, which mean the same in every process and file."""
    if isinstance(ids, Tensor):
        if ids.dim() != 1 or ids.dtype.is_floating_point or ids.dtype.is_complex or ids.dtype is torch.bool:
            raise SampleIndexError(f"a tensor of ids must be (batch,) integers; got {ids.dtype} of shape {tuple(ids.shape)}")
        return [int(key) for key in ids.tolist()]
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise SampleIndexError(f"ids must be those of a batch, as a list; got the single id {ids!r}")
    return [_as_id(key) for key in ids]


def _as_id(key: Any) -> Id:
    if isinstance(key, str):
        return str(key)
    if not isinstance(key, bool):
        try:
            return operator.index(key)
        except TypeError:
            pass
    raise SampleIndexError(
        f"an id must be a string or an integer, so that it is the same in every process and file; got {key!r}. Make one of it, "
        f"as in '/'.join(parts) or digest.hex()"
    )
