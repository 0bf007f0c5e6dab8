"""One window against its baseline: the change with its interval, and what is to be said of it.

A rule fires when the whole interval is beyond what is tolerated, not when the point is, and no
change at all would be too rare among the looks of a month. A window that is worse than each of
seven past days by more than is tolerated and its own noise fires however much they differ: its
interval ends relative to the worst of them. So does the end of a change from day to day (trend.py)
that is beyond in all. Where an interval shows neither that a change is within
the tolerance nor that there is one, it says whether more traffic would help or past days differ too
much.

The smallest change of a metric that would fire, by the noise of stored windows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from math import inf
from statistics import median

from streamer import formatting
from streamer.settings import limits
from streamer.settings.alerts import LEVEL
from streamer.stats.alerting.bounds import Noise
from streamer.stats.alerting.past import Past, Totals, arrivals, is_never_silent, pooled
from streamer.stats.alerting.trend import Day, trend
from streamer.stats.random_groups import GROUPS, GroupSums, critical

LEAST_DAYS = 3
"""With two days, how much days differ is known from one difference."""
LEAST_EVENTS = 5
"""Independent events in a usual window below which nothing is said of a change: with 3, rises were
false more than once a month and hundred segments (benchmarks/studies/alert_segments.py)."""
GRADUAL = 10
"""By how much rarer the interval of a gradual change may miss: at the level of others, where days
differ by 5 %, one was false a month (benchmarks/studies/alert_courses.py)."""
KINDS = 0.3
"""Relative difference between weekdays, weekends and holidays that says nothing, where fewer than
two days of a kind are known."""
SURE = 1 - 1 / 100_000
"""Level at which a window has to differ from its baseline, on the scale of square roots, before a
rule fires: a hundred segments have 72,000 windows of an hour a month. With 1 - 1 / 30,000 falls of
600 impressions an hour were false more than once a month, without it rises of 300 ten times
(benchmarks/studies/alert_segments.py)."""


class Status(StrEnum):
    """What is said of a window: its interval is ``WITHIN`` the tolerance; it is worse, but the
    interval is not all beyond (``PERHAPS``); or all of it is beyond, which is a regression:
    ``DROPPED``, or ``RISEN`` where lower is better."""

    WITHIN = "within the tolerance"
    PERHAPS = "perhaps beyond the tolerance"
    DROPPED = "dropped"
    RISEN = "risen"
    TOO_LITTLE = "too little data"
    DAYS_DIFFER = "days differ"
    NO_TRAFFIC = "no traffic"
    NO_BASELINE = "no baseline"

    @property
    def words(self) -> StatusWords:
        """How it is shown."""
        return STATUSES[self]

    @property
    def is_open(self) -> bool:
        """Whether nothing can be said."""
        return self.words.kind == "open"

    @property
    def is_bad(self) -> bool:
        """Whether somebody has to look."""
        return self.words.kind == "bad"

    @property
    def is_regression(self) -> bool:
        """Whether all of the interval is beyond the tolerance."""
        return self in (Status.DROPPED, Status.RISEN)


@dataclass(frozen=True, slots=True)
class StatusWords:
    """How a status is shown: its ``kind`` (bad, warn, good, or open: nothing can be said), a sign,
    as a cell, and of one segment and of several ones within a sentence."""

    kind: str
    sign: str
    cell: str
    one: str = ""
    several: str = ""


STATUSES: Mapping[Status, StatusWords] = {
    Status.DROPPED: StatusWords("bad", "▼", "Dropped beyond the tolerance"),
    Status.RISEN: StatusWords("bad", "▲", "Risen beyond the tolerance"),
    Status.NO_TRAFFIC: StatusWords("bad", "✕", "No traffic"),
    Status.PERHAPS: StatusWords("warn", "▽", "Perhaps beyond the tolerance"),
    Status.TOO_LITTLE: StatusWords(
        *("open", "?", "Too little data", "has too little data", "have too little data")
    ),
    Status.DAYS_DIFFER: StatusWords(
        *("open", "?", "Days differ"),
        *("has days that differ too much", "have days that differ too much"),
    ),
    Status.NO_BASELINE: StatusWords(
        *("open", "?", "No baseline", "has no baseline yet", "have no baseline yet")
    ),
    Status.WITHIN: StatusWords("good", "✓", "Within the tolerance"),
}
"""The most urgent first."""


@dataclass(frozen=True, slots=True)
class ChangeRule:
    """What is tolerated: a relative ``drop`` of the metric (0.1: one tenth), or a rise by as much
    where lower is better. ``level`` is that of each end of the intervals; ``form`` says how values
    are written in reasons; of a denominator ``support_unit`` integers are 1."""

    drop: float = 0.1
    level: float = LEVEL
    higher_is_better: bool = True
    form: str = "number"
    support_unit: int = 1

    @property
    def beyond(self) -> Status:
        """What a change beyond the tolerance is called."""
        return Status.DROPPED if self.higher_is_better else Status.RISEN


@dataclass(frozen=True, slots=True)
class MetricChange:
    """A window and its baseline; what is not defined is None.

    ``value``, ``low``, ``high`` and ``baseline`` are in units of the metric. ``change`` is relative
    (-0.1: a tenth less); ``change_high`` is infinite where nothing bounds it. ``support`` is Σy of
    the window, ``expected_support`` the mean of the compared ones, and ``days`` how many of them
    had any; ``compared`` says what they are: `days`, `weekdays` or `weekends` of one week, `weeks`
    (the same weekday), `before` or `reference`, and ``kept`` which of them the baseline is of.
    ``low`` and ``high`` are about the window alone; the interval of the change also knows that days
    differ and that the baseline is an estimate. Whatever the baseline is, ``same_time`` is the
    metric at the same time on all past days together and ``before`` in the window before;
    ``reference_from`` is the first day of the reference week, in ISO 8601; ``since_seconds`` when a
    change that is bad began, where that is known. Of a change by and by over ``gradual_days``, the
    baseline is what the window would have had before it.
    """

    value: float | None
    low: float | None
    high: float | None
    baseline: float | None
    support: int
    expected_support: float
    days: int
    change: float | None = None
    change_low: float | None = None
    change_high: float | None = None
    status: Status = Status.NO_BASELINE
    reason: str = ""
    compared: str = "days"
    kept: tuple[int, ...] = ()
    same_time: float | None = None
    before: float | None = None
    reference_from: str | None = None
    since_seconds: float | None = None
    gradual_days: int | None = None


def compare(
    now: GroupSums,
    then: Sequence[GroupSums] | GroupSums,
    rule: ChangeRule,
    unit: float = 1.0,
    weekdays: Sequence[Sequence[Totals]] = (),
    alike: Sequence[bool] = (),
    is_new_kind: bool = False,
) -> MetricChange:
    """The window ``now`` against the same window of past days, or the one window before it.

    Unknown days are left out of ``then``; days without traffic belong to it.
    ``weekdays`` are the totals of the same window in past weeks, the present weekday first, as far
    back as is known: after four weeks it is compared with those of its weekday that had any
    traffic, where they are three at least. ``alike``, once a week is known: whether each of
    ``then`` is a weekday or of a weekend, as the window is. ``is_new_kind``: whether fewer than two
    of ``then`` are of its kind of day. ``unit`` is what one unit of Σx / Σy is worth. If no x is
    below 0 the metric cannot be, and no interval goes there.

    >>> day = GroupSums(x=tuple(range(40, 56)), y=(1000,) * 16)
    >>> half = GroupSums(x=tuple(range(20, 36)), y=(1000,) * 16)
    >>> compare(half, [day] * 7, ChangeRule(drop=0.1)).reason
    '0.0275 is 42% below the usual 0.0475 (7 days): by at least 35%, beyond 10%'
    >>> compare(GroupSums(), [day] * 7, ChangeRule()).reason
    'nothing was counted; usually it is 16,000'
    >>> weekdays = [[(380, 16000)] * 4, *[[(760, 16000)] * 4] * 6]
    >>> compare(half, [day] * 7, ChangeRule(), weekdays=weekdays).baseline
    0.02375
    """
    is_before = isinstance(then, GroupSums)
    windows = (then,) if isinstance(then, GroupSums) else tuple(then)
    days = _Days(windows, weekdays, alike)
    past = replace(days.past, compared="before") if is_before else days.past
    past_x = (*(x for of in windows for x in of.x), *(x for each in weekdays for x, _ in each))
    floor = 0.0 if min(*now.x, *past_x) >= 0 else -inf
    ends = now.interval(rule.level, unit)
    found = MetricChange(
        value=None if now.value is None else float(now.value) * unit,
        low=None if ends is None else max(floor, ends[0]),
        high=None if ends is None else ends[1],
        baseline=None if past.value is None else float(past.value) * unit,
        support=round(now.support / rule.support_unit),
        expected_support=past.usual_support / rule.support_unit,
        days=past.days,
        compared=past.compared,
        kept=past.kept,
    )
    if problem := _obstacle(now, windows, past) or _few(now, windows, past):
        status, reason = problem
        return replace(found, status=status, reason=reason.format(found))
    noise = Noise.of(now, past, rule.level)
    found = judged(found, float(past.value or 0), noise, rule, (floor, unit))
    if is_new_kind and not is_before:
        return _beyond_all(_of_new_kind(found, rule), days, past, noise, rule, KINDS)
    nearest = float(now.value or 0), _nearest(past, windows, rule)
    if found.status.is_regression and not _is_sure(rule, noise, past, nearest):
        found = _ending(found, rule, 0.0, Status.PERHAPS)
    found = found if is_before else _beyond_all(found, days, past, noise, rule)
    is_worse = not is_before and _is_sure(rule, replace(noise, common=0.0), past, nearest)
    return _gradual(found, days.course, float(past.value or 0), noise, rule) if is_worse else found


def _of_new_kind(found: MetricChange, rule: ChangeRule) -> MetricChange:
    """With an interval that allows for what kinds of days differ by."""
    low, high = 1 + (found.change_low or 0), 1 + (found.change_high or 0)
    ends = min(0.0, low * (1 - KINDS) - 1), max(0.0, high / (1 - KINDS) - 1)
    found = replace(found, change_low=ends[0], change_high=ends[1], status=Status.NO_BASELINE)
    return replace(found, reason=_reason(found.status, rule, found))


@dataclass(frozen=True, slots=True)
class _Days:
    """The past as ``compare`` takes it."""

    windows: Sequence[GroupSums]
    weekdays: Sequence[Sequence[Totals]]
    alike: Sequence[bool]

    @property
    def are_weeks(self) -> bool:
        """Whether so many weeks are known that each weekday is compared with itself."""
        lengths = [len(weekday) for weekday in self.weekdays]
        return bool(lengths) and min(lengths) >= limits.BASELINE_WEEKS

    @property
    def totals(self) -> list[Totals]:
        """All windows that are compared."""
        weeks = [pair for each in self.weekdays for pair in each] if self.are_weeks else []
        return [*((sum(window.x), window.support) for window in self.windows), *weeks]

    @property
    def course(self) -> list[Day]:
        """The metric on each day that is known, of as many kinds as can be told apart."""
        if not self.are_weeks and len(self.windows) < limits.BASELINE_DAYS:
            return []
        *days, last = self.totals[: len(self.windows)]
        found = list[Day]()
        for weekday, weeks in enumerate(self.weekdays or [[last], *([day] for day in days)]):
            is_other = bool(self.alike) and not self.alike[weekday - 1]
            kind = weekday if self.are_weeks else int(is_other)
            for week, (x, y) in enumerate(weeks):
                if x > 0 and y:
                    found.append(Day(7 * week + (weekday or 7), kind, x / y))
        return found

    @property
    def past(self) -> Past:
        """What a window is compared with."""
        past = Past.of(self.windows, self.alike)
        is_by_weekday = self.are_weeks and sum(bool(y) for _, y in self.weekdays[0]) >= LEAST_DAYS
        return past.by_weekday(self.weekdays) if is_by_weekday else past


def _nearest(past: Past, windows: Sequence[GroupSums], rule: ChangeRule) -> float:
    """The baseline; where it is of two windows, which both may be far off by chance, that of all
    past ones as one kind if a change is less from there."""
    own, every = past.value or 0, Past.of(windows).value or 0
    if len(past.kept) >= LEAST_DAYS:
        return float(own)
    return float(min(own, every) if rule.higher_is_better else max(own, every))


def _is_sure(rule: ChangeRule, noise: Noise, past: Past, pair: tuple[float, float]) -> bool:
    """Whether a value is so much worse than a baseline, the ``pair``, that chance hardly ever does
    it; Student's t, for what users differ by is an estimate of the past."""
    value, baseline = pair
    score = noise.score(value, baseline) if baseline > 0 else 0.0
    return (-score if rule.higher_is_better else score) > critical(SURE, max(1, past.most_df))


