"""What is shown of alerts: the package's own comparison, of the oracle's sums."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from fractions import Fraction
from math import floor, isfinite
from statistics import median
from typing import Any

from streamer.settings.alerts import Alert
from streamer.settings.durations import DAY_MS
from streamer.settings.model import Settings
from streamer.stats.alerting.baseline import ChangeRule, MetricChange, compare
from streamer.stats.alerting.past import arrivals
from streamer.stats.alerting.reference import against_reference
from streamer.stats.alerting.traffic import Traffic, TrafficRule, judge_traffic
from streamer.stats.random_groups import GroupSums

from .alert_series import PANES, Key, sums_of
from .dimensions import Kept
from .experiment_metrics import parts_of, ratio_of
from .experiment_readings import unit_of
from .sink import Sink
from .user_days import Fact

BY_OWN_TIME = {"clicks", "conversions", "value", "dwell"}
DAYS = 7
COMPOSITE = 10**18
Values = tuple[str, ...]
Mix = list[Fraction]


def read_alerts(
    out: Sink, facts: Sequence[Fact], kept: Kept, settings: Settings, stream_ms: int
) -> None:
    """The gauges of everything that an alert watches."""
    for alert in settings.alerts:
        read_alert(out, settings, alert, sums_of(facts, kept, settings, alert), stream_ms)


def lag_ms(settings: Settings, metric: str) -> int:
    """How long a value can still change by feedback that is to come."""
    return max(lag_of(settings, part) for part, _ in parts_of(metric, settings))


def lag_of(settings: Settings, metric: str) -> int:
    above, _ = ratio_of(metric, settings)
    if above in BY_OWN_TIME or above.startswith(("feedback.", "diversities@", "own ")):
        return 0
    horizons = settings.attribution
    by_conversions = settings.metrics.feedback.get("conversion", 0) > 0
    horizon_ms = horizons.conversion_ms if by_conversions else horizons.click_ms
    if above.startswith("scores ") or " of " in above:
        above = "clicked"
    horizon_ms = {"clicked": horizons.click_ms, "converted": horizons.conversion_ms}.get(
        above, horizon_ms
    )
    return horizon_ms + settings.time.max_lateness_ms


def read_alert(
    out: Sink, settings: Settings, alert: Alert, sums: dict[Key, int], stream_ms: int
) -> None:
    per_day = DAY_MS * PANES // alert.window_ms
    mature_ms = stream_ms - lag_ms(settings, alert.metric)
    newest = mature_ms * PANES // alert.window_ms
    shifts = [day * per_day for day in range(1, DAYS + 1)]
    windows = {shift: window(sums, newest - shift) for shift in (0, PANES, *shifts)}
    known = {values for of_window in windows.values() for values in of_window}
    shown: list[Values | None] = [None, *sorted(known)] if alert.segments else [None]
    mix = mix_of(settings, alert.metric)
    unit = 1 / (unit_of(alert.metric, settings) if mix is None else COMPOSITE)
    support_unit = support_unit_of(alert.metric, settings)
    higher = alert.direction == "higher"
    rule = ChangeRule(alert.drop, alert.level, higher, support_unit=support_unit)
    for values in shown:
        now = group_sums(windows[0], values, mix)
        days = [group_sums(windows[shift], values, mix) for shift in shifts]
        before = group_sums(windows[PANES], values, mix)
        if alert.baseline == "before":
            base = group_sums(window(sums, base_of(alert, sums, newest, values, mix)), values, mix)
            change = compare(now, base, rule, unit)
        else:
            past = weekdays(sums, newest, per_day, values, mix)
            change = compare(now, days, rule, unit, past, kinds(newest, per_day))
        named = dict.fromkeys(settings.dimension_names, "all")
        if values is not None:
            by = [name for name in settings.dimension_names if name in alert.segments]
            named |= dict(zip(by, values, strict=True))
        labels = {"alert": alert.name, **named}
        put(out, labels, change)
        for name, some in (("same_time", days), ("before", [before])):
            counted = [w for w in some if sum(w.y)]
            if counted:
                value = sum(sum(w.x) for w in counted) / sum(sum(w.y) for w in counted)
                out.put(f"alert_{name}_value", labels, value * unit)
        if alert.traffic_drop or alert.traffic_rise:
            found = traffic(alert, sums, newest - 1, per_day, values, days, mix, support_unit)
            put_traffic(out, labels, found)
        if alert.reference != "none":
            week = past_week(alert, sums, mature_ms, per_day, values, mix)
            put_reference(out, labels, against_reference(*week, rule, unit) if week else None)


def support_unit_of(metric: str, settings: Settings) -> int:
    """How many integers of the denominator are 1: fields are added up in millionths."""
    named = {f"ratio@{each.name}": each.denominator for each in settings.ratios}
    below = named.get(metric)
    return 1 if below is None or below.field is None else 10**6


def kinds(newest: int, per_day: int) -> list[bool]:
    """Whether each of the past days is of a weekend, or not, as the present one."""
    dates = [date(1970, 1, 1) + timedelta(newest // per_day - day) for day in range(DAYS + 1)]
    weekends = [each.isoweekday() > 5 for each in dates]
    return [each is weekends[0] for each in weekends[1:]]


def base_of(
    alert: Alert, sums: dict[Key, int], newest: int, values: Values | None, mix: Mix | None
) -> int:
    """The last pane of the window that `before` compares with: looks are made from six windows ago
    on, and the base stays while each is beyond."""
    rule = ChangeRule(alert.drop, alert.level, alert.direction == "higher")
    base = newest - 7 * PANES
    for last in range(newest - 6 * PANES, newest):
        now, then = (group_sums(window(sums, pane), values, mix) for pane in (last, base))
        is_beyond = compare(now, then, rule).status in ("dropped", "risen")
        base = base if is_beyond else last + 1 - PANES
    return base


def first_day(sums: dict[Key, int], per_day: int) -> int | None:
    """The day after the one on which anything was counted first."""
    return None if not sums else min(pane // per_day for pane, *_ in sums) + 1


def total(
    sums: dict[Key, int], last: int, values: Values | None, mix: Mix | None
) -> tuple[int, int]:
    """(Σx, Σy) of a window, without groups."""
    found: Counter[str] = Counter()
    for (pane, its, _, side), amount in sums.items():
        if last - PANES < pane <= last and values in (None, its):
            found[side] += amount
    return (found["x"], found["y"]) if mix is None else mixed_total(mix, found)


def weekdays(
    sums: dict[Key, int], newest: int, per_day: int, values: Values | None, mix: Mix | None
) -> list[list[tuple[int, int]]]:
    """By weekday, the present one first, the window in each of the past four weeks that did not
    begin before the first whole day."""
    begin = first_day(sums, per_day)
    if begin is None:
        return [[] for _ in range(7)]
    lasts = [[newest - (day + 7 * w) * per_day for w in range(4)] for day in (7, 1, 2, 3, 4, 5, 6)]
    return [
        [total(sums, t, values, mix) for t in of if t - PANES + 1 >= begin * per_day]
        for of in lasts
    ]


def traffic(
    alert: Alert,
    sums: dict[Key, int],
    last_whole: int,
    per_day: int,
    values: Values | None,
    days: list[GroupSums],
    mix: Mix | None,
    unit: int,
) -> Traffic:
    """What is said of the events of the window that ends with the last whole pane."""
    past = weekdays(sums, last_whole, per_day, values, mix)
    if not all(len(weekday) == 4 for weekday in past):
        days_ago = [*past[1:], past[0]]
        past = [[pair for weekday in days_ago for pair in weekday[:1]]]
    rule = TrafficRule(alert.traffic_drop, alert.traffic_rise, alert.level, unit)
    _, now = total(sums, last_whole, values, mix)
    counts = [[y for _, y in weekday] for weekday in past]
    return judge_traffic(now, counts, median(arrivals(day) for day in days), rule)


def past_week(
    alert: Alert,
    sums: dict[Key, int],
    mature_ms: int,
    per_day: int,
    values: Values | None,
    mix: Mix | None,
) -> tuple[list[GroupSums], list[GroupSums]] | None:
    """The past 7 whole days in the order of the reference week's weekdays, and that week."""
    begin = first_day(sums, per_day)
    if begin is None:
        return None
    if alert.reference != "first":
        first = begin
        begin = (date.fromisoformat(alert.reference) - date(1970, 1, 1)).days
        if begin < first:
            return None
    today = mature_ms // DAY_MS
    past = range(today - 7, today)
    if past[0] < begin + 7:
        return None
    matched = [next(day for day in past if (day - begin) % 7 == i) for i in range(7)]
    return tuple(
        [day_sums(sums, day, per_day, values, mix) for day in week]
        for week in (matched, range(begin, begin + 7))
    )  # type: ignore[return-value]


