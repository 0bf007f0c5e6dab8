"""A request id that comes back: the same windows in whatever order topics are read."""

from __future__ import annotations

import itertools
import json

from tests.oracle.oracle import Record, run
from tests.support.agreement import SETTINGS, differences, read_engines, to_log
from tests.support.engines import Engines, chunks_of
from tests.support.lanes import sized

EXACT = ("streamer_identity_exact", frozenset[tuple[str, str]]())
INEXACT = (
    "streamer_inexact",
    frozenset([("metrics", "joins"), ("cause", "settled_moved")]),
)
MOVED = ("streamer_settled_moved_total", frozenset[tuple[str, str]]())
MINUTE = 60_000
START_MS = 1_700_000_000_000


def event(kind: str, offset: int, minute: int, **fields: str) -> Record:
    """One event of user u, its record at the same time."""
    at_ms = START_MS + minute * MINUTE
    value = {"type": kind, "ts": at_ms, "user_id": "u", **fields}
    topic = f"{kind}s"
    return Record(topic, 0, offset, at_ms, json.dumps(value).encode())


REUSED = [
    event("impression", 0, 0, item_id="i", request_id="r", variant="A"),
    event("impression", 1, 100, item_id="i", request_id="r", variant="B"),
    event("click", 0, 1, item_id="i", request_id="r"),
    event("click", 1, 101, item_id="i", request_id="r"),
    event("conversion", 0, 102, item_id="i", request_id="r"),
    event("session", 0, 103, session_id="s", action="start"),
]
"""A request id that comes back for another slate, with feedback on both."""


def test_a_request_that_comes_back_reads_the_same_in_any_order_of_topics() -> None:
    settings = SETTINGS["defaults"]
    expected = run(REUSED, settings).readings
    windows = {k: v for k, v in expected.items() if not _is_since_start(k[0])}
    assert windows.pop(EXACT) == 1
    moved = set()
    orders = sorted(set(itertools.permutations([r.topic for r in REUSED])))
    for order in orders[:: sized(7, 1)]:
        engines = Engines(settings, 1)
        logs = {topic: [r for r in to_log(REUSED) if r.kind == topic] for topic in set(order)}
        for topic in order:
            (chunk,) = chunks_of([logs[topic].pop(0)], 1)
            engines.feed(chunk)
        engines.finish()
        readings = read_engines(engines)
        found = {k: v for k, v in readings.items() if not _is_since_start(k[0])}
        assert found.pop(EXACT) == (readings[MOVED] == 0), order
        assert (found.pop(INEXACT, 0) == 1) == (readings[MOVED] > 0), order
        assert differences(found, windows) == [], order
        moved.add(readings[MOVED])
    assert len(moved) > 1  # some orders settle feedback that a later record moves, others do not


def _is_since_start(name: str) -> bool:
    return name.endswith(("_total", "_bucket", "_sum", "_count")) or name == "streamer_unsettled"