def _ending(found: MetricChange, rule: ChangeRule, end: float, status: Status) -> MetricChange:
    """With another end of the interval, the one that is nearer to no change."""
    if rule.higher_is_better:
        found = replace(found, change_high=end, status=status)
    else:
        found = replace(found, change_low=end, status=status)
    return replace(found, reason=_reason(status, rule, found))


def _beyond_all(
    found: MetricChange, days: _Days, past: Past, noise: Noise, rule: ChangeRule, kinds: float = 0.0
) -> MetricChange:
    """A regression wherever the window is worse than each known day, of at least seven, by more
    than is tolerated and its own noise. ``kinds``: how much worse days of a new kind may be; of
    these three have to be known."""
    values = [x / y for x, y in days.totals if y]
    if len(values) < (LEAST_DAYS if kinds else limits.BASELINE_DAYS) or found.status.is_regression:
        return found
    assert found.change is not None
    base, is_fall = float(past.value or 0), rule.higher_is_better
    worst = min(values) * (1 - kinds) if is_fall else max(values) / (1 - kinds)
    value = (1 + found.change) * base
    own = replace(noise, common=0.0, t=critical(rule.level, max(1, past.df)))
    if not _is_sure(rule, own, past, (value, worst)):
        return found
    low, high = (u * base / worst - 1 for u in own.factors(value, base))
    end = high if is_fall else low
    return _ending(found, rule, end, rule.beyond) if _is_beyond(rule, low, high) else found


