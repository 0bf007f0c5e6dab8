"""Panes that are kept merged: what is read of them is what would be read without them."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from streamer.query.merged_panes import MergedPanes
from streamer.query.pane_history import PaneHistory, Wanted
from streamer.settings import limits
from streamer.settings.load import parse
from streamer.state.snapshot import view_of
from streamer.testing import Engines, chunks_of
from tests.support.agreement import SETTINGS, log_records, to_log
from tests.support.lanes import sized

NAMES = ("ctr_ratio", "window_impressions", "dwell_mean_seconds")


def courses(
    engines: Engines, views: Any, merged: MergedPanes, at_ms: int, *points: int
) -> list[Any]:
    """Of some metrics in each window, by the first dimension, in so many points."""
    settings = engines.settings
    history = PaneHistory(settings, engines.catalogue, views, merged)
    metrics = {m.name: m for m in engines.catalogue.metrics}
    split = next(iter(settings.dimension_names), None)
    return [
        history.read(Wanted(metrics[name], window, split=split, points=most), at_ms)
        for name in NAMES
        if name in metrics
        for window in settings.windows.lengths
        for most in points
    ]


@pytest.mark.parametrize("name", SETTINGS)
def test_commits_change_what_is_kept(name: str) -> None:
    settings = SETTINGS[name]
    records = log_records(9, name, sized(250, 1500), 3)
    engines, merged = Engines(settings, 3), MergedPanes()
    views = [view_of(partition) for partition in engines.partitions]
    for chunk in chunks_of(to_log(records), 60):
        engines.feed(chunk)
        at = chunk.partition
        views[at] = view_of(engines.partitions[at])  # the others stay as they were
        at_ms = max(view.header.stream_ms for view in views)
        found = courses(engines, views, merged, at_ms, 7, 60)
        assert found == courses(engines, views, MergedPanes(), at_ms, 7, 60)


def test_what_did_not_change_is_not_merged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = parse({"windows": {"lengths": ["1h"]}})
    records = log_records(7, "defaults", 500, 2)
    engines, merged, panes = Engines(settings, 2), MergedPanes(), list[int]()
    for chunk in chunks_of(to_log(records), 100):
        engines.feed(chunk)
    views = [view_of(partition) for partition in engines.partitions]
    read = MergedPanes._read

    def noted(self: MergedPanes, view: Any, i: int, pane: int, is_wanted: Any) -> Any:
        panes.append(i)
        return read(self, view, i, pane, is_wanted)

    monkeypatch.setattr(MergedPanes, "_read", noted)
    at_ms = max(view.header.stream_ms for view in views)
    first = courses(engines, views, merged, at_ms, 60)
    assert {*panes} == {0, 1}
    panes.clear()
    assert courses(engines, views, merged, at_ms, 60) == first
    assert not panes
    views[1] = view_of(engines.partitions[1])  # as if all of it was written again
    assert courses(engines, views, merged, at_ms, 60) == first
    assert {*panes} == {1}  # it is compared, and what the other has is not read again
    kept = [each for panes_of in merged._kept.values() for each in panes_of.values()]
    assert all(part.array() is not None for each in kept for part in each.parts.values())
    views.clear()
    gc.collect()  # what a reader has dropped is not kept
    assert all(part.array() is None for each in kept for part in each.parts.values())
    views += [view_of(partition) for partition in engines.partitions]
    monkeypatch.setattr(limits, "MERGED_STATISTICS", 1)
    courses(engines, views, merged, at_ms, 60)
    assert len(merged._kept) == 1
