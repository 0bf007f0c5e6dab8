"""A log with its times moved to another start, and passing faster.

Events of a visit keep their distances: a minute on a page stays a minute however fast the log goes
by. So a visit may reach into what is replayed next.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, NamedTuple

Event = dict[str, Any]


class Leg(NamedTuple):
    """A log in time order, the time of its first event (epoch milliseconds), and its speed."""

    log: Iterable[Event]
    start_ms: int
    speed: float = 1.0


def replay(legs: Iterable[Leg]) -> Iterator[Event]:
    """The events of legs that follow each other, moved, in time order.

    >>> click = {"type": "click"}
    >>> visit = {"type": "session", "session_id": "s"}
    >>> log = [click | {"ts": 100}, visit | {"ts": 160}, visit | {"ts": 190}, click | {"ts": 400}]
    >>> [event["ts"] for event in replay([Leg(log, start_ms=1000, speed=3)])]
    [1000, 1020, 1050, 1100]
    >>> [event["ts"] for event in replay([Leg(log, 1000, 30), Leg(log[:1], 1020)])]
    [1000, 1002, 1010, 1020, 1032]
    """
    waiting: list[tuple[int, int, Event]] = []
    serial = count()
    for log, start_ms, speed in legs:
        first_ms = None
        visits_ms: dict[str, int] = {}
        for event in log:
            at_ms: int = event["ts"]
            first_ms = at_ms if first_ms is None else first_ms
            now_ms = moved_ms = start_ms + int((at_ms - first_ms) / speed)
            if event["type"] == "session":
                begun_ms = visits_ms.setdefault(event["session_id"], at_ms)
                kept_ms = start_ms + int((begun_ms - first_ms) / speed) + at_ms - begun_ms
                moved_ms = max(moved_ms, kept_ms)
            heapq.heappush(waiting, (moved_ms, next(serial), {**event, "ts": moved_ms}))
            while waiting and waiting[0][0] <= now_ms:
                yield heapq.heappop(waiting)[2]
    while waiting:
        yield heapq.heappop(waiting)[2]
