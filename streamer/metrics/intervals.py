"""Intervals of rates and means: how far chance alone may have moved them, clustered by user.

Users are in 16 groups by hash, and what they do is added up by group. The groups vary as users do,
however much of it hangs together, so from their sums follows the variance of x / y (random groups;
Wolter, *Introduction to Variance Estimation*, 2007, ch. 2): with R = Σx / Σy over all groups

    var = k / (k - 1) · Σ (x_g - R y_g)² / (Σy)²,    interval R ± t √var,

k being the groups that have something, and t Student's with k - 1 degrees of freedom (2.131 where
all 16 have). Values such as money and times have tails: where no group is below 0, their interval
is that of the logarithm,

    R exp(± t √var / R),

and there is none unless 14 groups have any of x, which takes about 30 users. Shares (R up to 1)
have Wilson's interval (1927), of as many independent events as have this variance, at most those
that there are. Shares of users have Wilson's interval of as many users, with 1.960; positive rates
that of a mean over users, from the squares of their rates. All are of level 0.95.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamer.encoding.arrays import F64, I64, Bools
from streamer.encoding.limbs import VALUE_BITS
from streamer.metrics import (
    diversity,
    off_policy,
    own_ratios,
    score_ratios,
)
from streamer.metrics.definition import (
    Brief,
    Declarations,
    Declared,
    Family,
    Reads,
    Series,
    Variant,
)
from streamer.metrics.layout import USER_GROUP, Layout, Stat
from streamer.metrics.ratios import RATIOS, Ratio, RatioBy, maturities
from streamer.metrics.reads import Given, Part, Statistic, Sums, Users, UserSampleRatio
from streamer.metrics.sums import CLICKS_OF_USERS, Sum, Summed
from streamer.metrics.users import (
    HITS,
    RATE_UNIT,
    USERS,
    by_definition,
    positive_users,
    rate_squares,
    rate_sum,
)
from streamer.settings.model import Settings
from streamer.settings.own_metrics import PEOPLE
from streamer.stats.random_groups import GROUPS, critical, estimates

LEAST_GROUPS = 8
"""Groups that must have something: below, their variance says too little."""
LEAST_OF_VALUES = 14
"""Groups that must have any of a value: about 30 users, of whom all 16 groups rarely are."""
LEAST_POSITIVE = 30
"""Users who must have a positive rate above 0."""
_Z = 1.959963984540054
_T = np.array([0.0, 0.0, *(critical(0.975, k - 1) for k in range(2, GROUPS + 1))])
"""By the number of groups that have something."""
_STAT = "by_user_group"
_LARGEST = 1 << 40
"""More than any addend: money has limbs, and of all others doubly robust values are the largest."""
_FAMILY_OF = score_ratios.FAMILY_OF | off_policy.FAMILY_OF | diversity.FAMILY_OF
_OF_FAMILIES: tuple[Ratio | RatioBy, ...] = (
    *score_ratios.RATIOS,
    *(*score_ratios.BY_THRESHOLD, *off_policy.BY_POLICY, *diversity.BY_CUTOFF),
)


def _grouped(settings: Settings) -> tuple[str, ...]:
    """The sums that intervals are made of."""
    every = (*RATIOS, *_OF_FAMILIES, own_ratios.OWN_RATIOS)
    ratios = [ratio for of in every if _is_on(of, settings) for _, ratio in of.variants(settings)]
    sums = [part for ratio in ratios for part in (ratio.above, ratio.below)] + [CLICKS_OF_USERS]
    return tuple(dict.fromkeys(name for of in sums for name in of.names if of.name != PEOPLE))


def _is_on(of: Ratio | RatioBy, settings: Settings) -> bool:
    return _FAMILY_OF.get(of.name) in (None, *settings.metrics.families)


def _stats(settings: Settings) -> tuple[Stat, ...]:
    names = _grouped(settings)
    keys = tuple(f"{name}/group {group}" for name in names for group in range(GROUPS))
    of = tuple((name, USER_GROUP) for name in names)
    return (Stat(_STAT, _LARGEST, len(keys), keys, of),)


# Statistics --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Interval:
    """Ends of intervals, a row for each segment; absent where too little is known."""

    lower: F64
    upper: F64
    present: Bools


@dataclass(frozen=True)
class ByGroup(Summed):
    """(segments, groups) of a sum, of values the two limbs together; not there where nothing counts
    it."""

    def parts(self, layout: Layout) -> Iterator[Statistic]:
        for name in self.sum.names:
            if name in layout.by_group:
                stat, at = layout.by_group[name]
                yield Statistic(
                    *(stat, self.horizon_ms, at.start, at.stop, name),
                    is_day_before=self.is_day_before,
                )

    def of(self, sums: Sums) -> I64 | F64 | None:
        limbs = [part.of(sums) for part in self.parts(sums.layout)]
        if len(limbs) < len(self.sum.names) or any(limb is None for limb in limbs):
            return None
        low, high = limbs[0], limbs[-1]
        assert low is not None
        assert high is not None
        return low if self.sum.high is None else low + high * float(1 << VALUE_BITS)


def student_t(groups: I64) -> F64:
    """Student's t of 95 % intervals by the number of groups that have something."""
    found: F64 = _T[groups]
    return found


