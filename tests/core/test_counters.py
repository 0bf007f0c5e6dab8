"""The table of counters: what it declares, and that what is stored is put back."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.ingest.hash_key import FIXED_KEY
from streamer.metrics.catalogue import Catalogue
from streamer.settings.load import parse
from streamer.state.counters import OF_LOG, OF_PARTITION, CounterRow, added
from streamer.state.partition import Partition

FOLLOWING = {
    *("unsettled.clicks", "unsettled.conversions", "join_gap", "evicted_early.event_ids"),
    *("segments_overflowed", "full_alert_series", "full_item_counts"),
}
"""Counters of a partition that follow from its logs, its rows and its labels."""
EXPERIMENT = {
    **{"name": "e", "dimension": "variant", "control": "A", "split": {"A": 1, "B": 1}},
    "start": "2023-11-01",
}


def partition() -> Partition:
    settings = parse({"experiments": [EXPERIMENT]})
    return Partition(settings, Catalogue(settings), FIXED_KEY)


def restored(counters: dict[str, int], of_log: dict[str, int]) -> Partition:
    """A partition with these counters, and with these of clicks."""
    found = partition()
    state: dict[str, Any] = found.core.state()
    state["logs"]["clicks"]["counters"] = of_log
    found.core.restore({**state, "counters": counters})
    return found


@pytest.mark.parametrize("rows", [OF_LOG, OF_PARTITION])
def test_rows_are_whole(rows: list[CounterRow]) -> None:
    assert len({row.name for row in rows}) == len(rows)
    assert {row.kind for row in rows} <= {"counter", "gauge", "hidden"}
    assert {row.over for row in rows} <= {"sum", "max"}
    assert all(row.unit and row.about for row in rows)
    assert all(bool(row.formula) == (row.kind != "hidden") for row in rows)


def test_what_is_stored_is_put_back() -> None:
    of_log = {row.name: 100 + i for i, row in enumerate(OF_LOG)}
    stored = {row.name: 1 + i % 15 for i, row in enumerate(OF_PARTITION)}
    found = restored(stored, of_log).core
    assert found.state()["logs"]["clicks"]["counters"] == of_log
    counted = found.counters()
    assert {name for name in stored if counted[name] != stored[name]} == FOLLOWING
    assert counted["join_gap"] == of_log["join_gap"]
    assert counted["evicted_early.event_ids"] == of_log["evicted_early"]


def test_a_counter_that_was_not_stored_begins_at_0() -> None:
    """State of an earlier table, and of a later one, can be loaded."""
    found = restored({"settled_moved": 3, "of another table": 5}, {"late": 2}).core
    assert {name: n for name, n in found.counters().items() if n} == {"settled_moved": 3}
    counters = found.state()["logs"]["clicks"]["counters"]
    assert {name: n for name, n in counters.items() if n} == {"late": 2}
    assert added("late", [counters, {}, {"late": 4}]) == 6
