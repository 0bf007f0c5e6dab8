"""Days until a lift is found: by what is known of it, as often as was asked."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from streamer.stats.experiments.forecast import (
    MAX_DAYS,
    Forecast,
    Growth,
    Precision,
    Sought,
    first_day,
)
from streamer.stats.experiments.sizing import fixed

NEW = Forecast(Growth(5, 5000, 10, 10_000), Precision(sqrt(2.0)), Precision(1.0))
"""Everybody is new: after as many days again the standard error is 1 / √2."""
ONCE = fixed(0.05)


@pytest.mark.parametrize("so_far", [-1.0, 0.5, 1.5])
def test_the_lift_is_found_on_that_day_as_often_as_was_asked(so_far: float) -> None:
    """The lift of now has a standard error of 1; what comes is drawn with the true one."""
    effect, power = 0.9, 0.8
    days = NEW.days_until(Sought(effect, 10_000, ONCE, power, so_far))
    assert days is not None
    share = []
    for more in (days, days - 1):
        dice = np.random.default_rng(1)
        later = effect + dice.normal(size=400_000) * sqrt(10 / more)
        both = (10 * so_far + more * later) / (10 + more)
        share.append(float((both * sqrt((10 + more) / 10) > ONCE(0)).mean()))
    assert share[0] >= power - 0.002
    assert share[1] < power + 0.002


def test_a_lift_below_what_was_hoped_takes_longer() -> None:
    waits = [NEW.days_until(Sought(2.0, 10_000, ONCE, 0.8, at)) for at in (2.5, 1.9, 1.0, 0.0)]
    assert waits[0] == 0, "it is found"
    assert None not in waits
    assert waits == sorted(waits, key=lambda days: days or 0)
    assert NEW.days_until(Sought(2.9, 10_000, ONCE, 0.8)) == 0, "it should have been found"


def test_what_is_out_of_sight() -> None:
    assert NEW.days_until(Sought(0.01, 10_000, ONCE, 0.8)) is None
    nobody_new = Forecast(Growth(5, 10_000, 10, 10_000), Precision(1.0), Precision(1.0))
    assert nobody_new.days_until(Sought(1.0, 10_000, ONCE, 0.8)) is None


@pytest.mark.parametrize("day", [1, 2, 3, 100, MAX_DAYS])
def test_the_first_day_is_the_first(day: int) -> None:
    assert first_day(lambda at: at >= day) == day
    assert first_day(lambda at: at >= day + 0.5, 0.5) == day
    assert first_day(lambda at: at > MAX_DAYS) is None