def _gradual(
    found: MetricChange, course: Sequence[Day], base: float, noise: Noise, rule: ChangeRule
) -> MetricChange:
    """A regression wherever all of a gradual change is beyond."""
    value = (1 + (found.change or 0)) * base
    if value <= 0 or found.status.is_regression:
        return found
    users = max(noise.sampling * value / base, noise.own) / value**2
    moved = trend([Day(0, 0, value), *course], 1 - (1 - rule.level) / GRADUAL, users)
    if moved is None or not _is_beyond(rule, moved.low, moved.high):
        return found
    found = replace(found, change=moved.change, change_low=moved.low, change_high=moved.high)
    base = (found.value or 0) / (1 + moved.change)
    found = replace(found, status=rule.beyond, baseline=base, gradual_days=moved.days)
    return replace(found, reason=_reason(rule.beyond, rule, found))


def judged(
    found: MetricChange,
    baseline: float,
    noise: Noise,
    rule: ChangeRule,
    written: tuple[float, float],
) -> MetricChange:
    """The change with its interval; ``baseline`` is in units of Σx / Σy, ``written``: where
    intervals end, and what such a unit is worth."""
    assert found.value is not None
    floor, unit = written
    value = found.value / unit
    low, high = noise.factors(value, baseline)
    its_low, its_high = replace(noise, common=0.0).factors(value, baseline)
    found = replace(
        found,
        low=max(floor, its_low * baseline * unit),
        high=its_high * baseline * unit,
        change=value / baseline - 1,
        change_low=max(floor, low) - 1,
        change_high=high - 1,
    )
    status = _status(rule, found, noise, baseline)
    return replace(found, status=status, reason=_reason(status, rule, found))


