"""Histograms since the start: real Prometheus histograms that never fall and are exact."""

from __future__ import annotations

from streamer.query.readings import family_of
from streamer.settings.load import parse
from tests.oracle.shape import Readings
from tests.oracle.timeline import H, Log, M, value
from tests.support.agreement import (
    SETTINGS,
    differences,
    random_records,
    read_engines,
    run_engines,
    to_log,
)
from tests.support.engines import Engines, chunks_of

NAMES = ("streamer_dwell_seconds", "streamer_session_length_seconds")
PLAIN = parse({"dimensions": []})


def histograms(readings: Readings) -> Readings:
    return {key: x for key, x in readings.items() if family_of(key[0], "histogram") in NAMES}


def test_they_never_fall_and_end_as_the_oracle_counts() -> None:
    settings = SETTINGS["no dimensions, short times"]
    records, expected = random_records(3, "no dimensions, short times", 1500, 1)
    engines, before = Engines(settings, 1), Readings()
    for chunk in chunks_of(to_log(records), 40, 1):
        engines.feed(chunk)
        now = histograms(read_engines(engines))
        assert not [key for key, x in before.items() if now.get(key, -1) < x]
        before = now
    engines.finish()
    last = histograms(read_engines(engines))
    assert {family_of(name, "histogram") for name, _ in last} == set(NAMES)
    assert differences(last, histograms(expected)) == []


def test_a_viewing_is_in_the_bucket_of_its_bound_and_counts_once() -> None:
    log = Log().click(0, dwell_ms=2000, request_id="r").click(1000, dwell_ms=30_001, request_id="r")
    log.click(M, dwell_ms=500).visited(0).visited(10_000, action="end")
    for topic in (log.shown, log.click, log.visited):
        topic(4 * H)
    engines = run_engines(PLAIN, 1, to_log(log.records), 100)
    shown = histograms(read_engines(engines))
    assert differences(shown, histograms(log.run(PLAIN).readings)) == []
    counts = {dict(labels)["le"]: x for (name, labels), x in shown.items()
              if name == "streamer_dwell_seconds_bucket"}  # fmt: skip
    assert counts["1.0"] == counts["2.0"] == counts["30.0"] == 1
    assert counts["60.0"] == counts["+Inf"] == 2
    result = log.run(PLAIN)
    assert value(result, "dwell_seconds_sum") == 30.501
    assert value(result, "session_length_seconds_bucket", le="10.0") == 1
    assert value(result, "session_length_seconds_sum") == 10.0


def test_what_can_still_change_is_not_counted_yet() -> None:
    log = Log().shown(0).click(0, dwell_ms=2000, request_id="r").visited(0)
    assert histograms(read_engines(run_engines(PLAIN, 1, to_log(log.records), 100))) == {}
