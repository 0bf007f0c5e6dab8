"""Tails and quantiles against SciPy's, from the middle to 1e-290."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from streamer.stats.distributions import (
    chi2_upper,
    normal_quantile,
    normal_two_sided,
    t_quantile,
    t_two_sided,
)

LEAST = 1e-290
DFS = [1, 1.5, 2, 3, 7.7, 30, 99.9, 1000, 4999, 5000, 1e5, 1e7, 5e8, 1e12]


def test_the_normal_distribution() -> None:
    for z in np.linspace(-36, 36, 301).tolist():
        assert normal_two_sided(z) == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-12)
    for p in [*np.logspace(-290, -0.31, 101).tolist(), 0.5, 0.9, 1 - 1e-9]:
        assert normal_quantile(p) == pytest.approx(stats.norm.isf(p), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("df", DFS)
def test_tails_of_student_s_t(df: float) -> None:
    for t in [*np.logspace(-5, 1.55, 60).tolist(), 100.0, 1e4]:
        expected = 2 * stats.t.sf(t, df)
        if expected > LEAST:
            assert t_two_sided(t, df) == pytest.approx(expected, rel=1e-9)
            assert t_two_sided(-t, df) == t_two_sided(t, df)
    assert t_two_sided(0.0, df) == 1.0
    assert 0 <= t_two_sided(1e300, df) <= 1e-140


@pytest.mark.parametrize("df", DFS)
def test_quantiles_of_student_s_t(df: float) -> None:
    for p in (0.9999, 0.9, 0.3, 0.05, 0.01, 1e-3, 1e-6, 1e-12, 1e-40):
        assert t_quantile(p, df) == pytest.approx(stats.t.isf(p / 2, df), rel=1e-10)


@pytest.mark.parametrize("df", [0.3, 1, 2, 3.5, 7, 29])
def test_the_expansion_meets_the_fraction(df: float) -> None:
    below, above = math.nextafter(5000, 0), 5000.0
    assert t_two_sided(df, below) == pytest.approx(t_two_sided(df, above), rel=1e-9)


@pytest.mark.parametrize("df", [1, 2, 3, 4, 7, 31, 100, 1000])
def test_tails_of_chi_squared(df: int) -> None:
    for x in np.logspace(-6, 3.1, 80).tolist():
        expected = stats.chi2.sf(x, df)
        if expected > LEAST:
            assert chi2_upper(x, df) == pytest.approx(expected, rel=1e-9)
    assert chi2_upper(0.0, df) == 1.0
