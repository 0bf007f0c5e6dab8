"""The course of metrics: a point of all panes is the window, and each is its events alone."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from streamer.metrics.catalogue import OF_USERS
from streamer.query.pane_history import NotByPaneError, PaneHistory, Wanted
from streamer.query.panes import PaneReader
from streamer.query.readings import readout
from streamer.settings import limits
from streamer.settings.event_fields import LINE_TYPES
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.snapshot import View, view_of
from tests.support.agreement import SETTINGS, log_records, to_log
from tests.support.engines import Engines, LogRecord, chunks_of
from tests.support.lanes import sized
from tests.support.visitors import visits

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
FIRST_MS = 1_700_006_400_000  # a whole hour
OF_ITEMS = {
    *("window_items", "window_lists", "catalog_coverage_ratio", "exposure_gini", "diversity_loss"),
    *("inter_list_diversity_ratio", "novelty_ratio", "serendipity_ratio"),
}
OF_RATIOS = {"ratio", "ratio_lower", "ratio_upper", "window_ratio_denominator"}
"""Refused where one of the ratios is over people, and none is chosen."""


def engines_of(settings: Settings, events: list[dict[str, Any]]) -> Engines:
    engines, offsets = Engines(settings, 2), dict[tuple[str, int], int]()
    records = []
    for event in events:
        place = LINE_TYPES[event["type"]], sum(event["user_id"].encode()) % 2
        offsets[place] = offset = offsets.get(place, -1) + 1
        records.append(LogRecord(*place, offset, event["ts"], json.dumps(event).encode()))
    for chunk in chunks_of(records, 500):
        engines.feed(chunk)
    engines.finish()
    return engines


def views_of(engines: Engines) -> list[View]:
    return [view_of(partition) for partition in engines.partitions]


@pytest.mark.parametrize("name", SETTINGS)
def test_one_point_of_a_whole_window_is_the_window(name: str) -> None:
    """All metrics, at a time at which the panes of a window are those of a point."""
    settings = SETTINGS[name]
    records = log_records(5, name, sized(500, 1500), 1)
    engines = Engines(settings, 1)
    for chunk in chunks_of(to_log(records), 300):
        engines.feed(chunk)
    engines.finish()
    views = views_of(engines)
    found = PaneHistory(settings, engines.catalogue, views, PaneReader())
    window, (_, ring) = max(found._rings.items(), key=lambda x: x[1][1].span_ms)
    last = engines.partitions[0].stream_ms // ring.pane_ms
    at_ms = (last - last % ring.panes + ring.panes - 1) * ring.pane_ms
    whole = readout(settings, engines.catalogue, views, at_ms).readings
    compared, refused = 0, set[str]()
    for metric in engines.catalogue.metrics:
        if metric.scope != "window" or metric.kind != "gauge":
            continue
        try:
            history = found.read(Wanted(metric, window, points=1), at_ms)
        except NotByPaneError:
            refused.add(metric.name)
            continue
        assert len(history.starts_ms) == 1
        shown = {
            frozenset({**line.labels, "window": window}.items()): line.values[0]
            for line in history.lines
        }
        expected = {
            frozenset(reading.labels.items()): reading.value
            for reading in whole
            if reading.name == f"streamer_{metric.name}"
            and reading.labels["window"] == window
            and reading.labels.get("maturity") != "mature"  # of the mature panes of the window
            and all(reading.labels[name] == "all" for name in settings.dimension_names)
        }
        if metric.name.startswith("composite") or "drift" in metric.name:
            continue  # they compare with the same window a day before
        for labels, value in expected.items():
            assert labels in shown, (metric.name, dict(labels))
            assert math.isclose(shown[labels] or 0.0, value, rel_tol=1e-12), metric.name
            compared += 1
    assert compared > 20
    assert refused <= OF_USERS | OF_ITEMS | OF_RATIOS | {"fairness_loss"}


def test_points_are_the_events_of_their_time() -> None:
    metrics = {"families": ["traffic"], "rollups": [["surface", "variant"]]}
    settings = parse({"windows": {"lengths": ["1h"]}, "metrics": metrics})
    events = [
        event
        for event in visits(3, 900, FIRST_MS - HOUR_MS, 1, 0.5)
        if event["ts"] < FIRST_MS + HOUR_MS
    ]
    last_ms = max(event["ts"] for event in events)
    engines = engines_of(settings, events)
    history = PaneHistory(settings, engines.catalogue, views_of(engines), PaneReader())
    metric = next(m for m in engines.catalogue.metrics if m.name == "window_impressions")
    wanted = Wanted(metric, "1h", {"surface": "home"}, "variant", points=12)
    found = history.read(wanted, last_ms)
    assert found.step_ms == 5 * MINUTE_MS
    assert len(found.starts_ms) in (11, 12)
    assert {line.labels["variant"] for line in found.lines} == {"A", "B"}
    for line in found.lines:
        assert line.labels["surface"] == "home"
        for start_ms, value in zip(found.starts_ms, line.values, strict=True):
            expected = sum(
                len(event["items"])
                for event in events
                if event["type"] == "impression"
                and start_ms <= event["ts"] < start_ms + found.step_ms
                and event["variant"] == line.labels["variant"]
                and event["surface"] == "home"
            )
            assert (value or 0) == expected


def test_the_largest_lines_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HISTORY_LINES", 2)
    settings = parse({"windows": {"lengths": ["24h"]}})
    engines = engines_of(settings, visits(3, 400, FIRST_MS, 1, 0.5))
    metric = next(m for m in engines.catalogue.metrics if m.name == "ctr_ratio")
    history = PaneHistory(settings, engines.catalogue, views_of(engines), PaneReader())
    found = history.read(Wanted(metric, "24h", split="surface"), FIRST_MS + 24 * HOUR_MS - 1)
    assert [line.labels["surface"] for line in found.lines] == ["home", "search"]
    assert found.omitted == 1
    assert len(found.starts_ms) == limits.HISTORY_POINTS


def test_intervals_stand_beside_the_values() -> None:
    families = ["traffic", "intervals"]
    settings = parse({"windows": {"lengths": ["24h"]}, "metrics": {"families": families}})
    engines = engines_of(settings, visits(3, 400, FIRST_MS, 1, 0.5))
    metric = next(m for m in engines.catalogue.metrics if m.name == "ctr_ratio")
    history = PaneHistory(settings, engines.catalogue, views_of(engines), PaneReader())
    (line,) = history.read(Wanted(metric, "24h", points=6), FIRST_MS + 24 * HOUR_MS - 1).lines
    assert line.values
    for low, value, high in zip(line.lower, line.values, line.upper, strict=True):
        assert low is not None
        assert value is not None
        assert high is not None
        assert low < value < high
