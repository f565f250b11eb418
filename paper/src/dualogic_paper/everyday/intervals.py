"""Paired differences with 95 % intervals."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping

# fmt: off
_T = (
    12.70620, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.30600, 2.26216, 2.22814, 2.20099, 2.17881, 2.16037, 2.14479,
    2.13145, 2.11991, 2.10982, 2.10092, 2.09302, 2.08596, 2.07961, 2.07387, 2.06866, 2.06390, 2.05954, 2.05553, 2.05183, 2.04841,
    2.04523, 2.04227,
)
# fmt: on
_NORMAL = 1.959963984540054


def student_t(freedom: int) -> float:
    """The 97.5 % quantile of Student's t: from a table up to 30 degrees of freedom, then by its expansion around the normal's.

    Example:
        >>> student_t(7)
        2.36462
        >>> round(student_t(99), 4)
        1.9842
    """
    if freedom <= len(_T):
        return _T[freedom - 1]
    z = _NORMAL
    first, second = z**3 + z, 5 * z**5 + 16 * z**3 + 3 * z
    third = 3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z
    return z + first / (4 * freedom) + second / (96 * freedom**2) + third / (384 * freedom**3)


@dataclasses.dataclass(frozen=True)
class Difference:
    """A mean difference over seeds, and half the width of its 95 % interval; infinite for a single seed."""

    mean: float
    margin: float
    seeds: int

    @property
    def is_sure(self) -> bool:
        """Whether 0 lies outside the interval."""
        return abs(self.mean) > self.margin


def compare(figures: Mapping[int, float], others: Mapping[int, float]) -> Difference | None:
    """By how much figures exceed others, seed by seed.

    Args:
        figures: by seed.
        others: by seed; seeds that only one side has do not count.

    Returns:
        The mean difference with its interval, or ``None`` if there is no common seed.

    Example:
        >>> difference = compare({0: 2.0, 1: 3.0, 2: 4.0}, {0: 1.0, 1: 1.0, 2: 1.0, 3: 9.0})
        >>> difference.mean, round(difference.margin, 2), difference.seeds
        (2.0, 2.48, 3)
    """
    pairs = [figures[seed] - others[seed] for seed in figures if seed in others]
    pairs = [pair for pair in pairs if not math.isnan(pair)]
    if not pairs:
        return None
    if len(pairs) == 1:
        return Difference(pairs[0], math.inf, 1)
    error = statistics.stdev(pairs) / math.sqrt(len(pairs))
    return Difference(statistics.mean(pairs), student_t(len(pairs) - 1) * error, len(pairs))
