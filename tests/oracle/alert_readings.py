"""What is shown of alerts: the package's own comparison, of the oracle's sums."""

from __future__ import annotations

from collections import defaultdict
from math import isfinite

from streamer.alert_settings import Alert
from streamer.alerting.baseline import Change, Rule, compare
from streamer.alerting.groups import GroupSums
from streamer.config import Settings
from streamer.experiment_settings import DAY_MS

from .acceptance import Acceptance
from .dimensions import Kept
from .experiment_readings import unit_of
from .experiments import ratio_of
from .joining import Joins
from .sink import Sink
from .tracks import PANES, Key, track

BY_OWN_TIME = {"clicks", "conversions", "value", "dwell"}
DAYS = 7
Values = tuple[str, ...]


def read_alerts(out: Sink, verdict: Acceptance, joins: Joins, settings: Settings) -> None:
    """The gauges of everything that an alert watches."""
    stream_ms = verdict.stream_time_ms()
    kept = Kept(verdict.events, settings)
    for alert in settings.alerts:
        sums = {} if stream_ms is None else track(verdict, joins, kept, settings, alert)
        read_alert(out, settings, alert, sums, stream_ms or 0)


def lag_ms(settings: Settings, metric: str) -> int:
    """How long a value can still change by feedback that is to come."""
    above, _ = ratio_of(metric, settings)
    if above in BY_OWN_TIME or above.startswith("feedback."):
        return 0
    horizons = settings.attribution
    by_conversions = settings.metrics.feedback.get("conversion", 0) > 0
    horizon_ms = horizons.conversion_ms if by_conversions else horizons.click_ms
    horizon_ms = {"clicked": horizons.click_ms, "converted": horizons.conversion_ms}.get(
        above, horizon_ms
    )
    return horizon_ms + settings.time.max_lateness_ms


def read_alert(
    out: Sink, settings: Settings, alert: Alert, sums: dict[Key, int], stream_ms: int
) -> None:
    per_day = DAY_MS * PANES // alert.window_ms
    newest = (stream_ms - lag_ms(settings, alert.metric)) * PANES // alert.window_ms
    shifts = [day * per_day for day in range(1, DAYS + 1)]
    windows = {shift: window(sums, newest - shift) for shift in (0, PANES, *shifts)}
    known = {values for of_window in windows.values() for values in of_window}
    shown: list[Values | None] = [None, *sorted(known)] if alert.segments else [None]
    for values in shown:
        now = group_sums(windows[0], values)
        days = [group_sums(windows[shift], values) for shift in shifts]
        before = group_sums(windows[PANES], values)
        change = compare(
            now,
            before if alert.baseline == "before" else days,
            Rule(alert.drop, alert.level, alert.direction == "higher"),
            1 / unit_of(alert.metric),
        )
        named = dict.fromkeys(settings.dimension_names, "all")
        if values is not None:
            by = [name for name in settings.dimension_names if name in alert.segments]
            named |= dict(zip(by, values, strict=True))
        put(out, {"alert": alert.name, **named}, change)
        for name, some in (("same_time", days), ("before", [before])):
            counted = [w for w in some if sum(w.y)]
            if counted:
                value = sum(sum(w.x) for w in counted) / sum(sum(w.y) for w in counted)
                labels = {"alert": alert.name, **named}
                out.put(f"alert_{name}_value", labels, value / unit_of(alert.metric))


def window(sums: dict[Key, int], last: int) -> dict[Values, dict[tuple[int, str], int]]:
    """Segment → (group, side) → sum, over the panes up to ``last``."""
    found: dict[Values, dict[tuple[int, str], int]] = defaultdict(lambda: defaultdict(int))
    for (pane, values, group, side), amount in sums.items():
        if last - PANES < pane <= last:
            found[values][group, side] += amount
    return found


def group_sums(
    of_window: dict[Values, dict[tuple[int, str], int]], values: Values | None
) -> GroupSums:
    """One segment's, or all of them (None)."""
    chosen = of_window.values() if values is None else [of_window.get(values, {})]
    total: dict[tuple[int, str], int] = defaultdict(int)
    for part in chosen:
        for key, amount in part.items():
            total[key] += amount
    x, y = ([total[group, side] for group in range(16)] for side in "xy")
    return GroupSums(tuple(x), tuple(y))


def put(out: Sink, labels: dict[str, str], change: Change) -> None:
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
    for name, value in shown.items():
        if value is not None and isfinite(value):
            out.put(f"alert_{name}", labels, value)
    out.put("alert_status", {**labels, "status": str(change.status)}, 1)