def of_groups(
    x: I64 | F64, y: I64 | F64, unit: float, is_share: bool, is_signed: bool = False
) -> Interval:
    """The interval of Σx / Σy / unit; ``x``, ``y``: (segments, groups). ``is_signed``: it may be
    below 0."""
    found = estimates(x.astype(np.float64), y.astype(np.float64))
    value, variance, t = found.value, found.variance, _T[found.occupied]
    total = y.sum(axis=1)
    present = are_enough(x, y, is_share)
    n = np.where(present, total, 1).astype(np.float64)
    reach = t * np.sqrt(variance)
    is_even = is_signed | (x < 0).any(axis=1)
    relative = np.where(is_even, 0.0, reach) / np.where(value > 0, value, 1.0)
    far = np.exp(np.minimum(relative, 700.0))
    lower = np.where(is_even, value - reach, value / far)
    upper = np.where(is_even, value + reach, value * far)
    if is_share:
        single = value * (1 - value) / n
        inside = single > 0
        effect = np.divide(variance, single, out=np.ones(len(n)), where=inside)
        low, high = wilson(value, n / np.maximum(effect, 1.0), t)
        within = (value >= 0) & (value <= 1)
        lower, upper = np.where(within, low, lower), np.where(within, high, upper)
    return Interval(lower / unit, upper / unit, present)


def are_enough(x: I64 | F64, y: I64 | F64, is_share: bool) -> Bools:
    """Whether enough groups have any for an interval of Σx / Σy."""
    enough: Bools = np.count_nonzero(y > 0, axis=1) >= LEAST_GROUPS
    if not is_share:
        enough &= np.count_nonzero(x, axis=1) >= LEAST_OF_VALUES
    enough &= y.sum(axis=1) > 0
    return enough


def wilson(share: F64, n: F64, quantile: F64 | float) -> tuple[F64, F64]:
    """Ends of the interval of a share of n independent events.

    >>> low, high = wilson(np.array([0.0, 0.5]), np.array([10.0, 10.0]), 1.959963984540054)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0, 0.2366], [0.2775, 0.7634])
    """
    weight = quantile**2 / n
    middle = (share + weight / 2) / (1 + weight)
    variance = np.maximum(share * (1 - share), 0.0) / n + weight / (4 * n)
    reach = quantile / (1 + weight) * np.sqrt(variance)
    return np.maximum(middle - reach, 0.0), np.minimum(middle + reach, 1.0)


def of_users(share: F64, users: I64, sample_ratio: float) -> Interval:
    """The interval of a share of users."""
    present = users > 0
    n = np.maximum(np.where(present, users, 1) * sample_ratio, 1.0)
    lower, upper = wilson(share, n, _Z)
    return Interval(lower, upper, present)


def of_rates(rates: I64, squares: I64, users: I64, positive: I64, sample_ratio: float) -> Interval:
    """The interval of a mean over users of rates, from their sum and that of their squares, of
    ``positive`` users who have any."""
    present = positive * sample_ratio >= LEAST_POSITIVE
    n = np.where(present, users, 2).astype(np.float64)
    mean, square = rates / (RATE_UNIT * n), squares / (RATE_UNIT * n)
    variance = np.maximum(square - mean**2, 0.0) / np.maximum(n * sample_ratio - 1, 1.0)
    reach = _Z * np.sqrt(variance)
    return Interval(np.maximum(mean - reach, 0.0), np.minimum(mean + reach, 1.0), present)


# Metrics -----------------------------------------------------------------------------------------

metric = Declarations()
_BRIEF = ("ctr_ratio", "cvr_ratio")
_OF_SHARES = f"absent with data in fewer than {LEAST_GROUPS} of the 16 user groups"
_OF_VALUES = (
    f"absent below {LEAST_OF_VALUES} of 16 groups of users with a numerator other than 0 (about 30"
    " users)"
)


@dataclass(frozen=True)
class EndsOf:
    """What is read of the interval of a ratio."""

    ratio: Ratio
    horizon_ms: int | None

    def parts(self, layout: Layout) -> Iterator[Part]:
        for of in (self.ratio.above, self.ratio.below):
            if of.name == PEOPLE:
                yield Users(USERS)
            else:
                yield from ByGroup(of, self.horizon_ms).parts(layout)

    def of(self, sums: Sums) -> Interval | None:
        ratio = self.ratio
        if ratio.below.name == PEOPLE:
            return self._of_people(sums)
        x, y = (ByGroup(of, self.horizon_ms).of(sums) for of in (ratio.above, ratio.below))
        if x is None or y is None:
            return None
        found = of_groups(x, y, ratio.units, ratio.is_share, ratio.above.is_signed)
        if ratio.most is None:
            return found
        return replace(found, upper=np.minimum(found.upper, ratio.most))

    def _of_people(self, sums: Sums) -> Interval | None:
        """Groups have as many users each, nearly; what is not so widens the interval."""
        of, over = self.ratio.above, Users(USERS).of(sums)
        x = ByGroup(of).of(sums)
        return None if x is None else _of_means(of, x, over)


