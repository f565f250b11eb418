"""Where the paper's appendix slips, by numbers; ``docs/differences.md`` and ``paper/docs/paper-by-section.md`` say so."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

costs = st.lists(st.floats(0.05, 3), min_size=1, max_size=6).map(np.array)


def loss(mu, delta):
    return np.log(delta) + mu**2 / (2 * delta**2) + norm.logcdf(mu / delta)


@given(costs)
def test_the_fixed_point_of_delta_needs_a_square_and_a_plus(mu):
    """Appendix G: ``delta = mean(mu^2 - mu delta phi / Phi)``; it is ``delta^2 = mean(mu^2 + mu delta phi / Phi)``."""
    best = np.exp(minimize_scalar(lambda log: loss(mu, np.exp(log)).mean(), bounds=(-6, 6), method="bounded").x)
    hazard = norm.pdf(mu / best) / norm.cdf(mu / best)
    assert np.mean(mu**2 + mu * best * hazard) == pytest.approx(best**2, rel=1e-3)
    printed = np.mean(mu**2 - mu * best * hazard)
    assert abs(printed - best**2) > 0.1 * best**2


@given(st.floats(0.05, 3), st.floats(0.1, 3))
def test_the_limit_of_the_divergence_rises_with_log_delta(mu, delta):
    """Appendix E prints ``-log sigma_2``: the divergence from a point at 0 is minus the log density there, and a constant."""
    density = norm.pdf(mu / delta) / delta / norm.cdf(mu / delta)
    assert -np.log(density) - 0.5 * np.log(2 * np.pi) == pytest.approx(loss(mu, delta), rel=1e-9, abs=1e-9)


def test_the_first_example_of_appendix_c_needs_2_minus_3v():
    """``(v^2 <= -1) or (3 v >= 2)`` at equal weights: printed with ``2 - v``, the minimum breaks the rule."""

    def minimum(second):
        return minimize_scalar(lambda v: 0.5 * (v**2 + 1) + 0.5 * second(v), bounds=(-2, 3), method="bounded").x

    assert minimum(lambda v: max(2 - v, 0)) == pytest.approx(0.5, abs=1e-3)  # 3 v = 1.5 < 2
    assert minimum(lambda v: max(2 - 3 * v, 0)) == pytest.approx(2 / 3, abs=1e-3)  # just met
    assert minimum(lambda v: 2 - 3 * v) == pytest.approx(1.5, abs=1e-3)  # the printed 1.5 comes without the max


def test_the_polyak_lojasiewicz_bound_is_not_one_along_the_simplex():
    """Appendix G bounds the gradient in all directions; the weights move along the simplex, where it may nearly vanish."""
    clauses, weights = np.array([1.0, 0.999]), np.array([0.0, 1.0])
    kappa, gap = clauses.min(), clauses.max() - weights @ clauses
    assert np.sum(clauses**2) >= kappa * gap
    along = clauses - clauses.mean()
    assert np.sum(along**2) < 1e-3 * kappa * gap


def test_the_loss_is_convex_in_the_weights_of_an_and():
    """Appendix G calls min-max over weights convex-concave, which needs a loss that is concave there; it only rises."""
    mu = np.linspace(0, 5, 2001)
    values = loss(mu, 1.0)
    assert (np.diff(values) > 0).all()
    assert (np.diff(values, 2) > 0).all()


def test_the_envelope_of_the_first_case_has_rho():
    """``grad e = 2 rho (x - prox)`` for ``e_{v / 2 rho}``: the square has ``4 rho^2``; Appendix G prints the other constant."""
    rho, x = 3.0, 2.0
    prox = brentq(lambda y: 2 * y + 2 * rho * (y - x), -9, 9)  # of v(y) = y^2

    def envelope(at):
        return minimize_scalar(lambda y: y**2 + rho * (y - at) ** 2).fun

    slope = (envelope(x + 1e-4) - envelope(x - 1e-4)) / 2e-4
    assert slope == pytest.approx(2 * rho * (x - prox), rel=1e-5)