def day_sums(
    sums: dict[Key, int], day: int, per_day: int, values: Values | None, mix: Mix | None
) -> GroupSums:
    """One day's sums by groups of users."""
    found: dict[Values, dict[tuple[int, str], int]] = defaultdict(lambda: defaultdict(int))
    for (pane, its, group, side), amount in sums.items():
        if pane // per_day == day:
            found[its][group, side] += amount
    return group_sums(found, values, mix)


def window(sums: dict[Key, int], last: int) -> dict[Values, dict[tuple[int, str], int]]:
    """Segment → (group, side) → sum, over the panes up to ``last``."""
    found: dict[Values, dict[tuple[int, str], int]] = defaultdict(lambda: defaultdict(int))
    for (pane, values, group, side), amount in sums.items():
        if last - PANES < pane <= last:
            found[values][group, side] += amount
    return found


def group_sums(
    of_window: dict[Values, dict[tuple[int, str], int]],
    values: Values | None,
    mix: Mix | None = None,
) -> GroupSums:
    """One segment's, or all of them (None)."""
    chosen = of_window.values() if values is None else [of_window.get(values, {})]
    total: dict[tuple[int, str], int] = defaultdict(int)
    for part in chosen:
        for key, amount in part.items():
            total[key] += amount
    if mix is not None:
        return mixed(mix, total)
    x, y = ([total[group, side] for group in range(16)] for side in "xy")
    return GroupSums(tuple(x), tuple(y))


