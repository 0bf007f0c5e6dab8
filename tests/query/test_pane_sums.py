"""Sums that are kept from readout to readout are those that a new reader adds up."""

from __future__ import annotations

import random

import pytest

from streamer.query.readings import ReadoutCache, readout
from streamer.state.memory import MemoryStore
from streamer.state.reader import Reader
from tests.support.agreement import SETTINGS, by_key, log_records, to_log
from tests.support.engines import chunks_of
from tests.support.journals import commit, start, take_over
from tests.support.lanes import shortened, sized


@pytest.mark.parametrize("name", shortened(list(SETTINGS)))
@pytest.mark.parametrize("seed", shortened([0, 1]))
async def test_cached_sums_change_no_reading(seed: int, name: str) -> None:
    settings, partitions = SETTINGS[name], 3
    records = log_records(seed, name, sized(400, 800), partitions)
    store, dice, kept = MemoryStore(), random.Random(seed), ReadoutCache()
    run = await start(store, settings, partitions)
    reader = Reader(store)
    at_ms, readouts = 0, 0
    for chunk in chunks_of(to_log(records), sized(30, 60), seed):
        run.engines.feed(chunk)
        if dice.random() < 0.3:
            continue
        await commit(store, run, chunk.partition)
        if dice.random() < 0.1:
            await take_over(store, run, chunk.partition)
        await reader.refresh()
        at_ms = max(at_ms, reader.stream_ms + dice.choice([0, 0, 7_000, 600_000]))
        for now_ms in (at_ms, None) if dice.random() < 0.2 else (at_ms,):
            again = readout(settings, run.engines.catalogue, reader.views, now_ms, kept)
            assert by_key(again) == by_key(
                readout(settings, run.engines.catalogue, reader.views, now_ms)
            )
            readouts += 1
    assert readouts > 20
