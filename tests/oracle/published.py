"""Means over people and visits by their published definitions, from raw lines.

Nothing of oracle or core is used. It is for clean logs only: lines in the order of their integer
``ts``, none twice, none broken; no user on two partitions; every click names its request, whose
impression came no more than 30 minutes before it; the one dimension is ``variant``.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

Values = dict[tuple[str, frozenset[tuple[str, str]]], int | float]
"""By name and labels."""
Found = Iterator[tuple[str, dict[str, str], int | float]]
"""Name, labels and value."""

GAP_MS = 30 * 60_000
HORIZON_MS = 30 * 60_000
NAMES = (
    *("streamer_window_users", "streamer_window_hit_users", "streamer_user_hit_ratio"),
    *("streamer_clicks_per_user", "streamer_window_positive_users"),
    *("streamer_positive_rate_ratio", "streamer_window_sessions", "streamer_window_bounces"),
    *("streamer_bounce_rate_ratio", "streamer_views_per_session"),
    *("streamer_session_length_mean_seconds", "streamer_window_session_length_seconds"),
)
"""Everything that is recomputed."""


@dataclass(frozen=True)
class Seen:
    """A user's shown or clicked item, under the variant that it counts for."""

    ts: int
    user: str
    item: str
    variant: str


@dataclass(frozen=True)
class Visit:
    """A session; ``ts``: its end."""

    ts: int
    variant: str
    length_ms: int
    views: int


def recompute(lines: Iterable[bytes], lengths_ms: Mapping[str, int]) -> Values:
    """All of ``NAMES`` for each window (label → length), for `all` and each variant."""
    log = [json.loads(line) for line in lines]
    shown, clicks, visits = impressions(log), clicked(log), sessions(log)
    now_ms = max(line["ts"] for line in log)
    variants = {row.variant for row in shown} | {visit.variant for visit in visits}
    out: Values = {}
    for window, length_ms in lengths_ms.items():
        pane_ms = length_ms // 60
        end_ms = (now_ms // pane_ms + 1) * pane_ms
        inside = range(end_ms - length_ms, end_ms)
        for variant in ("all", *variants):
            chosen = variants if variant == "all" else {variant}
            people = users(
                [row for row in shown if row.ts in inside and row.variant in chosen],
                [row for row in clicks if row.ts in inside and row.variant in chosen],
            )
            ended = lengths([row for row in visits if row.ts in inside and row.variant in chosen])
            for name, labels, value in (*people, *ended):
                named = {"window": window, "variant": variant, **labels}
                out[f"streamer_{name}", frozenset(named.items())] = value
    return out


# Rows -----------------------------------------------------------------------------------------


def shown_items(log: Iterable[Any]) -> Iterator[tuple[tuple[str, str | None, str], Any]]:
    """User, request and item of each shown item, and its line."""
    for line in log:
        if line["type"] == "impression":
            items = [x["item_id"] for x in line.get("items") or ()] or [line["item_id"]]
            for item in items:
                yield (line["user_id"], line.get("request_id"), item), line


def impressions(log: Iterable[Any]) -> list[Seen]:
    """A row for each shown item."""
    return [
        Seen(line["ts"], user, item, line.get("variant") or "unknown")
        for (user, _, item), line in shown_items(log)
    ]


def clicked(log: list[Any]) -> list[Seen]:
    """A row for each click, under its own variant or that of the impression that it followed."""
    first: dict[tuple[str, str | None, str], Any] = {}
    for key, line in shown_items(log):
        first.setdefault(key, line)
    found = []
    for line in log:
        if line["type"] == "click":
            before = first[line["user_id"], line["request_id"], line["item_id"]]
            assert 0 <= line["ts"] - before["ts"] <= HORIZON_MS, "a click that came too late"
            variant = line.get("variant") or before.get("variant") or "unknown"
            found.append(Seen(line["ts"], line["user_id"], line["item_id"], variant))
    return found


def sessions(log: Iterable[Any]) -> list[Visit]:
    """A row for each session: one goes on while less than the gap passes between its events."""
    visits: dict[tuple[str, str], list[list[Any]]] = defaultdict(list)
    for line in log:
        if line["type"] == "session":
            its = visits[line["user_id"], line["session_id"]]
            if not its or line["ts"] - its[-1][-1]["ts"] >= GAP_MS:
                its.append([])
            its[-1].append(line)
    return [visit_of(events) for its in visits.values() for events in its]


def visit_of(events: list[Any]) -> Visit:
    first_ms, last_ms = events[0]["ts"], events[-1]["ts"]
    is_ended = any(event["action"] == "end" and event["ts"] == last_ms for event in events)
    return Visit(
        last_ms if is_ended else last_ms + GAP_MS,
        events[0].get("variant") or "unknown",
        last_ms - first_ms,
        sum(event["action"] == "view" for event in events),
    )


# Formulas -------------------------------------------------------------------------------------


def users(shown: list[Seen], clicks: list[Seen]) -> Found:
    """Per user p / n over distinct items, then means over users; hits; clicks a user."""
    seen, given = by_user(shown), by_user(clicks)
    if not seen:
        return
    click = {"feedback": "click"}
    rates = [Fraction(len(items & given[user]), len(items)) for user, items in seen.items()]
    some = [rate for rate in rates if rate]
    hits = sum(bool(given[user]) for user in seen)
    yield "window_users", {}, len(seen)
    yield "user_hit_ratio", {}, hits / len(seen)
    yield "clicks_per_user", {}, len(clicks) / len(seen)
    yield "positive_rate_ratio", {"definition": "docs", **click}, float(sum(rates) / len(seen))
    if hits:
        yield "window_hit_users", {}, hits
    if some:
        gorse = float(sum(some) / len(some))
        yield "window_positive_users", click, len(some)
        yield "positive_rate_ratio", {"definition": "gorse-0.5", **click}, gorse


def by_user(rows: list[Seen]) -> dict[str, set[str]]:
    """The distinct items of each user; of others none."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        found[row.user].add(row.item)
    return found


def lengths(visits: list[Visit]) -> Found:
    """Bounces, views and lengths of the sessions that ended in a window."""
    if not visits:
        return
    n, bounces = len(visits), sum(visit.views == 1 for visit in visits)
    ranked = sorted(visit.length_ms for visit in visits)
    yield "window_sessions", {}, n
    yield "bounce_rate_ratio", {}, bounces / n
    yield "views_per_session", {}, sum(visit.views for visit in visits) / n
    yield "session_length_mean_seconds", {}, sum(ranked) / n / 1000
    if bounces:
        yield "window_bounces", {}, bounces
    for q in ("0.5", "0.9", "0.99"):
        rank = ceil(Fraction(q) * n)
        yield "window_session_length_seconds", {"quantile": q}, ranked[rank - 1] / 1000
