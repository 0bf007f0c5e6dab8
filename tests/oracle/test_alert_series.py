"""Series of alerts: the sums that they compare are the oracle's, through cuts and restarts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from streamer._core import STAT_BITS
from streamer.metrics.compared_metrics import weeks_of
from streamer.settings.alerts import Alert
from streamer.settings.model import Settings
from streamer.state.memory import MemoryStore
from streamer.state.reader import Reader
from streamer.state.snapshot import View, panes_of, view_of
from tests.oracle.alert_series import by_day, by_time, series_of
from tests.oracle.oracle import records_of_log
from tests.oracle.random_log import random_log
from tests.support.agreement import SETTINGS, run_engines, states, to_log
from tests.support.canonical import canonical
from tests.support.engines import chunks_of
from tests.support.journals import commit, start, take_over
from tests.support.lanes import long, shortened

ALERTS = (
    Alert(name="ctr", segments=("variant", "surface")),
    Alert(name="value", metric="conversion_value_per_click", window="24h"),
    Alert(name="dwell", metric="dwell_mean_seconds", window="10m", segments=("surface",)),
    Alert(name="clicked", metric="ctr_attributed_ratio", segments=("variant",)),
    Alert(name="order", metric="ndcg_ratio@3", window="30m", segments=("variant",)),
    Alert(name="margin", metric="ratio@margin_rate", segments=("variant",)),
    Alert(name="roas", metric="ratio@roas", segments=("surface",)),
)


def with_alerts(name: str, some: Sequence[Alert] = ALERTS) -> Settings:
    return msgspec.structs.replace(SETTINGS[name], alerts=tuple(some))


def shown(settings: Settings, views: Sequence[View], series: Any, ring: int = 1) -> dict[Any, int]:
    """What readers see of a ring, in the oracle's form."""
    kept: list[set[str]] = []
    for i, d in enumerate(settings.kept_dimensions):
        named = {text for view in views for text, _ in view.header.kept[i]}
        kept.append({*named, *d.values, "unknown"})
    places = {name: i for i, name in enumerate(settings.dimension_names)}
    found: Counter[Any] = Counter()
    for view in views:
        seen = view.series[series.shape]
        for place, (codes, values) in seen.panes.items():
            if place >> 32 != ring:
                continue
            for code, value in zip(codes.tolist(), values.tolist(), strict=True):
                label, stat = seen.labels[code >> STAT_BITS], code & ((1 << STAT_BITS) - 1)
                names = tuple(
                    v if v in kept[places[n]] else "other" for n, v in sorted(label.items())
                )
                side, worth = (("x", 1), ("y", 1), ("x", 1 << 32), ("y", 1 << 32))[stat // 16]
                pane, slot = place & 0xFFFFFFFF, stat % 16
                if series.is_by_time:
                    pane = pane * 16 + slot
                found[pane, names, slot, side] += value * worth
    return {key: value for key, value in found.items() if value}


def expected(settings: Settings, records: Any, alert: Alert) -> dict[Any, int]:
    order = [n for n in settings.dimension_names if n in alert.segments]
    return {
        (pane, tuple(v for _, v in sorted(zip(order, values, strict=True))), group, side): amount
        for (pane, values, group, side), amount in series_of(records, settings, alert).items()
    }


@pytest.mark.parametrize("seed", shortened(list(range(4))))
def test_sums_equal_the_oracles_whatever_the_cuts(seed: int) -> None:
    settings = with_alerts("few values")
    partitions = 1 + seed % 2
    log = random_log(seed, settings, 800)
    records = records_of_log(log, settings, partitions=partitions)
    reference = None
    for size, dice in [(1_000_000, None), (25, seed)]:
        engines = run_engines(settings, partitions, to_log(records), size, dice)
        views = [view_of(p) for p in engines.partitions]
        measures = engines.catalogue.alert_measures
        for alert in settings.alerts:
            series = measures.series_of(alert)[0]
            oldest = min(series.rings[0].oldest(v.header.stream_ms) for v in views)
            wanted = expected(settings, records, alert)
            assert min(pane for pane, *_ in wanted) >= oldest  # nothing has left yet
            assert shown(settings, views, series) == wanted, alert.name
            assert shown(settings, views, series, 2) == by_day(wanted, alert)
            assert shown(settings, views, weeks_of(series)) == by_time(wanted)
        reference = reference or states(engines)
        assert states(engines) == reference


@long
async def test_restarts_change_no_sum_and_a_new_alert_leaves_the_others() -> None:
    settings, store = with_alerts("few values", ALERTS[:3]), MemoryStore()
    records = records_of_log(random_log(9, settings, 800), settings)
    run = await start(store, settings, 1)
    chunks = list(chunks_of(to_log(records), 60, 4))
    for i, chunk in enumerate(chunks[: len(chunks) // 2]):
        run.engines.feed(chunk)
        await commit(store, run, 0)
        if i % 7 == 3:
            before = canonical(run.engines.partitions[0])
            await take_over(store, run, 0)
            assert canonical(run.engines.partitions[0]) == before
    middle_ms = run.engines.partitions[0].stream_ms
    more = with_alerts("few values", ALERTS[1:])
    run = await start(store, more, 1)
    for chunk in chunks[len(chunks) // 2 :]:
        run.engines.feed(chunk)
    run.engines.finish()
    await commit(store, run, 0)
    reader = Reader(store)
    await reader.refresh()
    measures = run.engines.catalogue.alert_measures
    since = {}
    for alert in more.alerts:
        series = measures.series_of(alert)[0]
        since[alert.name] = reader.views[0].series[series.shape].since_ms
        if since[alert.name] == 0:
            wanted = expected(more, records, alert)
            assert shown(more, reader.views, series) == wanted
            assert shown(more, reader.views, series, 2) == by_day(wanted, alert)
            assert shown(more, reader.views, weeks_of(series)) == by_time(wanted)
    new = ("clicked", "order", "margin", "roas")
    assert since == {"value": 0, "dwell": 0, **dict.fromkeys(new, middle_ms)}
    assert len(reader.views[0].series) == 13


def test_panes_leave_when_no_comparison_needs_them() -> None:
    settings = with_alerts("defaults", ALERTS[:1])
    engines = run_engines(settings, 1, [], 1)
    users, weeks, _ = engines.partitions[0].series
    day_ms = 86_400_000
    for day in range(430):
        line = b'{"ts":%d,"user_id":"u","item_id":"i"}' % (10**12 + day * day_ms)
        records = records_of_log([b'{"type":"impression",' + line[1:]], settings)
        (record,) = to_log(records)
        (chunk,) = chunks_of([replace(record, offset=day)], 1)
        engines.feed(chunk)
    rings = Counter(pane >> 32 for pane in panes_of(users))
    assert 8 <= rings[1] <= 9  # a week, and the day of which verdicts are read again
    assert rings[2] == 400
    assert 29 <= len(panes_of(weeks)) <= 30
