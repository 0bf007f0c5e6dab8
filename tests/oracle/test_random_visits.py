"""Random logs have everything that sessions, dwell and user metrics must cope with."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable

import pytest

from streamer.settings.load import parse
from tests.support.lanes import long
from tests.support.rollups import every

from .acceptance import Acceptance, accept
from .dimensions import Kept
from .dwell import Report, reports_of, viewings, winner
from .files import records_of_log
from .joining import Joins, join
from .random_log import random_log
from .sessions import sessions_of
from .shape import Event
from .users import touches

SETTINGS = parse(
    {
        "dimensions": [{"name": "variant", "values": ["A"], "max_values": 2}, {"name": "surface"}],
        "metrics": every(
            "variant", "surface", feedback={"click": 1.0, "like": 2.0, "conversion": 3.0}
        ),
    }
)
GAP_MS = SETTINGS.attribution.session_gap_ms
Logs = list[tuple[Acceptance, Joins]]


@pytest.fixture(scope="module")
def logs() -> Logs:
    """A few logs of the size that engines are compared on."""
    found = []
    for seed in range(10):
        lines = random_log(seed, SETTINGS, 800)
        verdict = accept(records_of_log(lines, SETTINGS, partitions=1 + seed % 3), SETTINGS)
        found.append((verdict, join(verdict, SETTINGS)))
    return found


def visits(logs: Logs) -> list[list[Event]]:
    """Events of each (user, session_id), in the order of arrival."""
    found = []
    for verdict, _ in logs:
        by_key: dict[tuple[int, str | None, str | None], list[Event]] = defaultdict(list)
        for event in verdict.events:
            if event.topic == "sessions":
                by_key[event.partition, event.user_id, event.session_id].append(event)
        found += list(by_key.values())
    return found


def in_time(log: list[Event]) -> list[Event]:
    return sorted(log, key=lambda e: (e.event_ms, e.offset))


def count(found: list[list[Event]], is_so: Callable[[list[Event]], bool]) -> int:
    return sum(is_so(log) for log in found)


def falls(log: list[Event]) -> bool:
    """An event that arrives makes fewer sessions of what was there."""
    numbers = [len(sessions_of(log[: n + 1], SETTINGS)) for n in range(len(log))]
    return any(b < a for a, b in itertools.pairwise(numbers))


@long
def test_sessions(logs: Logs) -> None:
    found = visits(logs)
    steps_ms = [
        b.event_ms - a.event_ms for log in found for a, b in itertools.pairwise(in_time(log))
    ]
    assert min(steps_ms.count(GAP_MS + d) for d in (-1, 0, 1)) > 3
    assert count(found, lambda log: len(sessions_of(log, SETTINGS)) > 1) > 20
    assert count(found, lambda log: sum(e.action == "end" for e in log) > 1) > 20
    assert count(found, lambda log: "end" in [e.action for e in in_time(log)[:-1]]) > 20
    assert count(found, lambda log: max(ms_of(log)) - min(ms_of(log)) > 2 * 3_600_000) > 5
    assert count(found, lambda log: log != in_time(log)) > 20
    assert count(found, falls) > 5
    assert count(found, lambda log: len({e.dims for e in log}) > 1) > 20
    assert count(found, lambda log: None in in_time(log)[0].dims) > 20
    assert count(found, ends_and_views_at_once) > 3


def ms_of(log: list[Event]) -> list[int]:
    return [e.event_ms for e in log]


def ends_and_views_at_once(log: list[Event]) -> bool:
    ends = {e.event_ms for e in log if e.action == "end"}
    return any(e.action == "view" and e.event_ms in ends for e in log)


@long
def test_dwell(logs: Logs) -> None:
    by_key: dict[tuple[int, int, str, str, str | None], list[Report]] = defaultdict(list)
    without = 0
    for number, (verdict, joins) in enumerate(logs):
        for report in reports_of(verdict.events, joins, GAP_MS):
            e = report.event
            if e.request_id is None:
                without += 1
            else:
                by_key[number, e.partition, e.joins_as, e.request_id, e.item_id].append(report)
    assert without > 100
    assert sum(len(viewings(reports, GAP_MS)) > 1 for reports in by_key.values()) > 5
    found = [v for reports in by_key.values() for v in viewings(reports, GAP_MS)]
    both = [v for v in found if {r.event.topic for r in v} == {"clicks", "sessions"}]
    best = [
        [max(r.dwell_ms for r in v if r.event.topic == t) for t in ("clicks", "sessions")]
        for v in both
    ]
    assert min(sum(a > b for a, b in best), sum(a < b for a, b in best)) > 10
    assert sum(a == b for a, b in best) > 10
    assert sum(is_filled(v) for v in both) > 5
    silent = [
        e
        for verdict, _ in logs
        for e in verdict.events
        if e.topic == "sessions" and e.item_id is not None
    ]
    assert sum(e.action != "dwell" and e.dwell_ms is not None for e in silent) > 5
    assert sum(e.action == "dwell" and e.dwell_ms is None for e in silent) > 5


def is_filled(viewing: list[Report]) -> bool:
    """The winner has dimensions that it did not report itself."""
    best = winner(viewing)
    return best.dims not in {
        r.dims for r in viewing if (r.event.event_ms, r.dwell_ms) == (best.event_ms, best.dwell_ms)
    }


@long
def test_users(logs: Logs) -> None:
    shared, apart, never_shown = 0, 0, 0
    for verdict, joins in logs:
        kept = Kept(verdict.events, SETTINGS)
        items: dict[tuple[int, str], list[set[str]]] = defaultdict(list)
        for (partition, user, group), t in touches(verdict.events, joins, kept, SETTINGS).items():
            if "all" in dict(group).values():
                never_shown += any(given.keys() - t.shown.keys() for given in t.given.values())
            else:
                items[partition, user].append(set(t.shown))
        for seen in items.values():
            pairs = list(itertools.combinations(seen, 2))
            shared += any(a & b for a, b in pairs)
            apart += any(a and b for a, b in pairs)
    assert min(shared, apart, never_shown) > 20


def test_partitions_keep_values_that_readers_fold() -> None:
    lines = random_log(5, SETTINGS, 800)
    verdict = accept(records_of_log(lines, SETTINGS, partitions=3), SETTINGS)
    kept = Kept(verdict.events, SETTINGS)
    assert any(values - kept.overall[i] for (i, _), values in kept.by_partition.items())
