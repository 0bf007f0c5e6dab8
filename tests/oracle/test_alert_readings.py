"""What is said of alerts over many weeks is what the oracle counts: weekdays, traffic, drift."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from streamer.query.alerts import AlertEvaluation
from streamer.query.checks import judged
from streamer.query.readings import readout
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.memory import MemoryStore
from streamer.state.reader import Reader
from streamer.state.snapshot import View, view_of
from streamer.stats.alerting.baseline import MetricChange
from streamer.stats.alerting.traffic import Traffic
from tests.oracle.acceptance import accept
from tests.oracle.alert_readings import read_alerts
from tests.oracle.dimensions import Kept
from tests.oracle.joining import join
from tests.oracle.oracle import records_of_log
from tests.oracle.shape import Record
from tests.oracle.sink import Sink
from tests.oracle.user_days import facts_of
from tests.support.agreement import by_key, differences, run_engines, to_log
from tests.support.engines import Engines, chunks_of
from tests.support.journals import commit, start, take_over

DAY, H = 86_400_000, 3_600_000
BEGIN = 20_000 * DAY + 7 * H  # 2024-10-04, in the morning
SETTINGS = parse({
    "dimensions": [{"name": "surface", "values": ["home", "feed"]}],
    "windows": {"lengths": ["1h"]},
    "metrics": {"families": ["traffic"]},
    "composites": [{"name": "clicks", "parts": [
        {"metric": "ctr_ratio", "weight": 3, "against": "target", "target": 0.4},
        {"metric": "ctr_attributed_ratio", "weight": -1},
        {"metric": "ctr_attributed_ratio", "against": "target", "target": 0.1},
    ]}],
    "alerts": [
        {"name": "by_surface", "window": "24h", "segments": ["surface"], "drop": 0.2},
        {"name": "dated", "window": "6h", "reference": "2024-10-08", "traffic_drop": 0.0},
        {"name": "early", "window": "12h", "reference": "2024-10-04", "traffic_rise": 0.0},
        {"name": "mixed", "metric": "composite@clicks", "window": "12h", "segments": ["surface"]},
        {"name": "alone", "window": "4h", "baseline": "before", "reference": "none",
         "traffic_drop": 0.0, "traffic_rise": 0.0},
    ],
})  # fmt: skip


def records(
    seed: int, days: int, settings: Settings = SETTINGS, partitions: int = 2
) -> list[Record]:
    """Impressions and clicks of few users, fewer on weekends, that fall off slowly."""
    dice, lines = Random(seed), list[dict[str, Any]]()
    for hour in range(24 * days):
        at_ms = BEGIN + hour * H
        weekend = at_ms // DAY % 7 >= 5
        for _ in range(dice.randrange(3 if weekend else 6)):
            user, surface = f"u{dice.randrange(40)}", dice.choice(["home", "home", "feed", "aside"])
            event_ms = at_ms + dice.randrange(H)
            event = {"ts": event_ms, "user_id": user, "item_id": "i",
                     "surface": surface}  # fmt: skip
            lines.append({"type": "impression", **event})
            if dice.random() < 0.5 * 0.985 ** (hour / 24):
                lines.append({"type": "click", **event, "ts": event_ms + 1000})
    ordered = sorted(lines, key=lambda line: int(line["ts"]))
    return records_of_log(
        [json.dumps(x).encode() for x in ordered], settings, partitions=partitions
    )


def oracle(settings: Settings, some: list[Record]) -> Any:
    verdict, out = accept(some, settings), Sink()
    kept = Kept(verdict.events, settings, verdict.key)
    facts = list(facts_of(verdict, join(verdict, settings), kept, settings))
    read_alerts(out, facts, kept, settings, verdict.stream_time_ms() or 0)
    return out.readings


def of_alerts(engines: Engines, views: list[View] | None = None) -> Any:
    seen = views or [view_of(p) for p in engines.partitions]
    found = by_key(readout(engines.settings, engines.catalogue, seen))
    return {key: value for key, value in found.items() if key[0].startswith("streamer_alert_")}


def statuses(readings: Any, kind: str, alert: str, surface: str = "all") -> list[str]:
    return [
        dict(labels)["status"]
        for name, labels in readings
        if name == f"streamer_alert_{kind}status"
        and {("alert", alert), ("surface", surface)} <= set(labels)
    ]


@pytest.mark.parametrize("days", [2, 6, 14, 18, 33])
def test_readings_equal_the_oracles_as_weeks_go_by(days: int) -> None:
    some = records(days, days)
    engines = run_engines(SETTINGS, 2, to_log(some), 500, days)
    found, expected = of_alerts(engines), oracle(SETTINGS, some)
    assert differences(found, expected) == []
    has_reference = statuses(found, "reference_", "by_surface") != ["no baseline"]
    assert has_reference == (days > 14)
    assert statuses(found, "reference_", "dated") == (
        ["no baseline"] if days < 18 else statuses(expected, "reference_", "dated")
    )
    assert statuses(found, "reference_", "early") == ["no baseline"]
    assert statuses(found, "reference_", "alone") == statuses(found, "traffic_", "alone") == []
    assert (statuses(found, "traffic_", "by_surface") == ["no baseline"]) == (days == 2)


def test_weekdays_are_compared_once_four_weeks_are_known() -> None:
    for days, compared in ((28, "weekdays"), (31, "weeks")):
        engines = run_engines(SETTINGS, 2, to_log(records(3, days)), 500)
        views = [view_of(p) for p in engines.partitions]
        at_ms = max(view.header.stream_ms for view in views)
        measures = engines.catalogue.alert_measures
        windows = AlertEvaluation(SETTINGS, SETTINGS.alerts[0], measures, views, at_ms)
        everything, *_ = judged(windows)
        metric, traffic = (everything.checks[name] for name in ("metric", "traffic"))
        assert isinstance(metric, MetricChange)
        assert isinstance(traffic, Traffic)
        assert metric.compared == windows.compared == compared
        assert traffic.compared == ("weeks" if compared == "weeks" else "days")
        found = windows.explained()
        assert found.change == found.mix + found.rate
        assert metric.value == pytest.approx(float(found.value_now or 0))
        assert metric.baseline == pytest.approx(float(found.value_then or 0))
        parts = windows.explained_traffic()
        assert sum(now for _, now, _ in parts) == traffic.events
        assert len(parts) == 3


def test_the_change_of_a_composite_is_the_sum_of_what_segments_gave() -> None:
    engines = run_engines(SETTINGS, 2, to_log(records(3, 31)), 500)
    views = [view_of(p) for p in engines.partitions]
    at_ms = max(view.header.stream_ms for view in views)
    (alert,) = (alert for alert in SETTINGS.alerts if alert.name == "mixed")
    windows = AlertEvaluation(SETTINGS, alert, engines.catalogue.alert_measures, views, at_ms)
    everything, *_ = judged(windows)
    metric = everything.metric
    assert isinstance(metric, MetricChange)
    found = windows.explained()
    assert found.change == found.mix + found.rate != 0
    now, then = (float(v or 0) * windows.unit for v in (found.value_now, found.value_then))
    assert metric.value == pytest.approx(now, rel=1e-9)
    assert metric.baseline == pytest.approx(then, rel=1e-2)  # of days by their support
    assert len(found.parts) == 3


async def test_restarts_change_nothing_that_is_said() -> None:
    some, store = records(5, 33, partitions=1), MemoryStore()
    run = await start(store, SETTINGS, 1)
    for i, chunk in enumerate(chunks_of(to_log(some), 300)):
        run.engines.feed(chunk)
        if i % 3 == 2:
            await commit(store, run, 0)
            await take_over(store, run, 0)
    run.engines.finish()
    await commit(store, run, 0)
    reader = Reader(store)
    await reader.refresh()
    expected = oracle(SETTINGS, some)
    assert differences(of_alerts(run.engines, list(reader.views)), expected) == []
    assert statuses(expected, "reference_", "by_surface") != ["no baseline"]


def test_a_first_week_that_is_not_stored_any_more_is_said() -> None:
    late_ms = BEGIN + 420 * DAY
    reasons = []
    for since in (390, 360):
        lines = [
            {"type": "impression", "ts": at_ms, "user_id": "u", "item_id": "i"}
            for at_ms in (BEGIN, late_ms - since * DAY, late_ms)
        ]
        raw = [json.dumps(line).encode() for line in lines]
        engines = run_engines(SETTINGS, 1, to_log(records_of_log(raw, SETTINGS, partitions=1)), 1)
        views = [view_of(p) for p in engines.partitions]
        measures = engines.catalogue.alert_measures
        everything, *_ = judged(
            AlertEvaluation(SETTINGS, SETTINGS.alerts[0], measures, views, late_ms)
        )
        assert everything.checks["reference"].status == "no baseline"
        reasons.append(everything.checks["reference"].reason)
    assert reasons == [
        "the first week has left, or will soon leave, the 400 days that are kept: set a date",
        "nothing was counted in the reference week",
    ]
