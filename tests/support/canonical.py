"""A partition's state as plain sorted values: what two runs of the same logs must agree on.

Layout in memory (numbers of rows, segments and epochs, rows that could leave already) is left out,
and what only says how far joins were made final.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from streamer._core import ITEM_LABEL_BITS
from streamer.encoding.packed import (
    PAIR_PLACE,
    PAIR_SAMPLE_PLACE,
    first_user_key,
    parts_of_item_code,
    parts_of_user_key,
    ring_and_pane,
    segment_and_stat,
)
from streamer.encoding.segments import OTHER, Label
from streamer.metrics.item_counts import ItemCounts
from streamer.metrics.rings import rings_of
from streamer.state.partition import PaneSeries, Partition
from streamer.state.snapshot import panes_of

Canonical = dict[str, Any]
Texts = Mapping[int, tuple[str, ...]] | Sequence[tuple[str, ...]]
_ANONYMOUS = (1 << 32) - 1
"""How the hashes of anonymous users end."""
_UNATTRIBUTED = ("unattributed.clicks", "unattributed.conversions")
_EVERY = 1 << 31
"""An epoch after all others."""


def canonical(partition: Partition) -> Canonical:
    """Everything that is stored, decoded, once the sums over users are up to date."""
    partition.refresh_user_sums()
    state, counters = partition.state(), partition.core.counters()
    texts = combinations_of(partition)
    return {
        "stream_ms": state["stream_ms"],
        "unattributed": {name: counters[name] for name in _UNATTRIBUTED},
        "logs": {name: _log(partition, name, state["logs"][name]) for name in partition.logs},
        "values": [
            {"kept": v["kept"], "capped": v["events"][OTHER]} for v in state["dimensions"]["values"]
        ],
        "panes": _panes(partition, partition.segments),
        "impressions": _impressions(partition, texts),
        "feedback": _feedback(partition),
        "sessions": _intervals(partition, "sessions", texts, ("combination",)),
        "viewings": _intervals(
            partition, "viewings", texts, ("click_combination", "session_combination")
        ),
        "user_items": _user_items(partition, texts),
        "user_sums": _user_sums(partition),
        "series": [_series(partition, state["dimensions"], series) for series in partition.series],
        "units": _units(partition),
    }


def _units(partition: Partition) -> Canonical:
    """Newest rows of units by what they are of, but for those of which nothing is left."""
    found: Canonical = {}
    for table, blobs in partition.unit_rows.tables.items():
        for columns in blobs:
            names = [name for name in columns if " since " not in name and name != "first_ms"]
            others = [name for name in columns if name not in names]
            keys = zip(*(columns[name].tolist() for name in names), strict=True)
            sums = zip(*(columns[name].tolist() for name in others), strict=True)
            found |= {(table, *key): its for key, its in zip(keys, sums, strict=True)}
    return {key: its for key, its in found.items() if any(its)}


def combinations_of(partition: Partition) -> dict[int, tuple[str, ...]]:
    """The values of each combination, by its number."""
    columns, _ = partition.core.rows("combinations", 0, _EVERY)
    texts = [each["texts"] for each in partition.core.dimensions()["values"]]
    codes = [columns[f"code_{i}"].tolist() for i in range(len(texts))]
    values = zip(
        *([of[c] for c in each] for of, each in zip(texts, codes, strict=True)), strict=True
    )
    numbers = columns["number"].tolist()
    return dict(zip(numbers, values if texts else [()] * len(numbers), strict=True))


def _log(partition: Partition, kind: str, counted: dict[str, Any]) -> Canonical:
    ids, _ = partition.core.rows(f"ids_{kind}", *partition.core.serials(f"ids_{kind}"))
    held = ids["arrival_ms"] >= counted["arrival_ms"] - partition.settings.time.dedup_horizon_ms
    return {
        **{name: counted[name] for name in ("next_offset", "arrival_ms")},
        **{name: counted["counters"][name] for name in ("accepted", "duplicates", "late")},
        "rejected": dict(sorted(counted["rejected"].items())),
        "ids": sorted(
            zip(ids["key"][held].tolist(), ids["arrival_ms"][held].tolist(), strict=True)
        ),
    }


def _panes(partition: Partition, texts: Texts) -> dict[tuple[Any, ...], int]:
    return _summed(
        ((*ring_and_pane(pane), texts[segment], stat), value)
        for pane, (codes, values) in panes_of(partition).items()
        for segment, stat, value in _sums(codes, values)
    )


def _sums(codes: Any, values: Any) -> Iterator[tuple[int, int, int]]:
    """Segment (or label), statistic and value of each sum of a pane."""
    columns = (*segment_and_stat(codes), values)
    return zip(*(column.tolist() for column in columns), strict=True)


def _summed(entries: Any) -> dict[tuple[Any, ...], int]:
    found: dict[tuple[Any, ...], int] = {}
    for key, value in entries:
        found[key] = found.get(key, 0) + value
    return dict(sorted((key, value) for key, value in found.items() if value))


def _rows(
    partition: Partition, table: str, keep: Callable[[dict[str, Any]], bool]
) -> list[dict[str, Any]]:
    first, end = partition.core.serials(table)
    is_log = partition.core.horizon_ms(table) is None
    columns, _ = partition.core.rows(table, first, end if is_log else _EVERY)
    lists = {name: column.tolist() for name, column in columns.items()}
    rows = (dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True))
    return [row for row in rows if keep(row)]


def _impressions(partition: Partition, texts: Texts) -> list[tuple[Any, ...]]:
    settings = partition.settings
    reach_ms = settings.attribution.click_ms + settings.time.max_lateness_ms
    clicks_ms = clock_ms(partition, "clicks")
    found = []
    for row in _rows(partition, "impressions", lambda x: x["event_ms"] + reach_ms >= clicks_ms):
        row["combination"] = texts[row["combination"]]
        row["score"] = -np.inf if np.isnan(row["score"]) else row["score"]
        hidden = ("arrival_ms", "placed", "is_closed")
        found.append(tuple(value for name, value in row.items() if name not in hidden))
    return sorted(found)


def _feedback(partition: Partition) -> list[tuple[Any, ...]]:
    """Pending feedback without a request: of others it depends on what came first."""
    horizon_ms = partition.settings.time.max_lateness_ms
    clocks = [clock_ms(partition, kind) for kind in ("impressions", "clicks")]

    def is_pending(row: dict[str, Any]) -> bool:
        clock_ms = clocks[0] if row["kind"] >= 0 else min(clocks)
        return bool(row["slate"] == 0 and row["event_ms"] >= clock_ms - horizon_ms)

    names = ("kind", "offset", "event_ms", "user", "pair", "is_settled")
    return sorted(tuple(row[n] for n in names) for row in _rows(partition, "feedback", is_pending))


def _intervals(
    partition: Partition, table: str, texts: Texts, segments: Sequence[str]
) -> list[tuple[Any, ...]]:
    horizon_ms = partition.core.horizon_ms(table)
    found = []
    for row in _rows(partition, table, lambda x: x["alive"] and x["high_ms"] >= horizon_ms):
        for name in segments:
            is_given = row.get(name.replace("combination", "dwell_ms"), 0) >= 0
            row[name] = texts[row[name]] if is_given else ()
        found.append(tuple(v for name, v in row.items() if name not in ("id", "alive")))
    return sorted(found)


def _user_items(partition: Partition, texts: Texts) -> dict[tuple[Any, ...], list[int]]:
    """Last times by (user, pair, segment), of rows that a window still covers, and of feedback by
    request that is pending: whether it is final depends on what came first."""
    oldest = partition.core.horizon_ms("user_items") or 0
    width = 1 + len(partition.settings.user_feedback_kinds)
    found: dict[tuple[Any, ...], list[int]] = {}

    def put(key: tuple[Any, ...], times: list[int]) -> None:
        times = [t if t > oldest else 0 for t in times]
        if any(times):
            found[key] = [max(pair) for pair in zip(found.get(key, times), times, strict=True)]

    for row in _rows(partition, "user_items", lambda row: True):
        times = [row[f"time_{column}"] for column in range(width)]
        put((row["user"], row["pair"], texts[row["combination"]]), times)
    for row, kind, segment in _joined_by_request(partition, texts):
        times = [0] * width
        if kind in partition.settings.user_feedback_kinds:
            column = 1 + partition.settings.user_feedback_kinds.index(kind)
            times[column] = row["event_ms"] // partition.core.unit_ms + 1
        put((row["user"], row["pair"], segment), times)
    return dict(sorted(found.items()))


def _joined_by_request(
    partition: Partition, texts: Texts
) -> Iterator[tuple[dict[str, Any], str, tuple[str, ...]]]:
    """Pending clicks by request that join an impression: row, kind, and the segment with what it
    has of the impression."""
    click_ms, kinds = partition.settings.attribution.click_ms, partition.settings.feedback_kinds
    shown = _rows(partition, "retained", lambda row: True)

    def is_named(row: dict[str, Any]) -> bool:
        is_by_request = row["slate"] and row["pair"] == row["item_pair"]
        return bool(is_by_request and row["kind"] >= 0 and row["user"] & _ANONYMOUS != _ANONYMOUS)

    for row in _rows(partition, "feedback", is_named):
        near = [
            (x["event_ms"], x["offset"], x["index"], x["combination"])
            for x in shown
            if (x["pair"], x["slate"]) == (row["pair"], row["slate"])
            and 0 <= row["event_ms"] - x["event_ms"] <= click_ms
        ]
        if near:
            both = zip(texts[row["combination"]], texts[max(near)[-1]], strict=True)
            filled = tuple(of if own == "unknown" else own for own, of in both)
            yield row, kinds[row["kind"]], filled


def _user_sums(partition: Partition) -> dict[tuple[Any, ...], int]:
    texts = partition.segments
    entries = []
    for number, ring in enumerate(rings_of(partition.settings)):
        key, value = partition.core.user_sums(number)
        held = key >= first_user_key(ring.oldest(partition.stream_ms))
        key, value = key[held], value[held]
        columns = [column.tolist() for column in parts_of_user_key(key)]
        for pane, segment, stat, v in zip(*columns, value.tolist(), strict=True):
            entries.append(((ring.label, pane, texts[segment], stat), v))
    return _summed(entries)


def _series(
    partition: Partition, dimensions: dict[str, Any], series: PaneSeries
) -> dict[tuple[Any, ...], int]:
    """Sums by (pane, label as it is now, statistic)."""
    values = [{*of["kept"], "unknown", "all"} for of in dimensions["values"]]
    kept = dict(zip(partition.settings.dimension_names, values, strict=False))  # then units
    labels = [_shown(kept, label) for label in series.labels]
    if isinstance(series.declared, ItemCounts):
        return _summed(_of_items(series, labels))
    return _summed(
        ((pane, labels[label], stat), value)
        for pane, (codes, values) in panes_of(series).items()
        for label, stat, value in _sums(codes, values)
    )


def _of_items(series: PaneSeries, labels: Sequence[tuple[str, ...]]) -> Iterator[tuple[Any, int]]:
    """Counts by (pane, item, label, place)."""
    for pane, (codes, values) in panes_of(series).items():
        columns = (*parts_of_item_code(codes), values)
        for item, label, place, value in zip(*(c.tolist() for c in columns), strict=True):
            if PAIR_PLACE <= place < PAIR_SAMPLE_PLACE:  # a pair, which has no label
                yield (pane, item << ITEM_LABEL_BITS | label, (), place), value
            else:
                yield (pane, item, labels[label], place), value


def _shown(kept: dict[str, Any], label: Label) -> tuple[str, ...]:
    """A label as readers see it."""
    return tuple(value if value in kept[name] else "other" for name, value in label.items())


def clock_ms(partition: Partition, kind: str) -> int:
    """The clock of joins of a kind of events."""
    logs = partition.settings.logs.values()
    return min(partition.logs[log.name].clock_ms for log in logs if kind in log.kinds)
