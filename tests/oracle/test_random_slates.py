"""Random logs have everything that slates and their metrics must cope with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise

import pytest

from streamer.settings.load import parse
from tests.support.lanes import long

from .acceptance import Acceptance, accept
from .files import records_of_log
from .joining import Joins, join
from .random_log import random_log
from .scoring import clicked_pairs, differences, scored
from .shape import Event
from .slates import Slate, slates_of

SETTINGS = parse(
    {
        "dimensions": [{"name": "variant", "values": ["A"], "max_values": 2}],
        "metrics": {
            "feedback": {"click": 1.0, "like": 2.0, "star": 5.0, "skim": 0.0, "conversion": 3.0}
        },
    }
)
Logs = list[tuple[Acceptance, Joins, list[Slate]]]


@pytest.fixture(scope="module")
def logs() -> Logs:
    """A few logs of the size that engines are compared on."""
    found = []
    for seed in range(10):
        lines = random_log(seed, SETTINGS, 800)
        verdict = accept(records_of_log(lines, SETTINGS, partitions=1 + seed % 3), SETTINGS)
        joins = join(verdict, SETTINGS)
        found.append((verdict, joins, slates_of(joins, SETTINGS)))
    return found


@pytest.fixture(scope="module")
def slates(logs: Logs) -> list[Slate]:
    return [slate for _, _, found in logs for slate in found]


def count(slates: Iterable[Slate], is_so: Callable[[Slate], object]) -> int:
    return sum(bool(is_so(slate)) for slate in slates)


def positions(slate: Slate) -> list[int | None]:
    return [m.row.shown.position for m in slate.members]


def offsets(slate: Slate) -> list[int]:
    return [m.row.event.offset for m in slate.members]


def moves(slate: Slate) -> bool:
    """Its earliest member reached the log after another one."""
    return slate.event.offset > min(offsets(slate))


def moves_to_another_pane(slate: Slate) -> bool:
    first = min((m.row.event for m in slate.members), key=lambda e: e.offset)
    return first.event_ms // 5000 != slate.event.event_ms // 5000


def has_gaps(slate: Slate) -> bool:
    known = [p for p in positions(slate) if p is not None]
    return any(b - a > 1 for a, b in pairwise(known))


def has_equal_positions(slate: Slate) -> bool:
    known = [p for p in positions(slate) if p is not None]
    return len(set(known)) < len(known)


@long
def test_how_they_are_shown(slates: list[Slate]) -> None:
    assert count(slates, lambda s: s.event.request_id is None) > 50
    assert count(slates, lambda s: len(set(offsets(s))) == 1 and s.event.request_id) > 50
    assert count(slates, lambda s: len(s.members) == len(set(offsets(s))) > 1) > 50
    assert count(slates, lambda s: 1 < len(set(offsets(s))) < len(s.members)) > 0
    assert count(slates, lambda s: offsets(s) != sorted(offsets(s))) > 50
    assert count(slates, lambda s: len(s.members) == 1) > 50
    assert count(slates, moves) > 20
    assert count(slates, moves_to_another_pane) > 5


@long
def test_where_they_stand(slates: list[Slate]) -> None:
    assert count(slates, has_gaps) > 20
    assert count(slates, has_equal_positions) > 20
    assert count(slates, lambda s: set(positions(s)) == {None}) > 20
    assert count(slates, lambda s: None in positions(s) and set(positions(s)) != {None}) > 20
    assert count(slates, lambda s: positions(s)[0] not in (None, 1)) > 20


def test_what_follows(slates: list[Slate]) -> None:
    assert count(slates, lambda s: not any(s.grades)) > 50
    for grade in (0.0, 1.0, 2.0, 3.0, 5.0):
        assert sum(grade in slate.grades for slate in slates) > 20
    assert count(slates, lambda s: len(set(s.grades)) > 2) > 20
    rows = [m.row for s in slates for m in s.members]
    assert sum({f.kind for f in r.feedback} == {"skim"} for r in rows) > 10
    gains = SETTINGS.metrics.feedback
    risen = [r for r in rows if len(r.feedback) > 1]
    assert (
        sum(gains[r.feedback[0].kind] < max(gains[f.kind] for f in r.feedback) for r in risen) > 9
    )


def feedback_first(logs: Logs) -> Iterator[bool]:
    """Whether each attributed click reached the log before its impression (by arrival)."""
    for _, joins, _ in logs:
        for row in joins.rows:
            for event in row.feedback:
                yield event.arrival_ms < row.event.arrival_ms


def test_order_of_arrival(logs: Logs) -> None:
    assert sum(feedback_first(logs)) > 20
    duplicates = [a for verdict, _, _ in logs for a in verdict.duplicates]
    assert sum(topic == "impressions" for topic, _, _ in duplicates) > 10


def test_requests_are_used_again(logs: Logs) -> None:
    again, same_item, repeats = 0, 0, 0
    for _, joins, slates in logs:
        seen: dict[tuple[int, str, str | None], list[Slate]] = {}
        for slate in slates:
            if slate.event.request_id is not None:
                key = (slate.event.partition, slate.event.joins_as, slate.event.request_id)
                seen.setdefault(key, []).append(slate)
        for found in seen.values():
            again += len(found) > 1
            for a, b in pairwise(found):
                same_item += bool({m.item_id for m in a.members} & {m.item_id for m in b.members})
        repeats += sum(row.repeat for row in joins.rows)
    assert again > 5
    assert same_item > 1
    assert repeats > 50


def test_feedback_on_what_a_request_did_not_show(logs: Logs) -> None:
    missed = 0
    for verdict, joins, slates in logs:
        requests = {s.event.request_id for s in slates}
        for event in verdict.events:
            if event.address in joins.joined and joins.joined[event.address] is None:
                missed += event.request_id is not None and event.request_id in requests
    assert missed > 20


def scores(slate: Slate) -> list[float]:
    return [item.score for item in scored(slate)]


def test_scores(slates: list[Slate]) -> None:
    assert count(slates, lambda s: clicked_pairs(scored(s))) > 20
    assert count(slates, lambda s: differences(scored(s))) > 20
    assert count(slates, lambda s: any(a == b for a, b in clicked_pairs(scored(s)))) > 5
    assert count(slates, lambda s: 0 < len(scores(s)) < len(s.members)) > 20
    assert count(slates, lambda s: not scores(s)) > 20
    assert count(slates, lambda s: max(map(abs, scores(s)), default=0) == 1e6) > 2


def carriers(slate: Slate, name: str) -> list[Event]:
    return [event for event in slate.events if getattr(event, name)]


def has_it_first(slate: Slate, name: str) -> bool:
    """Its earliest event has it, and another one has none."""
    return 0 < len(carriers(slate, name)) < len(slate.events) and bool(
        getattr(slate.events[0], name)
    )


def has_it_later(slate: Slate, name: str) -> bool:
    return bool(carriers(slate, name)) and not getattr(slate.events[0], name)


def has_an_earlier_one_late(slate: Slate, name: str) -> bool:
    """The event that counts came after another one that says otherwise."""
    found = carriers(slate, name)
    differing = {getattr(event, name) for event in found}
    return len(differing) > 1 and found[0].offset > min(event.offset for event in found)


def test_probes(slates: list[Slate]) -> None:
    assert count(slates, lambda s: s.held_out is not None) > 50
    assert count(slates, lambda s: s.reference) > 50
    assert count(slates, lambda s: s.held_out_rank is not None) > 20
    assert count(slates, lambda s: s.held_out is not None and s.held_out_rank is None) > 20
    for name in ("held_out", "reference"):
        assert count(slates, partial(has_it_first, name=name)) > 10
        assert count(slates, partial(has_it_later, name=name)) > 20
        assert count(slates, partial(has_an_earlier_one_late, name=name)) > 1
    differing = {"held_out": 0, "reference": 0}
    for name in differing:
        for slate in slates:
            differing[name] += len({getattr(m.row.event, name) for m in slate.members}) > 1
    assert min(differing.values()) > 5
    repeating = [m.row.event.reference for s in slates for m in s.members]
    assert sum(len(set(told)) < len(told) for told in repeating) > 20
