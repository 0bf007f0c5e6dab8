"""The oracle agrees with the published definitions, recomputed from raw lines."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.oracle.published_logs import SETTINGS, compared, packaged, synthetic
from tests.support.lanes import shortened

from .oracle import records_of_log, run
from .published import NAMES, recompute


@pytest.mark.parametrize(
    ("source", "partitions"), shortened([(synthetic, 1), (synthetic, 4), (packaged, 4)], 2)
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
