"""Rows of a ratio: their sums by the values of all dimensions are the oracle's, whatever the cuts
and the number of partitions."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from streamer.ingest.hash_key import FIXED_KEY
from streamer.metrics.catalogue import Catalogue, Periods
from streamer.query.causes import recording, rows_of
from streamer.settings.alerts import Alert
from streamer.settings.model import Settings
from streamer.state.partition import Partition
from streamer.stats.alerting.crossings import RatioRows
from tests.oracle.alert_series import PANES, series_of
from tests.oracle.oracle import records_of_log
from tests.oracle.random_log import random_log
from tests.support.agreement import SETTINGS, to_log
from tests.support.engines import LogRecord, chunks_of, records_of
from tests.support.lanes import shortened, sized

METRICS = ("ctr_ratio", "conversion_value_per_click", "ndcg_ratio@3")


def settings_of(metric: str) -> Settings:
    alert = Alert(name="a", metric=metric, window="1h")
    given = msgspec.structs.replace(SETTINGS["few values"], alerts=(alert,))
    return recording(given, alert, ())


def totals(rows: RatioRows) -> dict[Any, int]:
    """Sums by period, values and side."""
    found: Counter[Any] = Counter()
    for i in range(len(rows.x)):
        values = tuple(of[codes[i]] for of, codes in zip(rows.texts, rows.codes, strict=True))
        for side, amounts in (("x", rows.x), ("y", rows.y)):
            found[bool(rows.is_now[i]), values, side] += round(float(amounts[i]))
    return {key: amount for key, amount in found.items() if amount}


def expected(settings: Settings, records: Any, periods: Periods) -> dict[Any, int]:
    every = tuple(settings.dimension_names)
    alert = msgspec.structs.replace(settings.alerts[0], segments=every)
    pane_ms, found = alert.window_ms // PANES, Counter[Any]()
    for (pane, values, _, side), amount in series_of(records, settings, alert).items():
        for is_now, (begin_ms, end_ms) in enumerate(periods):
            if begin_ms <= pane * pane_ms < end_ms:
                found[bool(is_now), values, side] += amount
    return {key: amount for key, amount in found.items() if amount}


def recorded(
    settings: Settings, log: list[LogRecord], count: int, periods: Periods, size: int, seed: int
) -> RatioRows:
    catalogue, rows = Catalogue(settings, periods), None
    partitions = [Partition(settings, catalogue, FIXED_KEY) for _ in range(count)]
    for chunk in chunks_of(log, size, seed):
        partitions[chunk.partition].apply([records_of(chunk)])
    for partition in partitions:
        partition.apply((), at_end=list(partition.logs))
        rows = rows_of(partition, 1, rows)
    assert rows is not None
    return rows


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", shortened(list(range(3))))
def test_sums_equal_the_oracles(metric: str, seed: int) -> None:
    settings = settings_of(metric)
    lines = random_log(seed, settings, sized(400, 800))
    for partitions in (1, 2):
        records = records_of_log(lines, settings, partitions=partitions)
        pane_ms = settings.alerts[0].window_ms // PANES
        times = sorted(record.record_ms for record in records)
        begin, middle, end = (times[len(times) * i // 8] // pane_ms for i in (1, 4, 7))
        first = (begin * pane_ms, middle * pane_ms)
        periods = (first, ((middle + 1) * pane_ms, end * pane_ms))
        wanted = expected(settings, records, periods)
        assert {is_now for is_now, *_ in wanted} == {False, True}
        for size in (1_000_000, 25):
            rows = recorded(settings, to_log(records), partitions, periods, size, seed)
            assert totals(rows) == pytest.approx(wanted, rel=1e-12)  # floats
