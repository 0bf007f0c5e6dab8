"""What alerts compare: a window of a metric and its baseline, for every segment that is watched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamer import limits
from streamer.alert_settings import Alert
from streamer.alerting.baseline import Change, Rule, compare
from streamer.alerting.explain import Explanation, explain
from streamer.alerting.groups import GROUPS, GroupSums
from streamer.alerting.past import pooled
from streamer.batch import I64
from streamer.config import Settings
from streamer.engine.integers import joined
from streamer.engine.labels import Label
from streamer.engine.tracks import ABOVE, BELOW, HIGH, Track
from streamer.experiment_settings import DAY_MS
from streamer.metrics.per_user import AlertFacts
from streamer.readout.view import TrackView, View
from streamer.readout.windows import ALL, OTHER, Segment, values_shown

_STATS = 3 * GROUPS
_RING = 1 << 32
_DAYS = limits.BASELINE_DAYS


@dataclass(frozen=True)
class Watched:
    """One segment of an alert (``all`` outside of what it is watched by); what is said of it, and
    the metric on past days and in the window before, whichever of them it is compared with."""

    alert: Alert
    segment: Segment
    change: Change
    same_time: float | None
    before: float | None


class Windows:
    """Sums of one alert's metric by segment: now, in the window before, and on past days."""

    def __init__(
        self, settings: Settings, alert: Alert, facts: AlertFacts, views: Sequence[View], at_ms: int
    ) -> None:
        self.settings, self.alert = settings, alert
        self.track: Track = facts.track_of(alert)
        self.unit = 1 / facts.ratios[alert.metric].unit
        self._views = [v.tracks[self.track.shape] for v in views if self.track.shape in v.tracks]
        self._newest = (at_ms - self.track.lag_ms) // self.track.ring.pane_ms
        self._shown = dict(
            zip(settings.dimension_names, values_shown(settings, views), strict=True)
        )

    @cached_property
    def present(self) -> dict[Segment, I64]:
        """The window at stream time, or as far behind it as feedback may still change it."""
        return self._sums(0)

    @cached_property
    def before(self) -> dict[Segment, I64]:
        """The window before; nothing where it is not known."""
        shift = limits.PANES_OF_ALERTS
        return self._sums(shift) if self._is_known(shift) else {}

    @cached_property
    def days(self) -> list[dict[Segment, I64]]:
        """The same time of day on past days, the last one first, as far back as is known."""
        shifts = [day * DAY_MS // self.track.ring.pane_ms for day in range(1, _DAYS + 1)]
        return [self._sums(shift) for shift in shifts if self._is_known(shift)]

    @cached_property
    def _segments(self) -> list[list[Segment]]:
        """The segment of each label of each partition."""
        return [[self._segment(label) for label in view.labels] for view in self._views]

    @cached_property
    def _since_ms(self) -> int:
        """From when on every partition counts the metric."""
        return max((view.since_ms for view in self._views), default=0)

    def _is_known(self, shift: int) -> bool:
        """Whether a window ``shift`` panes ago was counted from its first pane on."""
        first = self._newest - shift - limits.PANES_OF_ALERTS + 1
        return first * self.track.ring.pane_ms >= self._since_ms

    def _sums(self, shift: int) -> dict[Segment, I64]:
        """Sums of a window ``shift`` panes ago, by the finest segments."""
        last = self._newest - shift
        found: dict[Segment, I64] = {}
        for view, segments in zip(self._views, self._segments, strict=True):
            sums = _of_panes(view, range(last - limits.PANES_OF_ALERTS + 1, last + 1))
            for number in np.flatnonzero(sums.any(axis=1)).tolist():
                segment = segments[number]
                found[segment] = found.get(segment, 0) + sums[number]
        return found

    def _segment(self, label: Label) -> Segment:
        """Values as readers see them, of all dimensions."""
        return tuple(
            ALL if name not in label else label[name] if label[name] in shown else OTHER
            for name, shown in self._shown.items()
        )

    def watched(self) -> Iterator[Watched]:
        """What is said of everything together, and of each segment; nothing of a window that began
        before the metric was counted."""
        if not self._is_known(0):
            return
        alert = self.alert
        rule = Rule(alert.drop, alert.level, alert.direction == "higher")
        finest = {s: None for w in (self.present, self.before, *self.days) for s in w}
        everything = (ALL,) * len(self._shown)
        for segment in dict.fromkeys((everything, *finest)):
            now = _grouped(self.present, segment)
            before = _grouped(self.before, segment)
            days = [_grouped(day, segment) for day in self.days]
            then = before if alert.baseline == "before" else days
            change = compare(now, then, rule, self.unit)
            yield Watched(alert, segment, change, self._pooled(days), self._pooled([before]))

    def _pooled(self, windows: Sequence[GroupSums]) -> float | None:
        value = pooled(windows)
        return None if value is None else float(value) * self.unit

    def explained(self) -> Explanation:
        """The change from the baseline, split by segment."""
        then: dict[Segment, I64] = {}
        for window in [self.before] if self.alert.baseline == "before" else self.days:
            for segment, sums in window.items():
                then[segment] = then.get(segment, 0) + sums
        return explain(*(self._by_name(window) for window in (self.present, then)))

    def _by_name(self, window: Mapping[Segment, I64]) -> dict[str, tuple[int, int]]:
        """(numerator, denominator) of each segment, called by its values."""
        return {
            " · ".join(value for value in segment if value != ALL) or ALL: (
                sum(_above(sums)),
                int(sums[BELOW:HIGH].sum()),
            )
            for segment, sums in window.items()
        }


def _of_panes(view: TrackView, panes: range) -> I64:
    """(labels, statistics) of some panes."""
    flat = np.zeros(len(view.labels) * _STATS, np.int64)
    for pane in panes:
        if _RING | pane in view.panes:
            codes, values = view.panes[_RING | pane]
            np.add.at(flat, (codes >> 14) * _STATS + (codes & 0x3FFF), values)
    return flat.reshape(-1, _STATS)


def _grouped(window: Mapping[Segment, I64], segment: Segment) -> GroupSums:
    """The sums of one segment, or of all where it is everything."""
    if all(value == ALL for value in segment):
        chosen = list(window.values())
    else:
        chosen = [window[segment]] if segment in window else []
    if not chosen:
        return GroupSums()
    sums = np.sum(chosen, axis=0)
    return GroupSums(tuple(_above(sums)), tuple(max(0, y) for y in sums[BELOW:HIGH].tolist()))


def _above(sums: I64) -> list[int]:
    """The numerators by group."""
    return joined(sums[HIGH:], sums[ABOVE:BELOW])


def watched(
    settings: Settings, facts: AlertFacts, views: Sequence[View], at_ms: int
) -> list[Watched]:
    """What is said of every alert's segments."""
    return [
        found
        for alert in settings.alerts
        for found in Windows(settings, alert, facts, views, at_ms).watched()
    ]
