"""Means over people: who saw what, and what of it they liked.

Things are told apart by (partition, user, group). A group is the labels of one rollup, from the
values that the partition keeps; readers fold the groups' labels and add what becomes equal.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from fractions import Fraction

from streamer.settings.model import Settings

from .dimensions import Kept, Segment
from .joining import Joins, effective_dims, is_feedback
from .shape import Event
from .sink import Sink
from .span import Span

UNIT = 10**9
"""A user's rate is rounded to this part of 1, so that rates add exactly."""

Key = tuple[int, str, Segment]
Last = dict[str, int]
"""Item → the last event_ms."""


@dataclass
class Touched:
    """What one user did in one group: the last time for each item."""

    shown: Last = field(default_factory=dict)
    given: dict[str, Last] = field(default_factory=lambda: defaultdict(dict))


@dataclass
class Tally:
    """The users of one segment in one window."""

    users: int = 0
    hit_users: int = 0
    rates: Counter[str] = field(default_factory=Counter)
    rates_of: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Of each user who gave any."""
    positive_users: Counter[str] = field(default_factory=Counter)


def kinds_of(settings: Settings) -> list[str]:
    """The kinds that have a positive rate; `conversion`, if configured, is the other topic."""
    return sorted({"click", *settings.metrics.feedback})


def touches(
    events: list[Event], joins: Joins, kept: Kept, settings: Settings
) -> dict[Key, Touched]:
    """The whole log, item by item."""
    found: dict[Key, Touched] = defaultdict(Touched)
    for event in events:
        kind = kind_of(event, settings)
        if event.person is None or (event.topic != "impressions" and kind is None):
            continue
        for group in kept.groups(event.partition, effective_dims(event, joins)):
            touched = found[event.partition, event.person, group]
            if kind is not None:
                touch(touched.given[kind], event.of_item, event.event_ms)
            for shown in event.shown:
                touch(touched.shown, shown.item_id, event.event_ms)
    return found


def kind_of(event: Event, settings: Settings) -> str | None:
    """The configured kind of feedback that an event is, if any."""
    if event.topic == "conversions":
        is_kind = "conversion" in settings.metrics.feedback and not event.is_refund
        return "conversion" if is_kind else None
    return event.kind if is_feedback(event, settings) else None


def touch(last: Last, item_id: str, event_ms: int) -> None:
    last[item_id] = max(last.get(item_id, event_ms), event_ms)


def tallies(
    found: dict[Key, Touched], span: Span, kept: Kept, settings: Settings
) -> dict[Segment, Tally | None]:
    """Add the users of a window up, in the segments that readers see. None where a partition tells
    users apart by values that readers do not: nobody knows who is the same."""
    out: dict[Segment, Tally] = defaultdict(Tally)
    for (_, _, group), touched in found.items():
        shown = {item for item, last_ms in touched.shown.items() if span.reaches(last_ms)}
        if not shown:
            continue
        tally = out[kept.folded(group)]
        tally.users += 1
        tally.hit_users += any(span.reaches(last_ms) for last_ms in touched.given["click"].values())
        for kind in kinds_of(settings):
            given = {item for item, ms in touched.given[kind].items() if span.reaches(ms)}
            positive = len(shown & given)
            tally.positive_users[kind] += positive > 0
            rate = (2 * UNIT * positive + len(shown)) // (2 * len(shown))
            tally.rates[kind] += rate
            if positive:
                tally.rates_of[kind].append(rate)
    return {segment: None if kept.is_mixed(segment) else tally for segment, tally in out.items()}


def read_users(
    out: Sink,
    span: Span,
    tallied: dict[Segment, Tally],
    clicks: dict[Segment, int],
    settings: Settings,
) -> None:
    """The series of a window; ``clicks``: those in the window that have a user, by segment."""
    for segment, tally in tallied.items():
        labels = {"window": span.label, **dict(segment)}
        out.support("window_users", labels, tally.users)
        out.support("window_hit_users", labels, tally.hit_users)
        out.ratio("user_hit_ratio", labels, tally.hit_users, tally.users)
        out.ratio("clicks_per_user", labels, clicks.get(segment, 0), tally.users)
        for kind in kinds_of(settings):
            of_kind = {"feedback": kind, **labels}
            positive = tally.positive_users[kind]
            rates = Fraction(tally.rates[kind], UNIT)
            out.support("window_positive_users", of_kind, positive)
            docs, gorse = ({"definition": d, **of_kind} for d in ("docs", "gorse-0.5"))
            out.ratio("positive_rate_ratio", docs, rates, tally.users)
            out.ratio("positive_rate_ratio", gorse, rates, positive)
