"""What a window is compared with: the same window on past days, or the window before.

The baseline is pooled, B = Σ x / Σ y over all days, which is the mean of the days' values R_d
weighted by their support y_d. Two things make a new window differ from it:

- who happened to be there. One unit of support has the variance v = mean of var(R_d) y_d (random
  groups, groups.py), so that a window of support y has v / y: taken from the past, it is known even
  of a window without a click;
- the day. Between days there is the variance τ², by DerSimonian and Laird 1986, "Meta-analysis in
  clinical trials", with the weights y_d / v:

    τ² = max(0, (Σ y_d (R_d - B)² - (D - 1) v) / (Σ y_d - Σ y_d² / Σ y_d)).

Where four weeks are known, the baseline is that of the same weekday, and τ² is that between weeks:
both sums are taken within each of the seven weekdays, and added up over them. What sets weekdays
apart is in neither, and τ² rests on 21 differences instead of 6.

τ² is above 0 by chance, too. Days are unlike where Cochran's Q (1954, "The combination of estimates
from different experiments"), Σ y_d (R_d - B)² / v, is so large with a probability below 1 % only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, log

from streamer.stats.distributions import chi2_upper
from streamer.stats.random_groups import GROUPS, GroupSums

Totals = tuple[int, int]
"""Σx and Σy of a window."""
UNLIKE = 0.01
"""Probability of differences by chance below which days are unlike."""
_SILENCE = 1e-6
"""Probability of a window without anything below which there is no traffic: a rule looks thousands
of times a month."""


@dataclass(frozen=True, slots=True)
class Past:
    """The baseline of ``days`` windows that had any support; ``compared`` names them.

    ``unit_variance`` is v, None if none of them shows how users differ, and ``df`` its degrees of
    freedom: those of one window, for people come back and the days do not count as so many.
    ``between`` is τ², with ``between_df`` degrees of freedom, ``are_unlike`` whether it is more
    than chance, and ``uneven`` is Σ y_d² / (Σ y_d)², 1 / days if all have the same support.
    """

    days: int
    support: int
    value: Fraction | None
    unit_variance: float | None
    df: int
    between: float
    uneven: float
    between_df: int
    are_unlike: bool
    compared: str = "days"

    @staticmethod
    def of(windows: Sequence[GroupSums]) -> Past:
        """The baseline; windows without support have no part in it.

        >>> quiet, loud = GroupSums.of([(0, 1, 10), (1, 3, 10)]), GroupSums.of([(2, 9, 30)])
        >>> past = Past.of([quiet, loud, GroupSums()])
        >>> past.days, past.support, past.value, past.unit_variance
        (2, 50, Fraction(13, 50), 0.2)
        """
        used = [window for window in windows if window.support]
        if not used:
            return Past(0, 0, None, None, 0, 0.0, 1.0, 0, False)
        sums = [(sum(window.x), window.support) for window in used]
        y = sum(its_y for _, its_y in sums)
        units, df = [], 0
        for window, (_, support) in zip(used, sums, strict=True):
            if (variance := window.variance) is not None:
                units.append(variance * support)
                df = max(df, window.occupied - 1)
        unit = sum(units) / len(units) if units else None
        between, df_between, unlike = _between([sums], unit or 0.0)
        uneven = _uneven(sums)
        return Past(len(used), y, pooled(used), unit, df, between, uneven, df_between, unlike)

    def by_weekday(self, weekdays: Sequence[Sequence[Totals]]) -> Past:
        """The baseline of the first of the ``weekdays``: the same window of past weeks, of each
        weekday. What one unit of support varies by is known from the days of this one.

        >>> even = GroupSums.of([(0, 4, 100), (1, 6, 100)])
        >>> sunday, others = [(10, 200)] * 4, [(20, 200)] * 4
        >>> past = Past.of([even] * 7).by_weekday([sunday, *[others] * 6])
        >>> past.days, past.value, past.between, past.between_df
        (4, Fraction(1, 20), 0.0, 21)
        """
        used = [[(x, y) for x, y in weekday if y] for weekday in weekdays]
        x, y = (sum(part) for part in zip(*used[0], strict=True))
        between, df, unlike = _between(used, self.unit_variance or 0.0)
        return Past(
            len(used[0]), y, Fraction(x, y), self.unit_variance, self.df, between,
            _uneven(used[0]), df, unlike, "weeks",
        )  # fmt: skip


def pooled(windows: Sequence[GroupSums]) -> Fraction | None:
    """The metric of several windows together, as of ``Past``; None without any support."""
    used = [window for window in windows if window.support]
    total = sum(window.support for window in used)
    return Fraction(sum(sum(window.x) for window in used), total) if used else None


def _between(groups: Sequence[Sequence[Totals]], unit: float) -> tuple[float, int, bool]:
    """τ² within groups of windows, its degrees of freedom (0 where no group has two windows), and
    whether they are unlike. y_d (R_d - B)² is (x_d y - x y_d)² / (y_d y²)."""
    spread, weight, df = 0.0, 0.0, 0
    for group in groups:
        if len(group) < 2:
            continue
        x, y = (sum(part) for part in zip(*group, strict=True))
        spread += sum((its_x * y - x * its_y) ** 2 / (its_y * y * y) for its_x, its_y in group)
        weight += y * (1 - _uneven(group))
        df += len(group) - 1
    if not df:
        return 0.0, 0, False
    return max(0.0, (spread - df * unit) / weight), df, are_unlike(spread, unit, df)


def are_unlike(spread: float, unit: float, df: int) -> bool:
    """Whether ``spread``, a sum of squares of ``df`` differences that each have the variance
    ``unit`` by chance, is larger than that."""
    return spread > 0 and (not unit or chi2_upper(spread / unit, df) < UNLIKE)


def _uneven(windows: Sequence[Totals]) -> float:
    """Σ y² / (Σ y)²."""
    y = sum(its_y for _, its_y in windows)
    return sum(its_y * its_y for _, its_y in windows) / (y * y)


def arrivals(window: GroupSums) -> float:
    """How many independent arrivals the support looks like: (Σy)² / var(Σy), with the variance of
    random groups, and Σy at most.

    >>> arrivals(GroupSums(y=(10,) * 16))
    160.0
    >>> arrivals(GroupSums.of([(3, 0, 160)]))  # all of one person
    1.0
    """
    support = window.support
    if not support:
        return 0.0
    squares = sum((GROUPS * y - support) ** 2 for y in window.y)
    variance = squares / (GROUPS * (GROUPS - 1))
    return min(float(support), support**2 / variance if variance else inf)


def is_never_silent(windows: Sequence[GroupSums]) -> bool:
    """Whether nothing at all would be all but impossible: each window has had so many arrivals that
    none has a probability below one in a million."""
    return bool(windows) and all(arrivals(window) > -log(_SILENCE) for window in windows)
