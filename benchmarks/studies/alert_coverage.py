"""Intervals of one window's value by simulation: by groups of users, and by impressions."""

from __future__ import annotations

from math import sqrt

import numpy as np

from benchmarks.studies.rates import table
from streamer.stats.distributions import normal_quantile
from streamer.stats.random_groups import GROUPS, GroupSums


def coverage(runs: int = 4000) -> None:
    """Intervals of one window's value that contain the truth, by groups and by impressions."""
    rows = []
    for likes in ((0.5, 9.5), (0.5, 49.5)):
        for users in (50, 200, 1000, 5000):
            dice = np.random.default_rng(users)
            truth = likes[0] / sum(likes)
            held = np.zeros((2, 2))
            group = np.arange(users) % GROUPS
            for _ in range(runs):
                y = dice.geometric(1 / np.exp(1.5 + dice.standard_normal(users)).clip(1))
                x = dice.binomial(y, dice.beta(*likes, users))
                sums = (np.bincount(group, part, GROUPS).astype(int).tolist() for part in (x, y))
                window = GroupSums(*map(tuple, sums))
                value = x.sum() / y.sum()
                naive = sqrt(value * (1 - value) / y.sum())
                for i, level in enumerate((0.975, 0.995)):
                    low, high = window.interval(level) or (truth, truth - 1)
                    reach = normal_quantile(1 - level) * naive
                    held[i] += [low <= truth <= high, abs(value - truth) <= reach]
            shares = (f"{share:.1%}" for share in (held / runs).T.ravel())
            rows.append((f"{truth:.0%}", f"{users:,}", *shares))
            if users >= 1000 and held[0, 0] / runs < 0.93:
                raise AssertionError(f"{users} users: {held[0, 0] / runs:.1%} of 95 %")
    kinds = ("groups, 95 %", "groups, 99 %", "impressions, 95 %", "impressions, 99 %")
    table(f"Intervals that contain the truth, {runs} windows each", ("CTR", "users", *kinds), rows)
