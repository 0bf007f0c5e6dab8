"""A partition: what it says of its bounds, and what an empty one is."""

from __future__ import annotations

from time import time_ns

import numpy as np
import pytest

from streamer.ingest.hash_key import FIXED_KEY
from streamer.ingest.rejections import Explainer
from streamer.kafka.chunk import Records
from streamer.metrics.catalogue import Catalogue
from streamer.settings import limits
from streamer.settings.load import parse
from streamer.state.memory import MemoryStore
from streamer.state.partition import Partition
from tests.support.canonical import canonical
from tests.support.engines import Engines, LogRecord, chunks_of
from tests.support.journals import commit, start, take_over


def test_bounds_that_were_hit_show() -> None:
    settings = parse({"limits": {"open_sessions": 50}})
    engines = Engines(settings, 1)
    lines = [
        b'{"ts":%d,"user_id":"u%d","session_id":"s","action":"view"}' % (10**12 + i, i)
        for i in range(5000)
    ]
    records = [LogRecord("sessions", 0, i, 10**12 + i, line) for i, line in enumerate(lines)]
    for chunk in chunks_of(records, 500):
        engines.feed(chunk)
    partition = engines.partitions[0]
    counted = {name: n for name, n in partition.core.counters().items() if n}
    assert counted.keys() == {"evicted_early.sessions", "combinations"}


async def test_what_was_left_out_is_said_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_USER_ROWS", 50)
    store = MemoryStore()
    run = await start(store, parse({}), 1)
    lines = [b'{"ts":%d,"user_id":"robot","item_id":"i%d"}' % (10**12 + i, i) for i in range(500)]
    records = [LogRecord("impressions", 0, i, 10**12 + i, line) for i, line in enumerate(lines)]
    for chunk in chunks_of(records, 500):
        run.engines.feed(chunk)
    await commit(store, run, 0)
    before = run.engines.partitions[0].core.counters()
    assert before["dropped_user_rows"] > 0
    await take_over(store, run, 0)
    assert run.engines.partitions[0].core.counters() == before


def test_an_empty_partition_is_canonical() -> None:
    settings = parse({})
    state = canonical(Partition(settings, Catalogue(settings), FIXED_KEY))
    assert state["sessions"] == state["viewings"] == []
    assert state["user_items"] == state["user_sums"] == {}


def test_a_record_stamped_ahead_of_the_wall_clock_moves_no_clock() -> None:
    settings = parse({"time": {"max_skew": "5m"}})
    partition = Partition(settings, Catalogue(settings), FIXED_KEY)
    now_ms, skew_ms, day_ms = 10**12, 300_000, 86_400_000
    stamps = [now_ms + day_ms, *range(now_ms, now_ms + 50), now_ms + skew_ms + 1, now_ms + skew_ms]
    values = [b'{"ts":%d,"user_id":"u","item_id":"i"}' % min(ms, now_ms + 60) for ms in stamps]
    fed = Records("clicks", np.arange(len(stamps)), np.array(stamps), values)
    applied = partition.apply([fed], wall_ms=now_ms)
    assert [(each.offset, each.reason) for each in applied.rejected] == [
        (0, "future"),
        (51, "future"),
    ]
    log = partition.logs["clicks"]
    assert (log.arrival_ms, log.next_offset) == (now_ms + skew_ms, len(stamps))
    assert partition.core.state()["logs"]["clicks"]["counters"]["accepted"] == 51
    explainer = Explainer(settings)
    ahead = b'{"ts":%d,"user_id":"u","item_id":"i"}' % (time_ns() // 10**6 + day_ms)
    early = b'{"ts":%d,"user_id":"u","item_id":"i"}' % (now_ms + day_ms)
    after = [explainer.explain("clicks", value, "future").expected for value in (ahead, early)]
    assert after == [
        "a time at most 5m after the wall clock (time.max_skew)",
        "a time at most 5m after the newest record (time.max_skew)",
    ]
