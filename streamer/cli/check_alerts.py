"""``streamer check``: the smallest change that each alert finds, and how soon."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, inf

from streamer.cli.finding import OK, WARN, Finding
from streamer.errors import CodecError, StoreError
from streamer.metrics.catalogue import Catalogue
from streamer.query.alert_history import AlertHistory
from streamer.query.alerts import AlertEvaluation
from streamer.settings.alerts import Alert
from streamer.settings.model import Settings
from streamer.state.contents import contents_of
from streamer.state.reader import Reader
from streamer.state.snapshot import View
from streamer.state.store import Store

_MINUTE_MS = 60_000
_ATTRIBUTED = {"cvr_ratio": "cvr_attributed_ratio"}
"""Metrics whose numerator comes later than their denominator: which one waits for it."""
_LARGE = {"higher": (0.5, 1.0), "lower": (1.0, 2.0)}
"""Lasting changes of which the time is told, by which direction is better."""


async def stored_views(settings: Settings, store: Store) -> list[View]:
    """What is stored under these settings; nothing where it cannot be read, which other findings
    say."""
    reader = Reader(store, contents_of(settings, Catalogue(settings)))
    try:
        await reader.refresh()
    except (CodecError, StoreError):
        return []
    return reader.views


def alert_findings(settings: Settings, views: Sequence[View] = ()) -> Iterator[Finding]:
    """One for each alert, by the noise of what is stored."""
    measures = Catalogue(settings).alert_measures
    at_ms = max((view.header.stream_ms for view in views), default=0)
    for alert in settings.alerts:
        lag_ms = measures.series_of(alert)[0].lag_ms
        smallest = list[float | None]()
        if views:
            windows = AlertEvaluation(settings, alert, measures, views, at_ms)
            smallest = AlertHistory(windows, at_ms).smallest_changes()
        yield found_with(alert, lag_ms, smallest) if smallest else found_by(alert, lag_ms)
        if attributed := _ATTRIBUTED.get(alert.metric):
            what = f"alert {alert.name}: conversions come later than their clicks: where they take "
            what += f"hours, rising traffic looks like a fall of {alert.metric}"
            fix = f'set metric = "{attributed}", the share of clicks that are old enough'
            yield Finding(WARN, what, fix)


def found_by(alert: Alert, lag_ms: int) -> Finding:
    """What an alert finds without noise: a change just beyond the tolerance fills the window first,
    a total loss the tolerated share of it.

    >>> found_by(Alert(name="ctr", drop=0.2), 0).what.partition(", a total")[2]
    ' loss after 22 min; noise makes it larger and later, how much is not known yet'
    """
    smallest = minutes_until(alert, lag_ms, alert.drop, alert.drop)
    what = f"alert {alert.name}: without noise, a lasting {_change(alert)} of more than "
    what += f"{100 * alert.drop:g}% fires after {smallest} min"
    if alert.direction == "higher":
        what += f", a total loss after {minutes_until(alert, lag_ms, alert.drop, 1.0)} min"
    return Finding(OK, f"{what}; noise makes it larger and later, how much is not known yet")


def found_with(alert: Alert, lag_ms: int, smallest: Sequence[float | None]) -> Finding:
    """What an alert finds of everything together, by the smallest change that would have fired at
    each look of the past day (None: none would): at the look in the middle, and at the worst.

    >>> found_with(Alert(name="ctr", drop=0.2), 0, [0.25, 0.3, 0.27]).what
    'alert ctr: by the noise of the past day, a lasting fall of 27% fires after 70 min, one of 50% \
after 43 min, a total loss after 27 min; at the worst hour it takes 30%'
    """
    ordered = sorted(inf if change is None else change for change in smallest)
    middle, worst = ordered[len(ordered) // 2], ordered[-1]
    what = f"alert {alert.name}: by the noise of the past day, "
    if middle == inf:
        none = "a total loss" if alert.direction == "higher" else "a rise to ten times as much"
        return Finding(WARN, f"{what}not even {none} fires", "set a longer window")
    what += f"a lasting {_change(alert)} of {_percent(middle)} fires after "
    what += f"{minutes_until(alert, lag_ms, middle, middle)} min"
    for change in _LARGE[alert.direction]:
        if change > middle:
            is_total = alert.direction == "higher" and change == 1
            change_words = "a total loss" if is_total else f"one of {change:.0%}"
            what += f", {change_words} after {minutes_until(alert, lag_ms, middle, change)} min"
    most = "nothing fires" if worst == inf else f"it takes {_percent(worst)}"
    more = "; segments take more" if alert.segments else ""
    return Finding(OK, f"{what}; at the worst hour {most}{more}")


def minutes_until(alert: Alert, lag_ms: int, smallest: float, change: float) -> int:
    """Minutes until a lasting change fires, when it has filled so much of the window that this has
    changed by ``smallest``."""
    filled_ms = round(smallest / change * alert.window_ms)
    return ceil((filled_ms + alert.for_ms + lag_ms) / _MINUTE_MS)


def _change(alert: Alert) -> str:
    return "fall" if alert.direction == "higher" else "rise"


def _percent(change: float) -> str:
    """Rounded up: less does not fire."""
    return f"{ceil(100 * change - 1e-9)}%"
