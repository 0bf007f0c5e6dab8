"""Crossings of alerts: their sums are the oracle's by all dimensions, through cuts and restarts,
and what broke is found from them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec
import pytest
from aiohttp.test_utils import TestClient, TestServer

from streamer.encoding.limbs import VALUE_BITS
from streamer.encoding.packed import ring_and_pane, row_and_place
from streamer.errors import SettingsError
from streamer.metrics.catalogue import Catalogue
from streamer.metrics.crossings import ABOVE, BELOW, HIGH, VALUES, WHO
from streamer.query.crossings import crossings_document
from streamer.server import api
from streamer.server.app import application
from streamer.server.exporter import Exporter
from streamer.settings.alerts import Alert
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.memory import MemoryStore
from streamer.state.reader import Reader
from streamer.state.snapshot import View, view_of
from streamer.stats.random_groups import GROUPS
from streamer.testing import chunks_of
from tests.oracle.alert_series import series_of
from tests.oracle.oracle import records_of_log
from tests.oracle.random_log import random_log
from tests.support.agreement import SETTINGS, run_engines, states, to_log
from tests.support.canonical import canonical
from tests.support.journals import commit, finish, start, take_over
from tests.support.lanes import long, shortened, sized

HOUR_MS = 3_600_000
BEGIN_MS = 480_000 * HOUR_MS


def with_crossings(name: str = "few values") -> Settings:
    every = tuple(SETTINGS[name].dimension_names)
    alerts = (
        Alert(name="ctr", window="24h", segments=every, crossings=True),
        Alert(name="value", metric="conversion_value_per_click", segments=every, crossings=True),
        Alert(name="order", metric="ndcg_ratio@3", window="6h", segments=every, crossings=True),
    )
    return msgspec.structs.replace(SETTINGS[name], alerts=alerts)


def sums(settings: Settings, views: Sequence[View], alert: Alert) -> dict[Any, int]:
    """Stored sums in the oracle's form."""
    declared = Catalogue(settings).alert_measures.crossings_of(alert)
    kept: list[set[str]] = []
    for i, d in enumerate(settings.kept_dimensions):
        named = {text for view in views for text, _ in view.header.kept[i]}
        kept.append({*named, *d.values, "unknown"})
    found: Counter[Any] = Counter()
    for view in views:
        for number, (codes, values) in view.series[declared.shape].panes.items():
            rows: dict[int, dict[int, int]] = {}
            columns = (*row_and_place(codes), values)
            for row_number, place, value in zip(*(c.tolist() for c in columns), strict=True):
                rows.setdefault(row_number, {})[place] = value
            assert 0 not in rows  # no sample
            for row in rows.values():
                texts = [of[row[VALUES + i] - 1] for i, of in enumerate(view.header.values)]
                pairs = zip(texts, kept, strict=True)
                cell = tuple(text if text in shown else "other" for text, shown in pairs)
                pane, group = ring_and_pane(number)[1], (row[WHO] - 1) % GROUPS
                x = row.get(ABOVE, 0) + (row.get(HIGH, 0) << VALUE_BITS)
                found[pane, cell, group, "x"] += x
                found[pane, cell, group, "y"] += row.get(BELOW, 0)
    return {key: value for key, value in found.items() if value}


def expected(settings: Settings, records: Any, views: Sequence[View], alert: Alert) -> Any:
    declared = Catalogue(settings).alert_measures.crossings_of(alert)
    oldest = [declared.rings[0].oldest(view.header.stream_ms) for view in views]
    every = series_of(records, settings, alert)
    if len(views) == 1:
        every = {key: amount for key, amount in every.items() if key[0] >= oldest[0]}
    return every


@pytest.mark.parametrize("seed", shortened(list(range(4))))
def test_sums_equal_the_oracles_whatever_the_cuts(seed: int) -> None:
    settings = with_crossings()
    records = records_of_log(random_log(seed, settings, sized(400, 800)), settings, partitions=1)
    reference = None
    for size, dice in [(1_000_000, None), (25, seed)]:
        engines = run_engines(settings, 1, to_log(records), size, dice)
        views = [view_of(p) for p in engines.partitions]
        for alert in settings.alerts:
            wanted = expected(settings, records, views, alert)
            assert wanted
            assert sums(settings, views, alert) == wanted, alert.name
        reference = reference or states(engines)
        assert states(engines) == reference


