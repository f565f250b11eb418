import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dualogic_paper.comparison import adjust, compare, compare_rows, student_p, student_t

stats = pytest.importorskip("scipy.stats")
figures = st.lists(st.floats(0, 100).map(lambda value: round(value, 2)), min_size=2, max_size=10)


@pytest.mark.parametrize("freedom", [*range(1, 41), 60, 100, 1000, 2.5])
def test_the_quantile_is_that_of_scipy(freedom):
    assert student_t(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-9)


@given(st.floats(-50, 50), st.floats(1, 200))
def test_the_probability_is_that_of_scipy(t, freedom):
    assert student_p(t, freedom) == pytest.approx(2 * stats.t.sf(abs(t), freedom), rel=1e-9, abs=1e-12)


@given(figures, st.data())
def test_paired_figures_are_compared_as_scipy_does(ours, data):
    others = data.draw(st.lists(st.floats(0, 100).map(lambda value: round(value, 2)), min_size=len(ours), max_size=len(ours)))
    pairs = [one - other for one, other in zip(ours, others)]
    assume(max(pairs) - min(pairs) > 0.01)
    difference = compare_rows(dict(enumerate(ours)), dict(enumerate(others)))
    expected = stats.ttest_rel(ours, others)
    interval = expected.confidence_interval(0.95)
    assert difference.p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)
    assert difference.mean - difference.margin == pytest.approx(interval.low, rel=1e-6, abs=1e-9)
    assert difference.mean + difference.margin == pytest.approx(interval.high, rel=1e-6, abs=1e-9)


@given(figures, figures)
def test_figures_of_other_seeds_are_compared_by_welchs_test(ours, others):
    assume(min(max(side) - min(side) for side in (ours, others)) > 0.01)
    difference = compare_rows(dict(enumerate(ours)), dict(enumerate(others, 100)))
    assert difference.p == pytest.approx(stats.ttest_ind(ours, others, equal_var=False).pvalue, rel=1e-6, abs=1e-12)


def test_only_common_seeds_count():
    assert compare({0: 1.0, 5: 2.0}, {5: 1.5, 6: 9.0}).mean == 0.5
    assert compare({0: 1.0}, {1: 1.0}) is None
    alone = compare({0: math.nan, 1: 2.0}, {0: 1.0, 1: 1.0})
    assert (alone.mean, alone.margin) == (1.0, math.inf)


def test_one_seed_is_never_sure():
    assert not compare({0: 100.0}, {0: 0.0}).is_sure
    assert compare_rows({0: 100.0}, {0: 0.0, 1: 0.0}) is None


def test_figures_that_never_vary():
    assert compare_rows({0: 1.0, 1: 1.0}, {0: 1.0, 1: 1.0}).p == 1.0
    assert compare_rows({0: 2.0, 1: 2.0}, {5: 1.0, 6: 1.0}).p == 0.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holms_method_rejects_from_the_smallest_on(values):
    """The definition: of m hypotheses the k-th smallest is rejected if all up to it are at most 0.05 / (m - k + 1)."""
    ordered = sorted(values)
    rejected = 0
    while rejected < len(ordered) and ordered[rejected] * (len(ordered) - rejected) < 0.05:
        rejected += 1
    assert sorted(value < 0.05 for value in adjust(values)) == sorted(number < rejected for number in range(len(values)))
