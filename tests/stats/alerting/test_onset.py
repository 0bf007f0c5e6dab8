"""When a change began: on simulated panes the first one is found, and the range holds it."""

from __future__ import annotations

import numpy as np
import pytest

from streamer.stats.alerting.onset import COVERED, Onset, alike_by_time, onset
from tests.support.lanes import sized

PANES, A_DAY, WINDOW = 1008, 144, 36


def found(
    dice: np.random.Generator, events: int, lasts: int, drop: float, season: float, noise: float
) -> Onset | None:
    """Of clicks at 5 %: by ``drop`` fewer in the last panes; ``season``: amplitude of the day's
    pattern; ``noise``: of the panes' own rates."""
    at = np.arange(PANES) + int(dice.integers(A_DAY))
    y = dice.poisson(events * (1 + 0.5 * np.sin(2 * np.pi * at / A_DAY))).astype(np.float64)
    rate = 0.05 * (1 + season * np.sin(2 * np.pi * (at + 30) / A_DAY))
    if noise:
        rate *= dice.gamma(noise**-2, noise**2, PANES)
    rate[-lasts:] *= 1 - drop
    x = dice.poisson(y * rate).astype(np.float64)
    return onset(x, alike_by_time(x, y, A_DAY, WINDOW), is_rise=False)


@pytest.mark.parametrize(
    ("events", "lasts", "drop", "season", "noise", "median"),
    [
        (200, 12, 1.0, 0.0, 0.0, 1),
        (200, 12, 0.9, 0.15, 0.0, 1),
        (4000, 36, 0.3, 0.15, 0.1, 1),
        (200, 36, 0.5, 0.15, 0.1, 1),
        (50, 36, 1.0, 0.0, 0.15, 1),
        (200, 144, 0.3, 0.0, 0.0, 3),
    ],
)
def test_the_first_pane_is_found(
    events: int, lasts: int, drop: float, season: float, noise: float, median: int
) -> None:
    dice, runs = np.random.default_rng(3), sized(60, 600)
    ranges = [found(dice, events, lasts, drop, season, noise) for _ in range(runs)]
    errors = [abs(each.pane - (PANES - lasts)) for each in ranges if each]
    held = [each.low <= PANES - lasts <= each.high for each in ranges if each]
    assert len(errors) == runs
    assert float(np.median(errors)) <= median
    assert np.mean(held) >= COVERED - 2 * np.sqrt(COVERED * (1 - COVERED) / runs)


def test_too_little_is_no_change() -> None:
    x = np.array([5.0, 5.0, 0.0])
    assert onset(x, np.full(3, 100.0), is_rise=False) is None
    assert onset(np.full(20, 5.0), np.zeros(20), is_rise=False) is None
    rising = np.array([5.0] * 10 + [9.0] * 10)
    assert onset(rising, np.full(20, 100.0), is_rise=False) is None
    assert onset(rising, np.full(20, 100.0), is_rise=True) == Onset(10, 10, 10)