# Composites -----------------------------------------------------------------------------------


def mix_of(settings: Settings, metric: str) -> Mix | None:
    """What each part's ratio counts for in a composite, in 1e-18; None where it is none."""
    if not metric.startswith("composite@"):
        return None
    return [
        Fraction(c) * COMPOSITE / unit_of(part, settings) for part, c in parts_of(metric, settings)
    ]


def nearest(value: Fraction) -> int:
    return floor(value + Fraction(1, 2))


def mixed(mix: Mix, sums: dict[tuple[int, str], int]) -> GroupSums:
    """Numbers by group that are the composite together, and vary as it does."""
    x = [[sums[g, f"x{i}"] for g in range(16)] for i in range(len(mix))]
    y = [[sums[g, f"y{i}"] for g in range(16)] for i in range(len(mix))]
    if not all(map(sum, y)):
        return GroupSums()
    found = [0] * 16
    for c, a, b in zip(mix, x, y, strict=True):
        rate = Fraction(sum(a), sum(b))
        for g in range(16):
            residual = (a[g] - rate * b[g]) / sum(b)
            found[g] += nearest(c * (rate * y[0][g] + residual * sum(y[0])))
    return GroupSums(tuple(found), tuple(y[0]))


def mixed_total(mix: Mix, sums: Counter[str]) -> tuple[int, int]:
    y = [sums[f"y{i}"] for i in range(len(mix))]
    if not all(y):
        return 0, 0
    rates = [Fraction(sums[f"x{i}"], y[i]) for i in range(len(mix))]
    return sum(nearest(c * rate * y[0]) for c, rate in zip(mix, rates, strict=True)), y[0]


def put(out: Sink, labels: dict[str, str], change: MetricChange) -> None:
    shown = {
        "value": change.value,
        "lower": change.low,
        "upper": change.high,
        "baseline": change.baseline,
        "baseline_windows": change.days,
        "support": change.support,
        "expected_support": change.expected_support,
        "change_ratio": change.change,
        "change_lower_ratio": change.change_low,
        "change_upper_ratio": change.change_high,
    }
    put_all(out, "alert_", labels, shown)
    out.put("alert_status", {**labels, "status": str(change.status)}, 1)


def put_traffic(out: Sink, labels: dict[str, str], found: Traffic) -> None:
    shown = {
        "": found.events,
        "_usual": found.usual,
        "_change_ratio": found.change,
        "_change_lower_ratio": found.change_low,
        "_change_upper_ratio": found.change_high,
    }
    put_all(out, "alert_traffic", labels, shown)
    out.put("alert_traffic_status", {**labels, "status": str(found.status)}, 1)


def put_reference(out: Sink, labels: dict[str, str], found: MetricChange | None) -> None:
    """Without a whole reference week, and a whole week after it: that there is none."""
    shown = found and {
        "past_week_value": found.value,
        "reference_value": found.baseline,
        "reference_change_ratio": found.change,
        "reference_change_lower_ratio": found.change_low,
        "reference_change_upper_ratio": found.change_high,
    }
    put_all(out, "alert_", labels, shown or {})
    status = str(found.status) if found else "no baseline"
    out.put("alert_reference_status", {**labels, "status": status}, 1)


def put_all(out: Sink, prefix: str, labels: dict[str, str], shown: dict[str, Any]) -> None:
    for name, value in shown.items():
        if value is not None and isfinite(value):
            out.put(prefix + name, labels, value)
