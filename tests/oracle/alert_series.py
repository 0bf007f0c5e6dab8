"""Series of alerts: what they compare, counted thing by thing for every pane, segment and group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from streamer.ingest.hash_key import HashKey
from streamer.settings.alerts import Alert
from streamer.settings.model import Settings

from .acceptance import accept
from .dimensions import Kept
from .experiment_metrics import parts_of, ratio_of
from .hashing import JOIN, NOBODY, digest, mix
from .joining import join
from .shape import KINDS, Record
from .user_days import Fact, facts_of

PANES = 6
Key = tuple[int, tuple[str, ...], int, str]
"""(pane, values of the alert's dimensions, group of users, `x` or `y`); of composites `x0`, …."""


def group_of(who: str, key: HashKey) -> int:
    """Four bits of the hash by which a user is known, or the one that stands for an anonymous
    event: see ``Event.who``."""
    what, _, name = who.partition(" ")
    if what == "user":
        known = digest(name, key)
    elif what == "join":
        known = mix(digest(name, key), JOIN)
    elif what == "request":
        known = mix(digest(name, key), NOBODY)
    elif what.startswith("record:"):
        known = mix(digest(what, key), JOIN)
    else:
        known = mix(int(name), NOBODY ^ KINDS.index(what))
    return (known >> 40) & 15


def series_of(records: Iterable[Record], settings: Settings, alert: Alert) -> dict[Key, int]:
    """Sums of numerators and denominators of the alert's metric, whenever it was."""
    verdict = accept(records, settings)
    kept = Kept(verdict.events, settings, verdict.key)
    facts = facts_of(verdict, join(verdict, settings), kept, settings)
    return sums_of(facts, kept, settings, alert)


def sums_of(facts: Iterable[Fact], kept: Kept, settings: Settings, alert: Alert) -> dict[Key, int]:
    """The same of what happened."""
    places = [i for i, name in enumerate(settings.dimension_names) if name in alert.segments]
    parts = parts_of(alert.metric, settings)
    sides = [
        (side + (str(i) if alert.metric.startswith("composite@") else ""), component)
        for i, (metric, _) in enumerate(parts)
        for side, component in zip("xy", ratio_of(metric, settings), strict=True)
    ]
    found: Counter[Key] = Counter()
    for fact in facts:
        for side, component in sides:
            if fact.component == component:
                shown = kept.shown(fact.dims)
                values = tuple(shown[i] for i in places)
                group = group_of(fact.user[1], kept.key)
                pane = fact.event_ms * PANES // alert.window_ms
                found[pane, values, group, side] += fact.amount
    return {key: amount for key, amount in found.items() if amount}


def by_day(sums: dict[Key, int], alert: Alert) -> dict[Key, int]:
    """The same day by day."""
    per_day = 86_400_000 * PANES // alert.window_ms
    found: Counter[Key] = Counter()
    for (pane, values, group, side), amount in sums.items():
        found[pane // per_day, values, group, side] += amount
    return {key: amount for key, amount in found.items() if amount}


def by_time(sums: dict[Key, int]) -> dict[Key, int]:
    """Of everybody together; in place of the group stands the pane's number modulo 16."""
    found: Counter[Key] = Counter()
    for (pane, values, _, side), amount in sums.items():
        found[pane, values, pane % 16, side] += amount
    return {key: amount for key, amount in found.items() if amount}
