"""Feedback of one person on one item that waits: an impression moves so much of it, and no more."""

from __future__ import annotations

import json
from typing import Any

from streamer.query.readings import ReadingSet, readout
from streamer.settings import limits
from streamer.settings.load import parse
from streamer.state.snapshot import view_of
from tests.support.engines import Engines, LogChunk, LogRecord

SETTINGS = parse({})
T0 = 1_700_000_000_000
MORE = 50
CLICKS = limits.PAIR_FEEDBACK + MORE


def fed(engines: Engines, kind: str, times: list[int], **of: Any) -> None:
    """Events of one person on one item, without a request, in records of a later time."""
    log = engines.partitions[0].logs[kind]
    records = [
        LogRecord(
            *(kind, 0, log.next_offset + i, T0 + 120_000),
            json.dumps({"ts": ts, "user_id": "bot", "item_id": "a", **of}).encode(),
        )
        for i, ts in enumerate(times)
    ]
    engines.feed(LogChunk(kind, 0, records))


def read(engines: Engines) -> ReadingSet:
    engines.finish()
    return readout(SETTINGS, engines.catalogue, [view_of(engines.partitions[0])])


def value(result: ReadingSet, name: str, **labels: str) -> Any:
    wanted = {"window": "1h", "variant": "all", "surface": "all", **labels}
    found = [
        r.value
        for r in result.readings
        if r.name == f"streamer_{name}" and r.labels.items() <= wanted.items()
    ]
    return found[0] if found else None


def test_what_is_beyond_the_bound_stays_where_it_is_and_is_named() -> None:
    engines = Engines(SETTINGS, 1)
    fed(engines, "clicks", [T0 + 60_000 + i for i in range(CLICKS)])
    fed(engines, "impressions", [T0, T0 + 1])
    result = read(engines)
    assert value(result, "window_clicks") == CLICKS
    assert value(result, "window_ctr_attributed_clicked", maturity="provisional") == 1
    assert value(result, "unattributed_total", topic="clicks") == MORE
    assert [(each.metrics, each.cause) for each in result.inexact] == [("joins", "feedback")]
    assert str(limits.PAIR_FEEDBACK) in result.inexact[0].text


def test_as_much_as_the_bound_moves_to_each_later_impression() -> None:
    engines = Engines(SETTINGS, 1)
    fed(engines, "clicks", [T0 + 60_000] * limits.PAIR_FEEDBACK)
    fed(engines, "impressions", [T0 + i for i in range(5)])
    fed(engines, "conversions", [T0 + 61_000] * (limits.PAIR_FEEDBACK + 1))
    result = read(engines)
    assert value(result, "window_ctr_attributed_clicked", maturity="provisional") == 1
    assert value(result, "unattributed_total", topic="clicks") == 0
    assert value(result, "unattributed_total", topic="conversions") == 0
    assert value(result, "window_cvr_attributed_converted", maturity="provisional") == 1
