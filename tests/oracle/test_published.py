"""Oracle and engine agree with the published definitions, recomputed from raw lines: so a rule that
both misread alike shows here."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from streamer.settings.event_fields import LINE_TYPES
from streamer.sources.replay import Replay
from tests.oracle.oracle import records_of_log, run
from tests.oracle.published import NAMES, Values, recompute
from tests.oracle.published_logs import SETTINGS, compared, packaged, synthetic
from tests.support.agreement import by_key, read_engines, run_engines, to_log
from tests.support.lanes import long, shortened


@long
@pytest.mark.parametrize(
    ("source", "partitions"), shortened([(synthetic, 4), (synthetic, 1), (packaged, 4)])
)
def test_oracle_equals_the_published_definitions(
    source: Callable[[], list[bytes]], partitions: int
) -> None:
    lines = source()
    result = run(records_of_log(lines, SETTINGS, partitions=partitions), SETTINGS)
    assert not result.rejects
    assert not result.late
    assert not result.duplicates
    expected = recompute(lines, SETTINGS.windows.lengths_ms)
    assert {name for name, _ in expected} == set(NAMES)
    assert {dict(labels)["window"] for _, labels in expected} == {"1h", "24h"}
    variants = {dict(labels)["variant"] for _, labels in expected}
    assert variants == (
        {"all", "bts", "random"} if source is packaged else {"all", "A", "B", "unknown"}
    )
    assert compared(result.readings, expected) == []
    assert len(expected) > 60


def test_published_example() -> None:
    # Three users, items shown / clicked: 4/1, 4/2, 5/0. Pooled it would be 3/13.
    lines = []
    for user, shown, clicked in (("a", 4, 1), ("b", 4, 2), ("c", 5, 0)):
        for kind, number in (("impression", shown), ("click", clicked)):
            for i in range(number):
                event = {"type": kind, "ts": 1_700_000_000_000, "user_id": user, "request_id": user}
                lines.append(json.dumps({**event, "item_id": f"i{i}"}).encode())
    lines.append(
        b'{"type":"session","ts":1700000000000,"user_id":"a","session_id":"s","action":"end"}'
    )
    values = recompute(lines, {"1h": 3_600_000})
    labels = {"window": "1h", "variant": "all", "feedback": "click"}
    for definition, expected in (("docs", 0.25), ("gorse-0.5", 0.375)):
        key = frozenset({**labels, "definition": definition}.items())
        assert values["streamer_positive_rate_ratio", key] == expected


# The engine ---------------------------------------------------------------------------------------

LOGS = pytest.mark.parametrize("source", shortened([synthetic, packaged]))
SKETCH = 0.01 + 1e-12
"""Relative error of session length quantiles: exactly 1 % at the ends of a bucket."""


def replayed(lines: list[bytes], partitions: int) -> Values:
    """What ``streamer replay`` reads from the lines."""
    replay = Replay(SETTINGS, partitions)
    heads = [json.loads(line) for line in lines]
    newest_ms = 0
    for line, head in zip(lines, heads, strict=True):
        newest_ms = max(newest_ms, head["ts"])
        replay.feed([(LINE_TYPES[head["type"]], newest_ms, line)])
    replay.finish()
    return by_key(replay.readout())


@long
@LOGS
@pytest.mark.parametrize("partitions", shortened([4, 1]))
def test_a_replay_equals_the_published_definitions(
    source: Callable[[], list[bytes]], partitions: int
) -> None:
    lines = source()
    expected = recompute(lines, SETTINGS.windows.lengths_ms)
    assert {name for name, _ in expected} == set(NAMES)
    assert compared(replayed(lines, partitions), expected, SKETCH) == []
    assert len(expected) > 60


@long
@LOGS
def test_so_it_does_in_small_chunks_of_topics_that_run_ahead(
    source: Callable[[], list[bytes]],
) -> None:
    lines = source()
    log = to_log(records_of_log(lines, SETTINGS, partitions=2))
    readings = read_engines(run_engines(SETTINGS, 2, log, 400, seed=5))
    assert compared(readings, recompute(lines, SETTINGS.windows.lengths_ms), SKETCH) == []


def test_the_comparison_finds_what_is_wrong() -> None:
    lines = synthetic()
    expected = recompute(lines, SETTINGS.windows.lengths_ms)
    views = [i for i, line in enumerate(lines) if b'"action":"view"' in line]
    del lines[views[len(views) // 2]]
    assert compared(replayed(lines, 1), expected, SKETCH)
