"""A data set that says which sample each of its items is, and samples that are divided class by class."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset

from dualogic.arguments import check_offset
from dualogic.errors import DataError, FormulaTypeError, OptionError, SampleIndexError

Join = Callable[[int, Any], Any]  # an index and an item to one item


class WithIndex(Dataset[Any]):
    """Any map-style data set, with the position of each item in it.

    An item that is a tuple or a list becomes ``(index, *item)``, a mapping gets one more entry under ``key``, and anything else
    becomes ``(index, item)``. Indices are plain integers, so the usual batches hold them as an int64 tensor ``(batch,)``,
    whatever sampler, transforms, workers or shuffling there are. ``Subset(WithIndex(data), rows)`` gives positions in ``data``;
    ``WithIndex(Subset(data, rows))`` gives positions in the subset.

    Two loaders may share one table: ``first = WithIndex(a)``, ``second = WithIndex(b, start=first.stop)``, and
    ``LogicLoss(rule, num_samples=second.stop)``.

    Args:
        dataset: with ``__getitem__`` over positions from 0.
        start: the index of its first item.
        key: under which a mapping gets its index.
        join: makes the new item from the index and the item instead.

    Example:
        >>> import dualogic as dl, torch
        >>> from torch.utils.data import DataLoader, TensorDataset
        >>> data = dl.data.WithIndex(TensorDataset(torch.tensor([0.5, 1.5, 2.5]), torch.tensor([0, 1, 0])))
        >>> for index, x, y in DataLoader(data, batch_size=2):
        ...     print(index, x, y)
        tensor([0, 1]) tensor([0.5000, 1.5000]) tensor([0, 1])
        tensor([2]) tensor([2.5000]) tensor([0])
        >>> dl.data.WithIndex([{"text": "a"}], start=7)[0]
        {'text': 'a', 'index': 7}
    """

    def __init__(self, dataset: Any, start: int = 0, *, key: str = "index", join: Join | None = None) -> None:
        if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__"):
            raise FormulaTypeError(
                f"WithIndex needs a data set with positions (__getitem__); got {type(dataset).__name__}. For a stream, let each "
                f"item carry an id of its own and turn ids into indices with dl.data.IdMap"
            )
        self.dataset = dataset
        self.start = check_offset("start", start)
        self.key = key
        self.join = join

    @property
    def stop(self) -> int:
        """One more than the last index: ``num_samples`` for this data set, or ``start`` of the next one on the same table."""
        return self.start + len(self)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, position: Any) -> Any:
        place = self._place(position)
        return self._joined(place, self.dataset[place])

    def __getitems__(self, positions: Sequence[Any]) -> list[Any]:
        # What a DataLoader asks for a whole batch, where a data set can fetch one at once.
        places = [self._place(position) for position in positions]
        fetch = getattr(self.dataset, "__getitems__", None)
        items = [self.dataset[place] for place in places] if fetch is None else fetch(places)
        return [self._joined(place, item) for place, item in zip(places, items)]

    def _place(self, position: Any) -> int:
        try:
            place = operator.index(position)
        except TypeError as error:
            raise SampleIndexError(f"WithIndex needs positions that are integers; got {position!r}") from error
        if place < 0:
            place += len(self)
        if place < 0 or (hasattr(self.dataset, "__len__") and place >= len(self)):
            raise SampleIndexError(f"position {position} is out of range for a data set of {len(self)} items")
        return place

    def _joined(self, place: int, item: Any) -> Any:
        index = self.start + place
        if self.join is not None:
            return self.join(index, item)
        if isinstance(item, Mapping):
            if self.key in item:
                raise DataError(
                    f"item {place} has an entry {self.key!r} already; give WithIndex another key, as in key='sample', and read "
                    f"that"
                )
            return {**item, self.key: index}
        return (index, *item) if isinstance(item, (tuple, list)) else (index, item)


def divide_by_class(labels: Tensor, classes: int, sizes: Callable[[int], Sequence[int]], seed: int) -> list[Tensor]:
    """Disjoint sets of samples in which every class has its part: their numbers in each set, class after class.

    From the number of samples of a class, ``sizes`` says how many of them go into each set but the last, which takes the rest.
    ``labels`` are the class of each sample, ``(n,)``.

    Example:
        >>> labels = torch.tensor([0, 1, 0, 1, 0, 0])
        >>> half, rest = divide_by_class(labels, 2, lambda count: [count // 2], seed=0)
        >>> labels[half].tolist(), labels[rest].tolist()
        ([0, 0, 1], [0, 0, 1])
    """
    generator = torch.Generator().manual_seed(seed)
    sets: list[list[Tensor]] = []
    for number in range(classes):
        members = (labels == number).nonzero().squeeze(1)
        members = members[torch.randperm(len(members), generator=generator)]
        wanted = list(sizes(len(members)))
        if sum(wanted) > len(members) or min(wanted, default=0) < 0:
            asked = ", ".join(map(str, wanted))
            raise OptionError(f"class {number} has {len(members)} samples, too few for sets of {asked}; choose smaller sets")
        parts = members.split([*wanted, len(members) - sum(wanted)])
        sets = sets or [[] for _ in parts]
        for chosen, part in zip(sets, parts):
            chosen.append(part)
    return [torch.cat(chosen) for chosen in sets]
