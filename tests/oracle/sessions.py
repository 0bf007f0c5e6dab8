"""Visits: events of one (user, session_id), less than the gap apart; nobody is a user, too. A
user's events without a session_id are of one."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

from streamer.settings.model import Settings

from .acceptance import Acceptance
from .dimensions import Dims, Kept, Segment
from .shape import Event
from .sink import Sink
from .span import Span

BOUNDS_SECONDS = (10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
LONGEST_MS = 31 * 24 * 3_600_000
"""What is longer counts as this in the quantiles."""


@dataclass(frozen=True)
class Session:
    """One visit; ``ended_ms`` is where it counts."""

    ended_ms: int
    length_ms: int
    views: int
    dims: Dims
    user: tuple[int, str]
    last_ms: int


def sessions_of(events: list[Event], settings: Settings) -> list[Session]:
    """All sessions of a log, also those that have not ended yet at its end."""
    gap_ms = settings.attribution.session_gap_ms
    logs: dict[tuple[int, str | None, str | None], list[Event]] = defaultdict(list)
    for event in events:
        if event.topic == "sessions":
            logs[event.partition, event.person, event.session_id].append(event)
    found = []
    for log in logs.values():
        log.sort(key=lambda e: (e.event_ms, e.offset))
        visit = [log[0]]
        for event in log[1:]:
            if event.event_ms - visit[-1].event_ms >= gap_ms:
                found.append(session_of(visit, gap_ms))
                visit = []
            visit.append(event)
        found.append(session_of(visit, gap_ms))
    return found


def session_of(visit: list[Event], gap_ms: int) -> Session:
    """The events of one visit, in time order; an `end` counts if nothing is later."""
    first, last_ms = visit[0], visit[-1].event_ms
    is_ended = any(e.action == "end" and e.event_ms == last_ms for e in visit)
    return Session(
        ended_ms=last_ms if is_ended else last_ms + gap_ms,
        length_ms=last_ms - first.event_ms,
        views=sum(e.action == "view" for e in visit),
        dims=first.dims,
        user=(first.partition, first.who),
        last_ms=last_ms,
    )


def is_settled(session: Session, verdict: Acceptance, settings: Settings) -> bool:
    """No event that may still come can join the visit."""
    reach_ms = settings.attribution.session_gap_ms + settings.time.max_lateness_ms
    return session.last_ms + reach_ms < verdict.arrival_ms["sessions", session.user[0]]


def read_session_totals(out: Sink, sessions: list[Session], kept: Kept) -> None:
    """Since the state began, of settled visits."""
    cells: dict[Segment, list[int]] = defaultdict(list)
    for session in sessions:
        for segment in kept.segments(session.dims):
            cells[segment].append(session.length_ms)
    for segment, lengths_ms in cells.items():
        out.histogram("session_length_seconds", dict(segment), BOUNDS_SECONDS, lengths_ms)


def read_sessions(out: Sink, span: Span, sessions: list[Session], kept: Kept) -> None:
    """The series of a window."""
    cells: dict[Segment, list[Session]] = defaultdict(list)
    for session in sessions:
        if span.covers(session.ended_ms):
            for segment in kept.segments(session.dims):
                cells[segment].append(session)
    for segment, cell in cells.items():
        labels = {"window": span.label, **dict(segment)}
        lengths_ms = [s.length_ms for s in cell]
        views = sum(s.views for s in cell)
        bounces = sum(s.views == 1 for s in cell)
        out.put("window_sessions", labels, len(cell))
        out.support("window_bounces", labels, bounces)
        out.ratio("bounce_rate_ratio", labels, bounces, len(cell))
        out.ratio("views_per_session", labels, views, len(cell))
        mean = Fraction(sum(lengths_ms), 1000)
        out.ratio("session_length_mean_seconds", labels, mean, len(cell))
        capped_ms = [min(ms, LONGEST_MS) for ms in lengths_ms]
        out.quantiles("window_session_length_seconds", labels, capped_ms)