def _ends_of(of: Ratio | RatioBy) -> Callable[[Declared], Iterator[Variant]]:
    """What reads the intervals of a ratio; nothing where it is of a family that is off."""

    def variants(declared: Declared) -> Iterator[Variant]:
        settings = declared.settings
        for labels, ratio in of.variants(settings) if _is_on(of, settings) else ():
            for maturity, horizon_ms in maturities(settings, ratio.horizon):
                yield Variant({**labels, **maturity}, (EndsOf(ratio, horizon_ms),))

    return variants


def _itself(found: Interval) -> Interval:
    return found


def _square_root(found: Interval) -> Interval:
    return Interval(np.sqrt(found.lower), np.sqrt(found.upper), found.present)


def _declare_ends(
    base: str,
    reads: Reads,
    unit: str,
    labels: tuple[str, ...],
    empty: str = _OF_VALUES,
    interval: Callable[..., Interval] = _itself,
) -> None:
    """``interval``: of what is read."""
    for end in ("lower", "upper"):

        def series(*found: Any, end: str = end) -> Iterator[Series]:
            its = interval(*found)
            yield Series({}, getattr(its, end), its.present)

        metric.row(
            *(name_of(base, end), unit, f"{end} end of the 95 % interval"),
            f"{end.title()} end of the 95 % interval of {base}, clustered by user.",
            series,
            empty=empty,
            labels=labels,
            brief=Brief() if base in _BRIEF else None,
            reads=reads,
        )


def name_of(base: str, end: str) -> str:
    """The name of one end of a metric's interval.

    >>> name_of("ctr_ratio", "lower"), name_of("views_per_session", "upper")
    ('ctr_lower_ratio', 'views_per_session_upper')
    """
    for suffix in ("_ratio", "_seconds"):
        if base.endswith(suffix):
            return f"{base.removesuffix(suffix)}_{end}{suffix}"
    return f"{base}_{end}"


for each in RATIOS:
    empty_rule = _OF_SHARES if each.is_share else _OF_VALUES
    _declare_ends(each.name, _ends_of(each), each.unit, each.labels, empty_rule)
_IF_OFF = ", and where the metric's family is off"
for of_family in _OF_FAMILIES:
    reads_ends = _ends_of(of_family)
    rule = _OF_SHARES if of_family in score_ratios.BY_THRESHOLD else _OF_VALUES
    _declare_ends(of_family.name, reads_ends, of_family.unit, of_family.labels, f"{rule}{_IF_OFF}")
_OWN = own_ratios.OWN_RATIOS
_declare_ends(_OWN.name, _ends_of(_OWN), _OWN.unit, _OWN.labels)
for prefix, of_squares in (("", score_ratios.MSE), ("rating_", score_ratios.RATING_MSE)):
    unit, absent = of_squares.unit.removeprefix("squared "), f"{_OF_VALUES}{_IF_OFF}"
    ends = (_ends_of(of_squares), unit, of_squares.labels, absent, _square_root)
    _declare_ends(f"{prefix}rmse", *ends)


def _share(above: I64, below: I64) -> F64:
    return np.divide(above, below, out=np.zeros(len(below)), where=below != 0)


def _user_hit(users: I64, hits: I64, sample_ratio: float) -> Interval:
    return of_users(_share(hits, users), users, sample_ratio)


def _positive_rate(of: Declared) -> Iterator[Variant]:
    for labels, reads in by_definition(rate_sum, rate_squares, positive_users)(of):
        yield Variant(labels, (*reads, UserSampleRatio()))


def _of_rates(rates: I64, squares: I64, positive: I64, over: I64, sample_ratio: float) -> Interval:
    return of_rates(rates, squares, over, positive, sample_ratio)


def _of_means(of: Sum, sums: I64 | F64, over: I64) -> Interval:
    """As ``EndsOf._of_people``."""
    equal = np.broadcast_to(over[:, None], sums.shape)
    return of_groups(GROUPS * sums, equal, of.unit, is_share=False, is_signed=of.is_signed)


_WITHOUT_USERS = "absent without users"
_OF_CLICKS = (Given(CLICKS_OF_USERS), ByGroup(CLICKS_OF_USERS), Users(USERS))
_OF_HITS = (Users(USERS), Users(HITS), UserSampleRatio())
_declare_ends("user_hit_ratio", _OF_HITS, "ratio", (), _WITHOUT_USERS, _user_hit)
_declare_ends(
    *("positive_rate_ratio", _positive_rate, "ratio", ("feedback", "definition")),
    f"absent below {LEAST_POSITIVE} users who gave the feedback",
    _of_rates,
)
_declare_ends(
    *("clicks_per_user", _OF_CLICKS, "clicks per user", (), _OF_VALUES, _of_means),
)

FAMILY = Family("intervals", tuple(metric.series), _stats)