def _obstacle(
    now: GroupSums, windows: Sequence[GroupSums], past: Past
) -> tuple[Status, str] | None:
    """Why there is no interval of the change."""
    least_days = 1 if past.compared == "before" else LEAST_DAYS
    known = sum(bool(window.support) for window in windows)
    if not now.support:
        if len(windows) >= least_days and is_never_silent(windows):
            return (
                Status.NO_TRAFFIC,
                "nothing was counted; usually it is {0.expected_support:,.0f}",
            )
        if known >= least_days:
            return Status.TOO_LITTLE, "nothing was counted, as often before"
    if known < least_days:
        return (
            Status.NO_BASELINE,
            f"{known} past windows had traffic, and at least {least_days} are needed",
        )
    assert past.value is not None
    if past.value <= 0:
        return Status.NO_BASELINE, "nothing above 0 in the past windows to compare with"
    if past.unit_variance is None or now.occupied < 2:
        return Status.TOO_LITTLE, "too few users: all are in one random group"
    return None


def _few(now: GroupSums, windows: Sequence[GroupSums], past: Past) -> tuple[Status, str] | None:
    """Why nothing is said of a change: too few independent events are usual among such a support,
    (R y)² / var(R y) = R² y / v, R being the baseline, or that of all ``windows`` if it is lower:
    two days may have many by chance. They are at most the independent users of a usual window."""
    events = median(arrivals(window) for window in windows if window.support)
    if past.unit_variance:
        rate = float(min(past.value or 0, pooled(windows) or 0))
        events = min(events, rate**2 * now.support / past.unit_variance)
    if events >= LEAST_EVENTS:
        return None
    why = f"usually only {events:.1f} independent events, and a change needs {LEAST_EVENTS}"
    return Status.TOO_LITTLE, why


