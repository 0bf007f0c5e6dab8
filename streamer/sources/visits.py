"""Sessions of the synthetic traffic: pages, time spent on them, and how a visit ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streamer.sources.traffic import Floats, Ints, SyntheticTraffic

STAY_MS = (500, 10 * 60_000)
"""Shortest and longest stay on a page: within the gap of a session."""
PAUSE_MS = (31 * 60_000, 90 * 60_000)
"""Shortest and longest absence that ends a session."""


@dataclass(frozen=True)
class Visits:
    """Views in the order of sessions; ``session`` is the row of the session that a view is of."""

    session: Ints
    begin_ms: Ints
    stay_ms: Ints
    is_last: npt.NDArray[np.bool_]

    @property
    def leave_ms(self) -> Ints:
        """When the user left the page."""
        return self.begin_ms + self.stay_ms


def draw_visits(t: SyntheticTraffic, r: np.random.Generator, start_ms: Ints) -> Visits:
    """One session for each ``start_ms``, whose first view comes a millisecond later."""
    n = len(start_ms)
    more = r.geometric(1 / (t.session_views - 1), n)
    count = np.where(r.random(n) < t.bounce_share, 1, 1 + more)
    session = np.repeat(np.arange(n), count)
    last = np.cumsum(count) - 1
    is_last = np.zeros(len(session), bool)
    is_last[last] = True
    stay_ms = np.clip(r.lognormal(9.9, 1.1, len(session)), *STAY_MS).astype(np.int64)
    pauses = (r.random(len(session)) < t.pause_share) & ~is_last
    pause_ms = pauses * r.integers(*PAUSE_MS, len(session))
    until_ms = np.cumsum(stay_ms + pause_ms)
    before_ms = np.concatenate([[0], until_ms[last]])[session]
    begin_ms = start_ms[session] + 1 + until_ms - before_ms - stay_ms - pause_ms
    return Visits(session, begin_ms, stay_ms, is_last)


def draw_items(t: SyntheticTraffic, r: np.random.Generator, clicked: npt.NDArray[np.bool_]) -> Ints:
    """The column of its slate that each view is of; ``clicked``: the slate's items, by view."""
    n, size = clicked.shape
    column = r.integers(size, size=n)
    follows = clicked.any(1) & (r.random(n) < t.click_dwell_share)
    return np.where(follows, clicked.argmax(1), column)


def dwell_bodies(r: np.random.Generator, leave_ms: Ints, stay_ms: Ints) -> list[bytes]:
    """What a dwell event says of the time: a part of the stay, as a length or as two times."""
    part: Floats = r.uniform(0.3, 1, len(stay_ms))
    dwell_ms = (stay_ms * part).astype(np.int64)
    both = r.random(len(stay_ms)) < 0.5
    return [
        b'"start_ts":%d,"end_ts":%d' % (end_ms - ms, end_ms) if as_times else b'"dwell_ms":%d' % ms
        for end_ms, ms, as_times in zip(
            leave_ms.tolist(), dwell_ms.tolist(), both.tolist(), strict=True
        )
    ]
