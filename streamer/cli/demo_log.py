"""The log of the demo: the real one with its times moved, and with what is planted into it so that
there is something to be found.

- an experiment by user, ``ranker``: users of ``new`` click on some more impressions, by chance
- an experiment whose split is broken, ``layout``: some users of ``wide`` lose the field
- an outage: from some time on the clicks on one surface are lost

All of it is determined by ids. Impressions, their times, policies, items and real clicks stay as
they are, but for the clicks that are lost. ``data/ATTRIBUTION.md`` tells readers.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator
from itertools import count
from random import Random
from typing import NamedTuple

from streamer.sources.open_bandit import POLICIES, Event, click_times

RANKERS = ("old", "new")
LAYOUTS = ("narrow", "wide")
SURFACE = "women"
"""Where clicks are lost."""
MORE_CLICKS = 0.005
"""Share of the impressions of ``new`` that get a planted click: about as many as are clicked."""
LOST_USERS = 0.2
"""Share of the users of ``wide`` whose impressions lack the field."""


def planted(log: Iterable[Event], outage_ms: int | None) -> list[Event]:
    """A log in time order with what is planted; from ``outage_ms`` on, in the log's own time, the
    clicks on one surface are lost (None: never).

    >>> shown = {"type": "impression", "ts": 1, "user_id": "u1", "event_id": "i0-1", "item_id": "a"}
    >>> event, = planted([shown | {"variant": "bts", "surface": "men"}], None)
    >>> event["ranker"], event["layout"]
    ('old', 'wide')
    """
    events = [event for each in log for event in _with_plants(each, outage_ms)]
    return sorted(events, key=lambda event: event["ts"])


def _with_plants(event: Event, outage_ms: int | None) -> Iterator[Event]:
    if event["type"] == "impression" and event.get("variant") in POLICIES:
        shown = {**event, **_arms(event["user_id"])}
        yield shown
        if shown["ranker"] == "new" and _share(event["event_id"]) < MORE_CLICKS:
            click = _click(event)
            if not _is_lost(click, outage_ms):
                yield click
    elif not _is_lost(event, outage_ms):
        yield event


def _arms(user: str) -> dict[str, str]:
    """The arms of a user, without the one that is lost."""
    ranker = RANKERS[_share(f"ranker {user}") < 0.5]
    layout = LAYOUTS[_share(f"layout {user}") < 0.5]
    is_lost = layout == "wide" and _share(f"lost {user}") < LOST_USERS
    return {"ranker": ranker} | ({} if is_lost else {"layout": layout})


def _click(shown: Event) -> Event:
    """With the delay and the dwell that real ones have in the packaged log."""
    random = Random(shown["event_id"])
    delay_ms, dwell_ms = click_times(random)
    return {
        "type": "click",
        "ts": shown["ts"] + delay_ms,
        "event_id": f"p{shown['event_id']}",
        **{key: shown[key] for key in ("user_id", "request_id", "item_id")},
        "dwell_ms": dwell_ms,
    }


def _is_lost(event: Event, outage_ms: int | None) -> bool:
    is_click = event["type"] == "click" and event["item_id"].startswith(f"{SURFACE}-")
    return is_click and outage_ms is not None and event["ts"] >= outage_ms


def _share(text: str) -> float:
    """A number in [0, 1) that a text determines."""
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


class ReplayLeg(NamedTuple):
    """A log in time order, the time of its first event (epoch milliseconds), and its speed."""

    log: Iterable[Event]
    start_ms: int
    speed: float = 1.0


def replay(legs: Iterable[ReplayLeg]) -> Iterator[Event]:
    """The events of legs that follow each other, moved, in time order.

    Events of a visit keep their distances: a minute on a page stays a minute however fast the log
    goes by. So a visit may reach into the next leg.

    >>> click = {"type": "click"}
    >>> visit = {"type": "session", "session_id": "s"}
    >>> log = [click | {"ts": 100}, visit | {"ts": 160}, visit | {"ts": 190}, click | {"ts": 400}]
    >>> [event["ts"] for event in replay([ReplayLeg(log, start_ms=1000, speed=3)])]
    [1000, 1020, 1050, 1100]
    >>> [event["ts"] for event in replay([ReplayLeg(log, 1000, 30), ReplayLeg(log[:1], 1020)])]
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