def _worse_first(rule: ChangeRule, low: float, high: float) -> tuple[float, float]:
    """Both ends of an interval as if lower were worse, the worse one first."""
    return (low, high) if rule.higher_is_better else (-high, -low)


def _is_inside(rule: ChangeRule, low: float, high: float) -> bool:
    """Whether the end of the interval that is worse is within the tolerance."""
    return _worse_first(rule, low, high)[0] >= -rule.drop


def _is_beyond(rule: ChangeRule, low: float, high: float) -> bool:
    """Whether all of an interval is beyond the tolerance."""
    return _worse_first(rule, low, high)[1] < -rule.drop


def _would_show(rule: ChangeRule, noise: Noise, baseline: float) -> bool:
    """Whether a change twice the tolerated one would be a regression beyond doubt."""
    if rule.higher_is_better:
        return noise.factors(max(0.0, 1 - 2 * rule.drop) * baseline, baseline)[1] < 1 - rule.drop
    return noise.factors((1 + 2 * rule.drop) * baseline, baseline)[0] > 1 + rule.drop


def _is_worse(rule: ChangeRule, found: MetricChange, noise: Noise, baseline: float) -> bool:
    """Whether there is a change for the worse: the interval excludes none, or the point is beyond
    the tolerance, and noise small enough for that to mean something."""
    assert found.change is not None
    assert found.change_low is not None
    assert found.change_high is not None
    excludes_none = _worse_first(rule, found.change_low, found.change_high)[1] < 0
    is_beyond = _is_beyond(rule, found.change, found.change)
    return excludes_none or (is_beyond and _would_show(rule, noise, baseline))


def _status(rule: ChangeRule, found: MetricChange, noise: Noise, baseline: float) -> Status:
    assert found.change_low is not None
    assert found.change_high is not None
    if _is_beyond(rule, found.change_low, found.change_high):
        return rule.beyond
    if _is_inside(rule, found.change_low, found.change_high):
        return Status.WITHIN
    if _is_worse(rule, found, noise, baseline):
        return Status.PERHAPS
    low, high = noise.of_days_alone.factors(baseline, baseline)
    would_more_traffic_help = _is_inside(rule, low - 1, high - 1)
    if noise.are_unlike and (noise.is_of_days or not would_more_traffic_help):
        return Status.DAYS_DIFFER
    alike = replace(noise, common=noise.common - noise.day, t=critical(rule.level, GROUPS - 1))
    low, high = alike.factors(baseline, baseline)
    return Status.DAYS_DIFFER if _is_inside(rule, low - 1, high - 1) else Status.TOO_LITTLE


_VERSUS = {
    "days": "{} days",
    "weekdays": "{} weekdays",
    "weekends": "{} days of the weekend",
    "weeks": "the same weekday, {} weeks",
    "before": "the window before",
    "reference": "the reference week",
}


