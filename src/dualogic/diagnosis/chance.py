"""Whether a rate moved by more than chance."""

from __future__ import annotations

import math

SIGNIFICANT = 4.0
"""Standard errors by which a rate must have moved to be called different."""


def rises(before: float, count_before: int, after: float, count_after: int, errors: float = SIGNIFICANT) -> bool:
    """Whether a rate went up by more than chance; a handful of units is never enough.

    Example:
        >>> rises(0.0, 3, 1.0, 3), rises(0.0, 10, 1.0, 10), rises(0.5, 1000, 0.52, 1000)
        (False, True, False)
    """
    # One more of either kind than was seen, so that a rate of 0 or 1 has an error.
    first, second = ((rate * count + 1) / (count + 2) for rate, count in ((before, count_before), (after, count_after)))
    error = math.sqrt(first * (1 - first) / (count_before + 2) + second * (1 - second) / (count_after + 2))
    return second - first > errors * error
