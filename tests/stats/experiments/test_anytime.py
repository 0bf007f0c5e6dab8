"""The confidence sequence against its paper, the mixture that it is, and random walks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, special, stats

from streamer.stats.experiments.anytime import (
    critical,
    e_value,
    e_value_above,
    p_value,
    rho_squared,
)
from tests.support.lanes import long

ALPHAS = [0.5, 0.1, 0.05, 0.01, 1e-6]


def margin_of_the_paper(sigma: float, t: int, rho: float, alpha: float) -> float:
    """Theorem 2.2 of arXiv 2103.06476, letter by letter."""
    inside = 2 * (t * rho**2 + 1) / (t**2 * rho**2)
    return sigma * math.sqrt(inside * math.log(math.sqrt(t * rho**2 + 1) / alpha))


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(("n", "m"), [(3, 5), (400, 600), (10**6, 10**5)])
def test_two_arms_are_one_mean_of_influences(n: int, m: int, alpha: float) -> None:
    """The margin of all users' terms, with the variance that they have among themselves."""
    deviation_t, deviation_c, total = 2.0, 3.0, n + m
    stderr = math.sqrt(deviation_t**2 / n + deviation_c**2 / m)
    sigma = math.sqrt(deviation_t**2 / (n / total) + deviation_c**2 / (m / total))
    rho2 = rho_squared(0.05, 5000)
    expected = margin_of_the_paper(sigma, total, math.sqrt(rho2), alpha)
    assert critical(alpha, total, rho2) * stderr == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_it_is_the_narrowest_where_it_is_tuned(alpha: float) -> None:
    by_lambert = -special.lambertw(-(alpha**2) / math.e, -1).real - 1
    assert rho_squared(alpha, 1) == pytest.approx(by_lambert, rel=1e-12)
    assert rho_squared(alpha, 5000) == pytest.approx(by_lambert / 5000, rel=1e-12)
    least = optimize.minimize_scalar(
        lambda log_rho2: margin_of_the_paper(1.0, 5000, math.exp(log_rho2 / 2), alpha),
        bounds=(-30, 10),
        method="bounded",
    )
    assert rho_squared(alpha, 5000) == pytest.approx(math.exp(least.x), rel=1e-3)
    # At the optimum the boundary is √(1 + z), with z = -W - 1.
    assert critical(alpha, 5000, rho_squared(alpha, 5000)) == pytest.approx(
        math.sqrt(1 + by_lambert), rel=1e-12
    )


@pytest.mark.parametrize("t", [0.0, 0.5, -2.0, 3.0, 6.0])
@pytest.mark.parametrize("users", [10, 5000, 10**6])
def test_p_is_by_the_mixture_of_likelihood_ratios(t: float, users: int) -> None:
    """E = ∫ exp(λ S - λ² N / 2) dΦ(λ / ρ) with S = T √N, by quadrature."""
    rho2 = rho_squared(0.05, 5000)
    total = t * math.sqrt(users)
    top = total / (users + 1 / rho2)
    width = 1 / math.sqrt(users + 1 / rho2)
    mixture, _ = integrate.quad(
        lambda x: math.exp(x * total - x * x * users / 2) * stats.norm.pdf(x, 0, math.sqrt(rho2)),
        *(top - 12 * width, top + 12 * width),
        epsabs=0,
        epsrel=1e-11,
    )
    assert p_value(t, users, rho2) == pytest.approx(min(1.0, 1 / mixture), rel=1e-9)


@given(st.floats(-20, 20), st.integers(2, 10**8), st.sampled_from(ALPHAS))
def test_p_is_at_most_alpha_where_the_interval_excludes_0(t: float, n: int, alpha: float) -> None:
    rho2 = rho_squared(0.05, 5000)
    beyond = abs(t) - critical(alpha, n, rho2)
    if abs(beyond) > 1e-9:
        assert (p_value(t, n, rho2) < alpha) == (beyond > 0)


