"""Rows that leave early for want of memory: what does not join stays exact, nothing is retracted
twice, and what is stored goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

from streamer.settings.load import parse
from streamer.state.memory import MemoryStore
from tests.support.agreement import DOCUMENTS, log_records, read_engines, to_log
from tests.support.canonical import canonical
from tests.support.engines import Engines, chunks_of
from tests.support.journals import commit, start, take_over
from tests.support.lanes import shortened

TABLES = ("impressions", "retained", "feedback", "sessions", "viewings")
EXACT = ("streamer_window_impressions", "streamer_window_clicks", "streamer_ctr_ratio")

LEFT = -5
COME_BACK = ("sessions", "viewings", "impressions", "slates")
"""What was stored of these may come back with a restart, and is then joined as before."""


def without(state: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """A state without these, and without what is remembered of feedback that left."""
    found = {name: found for name, found in state.items() if name not in names}
    return {**found, "feedback": [row for row in found["feedback"] if row[0] != LEFT]}


@pytest.mark.parametrize("seed", shortened(list(range(30)), 3))
async def test_bounds_that_change_all_the_time(seed: int) -> None:
    dice = Random(seed)
    document = dice.choice(sorted(DOCUMENTS))
    settings, store = parse(DOCUMENTS[document]), MemoryStore()
    log = to_log(log_records(seed, document, 1500, 1))
    run, free = await start(store, settings, 1), Engines(settings, 1)
    for chunk in chunks_of(log, 50, seed):
        (partition,) = run.engines.partitions
        most = {table: dice.choice((0, 3, 30, 10**6)) for table in TABLES}
        partition.core.set_bounds(most)
        run.engines.feed(chunk)
        free.feed(chunk)
        rows = dict(partition.core.bounded())
        assert all(rows[table] <= most[table] for table in TABLES[:3]), (rows, most)
        if dice.random() < 0.1:
            before = canonical(partition)
            await commit(store, run, 0)
            await take_over(store, run, 0)
            after = canonical(run.engines.partitions[0])
            assert without(after, COME_BACK) == without(before, COME_BACK)
    run.engines.finish()
    free.finish()
    counters = run.engines.partitions[0].core.counters()
    assert any(n for name, n in counters.items() if name.startswith("evicted_early"))
    ours, exact = read_engines(run.engines), read_engines(free)
    for (name, labels), value in exact.items():
        is_whole = {text for label, text in labels if label != "window"} <= {"all"}
        if name in EXACT[: 3 if is_whole else 1]:  # clicks have the dimensions of what they join
            assert ours.get((name, labels), 0) == value, (name, labels)
    counts = {key: value for key, value in ours.items() if "_window_" in key[0]}
    net = ("_ratio_", "_conversion")  # refunds are subtracted
    wrong = [key for key, x in counts.items() if x < 0 and not any(part in key[0] for part in net)]
    assert not wrong
