"""Combinations of values: their numbers are freed once nothing refers to them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from streamer.settings.load import parse
from tests.support.canonical import canonical
from tests.support.engines import Engines, LogRecord, chunks_of
from tests.support.lanes import sized

T0 = 1_700_000_000_000
SETTINGS = parse(
    {
        "dimensions": [{"name": "a", "max_values": 10}, {"name": "b", "max_values": 10_000}],
        "windows": {"lengths": ["1m"]},
        "metrics": {"families": ["traffic"]},  # users' items stay longer
        "attribution": {"click": "1m", "conversion": "1m", "session_gap": "1m"},
        "time": {"max_lateness": "10s", "dedup_horizon": "10s"},
    }
)


def records(count: int) -> Iterator[LogRecord]:
    """Impressions of as many combinations, ten a second, every hundredth with a click."""
    offsets = {"impressions": 0, "clicks": 0}
    for n in range(count):
        ts = T0 + 100 * n
        event: dict[str, Any] = {"ts": ts, "user_id": f"u{n % 50}", "request_id": f"r{n}"}
        event |= {"item_id": "i", "a": f"a{n % 7}", "b": f"b{n // 7 % 9_999}"}
        for kind in ("impressions", "clicks")[: 2 if n % 100 == 0 else 1]:
            value = json.dumps({**event, "type": kind[:-1]}).encode()
            yield LogRecord(kind, 0, offsets[kind], ts, value)
            offsets[kind] += 1


def test_numbers_of_what_has_left_are_used_again() -> None:
    count = sized(68_000, 200_000)
    engines = Engines(SETTINGS, 1)
    log = records(count)
    while some := list(islice(log, 2_000)):
        for chunk in chunks_of(some, 2_000):
            engines.feed(chunk)
    (partition,) = engines.partitions
    numbers = partition.core.counters()["combinations"]
    assert 65_536 < numbers < 67_600 < count
    stored, _ = partition.core.rows("combinations", 0, 1 << 31)
    assert len(stored["number"]) < numbers / 2
    found = canonical(partition)
    totals = [v for key, v in found["panes"].items() if key[0] == 9 and key[2] == ("all", "all")]
    assert count in totals
