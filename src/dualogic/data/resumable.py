"""A data loader that goes on in the middle of an epoch, as if it had never stopped."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from dualogic.errors import FormulaTypeError, StateError


class Resumable:
    """Any data loader, with a ``state_dict()`` that says where it is.

    The state holds the position and the states of the random number generators, now and at the start of the epoch. After
    ``load_state_dict`` the next ``for batch in loader`` draws the same epoch again, passes over what was given before, puts the
    generators back and goes on: same batches, same dropout, same duals. (Passing over a batch loads it.) A state that was taken
    after the last batch of an epoch starts the next one. Samplers with a ``set_epoch`` are told the epoch.

    Args:
        loader: such as a ``torch.utils.data.DataLoader``, or what a framework made of one.

    Attributes:
        loader: as given.
        epoch: how many epochs are complete.
        done: how many batches of the present epoch were given out.

    Example:
        >>> import dualogic as dl, torch
        >>> def run(loader, stop):
        ...     for batch in loader:
        ...         print(batch.tolist())
        ...         if loader.done == stop:
        ...             return loader.state_dict()
        >>> state = run(dl.data.Resumable(torch.utils.data.DataLoader(range(6), 2)), stop=1)
        [0, 1]
        >>> again = dl.data.Resumable(torch.utils.data.DataLoader(range(6), 2))
        >>> again.load_state_dict(state)
        >>> run(again, stop=3)["epoch"]
        [2, 3]
        [4, 5]
        1
    """

    def __init__(self, loader: Any) -> None:
        if not hasattr(loader, "__iter__") or isinstance(loader, Iterator):
            raise FormulaTypeError(f"Resumable needs a data loader that can be gone through again; got {type(loader).__name__}")
        self.loader = loader
        self.epoch = self.done = 0
        self._start: dict[str, Any] | None = None
        self._resume: Mapping[str, Any] | None = None

    def __len__(self) -> int:
        return len(self.loader)

    def __getattr__(self, name: str) -> Any:
        # Frameworks look at a loader's sampler, data set and batch size.
        if name == "loader":
            raise AttributeError(name)
        return getattr(self.loader, name)

    def __iter__(self) -> Iterator[Any]:
        # A generator: nothing happens before the first batch is asked for, however often a framework calls iter().
        resume, self._resume = self._resume, None
        passed = 0 if resume is None else resume["done"]
        if resume is not None:
            state = resume["start"] if passed else resume["now"]
            set_random_state(state["global"])
            for position, generator in enumerate(self._generators()):
                generator.set_state(state[f"generator_{position}"].cpu())
        for part in self._parts():
            if hasattr(part, "set_epoch"):
                part.set_epoch(self.epoch)
        self._start, self.done = self._get_state(), 0
        for batch in self.loader:
            self.done += 1
            if resume is not None and self.done == passed:
                set_random_state(resume["now"]["global"])
            if self.done > passed:
                yield batch
        self.epoch, self.done, self._start = self.epoch + 1, 0, None

    def state_dict(self) -> dict[str, Any]:
        """Where the loader is; to be taken after the step on a batch is complete. Loads with ``weights_only=True``."""
        if self._resume is not None:
            return dict(self._resume)
        now = self._get_state()
        if self._start is None or self.done == self._length():
            return {"epoch": self.epoch + (self._start is not None), "done": 0, "start": now, "now": now}
        return {"epoch": self.epoch, "done": self.done, "start": self._start, "now": now}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state, at the next ``for batch in loader``."""
        length = self._length()
        if length is not None and not 0 <= state["done"] < max(length, 1):
            raise StateError(f"the state is after {state['done']} batches of an epoch, but this loader has {length}")
        self.epoch, self.done, self._start, self._resume = state["epoch"], state["done"], None, state

    def _length(self) -> int | None:
        try:
            return len(self.loader)
        except TypeError:
            return None

    def _get_state(self) -> dict[str, Any]:
        found = {"global": get_random_state()}
        for position, generator in enumerate(self._generators()):
            found[f"generator_{position}"] = generator.get_state()
        return found

    def _parts(self) -> list[Any]:
        """The loader, its sampler, its batch sampler and the sampler of that; ``None`` for what it has not."""
        batches: Any = getattr(self.loader, "batch_sampler", None)
        return [self.loader, getattr(self.loader, "sampler", None), batches, getattr(batches, "sampler", None)]

    def _generators(self) -> list[Any]:
        """The generators of the loader itself and of its sampler, each once."""
        found = [getattr(part, "generator", None) for part in self._parts()]
        return [generator for place, generator in enumerate(found) if generator is not None and generator not in found[:place]]


def get_random_state() -> dict[str, Any]:
    """The states of torch (CPU, and CUDA where it is in use), Python and, where it is loaded, numpy."""
    found: dict[str, Any] = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found["cuda"] = torch.cuda.get_rng_state_all()
    if "numpy" in sys.modules:
        name, key, *rest = sys.modules["numpy"].random.get_state()
        found["numpy"] = (name, key.tolist(), *rest)
    return found


def set_random_state(state: dict[str, Any]) -> None:
    """Put generators back to where :func:`get_random_state` found them."""
    torch.set_rng_state(state["torch"].cpu())
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all([value.cpu() for value in state["cuda"]])
    if "numpy" in state and "numpy" in sys.modules:
        sys.modules["numpy"].random.set_state(tuple(state["numpy"]))
