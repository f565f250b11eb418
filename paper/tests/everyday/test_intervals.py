import math

import pytest

from dualogic_paper.everyday.intervals import compare, student_t


@pytest.mark.parametrize("freedom", [*range(1, 41), 60, 100, 1000])
def test_the_quantile_is_that_of_scipy(freedom):
    stats = pytest.importorskip("scipy.stats")
    assert student_t(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-5)


def test_the_interval_is_that_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    ours = dict(enumerate([1.0, 2.5, 0.5, 3.0, 2.0]))
    others = dict(enumerate([0.8, 2.0, 0.9, 2.0, 2.1]))
    difference = compare(ours, others)
    interval = stats.ttest_rel(list(ours.values()), list(others.values())).confidence_interval(0.95)
    assert difference.mean - difference.margin == pytest.approx(interval.low, rel=1e-4)
    assert difference.mean + difference.margin == pytest.approx(interval.high, rel=1e-4)
    assert difference.is_sure == (interval.low > 0 or interval.high < 0)


def test_only_common_seeds_count():
    assert compare({0: 1.0, 5: 2.0}, {5: 1.5, 6: 9.0}).mean == 0.5
    assert compare({0: 1.0}, {1: 1.0}) is None
    assert compare({0: math.nan, 1: 2.0}, {0: 1.0, 1: 1.0}).seeds == 1


def test_one_seed_is_never_sure():
    assert not compare({0: 100.0}, {0: 0.0}).is_sure
