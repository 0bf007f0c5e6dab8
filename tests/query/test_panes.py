"""Panes that are kept merged: what is read of them is what would be read without them."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from typing import Any

import pytest

from streamer.query.pane_history import NotKeptError, PaneHistory, Wanted
from streamer.query.panes import PaneReader, are_same
from streamer.settings import limits
from streamer.settings.load import parse
from streamer.state.snapshot import view_of
from tests.support.agreement import SETTINGS, log_records, to_log
from tests.support.engines import Engines, chunks_of
from tests.support.lanes import shortened, sized

NAMES = {"ctr_ratio", "window_impressions", "dwell_mean_seconds"}


def courses(
    engines: Engines, views: Any, reader: PaneReader, at_ms: int, *points: int
) -> list[Any]:
    """Of some metrics in each window, by the first dimension, in so many points."""
    settings = engines.settings
    history = PaneHistory(settings, engines.catalogue, views, reader)
    metrics = {m.name: m for m in engines.catalogue.metrics}
    alone = [rollup for rollup in settings.rollups if len(rollup) == 1]
    split = alone[0][0] if alone else None
    found = []
    for name, window, most in product(metrics.keys() & NAMES, settings.windows.lengths, points):
        with suppress(NotKeptError):
            wanted = Wanted(metrics[name], window, split=split, points=most)
            found.append(history.read(wanted, at_ms))
    assert found
    return found


@pytest.mark.parametrize("name", shortened(list(SETTINGS)[::-1]))
def test_commits_change_what_is_kept(name: str) -> None:
    settings = SETTINGS[name]
    records = log_records(9, name, sized(100, 1500), 3)
    engines, reader = Engines(settings, 3), PaneReader()
    views = [view_of(partition) for partition in engines.partitions]
    for chunk in chunks_of(to_log(records), 60):
        engines.feed(chunk)
        at = chunk.partition
        views[at] = view_of(engines.partitions[at])  # the others stay as they were
        at_ms = max(view.header.stream_ms for view in views)
        found = courses(engines, views, reader, at_ms, 7, 60)
        assert found == courses(engines, views, PaneReader(), at_ms, 7, 60)


def test_what_did_not_change_is_not_merged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = parse({"windows": {"lengths": ["1h"]}})
    records = log_records(8, "defaults", 500, 2)
    engines, reader, merged_panes = Engines(settings, 2), PaneReader(), list[int]()
    *chunks, last = chunks_of(to_log(records), 100)
    for chunk in chunks:
        engines.feed(chunk)
    views = [view_of(partition) for partition in engines.partitions]
    merged = PaneReader._merged

    def noted(self: PaneReader, pane: int, is_wanted: Any) -> Any:
        found = merged(self, pane, is_wanted)
        merged_panes.extend([pane] if found is not None else [])
        return found

    monkeypatch.setattr(PaneReader, "_merged", noted)
    at_ms = max(view.header.stream_ms for view in views)
    first = courses(engines, views, reader, at_ms, 60)
    every = {*merged_panes}
    merged_panes.clear()
    assert courses(engines, views, reader, at_ms, 60) == first
    assert not merged_panes
    before = views[last.partition]
    views[last.partition] = view_of(engines.partitions[last.partition])
    assert all(each[0] is not before.panes[n][0] for n, each in views[last.partition].panes.items())
    assert courses(engines, views, reader, at_ms, 60) == first
    assert not merged_panes  # though all of it was written again
    engines.feed(last)
    views[last.partition] = view_of(engines.partitions[last.partition])
    now = views[last.partition].panes
    changed = {n for n, pane in now.items() if not are_same(before.panes.get(n, pane[::-1]), pane)}
    at_ms = max(view.header.stream_ms for view in views)
    found = courses(engines, views, reader, at_ms, 60)
    assert found == courses(engines, views, PaneReader(), at_ms, 60)
    assert 0 < len(changed & every) < len(every)
    monkeypatch.setattr(limits, "MERGED_STATISTICS", 1)
    courses(engines, views, reader, at_ms, 60)
    assert len(reader._cells) == 1
