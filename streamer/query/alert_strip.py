"""The past seven days of an alert's metric at a glance: its window at many times beside the usual
one, as points without intervals, for these can be computed again for a day only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from streamer.query.alert_panes import WindowPanes
from streamer.query.segment_index import Segment
from streamer.settings import limits
from streamer.settings.alerts import Alert
from streamer.settings.durations import DAY_MS
from streamer.stats.alerting.baseline import LEAST_EVENTS

_LOOK_MS = 3_600_000
_DAYS = 7


@dataclass(frozen=True, slots=True)
class Strip:
    """Looks from ``from_ms`` on, ``step_ms`` apart. ``values``: of the window that ends then, and
    ``usual``: of the same time on the seven days before; None where nothing is known. ``beyond``:
    whether the value is worse by more than is tolerated, None where too few events are usual."""

    from_ms: int
    step_ms: int
    values: list[float | None]
    usual: list[float | None]
    beyond: list[bool | None]


def strip(panes: WindowPanes, segment: Segment, alert: Alert, unit: float, end_ms: int) -> Strip:
    """Of one segment up to a time, which is a whole look without the lag."""
    pane_ms, lag_ms = panes.series.pane_ms, panes.series.lag_ms
    step = -(-_LOOK_MS // pane_ms) * pane_ms
    ends = range(end_ms - (_DAYS * DAY_MS // step - 1) * step, end_ms + 1, step)
    looks = [_look(panes, segment, end // pane_ms - 1) for end in ends]
    return Strip(
        from_ms=ends[0] + lag_ms,
        step_ms=step,
        values=[None if each.value is None else each.value * unit for each in looks],
        usual=[None if each.usual is None else each.usual * unit for each in looks],
        beyond=[each.is_beyond(alert) for each in looks],
    )


class _Look(NamedTuple):
    """A window in units of Σx / Σy, and the usual one."""

    support: int
    value: float | None
    usual: float | None

    def is_beyond(self, alert: Alert) -> bool | None:
        if self.value is None or not self.usual or self.usual * self.support < LEAST_EVENTS:
            return None
        change = self.value / self.usual - 1
        return (-change if alert.direction == "higher" else change) > alert.drop


def _look(panes: WindowPanes, segment: Segment, last: int) -> _Look:
    x, y = _totals(panes, segment, last)
    a_day = DAY_MS // panes.series.pane_ms
    past = [_totals(panes, segment, last - day * a_day) for day in range(1, _DAYS + 1)]
    usual_x, usual_y = (sum(side) for side in zip(*past, strict=True))
    return _Look(y, x / y if y else None, usual_x / usual_y if usual_y else None)


def _totals(panes: WindowPanes, segment: Segment, last: int) -> tuple[int, int]:
    begin_ms = (last - limits.PANES_OF_ALERTS + 1) * panes.series.pane_ms
    if begin_ms < panes.since_ms:
        return 0, 0
    return panes.total_of(panes.totals(last), segment)
