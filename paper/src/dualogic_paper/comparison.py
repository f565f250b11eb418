"""Whether one row of figures differs from another by more than its seeds do: intervals and p-values, by the standard library."""

import dataclasses
import functools
import math
import statistics
from collections.abc import Mapping, Sequence

LEVEL = 0.05


@dataclasses.dataclass(frozen=True)
class Difference:
    """A mean difference over seeds, and half the width of its 95 % interval; infinite for a single seed."""

    mean: float  # by how much the first row's figures are higher
    margin: float  # of the interval
    p: float = 1.0  # two-sided, of no difference; 1 for a single seed

    @property
    def is_sure(self) -> bool:
        """Whether 0 lies outside the interval."""
        return abs(self.mean) > self.margin


def compare(figures: Mapping[int, float], others: Mapping[int, float]) -> Difference | None:
    """By how much figures exceed others, seed by seed; ``None`` if there is no common seed.

    >>> difference = compare({0: 2.0, 1: 3.0, 2: 4.0}, {0: 1.0, 1: 1.0, 2: 1.0, 3: 9.0})
    >>> difference.mean, round(difference.margin, 2)
    (2.0, 2.48)
    """
    pairs = [figures[seed] - others[seed] for seed in figures if seed in others]
    pairs = [pair for pair in pairs if not math.isnan(pair)]
    if not pairs:
        return None
    if len(pairs) == 1:
        return Difference(pairs[0], math.inf)
    return _judge(statistics.mean(pairs), statistics.stdev(pairs) / math.sqrt(len(pairs)), len(pairs) - 1)


def compare_rows(figures: Mapping[int, float], others: Mapping[int, float]) -> Difference | None:
    """By how much figures exceed others: seed by seed if two seeds are common, by Welch's test otherwise, if both have two runs.

    >>> difference = compare_rows({0: 2.0, 1: 3.0, 2: 4.0}, {5: 1.0, 6: 2.0})
    >>> difference.mean, round(difference.p, 3)
    (1.5, 0.148)
    """
    if len(figures) < 2 or len(others) < 2:
        return None
    if len(figures.keys() & others.keys()) > 1:
        return compare(figures, others)
    shares = [statistics.variance(side.values()) / len(side) for side in (figures, others)]
    mean = statistics.mean(figures.values()) - statistics.mean(others.values())
    if not sum(shares):
        return _judge(mean, 0.0, 1.0)
    freedom = sum(shares) ** 2 / sum(share**2 / (len(side) - 1) for share, side in zip(shares, (figures, others)))
    return _judge(mean, math.sqrt(sum(shares)), freedom)


def adjust(values: Sequence[float]) -> list[float]:
    """p-values by Holm's method: what each must be at most, given that there are others.

    >>> adjust([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    found, highest = [0.0] * len(values), 0.0
    for rank, position in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        highest = max(highest, min(1.0, (len(values) - rank) * values[position]))
        found[position] = highest
    return found


def student_p(t: float, freedom: float) -> float:
    """How often Student's t is at least this far from 0, on either side."""
    return _incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5)


@functools.cache
def student_t(freedom: float) -> float:
    """The 97.5 % quantile of Student's t."""
    low, high = 0.0, 1e3
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if student_p(middle, freedom) > LEVEL else (low, middle)
    return high


def _judge(mean: float, error: float, freedom: float) -> Difference:
    if not error:  # all pairs differ alike
        return Difference(mean, 0.0, 0.0 if mean else 1.0)
    return Difference(mean, student_t(freedom) * error, student_p(mean / error, freedom))


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Lentz's method)."""
    if x in (0.0, 1.0):
        return x
    if x > (a + 1) / (a + b + 2):  # where the fraction is slow, that of the other tail is quick
        return 1.0 - _incomplete_beta(1.0 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    fraction, c, d = 1.0, 1.0, 0.0
    for step in range(400):
        m = step // 2
        if step == 0:
            factor = 1.0
        elif step % 2:
            factor = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            factor = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1.0 / (1.0 + factor * d)
        c = 1.0 + factor / c
        fraction *= c * d
        if abs(1.0 - c * d) < 1e-14 and step:
            break
    return front * (fraction - 1.0)
