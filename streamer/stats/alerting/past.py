"""What a window is compared with: the same window on past days, or the window before.

Past days are of one kind, or of two once a week is known: weekdays and weekends. Once four weeks
are known, each weekday is a kind. The baseline is of the window's own kind, without its tails
(by the days' values R_d), and pooled: B = Σ x / Σ y, the mean of the R_d that are left
weighted by their support y_d. Two things make a new window differ from it:

- who happened to be there. One unit of support has the variance v = mean of var(R_d) y_d (by
  random groups), so that a window of support y has v / y: taken from the past, it is known even
  of a window without a click;
- the day. Between days there is the variance τ², by DerSimonian and Laird 1986, "Meta-analysis in
  clinical trials", with the weights y_d / v; D days of c kinds, each against the B of its kind:

    τ² = max(0, (Q - (D - c) v) / (Σ y_d - Σ y_d² / Σ y_d)),  Q = Σ y_d (R_d - B)²,

  where the tails of all √y_d (R_d - B) count as the next ones, as of traffic. What sets kinds apart
  is not in it, and a day with an incident hardly.

τ² is above 0 by chance, too. Days are unlike where Cochran's Q (1954, "The combination of estimates
from different experiments"), Q / v, is so large with a probability below 1 % only; of the degrees
of freedom each tail takes one for each day.

Values without their tails, so that a day with an incident changes little (Tukey and McLaughlin
1963): of n, the k = n / 14 at each end, one at least from four values on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, log, sqrt

from streamer.stats.distributions import chi2_upper
from streamer.stats.random_groups import GROUPS, GroupSums


@dataclass(frozen=True, slots=True)
class Trimmed:
    """``kept`` are the places of the values between the tails, ``mean`` is theirs. ``squares`` is
    the sum of squares of all values about their mean where those of the tails count as the next
    ones, divided by (1 - 2 k / n)²; ``changed`` is 2 k."""

    kept: tuple[int, ...]
    mean: float
    squares: float
    changed: int


def trimmed(values: Sequence[float]) -> Trimmed:
    """Values without their tails.

    >>> trimmed([5, 90, 4, 6, 5, 4, 6])
    Trimmed(kept=(0, 3, 4, 5, 6), mean=5.2, squares=9.52, changed=2)
    """
    order, n = sorted(range(len(values)), key=lambda i: values[i]), len(values)
    k = max(1, n // 14) if n >= 4 else 0
    kept = order[k : n - k]
    inner = [values[i] for i in kept]
    every = [inner[0]] * k + inner + [inner[-1]] * k
    middle = sum(every) / n
    squares = sum((value - middle) ** 2 for value in every)
    return Trimmed(
        tuple(sorted(kept)), sum(inner) / len(inner), squares / (1 - 2 * k / n) ** 2, 2 * k
    )


Totals = tuple[int, int]
"""Σx and Σy of a window."""
UNLIKE = 0.01
"""Probability of differences by chance below which days are unlike."""
LEAST_ALIKE = 2
"""Past windows of the kind of the present one with which it is compared: how much days differ is
known from both kinds."""
_SILENCE = 1e-6
"""Probability of a window without anything below which there is no traffic: a rule looks thousands
of times a month."""


@dataclass(frozen=True, slots=True)
class Past:
    """The baseline of ``days`` windows that had any support; ``compared`` names them, and ``kept``
    are the places of those that it is pooled of; ``usual_support`` is the mean of all of its kind.

    ``unit_variance`` is v, None if none of them shows how users differ, and ``df`` its degrees of
    freedom: those of one window, for people come back and the days do not count as so many;
    ``most_df`` are those of all days together.
    ``between`` is τ², with ``between_df`` degrees of freedom, ``are_unlike`` whether it is more
    than chance, and ``uneven`` is Σ y_d² / (Σ y_d)², 1 / days if all have the same support.
    """

    days: int
    support: int
    value: Fraction | None
    unit_variance: float | None
    df: int
    most_df: int
    between: float
    uneven: float
    between_df: int
    are_unlike: bool
    compared: str = "days"
    kept: tuple[int, ...] = ()
    usual_support: float = 0.0

    @staticmethod
    def of(windows: Sequence[GroupSums], alike: Sequence[bool] = ()) -> Past:
        """The baseline; windows without support have no part in it. ``alike``: which windows are of
        the kind of the present one, where there are two: it is compared with them if there are two
        at least.

        >>> quiet, loud = GroupSums.of([(0, 1, 10), (1, 3, 10)]), GroupSums.of([(2, 9, 30)])
        >>> past = Past.of([quiet, loud, GroupSums()])
        >>> past.days, past.support, past.value, past.unit_variance
        (2, 50, Fraction(13, 50), 0.2)
        """
        sums = [(sum(window.x), window.support) for window in windows]
        unit = _unit(windows)
        own = [pair for pair, is_own in zip(sums, alike, strict=False) if is_own]
        if sum(bool(y) for _, y in own) < LEAST_ALIKE:
            return _past([sums], unit, "days")
        others = [pair for pair, is_own in zip(sums, alike, strict=True) if not is_own]
        compared = "weekdays" if len(own) > len(others) else "weekends"
        past = _past([own, others], unit, compared)
        places = [i for i, is_own in enumerate(alike) if is_own]
        return replace(past, kept=tuple(places[i] for i in past.kept))

    def by_weekday(self, weekdays: Sequence[Sequence[Totals]]) -> Past:
        """The baseline of the first of the ``weekdays``: the same window of past weeks, of each
        weekday. What one unit of support varies by is known from the days of this one.

        >>> even = GroupSums.of([(0, 4, 100), (1, 6, 100)])
        >>> sunday, others = [(10, 200)] * 4, [(20, 200)] * 4
        >>> past = Past.of([even] * 7).by_weekday([sunday, *[others] * 6])
        >>> past.days, past.value, past.between, past.between_df
        (4, Fraction(1, 20), 0.0, 17)
        """
        unit = self.unit_variance, self.df, self.most_df
        return _past(weekdays, unit, "weeks")


_Unit = tuple[float | None, int, int]
"""v, its degrees of freedom, and those of all days together."""


def _past(kinds: Sequence[Sequence[Totals]], unit: _Unit, compared: str) -> Past:
    """The baseline of the first kind of windows."""
    places = [i for i, (_, y) in enumerate(kinds[0]) if y]
    if not places:
        return Past(0, 0, None, *unit, 0.0, 1.0, 0, False, compared)
    used = [[(x, y) for x, y in kind if y] for kind in kinds]
    kept = _kept(used[0])
    own = [used[0][i] for i in kept]
    x, y = (sum(part) for part in zip(*own, strict=True))
    between, between_df, unlike = _between(used, unit[0] or 0.0)
    return Past(
        len(used[0]), y, Fraction(x, y), *unit, between, _uneven(own), between_df, unlike,
        compared, tuple(places[i] for i in kept), sum(y for _, y in kinds[0]) / len(kinds[0]),
    )  # fmt: skip


def _unit(windows: Sequence[GroupSums]) -> _Unit:
    units, dfs = [], [0]
    for window in windows:
        if (variance := window.variance) is not None:
            units.append(variance * window.support)
            dfs.append(window.occupied - 1)
    return (sum(units) / len(units) if units else None), max(dfs), sum(dfs)


def _kept(windows: Sequence[Totals]) -> tuple[int, ...]:
    """The places of the windows between the tails."""
    return trimmed([x / y for x, y in windows]).kept


def pooled(windows: Sequence[GroupSums]) -> Fraction | None:
    """The metric of several windows together, as of ``Past``; None without any support."""
    used = [window for window in windows if window.support]
    total = sum(window.support for window in used)
    return Fraction(sum(sum(window.x) for window in used), total) if used else None


def _between(kinds: Sequence[Sequence[Totals]], unit: float) -> tuple[float, int, bool]:
    """τ² within kinds of windows, its degrees of freedom (0 where no kind has two windows), and
    whether they are unlike."""
    residuals: list[float] = []
    weight, df = 0.0, 0
    for kind in kinds:
        if len(kind) < 2:
            continue
        x, y = (sum(part) for part in zip(*(kind[i] for i in _kept(kind)), strict=True))
        residuals += [(its_x * y - x * its_y) / (sqrt(its_y) * y) for its_x, its_y in kind]
        weight += sum(its_y for _, its_y in kind) * (1 - _uneven(kind))
        df += len(kind) - 1
    if not df:
        return 0.0, 0, False
    found = trimmed(residuals)
    between, left = max(0.0, (found.squares - df * unit) / weight), max(1, df - found.changed)
    return between, left, are_unlike(found.squares * left / df, unit, left)


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
