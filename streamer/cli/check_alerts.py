"""``streamer check``: the smallest change that each alert finds, and how soon."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from streamer.cli.finding import OK, Finding
from streamer.metrics.catalogue import Catalogue
from streamer.settings.alerts import Alert
from streamer.settings.model import Settings

_MINUTE_MS = 60_000


def alert_findings(settings: Settings) -> Iterator[Finding]:
    """One for each alert."""
    measures = Catalogue(settings).alert_measures
    for alert in settings.alerts:
        yield Finding(OK, found_by(alert, measures.series_of(alert)[0].lag_ms))


def found_by(alert: Alert, lag_ms: int) -> str:
    """What an alert finds without noise: a change just beyond the tolerance fills the window first,
    a total loss the tolerated share of it.

    >>> found_by(Alert(name="ctr", drop=0.2), 0).partition(", a total")[2]
    ' loss after 22 min; noise makes it larger and later'
    """
    smallest = _minutes(alert.window_ms + alert.for_ms + lag_ms)
    what = "fall" if alert.direction == "higher" else "rise"
    text = f"alert {alert.name}: without noise, a lasting {what} of more than {100 * alert.drop:g}%"
    total = _minutes(round(alert.drop * alert.window_ms) + alert.for_ms + lag_ms)
    loss = f", a total loss after {total}" if alert.direction == "higher" else ""
    return f"{text} fires after {smallest}{loss}; noise makes it larger and later"


def _minutes(ms: int) -> str:
    return f"{ceil(ms / _MINUTE_MS)} min"
