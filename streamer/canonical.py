"""A partition's state as plain sorted values: what two runs of the same logs must agree on.

Layout in memory (row numbers, segment numbers, rows that could leave already) does not show.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamer.engine.groups import group_texts
from streamer.engine.labels import Label
from streamer.engine.partition import Partition
from streamer.engine.tracks import Kept
from streamer.engine.user_items import time_name
from streamer.engine.user_sums import first_key, parts_of

Canonical = dict[str, Any]


def canonical(partition: Partition) -> Canonical:
    """Everything that is stored, decoded, once the users are filed."""
    partition.file_users()
    return {
        "stream_ms": partition.stream_ms,
        "unattributed": dict(partition.unattributed),
        "join_gap": partition.join_gap,
        "logs": {kind: _log(partition, kind) for kind in partition.logs},
        "values": [{"kept": v.kept, "capped": v.capped} for v in partition.segments.values],
        "cells": _cells(partition),
        "impressions": _impressions(partition),
        "clicked": _clicked(partition),
        "feedback": _feedback(partition),
        "sessions": _sessions(partition),
        "viewings": _viewings(partition),
        "user_items": _user_items(partition),
        "user_sums": _user_sums(partition),
        "user_days": _user_days(partition),
        "exposures": _exposures(partition),
        "tracks": [_track(partition, kept) for kept in partition.tracks.kept],
        "experiments": [dict(sorted(sums.items())) for sums in partition.experiments.sums],
    }


def _log(partition: Partition, kind: str) -> Canonical:
    log = partition.logs[kind]
    keys, arrivals = log.ids.log["key"], log.ids.log["arrival_ms"]
    held = arrivals >= log.arrival_ms - log.ids.horizon_ms
    return {
        "next_offset": log.next_offset,
        "arrival_ms": log.arrival_ms,
        "borrowed_ms": log.borrowed_ms,
        "accepted": log.accepted,
        "duplicates": log.duplicates,
        "late": log.late,
        "rejected": dict(sorted(log.rejected.items())),
        "ids": sorted(zip(keys[held].tolist(), arrivals[held].tolist(), strict=True)),
    }


def _cells(partition: Partition) -> dict[tuple[Any, ...], int]:
    texts = partition.segments.texts()
    cells = partition.cells
    result: dict[tuple[Any, ...], int] = {}
    for pane, (codes, values) in cells.dump(cells.live_panes()).items():
        for code, value in zip(codes.tolist(), values.tolist(), strict=True):
            key = (pane >> 32, pane & 0xFFFFFFFF, texts[code >> 14], code & 0x3FFF)
            result[key] = result.get(key, 0) + value
    return result


def _rows(columns: list[Any]) -> list[tuple[Any, ...]]:
    return sorted(zip(*(np.asarray(c).tolist() for c in columns), strict=True))


def _impressions(partition: Partition) -> list[tuple[Any, ...]]:
    table, rows = partition.impressions, partition.impressions.rows
    clicks_ms = partition.logs["clicks"].clock_ms
    reach_ms = table.horizon_ms + partition.lateness_ms
    live = rows["event_ms"] + reach_ms >= clicks_ms
    group = table.group_of(np.flatnonzero(live))
    texts = partition.segments.texts()
    names = ("offset", "index", "item", "event_ms", "arrival_ms", "position")
    columns = [rows[name][live] for name in names]
    columns += [np.nan_to_num(rows["score"][live], nan=-np.inf), rows["probe"][live]]
    columns += [table.groups[name][group] for name in ("user", "slate", "opened_ms")]
    columns.append(rows["segment"][live])
    return sorted((*row[:-1], texts[row[-1]]) for row in _rows(columns))


def _clicked(partition: Partition) -> list[tuple[Any, ...]]:
    rows = partition.clicked.rows
    live = ~partition.clicked.expired(partition.join_clock_ms())
    live &= rows["filed"] > 0
    names = ("offset", "index", "item", "event_ms", "first_ms", *partition.clicked.kinds)
    return _rows([rows[name][live] for name in (*names, "conversions", "filed", "opened_ms")])


def _feedback(partition: Partition) -> list[tuple[Any, ...]]:
    rows = partition.feedback.rows
    joined = rows["joined"]
    expired = partition.clicked.expired(partition.join_clock_ms())
    live = ~rows["dead"]
    live[joined >= 0] &= ~expired[joined[joined >= 0]]
    target = np.full(len(joined), -1, np.int64)
    target[joined >= 0] = partition.clicked.rows["offset"][joined[joined >= 0]]
    names = ("topic", "offset", "item", "event_ms", "position", "settled", "final")
    return _rows([*(rows[name][live] for name in names), target[live]])


def _sessions(partition: Partition) -> list[tuple[Any, ...]]:
    table, rows = partition.sessions, partition.sessions.rows
    live = rows["high_ms"] + table.reach_ms >= partition.logs["sessions"].arrival_ms
    live &= rows["alive"]
    texts = partition.segments.texts()
    names = ("key", "low_ms", "high_ms", "offset", "views", "is_end", "segment")
    found = _rows([rows[name][live] for name in names])
    return sorted((*row[:-1], texts[row[-1]]) for row in found)


def _viewings(partition: Partition) -> list[tuple[Any, ...]]:
    table, rows = partition.viewings, partition.viewings.rows
    live = rows["high_ms"] + table.reach_ms >= partition.viewing_clock_ms()
    live &= rows["alive"]
    texts = partition.segments.texts()
    found = []
    segments = ("click_segment", "session_segment")
    names = [name for name in table.evidence if name not in segments]
    for row in zip(*(rows[n][live].tolist() for n in (*names, *segments)), strict=True):
        told = dict(zip((*names, *segments), row, strict=True))
        for source in ("click", "session"):
            is_told = told[f"{source}_dwell_ms"] >= 0
            told[f"{source}_segment"] = texts[told[f"{source}_segment"]] if is_told else ()
        found.append(tuple(told.values()))
    return sorted(found)


def _user_items(partition: Partition) -> dict[tuple[Any, ...], list[int]]:
    """Last times by (user, pair, segment), of rows that a window still covers."""
    items, texts = partition.users.items, partition.segments.texts()
    oldest = partition.users.oldest_unit(partition.stream_ms)
    columns = items.versions(0, items.epoch + 1)
    names = [name for name in columns if name.startswith(time_name(""))]
    found: dict[tuple[Any, ...], list[int]] = {}
    for row in zip(*(c.tolist() for c in columns.values()), strict=True):
        told = dict(zip(columns, row, strict=True))
        times = [told[name] if told[name] > oldest else 0 for name in names]
        if any(times):
            key = (told["user"], told["pair"], texts[told["segment"]])
            known = found.setdefault(key, [0] * len(names))
            found[key] = [max(pair) for pair in zip(known, times, strict=True)]
    return dict(sorted(found.items()))


def _user_sums(partition: Partition) -> dict[tuple[Any, ...], int]:
    users = partition.users
    texts = group_texts(users.groups.tuples, partition.segments.dump())
    found: dict[tuple[Any, ...], int] = {}
    for ring, (key, value) in zip(users.rings, users.sums, strict=True):
        held = key >= first_key(ring.oldest(partition.stream_ms))
        pane, group, stat = parts_of(key[held])
        columns = (pane.tolist(), group.tolist(), stat.tolist(), value[held].tolist())
        for p, g, s, v in zip(*columns, strict=True):
            place = (ring.label, p, texts[g], s)
            found[place] = found.get(place, 0) + v
    return dict(sorted((k, v) for k, v in found.items() if v))


def _track(partition: Partition, kept: Kept) -> dict[tuple[Any, ...], int]:
    """Sums by (pane, label as it is now, statistic)."""
    labels, found = _labels(partition, kept.labels.known), dict[tuple[Any, ...], int]()
    for pane, (codes, values) in kept.cells.dump(kept.cells.live_panes()).items():
        for code, value in zip(codes.tolist(), values.tolist(), strict=True):
            key = (pane, labels[code >> 14], code & 0x3FFF)
            found[key] = found.get(key, 0) + value
    return dict(sorted((key, value) for key, value in found.items() if value))


def _labels(partition: Partition, known: Sequence[Label]) -> list[tuple[str, ...]]:
    """Labels as readers see them."""
    kept = {v.dimension.name: {*v.codes, "unknown"} for v in partition.segments.values}
    return [
        tuple(value if value in kept[name] else "other" for name, value in label.items())
        for label in known
    ]


def _user_days(partition: Partition) -> dict[tuple[Any, ...], list[int]]:
    """Sums by (user, day, label as it is now, part), of rows that hold any."""
    labels = _labels(partition, partition.experiments.labels.known)
    rows = partition.experiments.rows()
    columns = (rows.user, rows.day, rows.label, rows.part, *rows.amounts)
    found: dict[tuple[Any, ...], list[int]] = {}
    for user, day, label, part, *sums in zip(*(c.tolist() for c in columns), strict=True):
        key = (user, day, labels[label], part)
        known = found.setdefault(key, [0] * len(sums))
        found[key] = [a + b for a, b in zip(known, sums, strict=True)]
    return dict(sorted((key, sums) for key, sums in found.items() if any(sums)))


def _exposures(partition: Partition) -> list[tuple[int, ...]]:
    """User, code and time."""
    columns = partition.experiments.exposures.versions(0, partition.experiments.exposures.epoch + 1)
    return sorted(zip(*(c.tolist() for c in columns.values()), strict=True))
