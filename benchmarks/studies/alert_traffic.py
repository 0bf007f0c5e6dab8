"""Simulated impressions and clicks of people, for the study of alerts: sums by pane and group.

People come in sessions of ten impressions in the mean (geometric), within one pane of 10 minutes.
How often somebody comes has a long tail (log-normal, σ = 1.5: one in a hundred makes a fifth of the
traffic), and is drawn anew for nobody: who is there on a day (one in three) is drawn each day, and
all that is clicked follows the person's own propensity (Beta, with 0.5 and 0.5 (1 - p) / p).

Traffic goes from 0.3 to 1.7 of its mean over the day, and days differ by 10 % (standard deviation).
The click-through rate goes 15 % up and down over the day, and drifts: an Ornstein-Uhlenbeck process
of 2 % standard deviation that forgets in twelve hours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streamer.stats.random_groups import GROUPS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PANE_S = 600
PANES = 24 * 3600 // PANE_S
"""Panes of a day."""
SESSION = 10.0
"""Impressions of a session, in the mean."""
PRESENT = 1 / 3
"""Share of the people who are there on a day."""
VISITS = 20
"""Impressions of a person a day, in the mean."""
TABLE = 1 << 20
"""Sessions are given to people by a table of so many entries, each person as often as it comes:
beyond 1,000 impressions a second there are no more people, who come more often."""
ENTRIES = 64
"""Entries of a person in the mean, where they are fewer."""


@dataclass(frozen=True)
class World:
    """What is simulated: ``per_second`` impressions, of which the share ``ctr`` is clicked.

    ``drift`` is the standard deviation of the rate's drift, ``weekend`` the change of the rate
    on two days of seven, ``trend`` that of every day from day ``trend_from`` on. With ``exact``
    every session is drawn, and else the sums of each pane and group: normal, with the exact
    mean and covariance that such sessions of such people have.
    """

    per_second: float
    ctr: float = 0.05
    days: int = 107
    drift: float = 0.02
    weekend: float = 0.0
    trend: float = 0.0
    trend_from: int = 0
    exact: bool = True
    seed: int = 1

    @cached_property
    def traffic(self) -> tuple[Ints, Ints]:
        """Clicks and impressions, each of shape (panes, groups)."""
        dice = np.random.default_rng(self.seed)
        people = max(1000, int(self.per_second * 86_400 / VISITS))
        weight = np.exp(1.5 * dice.standard_normal(min(people, 4 * TABLE)))
        likes = dice.beta(0.5, 0.5 * (1 - self.ctr) / self.ctr, len(weight)).astype(np.float32)
        entries = min(TABLE, ENTRIES * len(weight))
        table = dice.choice(len(weight), entries, p=weight / weight.sum())
        volume, rate = self._course(dice)
        days = []
        for day in range(self.days):
            there = table[(dice.random(len(weight)) < PRESENT)[table]]
            its = slice(day * PANES, (day + 1) * PANES)
            make = _sessions if self.exact else _moments
            days.append(make(dice, there, likes[there], volume[its], rate[its]))
        clicks, shown = (np.concatenate(parts) for parts in zip(*days, strict=True))
        return clicks, shown

    def _course(self, dice: np.random.Generator) -> tuple[Floats, Floats]:
        """Sessions expected in each pane, and what propensities are multiplied by."""
        panes = self.days * PANES
        hour = np.arange(panes) * PANE_S / 3600
        daily = np.exp(0.1 * dice.standard_normal(self.days)).repeat(PANES)
        volume = (1 - 0.7 * np.cos(2 * np.pi * (hour - 4) / 24)) * daily
        keep = np.exp(-PANE_S / (12 * 3600))
        drift = np.empty(panes)
        drift[0], steps = dice.standard_normal(), dice.standard_normal(panes)
        for i in range(1, panes):
            drift[i] = keep * drift[i - 1] + np.sqrt(1 - keep**2) * steps[i]
        rate = (1 + 0.15 * np.sin(2 * np.pi * (hour - 15) / 24)) * np.exp(self.drift * drift)
        rate *= np.where(hour // 24 % 7 >= 5, 1 + self.weekend, 1)
        rate *= (1 + self.trend) ** np.maximum(0.0, hour / 24 - self.trend_from)
        return self.per_second * PANE_S / SESSION * volume, rate


def _sessions(
    dice: np.random.Generator, there: Ints, likes: NDArray[np.float32], volume: Floats, rate: Floats
) -> tuple[Ints, Ints]:
    """One day, every session drawn."""
    sessions = dice.poisson(volume)
    pane = np.repeat(np.arange(PANES), sessions)
    who = dice.integers(0, len(there), len(pane))
    shown = dice.geometric(1 / SESSION, len(pane))
    clicked = dice.binomial(shown, np.minimum(1.0, likes[who] * rate[pane]))
    cell, size = pane * GROUPS + there[who] % GROUPS, PANES * GROUPS
    x, y = (np.bincount(cell, part, size).astype(np.int64) for part in (clicked, shown))
    return x.reshape(PANES, GROUPS), y.reshape(PANES, GROUPS)


def _moments(
    dice: np.random.Generator, there: Ints, likes: NDArray[np.float32], volume: Floats, rate: Floats
) -> tuple[Ints, Ints]:
    """One day, from the moments of compound Poisson sums: of n impressions of a session E n² is
    2 m² - m, and Σ of a number of sessions that is Poisson has the covariance λ E(x y)."""
    group = there % GROUPS
    n = np.bincount(group, minlength=GROUPS)
    first, second = (np.bincount(group, likes**k, GROUPS) / n for k in (1, 2))
    sessions = volume[:, None] * n / len(there)
    square = 2 * SESSION**2 - SESSION
    p, pp = first * rate[:, None], second * rate[:, None] ** 2
    yy, xy, xx = square, square * p, SESSION * (p - pp) + square * pp
    along = dice.standard_normal(sessions.shape)
    rest = dice.standard_normal(sessions.shape)
    y = sessions * SESSION + np.sqrt(sessions * yy) * along
    x = sessions * SESSION * p + np.sqrt(sessions) * (
        xy / np.sqrt(yy) * along + np.sqrt(xx - xy**2 / yy) * rest
    )
    whole = np.maximum(np.rint(y), 0)
    return np.clip(np.rint(x), 0, whole).astype(np.int64), whole.astype(np.int64)
