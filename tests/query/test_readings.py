"""What is shown: windows by their panes, maturity, rollups, and nothing where there is nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.query.readings import ReadingSet, readout
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.snapshot import view_of
from tests.support.engines import Engines, LogRecord, chunks_of
from tests.support.rollups import every

T0 = 1_700_000_040_000  # a whole number of hours of panes: 60 s, 1 min after 24 minutes
S, M = 1000, 60_000


class Timeline:
    """Events at times after T0, each arriving when it happens."""

    def __init__(self, partitions: int = 1, **document: Any) -> None:
        document.setdefault("dimensions", [{"name": "variant"}])
        document.setdefault("windows", {"lengths": ["1m"]})
        self.settings: Settings = parse(document)
        self.partitions = partitions
        self.log: list[LogRecord] = []

    def event(self, kind: str, at_ms: int, partition: int = 0, **fields: Any) -> Timeline:
        event = {"ts": T0 + at_ms, "user_id": "u", "item_id": "x", "variant": "A"} | fields
        offset = sum(r.kind == kind and r.partition == partition for r in self.log)
        value = json.dumps({k: v for k, v in event.items() if v is not None}).encode()
        self.log.append(LogRecord(kind, partition, offset, T0 + at_ms, value))
        return self

    def shown(self, at_ms: int, **fields: Any) -> Timeline:
        return self.event("impressions", at_ms, **fields)

    def click(self, at_ms: int, **fields: Any) -> Timeline:
        return self.event("clicks", at_ms, **fields)

    def read(self, now_ms: int | None = None) -> ReadingSet:
        engines = Engines(self.settings, self.partitions)
        for chunk in chunks_of(self.log, 1000):
            engines.feed(chunk)
        engines.finish()
        views = [view_of(p) for p in engines.partitions]
        at_ms = None if now_ms is None else T0 + now_ms
        return readout(self.settings, engines.catalogue, views, at_ms)


def value(result: ReadingSet, name: str, **labels: str) -> float | None:
    """The reading of exactly these labels; dimensions that are not named are ``all``."""
    found = [
        r.value
        for r in result.readings
        if r.name == f"streamer_{name}"
        and {**r.labels} == {**{k: "all" for k in r.labels if k == "variant"}, **labels}
    ]
    assert len(found) <= 1
    return found[0] if found else None


def names(result: ReadingSet) -> set[str]:
    return {r.name.removeprefix("streamer_") for r in result.readings}


@pytest.mark.parametrize(
    ("now_ms", "counted"),
    [
        # panes of 1 s:  [0, 1) ............ the window at S covers 60 of them
        (0, 1),
        (59_999, 1),  # pane 59: panes 0 to 59
        (60_000, 0),  # pane 60: panes 1 to 60
    ],
)
def test_an_event_leaves_with_its_pane(now_ms: int, counted: int) -> None:
    line = Timeline().shown(0).shown(now_ms, variant="B")
    result = line.read()
    assert result.stream_ms == T0 + now_ms
    assert (value(result, "window_impressions", window="1m", variant="A") or 0) == counted
    assert value(result, "window_impressions", window="1m", variant="B") == 1


def test_an_event_at_the_end_of_its_pane_stays_as_long_as_one_at_the_start() -> None:
    for at_ms in (0, 999):
        assert value(Timeline().shown(at_ms).read(59_999), "window_impressions", window="1m") == 1
        assert (
            value(Timeline().shown(at_ms).read(60_000), "window_impressions", window="1m") is None
        )


def test_events_after_stream_time_are_not_read_yet() -> None:
    # A: arrival 0; the event is 30 s in the future, within the skew: S stays at arrival
    line = Timeline().shown(0)
    line.log.append(LogRecord("impressions", 0, 1, T0, line.log[0].value))
    ahead = {"ts": T0 + 30 * S, "user_id": "u", "item_id": "y", "variant": "A"}
    line.log.append(LogRecord("impressions", 0, 2, T0, json.dumps(ahead).encode()))
    result = line.read()
    assert result.stream_ms == T0
    assert value(result, "window_impressions", window="1m") == 2
    assert value(result, "impressions_total") == 3
    assert value(line.read(30 * S), "window_impressions", window="1m") == 3


def test_now_never_lies_before_stream_time() -> None:
    line = Timeline().shown(0).shown(10 * S)
    assert value(line.read(0), "window_impressions", window="1m") == 2
    assert line.read(0).stream_ms == T0 + 10 * S


def test_nothing_read_shows_counters_only() -> None:
    result = Timeline().read()
    assert result.readings
    assert all("window" not in r.labels for r in result.readings)
    assert value(result, "events_total", topic="clicks") == 0
    assert value(result, "identity_exact") == 1
    assert {n for n in names(result) if n.endswith("_ratio")} == {"user_sample_ratio"}
    assert "impressions_total" not in names(result)


def test_empty_is_absent_and_a_ratio_of_0_is_0() -> None:
    result = Timeline().shown(0).read()
    assert value(result, "ctr_ratio", window="1m") == 0.0
    assert value(result, "cvr_ratio", window="1m") is None
    assert value(result, "window_clicks", window="1m") == 0
    for name in (
        "window_dwell_seconds",
        "dwell_mean_seconds",
        "window_dwells",
        "window_conversions",
    ):
        assert name not in names(result)
    lone = Timeline().click(0).read()
    assert value(lone, "ctr_ratio", window="1m") is None
    assert value(lone, "window_impressions", window="1m") == 0


@pytest.mark.parametrize("rollups", [[[]], [[], ["variant"]]])
def test_impressions_without_scores_have_no_metrics_of_scores(rollups: list[list[str]]) -> None:
    """Also where a dimension is kept for those metrics alone, and so has nothing."""
    metrics = {"families": ["traffic", "scores"], "rollups": rollups}
    windows = {"lengths": ["1m", "1h"]}
    line = Timeline(metrics=metrics, windows=windows).shown(0, score=0.5).shown(10 * M)
    result = line.read(20 * M)
    assert value(result, "window_impressions", window="1h") == 2
    assert "fairness_loss" not in names(result)
    lone = Timeline(metrics=metrics, windows=windows).shown(0).read()
    assert value(lone, "window_impressions", window="1m") == 1


def test_provisional_and_mature_panes() -> None:
    # horizon 1 min + lateness 1 min: the pane [0, 1 min) of 1 h is mature when S >= 3 min
    document: dict[str, Any] = {
        "windows": {"lengths": ["1h"]},
        "attribution": {"click": "1m", "conversion": "2m"},
        "time": {"max_lateness": "1m", "max_skew": "1s", "dedup_horizon": "1m"},
    }
    for at_ms, is_mature in ((3 * M - 1, False), (3 * M, True)):
        line = Timeline(**document).shown(0, request_id="r").click(30 * S, request_id="r")
        line.shown(at_ms, item_id="y", variant="B")
        result = line.read()
        labels = {"window": "1h"}
        provisional, mature = (
            value(result, "ctr_attributed_ratio", **labels, maturity=m)
            for m in ("provisional", "mature")
        )
        assert provisional == 0.5
        assert mature == (1.0 if is_mature else None)
        supports = value(result, "window_ctr_attributed_impressions", **labels, maturity="mature")
        assert supports == (1 if is_mature else None)
        # cvr: horizon 2 min: mature at 4 min
        assert value(result, "cvr_attributed_ratio", **labels, maturity="mature") is None
        assert value(result, "cvr_attributed_ratio", **labels, maturity="provisional") == 0.0
    assert T0 % M == 0


def test_rollups_add_up() -> None:
    dimensions = [{"name": "variant"}, {"name": "surface"}]
    line = Timeline(dimensions=dimensions, metrics=every("variant", "surface"))
    for variant, surface, n in (("A", "p", 3), ("A", "q", 2), ("B", "p", 1), ("B", None, 4)):
        for _ in range(n):
            line.shown(0, variant=variant, surface=surface)
    shown = {
        (r.labels["variant"], r.labels["surface"]): r.value
        for r in line.read().readings
        if r.name == "streamer_window_impressions"
    }
    assert shown == {
        ("all", "all"): 10,
        ("A", "all"): 5,
        ("B", "all"): 5,
        ("all", "p"): 4,
        ("all", "q"): 2,
        ("all", "unknown"): 4,
        ("A", "p"): 3,
        ("A", "q"): 2,
        ("B", "p"): 1,
        ("B", "unknown"): 4,
    }


def test_only_the_rollups_asked_for() -> None:
    dimensions = [{"name": "variant"}, {"name": "surface"}]
    line = Timeline(dimensions=dimensions, metrics={"rollups": [["surface"]]})
    result = line.shown(0, surface="p").read()
    labels = [r.labels for r in result.readings if r.name == "streamer_window_impressions"]
    assert labels == [{"window": "1m", "variant": "all", "surface": "p"}]


def test_partitions_add_up_and_stream_time_is_the_newest() -> None:
    line = Timeline(partitions=3).shown(0).shown(30 * S, partition=2, variant="B")
    result = line.read()
    assert result.stream_ms == T0 + 30 * S
    assert value(result, "window_impressions", window="1m") == 2
    assert value(result, "stream_time_seconds") == (T0 + 30 * S) / 1000


def test_the_bound_of_values_holds_over_the_union_of_partitions() -> None:
    line = Timeline(partitions=4, dimensions=[{"name": "variant", "max_values": 2}])
    for i in range(8):
        line.shown(0, partition=i % 4, variant=f"v{i}")
    result = line.read()
    shown = {
        r.labels["variant"]: r.value
        for r in result.readings
        if r.name == "streamer_impressions_total"
    }
    assert shown.pop("all") == 8
    assert shown.pop("other") == 6
    assert list(shown.values()) == [1, 1]


def test_series_of_position() -> None:
    line = Timeline()
    for position in (1, 50, 51, 99, None):
        line.shown(0, position=position, item_id=f"i{position}")
    line.click(0, position=51)
    result = line.read()
    at = {
        r.labels["position"]: r.value
        for r in result.readings
        if r.name == "streamer_window_position_impressions" and r.labels["variant"] == "all"
    }
    assert at == {"1": 1, "50": 1, "other": 2}
    assert value(result, "ctr_position_ratio", window="1m", position="other") == 0.5
    assert value(result, "ctr_position_ratio", window="1m", position="1") == 0.0


def test_the_json_document_is_readings_and_stream_time() -> None:
    result = Timeline().shown(0).read()
    document = json.loads(json.dumps(result.as_json()))
    assert document["stream_time_ms"] == T0
    assert {
        "name": "streamer_ctr_ratio",
        "labels": {"window": "1m", "variant": "A"},
        "value": 0.0,
    } in (document["readings"])
    kinds = {r.name: r.kind for r in result.readings}
    assert kinds["streamer_impressions_total"] == kinds["streamer_events_total"] == "counter"
    assert kinds["streamer_ctr_ratio"] == kinds["streamer_window_clicks"] == "gauge"
    assert all(name.endswith("_total") == (kind == "counter") for name, kind in kinds.items())


def test_families_that_are_not_asked_for_are_not_there() -> None:
    line = Timeline(metrics={"families": ["engagement"]}).shown(0).click(0, dwell_ms=3000)
    result = line.read()
    assert value(result, "dwell_mean_seconds", window="1m") == 3.0
    assert "ctr_ratio" not in names(result)


def test_crossings_and_single_dimensions_show_the_brief_metrics() -> None:
    dimensions = [{"name": "variant"}, {"name": "surface"}]
    rollups = [[], ["variant"], ["surface"], ["variant", "surface"]]
    request: dict[str, Any] = {"request_id": "r", "surface": "p"}

    def shown(**metrics: Any) -> dict[str, set[str]]:
        """Rollup → names; the rollup as the dimensions that it keeps."""
        line = Timeline(dimensions=dimensions, metrics={"rollups": rollups, **metrics})
        line.shown(0, position=1, **request).shown(0, item_id="y", position=2, **request)
        found: dict[str, set[str]] = {}
        for r in line.click(1, **request).read().readings:
            if "variant" in r.labels and "window" in r.labels:
                kept = ",".join(d for d in ("variant", "surface") if r.labels[d] != "all")
                found.setdefault(kept, set()).add(r.name.removeprefix("streamer_"))
        return found

    ranked = {"ndcg_ratio", "window_slates"}
    brief = shown()
    assert brief[""] > brief["variant"] == brief["surface"] > ranked | {"ctr_ratio"}
    assert brief["variant,surface"] == brief["variant"] - ranked
    assert {"map_ratio", "ctr_position_ratio", "clicks_per_user"} <= brief[""] - brief["variant"]
    named = shown(detailed=[["surface", "variant"]])
    of_items = {"catalog_coverage_ratio", "window_items"}
    assert named["variant,surface"] == brief[""] - of_items
    assert named[""] == brief["variant"]