def _reason(status: Status, rule: ChangeRule, found: MetricChange) -> str:
    assert found.change is not None
    assert found.change_low is not None
    assert found.change_high is not None
    assert found.value is not None
    assert found.baseline is not None
    side = "below" if found.change < 0 else "above"
    versus = _VERSUS[found.compared].format(found.days)
    value, baseline = (formatting.value_text(rule.form, x) for x in (found.value, found.baseline))
    text = f"{value} is {size_text(found.change)} {side} the usual {baseline} ({versus})"
    if status is Status.NO_BASELINE:
        kinds = f"and kinds may differ by {KINDS:.0%}"
        return f"{text}: fewer than two days of its kind are known, {kinds}"
    tolerated = formatting.share(rule.drop)
    least = min((found.change_low, found.change_high), key=abs)
    if found.gradual_days is not None:
        moved = "fallen" if found.change < 0 else "risen"
        daily = abs((1 + found.change) ** (1 / found.gradual_days) - 1)
        return (
            f"{value} has {moved} by {size_text(daily)} a day for {found.gradual_days} days,"
            f" from {baseline}: by at least {size_text(least)} in all, beyond {tolerated}"
        )
    if status.is_regression:
        return f"{text}: by at least {size_text(least)}, beyond {tolerated}"
    low, high = (formatting.change(end) for end in (found.change_low, found.change_high))
    text += f", between {low} and {high}"
    if status is Status.WITHIN:
        return text
    if status is Status.PERHAPS:
        return f"{text}: worse, but not proved beyond the tolerated {tolerated}"
    what = "fall" if rule.higher_is_better else "rise"
    is_little = status is Status.TOO_LITTLE
    why = "too few events" if is_little else "past days differ too much"
    return f"{text}: {why} to prove a {what} of {tolerated}, or to rule it out"


def size_text(change: float) -> str:
    """How large a change is, without its sign.

    >>> size_text(-0.421), size_text(2.5)
    ('42%', '250%')
    """
    return formatting.whole_percent(abs(change))


LARGEST_RISE = 9.0
"""Relative rise beyond which none is looked for: tenfold."""
_FINE = 1_000_000
"""Parts of one unit of Σx: changed sums are integers, too."""
_STEPS = 14
"""Halvings: a total loss is known to a part in 16,000, a tenfold rise to one in 1,800."""


def smallest_change(
    now: GroupSums,
    then: Sequence[GroupSums] | GroupSums,
    rule: ChangeRule,
    weekdays: Sequence[Sequence[Totals]] = (),
    alike: Sequence[bool] = (),
    is_new_kind: bool = False,
) -> float | None:
    """The smallest relative change for the worse (0.2: a fifth) of a window with the traffic and
    the groups of users of ``now`` that ``compare`` calls a regression, all others given as to that.
    None where not even a total loss or ``LARGEST_RISE`` is one, or there is no baseline, or
    nothing above 0 in the window.

    >>> day = GroupSums(x=tuple(range(40, 56)), y=(1000,) * 16)
    >>> round(smallest_change(day, [day] * 7, ChangeRule(drop=0.1)), 3)
    0.162
    >>> smallest_change(day, [GroupSums()] * 7, ChangeRule()) is None
    True
    """
    compared = partial(compare, rule=rule, alike=alike, is_new_kind=is_new_kind)
    fires = _firing(compared, now, then, rule, weekdays)
    largest = 1.0 if rule.higher_is_better else LARGEST_RISE
    if fires is None or not fires(largest):
        return None
    low, high = 0.0, largest
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if fires(middle) else (middle, high)
    return high


def _firing(
    compared: Callable[..., MetricChange],
    now: GroupSums,
    then: Sequence[GroupSums] | GroupSums,
    rule: ChangeRule,
    weekdays: Sequence[Sequence[Totals]],
) -> Callable[[float], bool] | None:
    """Whether a change from the baseline fires; None where nothing can be changed by a factor."""
    usual = compared(now, then, weekdays=weekdays)
    if not usual.baseline or not usual.value or usual.value < 0:
        return None
    weeks = [[(_FINE * x, y) for x, y in weekday] for weekday in weekdays]
    if isinstance(then, GroupSums):
        fine: Sequence[GroupSums] | GroupSums = _times(then, _FINE)
    else:
        fine = [_times(day, _FINE) for day in then]
    to_baseline = usual.baseline / usual.value

    def fires(change: float) -> bool:
        by = to_baseline * (1 - change if rule.higher_is_better else 1 + change)
        changed = _times(now, by * _FINE)
        return compared(changed, fine, weekdays=weeks).status.is_regression

    return fires


def _times(window: GroupSums, by: float) -> GroupSums:
    return replace(window, x=tuple(round(x * by) for x in window.x))