@given(st.floats(-40, 40), st.integers(2, 10**8), st.sampled_from(ALPHAS))
def test_it_never_says_more_than_a_single_look(t: float, n: int, alpha: float) -> None:
    rho2 = rho_squared(0.05, 5000)
    assert p_value(t, n, rho2) >= 2 * stats.norm.sf(abs(t))
    assert critical(alpha, n, rho2) > stats.norm.isf(alpha / 2)


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_random_walks_rarely_ever_leave_it(alpha: float) -> None:
    """4,000 walks at 400 lengths up to 100,000: those that ever pass are alpha at most."""
    at = np.unique(np.logspace(1, 5, 400).astype(int))
    steps = np.diff(at, prepend=0)
    walks = np.random.default_rng(0).normal(0, np.sqrt(steps), (4000, len(at))).cumsum(axis=1)
    rho2 = rho_squared(alpha, 5000)
    bound = np.array([critical(alpha, n, rho2) for n in at.tolist()])
    ever = float((np.abs(walks) / np.sqrt(at) > bound).any(axis=1).mean())
    assert 0.3 * alpha < ever <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / 4000)


@given(st.floats(-20, 20), st.integers(2, 10**8))
def test_e_values_are_1_over_p(t: float, n: int) -> None:
    rho2 = rho_squared(0.05, 5000)
    its = e_value(t, n, rho2)
    assert p_value(t, n, rho2) == pytest.approx(min(1.0, 1 / its), rel=1e-9)
    assert e_value_above(abs(t), n, rho2) >= its >= e_value_above(-abs(t), n, rho2) >= 0
    both = e_value_above(t, n, rho2) + e_value_above(-t, n, rho2)
    assert both == pytest.approx(2 * its, rel=1e-9)


@pytest.mark.parametrize("t", [-3.0, 0.0, 0.5, 4.0])
@pytest.mark.parametrize("users", [10, 5000, 10**6])
def test_e_of_effects_above_0_is_their_mixture(t: float, users: int) -> None:
    """E = 2 ∫ exp(λ S - λ² N / 2) dΦ(λ / ρ) over λ > 0, by quadrature."""
    rho2 = rho_squared(0.05, 5000)
    total = t * math.sqrt(users)
    width = 1 / math.sqrt(users + 1 / rho2)
    top = max(0.0, total * width**2)
    mixture, _ = integrate.quad(
        lambda x: math.exp(x * total - x * x * users / 2) * stats.norm.pdf(x, 0, math.sqrt(rho2)),
        *(max(0.0, top - 12 * width), top + 12 * width),
        epsabs=0,
        epsrel=1e-11,
    )
    assert e_value_above(t, users, rho2) == pytest.approx(2 * mixture, rel=1e-9)


@pytest.mark.parametrize("drift", [0.0, -0.003, -0.03])
@long
def test_without_a_gain_it_is_1_at_most_wherever_walks_stop(drift: float) -> None:
    """4,000 walks, stopped at 400 lengths once they have 10, and once more than a fifth."""
    at = np.unique(np.logspace(0, 4, 400).astype(int))
    steps = np.diff(at, prepend=0)
    noise = np.random.default_rng(0).normal(0, np.sqrt(steps), (4000, len(at))).cumsum(axis=1)
    scores = (noise + drift * at) / np.sqrt(at)
    rho2 = rho_squared(0.05, 5000)
    evidence = np.vectorize(lambda t, n: e_value_above(t, n, rho2))(scores, at)
    for least in (10, 0.2):
        passed = evidence >= least
        stop = np.where(passed.any(axis=1), passed.argmax(axis=1), len(at) - 1)
        its = evidence[np.arange(len(stop)), stop]
        assert its.mean() <= 1 + 3 * its.std() / math.sqrt(len(its))
        assert passed.any()


def test_extremes_are_numbers() -> None:
    rho2 = rho_squared(0.05, 5000)
    assert 1e300 < e_value(1e200, 100, rho2) < math.inf
    assert 1e300 < e_value_above(1e200, 100, rho2) < math.inf
    assert e_value_above(-1e200, 100, rho2) == 0.0
    assert p_value(1e200, 100, rho2) == 0.0
    assert p_value(0.0, 100, rho2) == 1.0
    assert critical(0.05, 0, rho2) == math.inf
