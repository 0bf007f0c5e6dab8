"""What became of records lately: the counters of an exporter's last hour, a look a minute."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from streamer.query.firing import Pipeline
from streamer.query.what_was_read import WhatWasRead
from streamer.settings import limits


class _Counted(NamedTuple):
    """Totals since the state began."""

    records: int = 0
    refused: int = 0
    accepted: int = 0
    late: int = 0
    clicks: int = 0
    unattributed: int = 0
    left_early: int = 0

    def less(self, before: _Counted) -> _Counted:
        return _Counted(*(max(0, now - then) for now, then in zip(self, before, strict=True)))


class Recent:
    """Looks at counters, the oldest first."""

    def __init__(self) -> None:
        self._looks: deque[tuple[int, _Counted]] = deque()
        self._last: tuple[int, _Counted] = 0, _Counted()

    def note(self, now_ms: int, read: WhatWasRead, left_early: int) -> None:
        """Remember what was read until now, by the store's clock, and how many impressions and
        feedback left before their time."""
        clicks = next((each for each in read.feedback if each.kind == "clicks"), None)
        counted = _Counted(
            sum(topic.records for topic in read.topics),
            sum(sum(topic.rejected.values()) for topic in read.topics),
            sum(topic.accepted for topic in read.topics),
            sum(topic.late or 0 for topic in read.topics),
            clicks.events if clicks else 0,
            clicks.unattributed if clicks else 0,
            left_early,
        )
        self._last = now_ms, counted
        if self.is_due(now_ms):
            self._looks.append(self._last)
        while now_ms - self._looks[0][0] > limits.RECENT_MS:
            self._looks.popleft()

    def is_due(self, now_ms: int) -> bool:
        """Whether it is time for another look."""
        return not self._looks or now_ms - self._looks[-1][0] >= limits.RECENT_STEP_MS

    def per_second(self) -> float | None:
        """Records that are read a second; None before two looks."""
        if not self._looks or self._last[0] <= self._looks[0][0]:
            return None
        since_ms, before = self._looks[0]
        return self._last[1].less(before).records / (self._last[0] - since_ms) * 1000

    def pipeline(self, behind_seconds: float) -> Pipeline:
        """Shares of the past hour, of a younger exporter since it began, and before two looks since
        the state began."""
        counted, period = self._last[1], "since the state began"
        if len(self._looks) > 1:
            counted = counted.less(self._looks[0][1])
            minutes = max(1, (self._last[0] - self._looks[0][0]) // 60_000)
            period = f"in the past {minutes} minutes" if minutes > 1 else "in the past minute"
        return Pipeline(
            behind_seconds,
            period,
            _share(counted.refused, counted.records),
            _share(counted.late, counted.records),
            _share(counted.unattributed, counted.clicks),
            counted.left_early,
        )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
