"""Problems found on the device: remembered there, read back later, so that no step waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from dualogic.errors import NonFiniteError, SampleIndexError
from dualogic.formula.connective import Formula

CHECK_EVERY = 8


class Guard:
    """Flags on the device for a sample index out of range and for each rule's costs that are not finite.

    On a CPU problems are raised at once and this stays empty. On an accelerator the samples concerned keep their duals, and
    the flags travel to the host in the background, to be raised a few steps later.
    """

    def __init__(self, rules: Mapping[str, Formula], samples: int | None) -> None:
        self.rules = rules
        self.samples = samples  # `None` if they share a row
        self.flags = torch.zeros(len(rules) + 1, dtype=torch.bool)
        self._travelling: tuple[Tensor, Any] | None = None
        self._polls = 0

    def to_(self, device: torch.device) -> None:
        """Move to another device."""
        self.flags = torch.zeros_like(self.flags, device=device) if self.flags.is_meta else self.flags.to(device)
        self._travelling = None

    def poll(self) -> None:
        """Raise what an earlier step met, if word of it has arrived; start the next message now and then."""
        if not self.flags.is_cuda:
            # Other accelerators have no events to ask; look, and wait, now and then.
            self._polls += 1
            if self._polls % CHECK_EVERY == 0:
                self.check()
            return
        if torch.cuda.is_current_stream_capturing():
            return
        if self._travelling is not None:
            flags, arrived = self._travelling
            if arrived.query():
                self._travelling = None
                self._raise(flags)
        elif self._polls % CHECK_EVERY == 0:
            flags = torch.empty_like(self.flags, device="cpu", pin_memory=True)
            flags.copy_(self.flags, non_blocking=True)
            arrived = torch.cuda.Event()
            arrived.record()
            self._travelling = (flags, arrived)
        self._polls += 1

    def check(self) -> None:
        """Wait for the device and raise what any step so far met."""
        self._raise(self.flags.to("cpu", copy=True))

    def _raise(self, flags: Tensor) -> None:
        if not bool(flags.any()):
            return
        self.flags.zero_()
        if flags[0]:
            raise SampleIndexError(
                f"a recent batch had a sample index outside of 0 to {(self.samples or 1) - 1} (num_samples={self.samples}); the "
                f"duals of that sample were not changed"
            )
        name, formula = next(item for item, bad in zip(self.rules.items(), flags[1:].tolist()) if bad)
        raise NonFiniteError(
            f"a recent batch had an infinite or NaN cost for rule {name!r}, or one too large for what is stored: "
            f"{str(formula)[:200]}; the duals of those samples were not changed. Run the batch on a CPU to have the sub-formula "
            f"named"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_travelling": None}