@long
async def test_restarts_change_no_sum() -> None:
    settings, store = with_crossings(), MemoryStore()
    records = records_of_log(random_log(9, settings, 800), settings)
    run = await start(store, settings, 1)
    for i, chunk in enumerate(chunks_of(to_log(records), 60, 4)):
        run.engines.feed(chunk)
        await commit(store, run, 0)
        if i % 7 == 3:
            before = canonical(run.engines.partitions[0])
            await take_over(store, run, 0)
            assert canonical(run.engines.partitions[0]) == before
    run.engines.finish()
    await commit(store, run, 0)
    reader = Reader(store)
    await reader.refresh()
    for alert in settings.alerts:
        wanted = expected(settings, records, reader.views, alert)
        assert sums(settings, reader.views, alert) == wanted


def test_crossings_are_of_one_ratio() -> None:
    part = {"metric": "ctr_ratio", "against": "target", "target": 0.4}
    other = {"metric": "ctr_attributed_ratio", "weight": -1}
    alert = {"name": "a", "metric": "composite@mix", "crossings": True}
    raw = {"composites": [{"name": "mix", "parts": [part, other]}], "alerts": [alert]}
    with pytest.raises(SettingsError, match="crossings are kept of one ratio"):
        Catalogue(parse(raw))


def hour_of(dice: Random, hour: int, is_broken: bool) -> list[bytes]:
    """Slates and clicks of an hour; where it is broken, no old phone can check out."""
    lines: list[dict[str, Any]] = []
    for n in range(3_000):
        user, ts = dice.randrange(900), BEGIN_MS + hour * HOUR_MS + n * 1_200
        os = ("ios 17", "ios 18", "android")[user % 3]
        page = dice.choice(("home", "search", "checkout"))
        ids = {"ts": ts, "user_id": f"u{user}", "request_id": f"{hour}-{n}"}
        items = [{"item_id": f"i{i}"} for i in range(5)]
        shown = {"os": os, "page": page, "country": f"c{user % 7}"}
        lines.append({"type": "impression", **ids, **shown, "items": items})
        for item in items:
            if dice.random() < 0.1 and not (is_broken and (os, page) == ("ios 17", "checkout")):
                lines.append({"type": "click", **ids, **item, "ts": ts + 100})
    return [json.dumps(line).encode() for line in lines]


def document(most_rows: int, broken: Sequence[bool]) -> Any:
    """What is said of the crossings after some hours."""
    names = ["os", "page", "country"]
    settings = parse({
        "dimensions": [{"name": name} for name in names],
        "metrics": {"rollups": [[]], "families": ["traffic"]},
        "limits": {"crossings": most_rows},
        "alerts": [{"name": "ctr", "metric": "ctr_ratio", "crossings": True}],
    })  # fmt: skip
    dice = Random(5)
    lines = [line for hour, its in enumerate(broken) for line in hour_of(dice, hour, its)]
    records = records_of_log(lines, settings, partitions=2)
    engines = run_engines(settings, 2, to_log(records), 1_000)
    views = [view_of(p) for p in engines.partitions]
    measures, (alert,) = engines.catalogue.alert_measures, settings.alerts
    stream_ms = max(view.header.stream_ms for view in views)
    return crossings_document(settings, alert, measures, views, stream_ms)


@pytest.mark.parametrize("most_rows", shortened([2_000, 60_000]))
def test_what_broke_is_found(most_rows: int) -> None:
    found = document(most_rows, (False, False, True))
    assert found["problem"] is None
    assert found["users_share"] == (1.0 if most_rows == 60_000 else 0.5)
    (cell,) = found["found"]
    assert cell["values"] == {"os": "ios 17", "page": "checkout"}
    assert cell["rate_now"] == 0.0
    assert 0.07 < cell["rate_then"] < 0.13
    assert 0.1 < cell["share_now"] < 0.13
    assert cell["low"] < -3_000 * 5 / 9 * 0.1 < cell["high"] < 0


@long
def test_nothing_is_found_where_nothing_broke_nor_before_two_windows_are_known() -> None:
    assert document(60_000, (False, False, False))["found"] == []


async def test_the_api_searches_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[Any] = []

    def counting(*of: Any) -> Any:
        searched.append(of[1].name)
        return crossings_document(*of)

    monkeypatch.setattr(api, "crossings_document", counting)
    settings, store = with_crossings(), MemoryStore()
    run = await start(store, settings, 1)
    for chunk in chunks_of(to_log(records_of_log(random_log(3, settings, 200), settings)), 200):
        run.engines.feed(chunk)
    await finish(store, run)
    async with TestClient(TestServer(application(Exporter(settings, store)))) as client:
        for _ in range(3):
            found = await (await client.get("/api/explain?alert=ctr")).json()
            assert set(found["crossings"]) >= {"problem", "found"}
        assert searched == ["ctr"]
