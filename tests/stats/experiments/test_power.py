"""Least detectable lifts and users needed, against statsmodels and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from statsmodels.stats.power import NormalIndPower

from streamer.stats.experiments.anytime import critical, rho_squared
from streamer.stats.experiments.sizing import anytime, detectable, fixed, users_needed

RHO2 = rho_squared(0.05, 5000)


@pytest.mark.parametrize("alpha", [0.05, 0.001])
@pytest.mark.parametrize("power", [0.5, 0.8, 0.99])
@pytest.mark.parametrize(("n", "m"), [(100, 100), (3000, 1000)])
def test_one_look_is_as_in_statsmodels(n: int, m: int, power: float, alpha: float) -> None:
    stderr = math.sqrt(1 / n + 1 / m)  # users with a standard deviation of 1
    found = detectable(stderr, n + m, fixed(alpha), power)
    there = NormalIndPower()
    assert there.power(found, n, alpha, ratio=m / n) == pytest.approx(power, abs=1e-4)
    expected = there.solve_power(found, None, alpha, power, ratio=m / n) * (1 + m / n)
    needed = users_needed(found, stderr, n + m, fixed(alpha), power)
    assert needed == pytest.approx(n + m, abs=1.001)
    assert needed == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("effect", [0.02, 0.1, 1.0, -0.1])
@pytest.mark.parametrize("by", [fixed(0.05), anytime(0.05, RHO2)])
def test_needed_users_are_the_least_that_find_it(effect: float, by: object) -> None:
    assert callable(by)
    needed = users_needed(effect, 0.05, 1600, by)
    assert needed is not None

    def least(users: int) -> float:
        return detectable(0.05 * math.sqrt(1600 / users), users, by)

    assert least(needed) <= abs(effect)
    assert needed == 1 or least(needed - 1) > abs(effect)


def test_the_power_of_the_sequence_is_that_of_its_last_look() -> None:
    n = 20_000
    effect = detectable(0.1, n, anytime(0.05, RHO2), 0.8)
    t = np.random.default_rng(0).normal(effect / 0.1, 1, 40_000)
    assert float((t > critical(0.05, n, RHO2)).mean()) == pytest.approx(0.8, abs=0.006)


def test_what_is_never_found_has_no_number() -> None:
    assert users_needed(0.0, 1.0, 100, fixed(0.05)) is None
    assert users_needed(1e-12, 1.0, 100, fixed(0.05)) is None
    assert users_needed(1e-12, 1.0, 100, anytime(0.05, RHO2)) is None
