"""The oracle agrees with the published definitions, recomputed from raw lines with polars."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from streamer.config import parse
from streamer.sources import open_bandit
from streamer.sources.synthetic import Traffic, generate

from .oracle import records_of_file, run
from .published import NAMES, Values, recompute

SETTINGS = parse({"dimensions": [{"name": "variant"}], "windows": {"lengths": ["1h", "24h"]}})
TRAFFIC = Traffic(
    seed=3,
    events_per_second=0.15,
    users=250,
    items=80,
    slate=6,
    variants=(("A", 0.10), ("B", 0.15)),
    items_form_share=0.3,
    session_share=0.8,
)
"""30 hours in 16,000 lines."""


def synthetic() -> list[bytes]:
    """Generated lines whose sessions are less alike: more views, fewer ends, variants."""
    lines: list[bytes] = []
    for kind, line in generate(TRAFFIC, 16_000):
        if kind != "sessions":
            lines.append(line)
            continue
        event = json.loads(line)
        dice = int(event["session_id"].removeprefix("s")) % 12
        if event["action"] == "start" and dice in (0, 3, 4):
            event["action"] = "view"
        if event["action"] == "end" and dice % 4 == 0:
            event["action"] = "dwell" if dice else "view"
            event["item_id"] = "i1"
        if dice % 3:
            event["variant"] = "AB"[dice % 2]
        event["session_id"] = f"s{dice % 3}" if dice < 6 else event["session_id"]  # often again
        lines.append(json.dumps(event).encode())
    return lines


def packaged() -> list[bytes]:
    return [line for _, line in open_bandit.lines(open_bandit.events())]


def compared(got: Values, expected: Values) -> list[str]:
    """What differs by more than 1e-9, or is missing, or is more."""
    keys = {key for key in got if key[0] in NAMES and kind_of(key[1]) == "click"} | expected.keys()
    return [
        f"{name} {dict(labels)}: {got.get((name, labels))}, not {expected.get((name, labels))}"
        for name, labels in keys
        if abs(got.get((name, labels), -1) - expected.get((name, labels), -2)) > 1e-9
    ]


def kind_of(labels: frozenset[tuple[str, str]]) -> str:
    return dict(labels).get("feedback", "click")


@pytest.mark.parametrize(("source", "partitions"), [(synthetic, 1), (synthetic, 4), (packaged, 4)])
def test_oracle_equals_the_published_definitions(
    source: Callable[[], list[bytes]], partitions: int
) -> None:
    lines = source()
    result = run(records_of_file(lines, SETTINGS, partitions=partitions), SETTINGS)
    assert not result.rejects
    assert not result.late
    assert not result.duplicates
    expected = recompute(lines, SETTINGS.windows.lengths_ms)
    assert {name for name, _ in expected} == set(NAMES)
    assert {dict(labels)["window"] for _, labels in expected} == {"1h", "24h"}
    assert {dict(labels)["variant"] for _, labels in expected} > {"all", "unknown"}
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
