"""Made-up live traffic: in time, with every trouble, and never the same ids twice."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import pytest

from streamer.cli import main
from streamer.settings.event_fields import KINDS
from streamer.settings.model import Settings
from streamer.sources.line_batch import Line
from streamer.sources.replay import Replay
from streamer.sources.synthetic import LiveTraffic

START_MS = 1_700_000_000_000
RATE = 400.0


def lines(seconds: int, start_ms: int = START_MS, rate: float = RATE) -> list[Line]:
    traffic = LiveTraffic(rate, Settings(), start_ms)
    batches = islice(traffic, int(4 * seconds))
    return [line for batch in batches for line in batch]


def test_it_runs_at_its_rate_in_record_time() -> None:
    found = lines(300)
    moments = [record_ms for _, record_ms, _ in found]
    assert moments == sorted(moments)
    assert moments[0] >= START_MS
    shown = [m for kind, m, _ in found if kind == "impressions"]
    seconds = (shown[-1] - START_MS) / 1000
    assert 0.8 * 300 < seconds < 1.4 * 300  # feedback comes later: fewer events at first


def test_every_counter_has_something_to_count() -> None:
    replay = Replay(Settings())
    replay.feed(lines(600))
    replay.finish()
    totals: dict[str, float] = {}
    for reading in replay.readout().readings:
        totals[reading.name] = totals.get(reading.name, 0) + reading.value
    for name in ("events", "accepted", "duplicates", "late", "rejected", "conversions"):
        assert totals[f"streamer_{name}_total"] > 0, name
    counted = sum(
        totals[f"streamer_{n}_total"] for n in ("accepted", "duplicates", "late", "rejected")
    )
    assert counted == totals["streamer_events_total"]
    assert totals["streamer_rejected_total"] < 0.01 * counted
    assert totals["streamer_late_total"] < 0.01 * counted


def ids(found: list[Line]) -> set[str]:
    events: list[dict[str, Any]] = []
    for kind, _, raw in found:
        if kind in KINDS and b"event_id" in raw:
            events.append(json.loads(raw))
    return {event["event_id"] for event in events}


def test_another_run_has_other_ids() -> None:
    first, second = ids(lines(20)), ids(lines(20, START_MS + 1000))
    assert first
    assert not first & second


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to send"),
        (["x", "--synthetic", "5"], "leave out FILE"),
        (["--synthetic", "5", "--speed", "2"], "and --speed"),
        (["--synthetic", "0"], "not a number above 0"),
        (["x", "--retention", "2d"], "--create"),
        (["--create", "2", "--retention", "soon"], "bad duration 'soon'"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["produce", *arguments]) == 2
    assert said in capsys.readouterr().err
