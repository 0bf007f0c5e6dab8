"""Partitions that are fed and committed through journals, as a worker does it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from streamer.settings.model import Settings
from streamer.state.journal import Journal
from streamer.state.partition import Partition
from streamer.state.restore import load_partition
from streamer.state.store import Answer, Commit, Store
from tests.support.canonical import canonical
from tests.support.engines import Engines, LogRecord, chunks_of


class Run(NamedTuple):
    """Partitions that are being fed, each with its journal."""

    engines: Engines
    journals: list[Journal]


async def take_over(store: Store, run: Run, number: int) -> None:
    """What a restarted worker does: a fresh partition, claimed and loaded."""
    engines = run.engines
    partition = Partition(engines.settings, engines.catalogue, engines.key)
    claim, stored = await store.claim(number)
    run.journals[number] = await load_partition(store, number, partition, claim, stored)
    engines.partitions[number] = partition


async def start(store: Store, settings: Settings, partitions: int) -> Run:
    await store.set_partitions(partitions)
    engines = Engines(settings, partitions)
    await store.set_hash_key(engines.key)
    run = Run(engines, [Journal(p, "") for p in engines.partitions])
    for number in range(partitions):
        await take_over(store, run, number)
    return run


async def commit(store: Store, run: Run, number: int, files: bool = True) -> None:
    """``files``: whether the sums over users are brought up to date, too."""
    if files:
        run.engines.partitions[number].refresh_user_sums()
    assert await store.commit(number, run.journals[number].prepare()) == Answer.OK


async def finish(store: Store, run: Run) -> None:
    run.engines.finish()
    for number in range(len(run.journals)):
        await commit(store, run, number)


async def feed_with_restarts(store: Store, run: Run, log: Sequence[LogRecord], seed: int) -> None:
    """Feed a log with commits and takeovers in between, none of which may change what is held."""
    dice = random.Random(seed)
    for chunk in chunks_of(log, 60, seed + 1):
        run.engines.feed(chunk)
        if dice.random() < 0.5:
            await commit(store, run, chunk.partition, files=dice.random() < 0.5)
            if dice.random() < 0.4:
                before = canonical(run.engines.partitions[chunk.partition])
                await take_over(store, run, chunk.partition)
                assert canonical(run.engines.partitions[chunk.partition]) == before


async def feed_with_crashes(store: Store, run: Run, log: Sequence[LogRecord], seed: int) -> int:
    """Feed a log whose workers die at random: what was not committed is read again, cut otherwise.
    Returns how often one died."""
    dice, rest, deaths = random.Random(seed), list(log), 0
    while rest:
        for chunk in chunks_of(rest, 25, dice.randrange(1 << 30)):
            number = chunk.partition
            run.engines.feed(chunk)
            chance = dice.random()
            if chance < 0.5:
                await commit(store, run, number, files=dice.random() < 0.5)
            elif chance < 0.75:
                if dice.random() < 0.5:  # while it committed: its blobs are there, no manifest
                    lost = run.journals[number].prepare()
                    step = Commit("another", b"", b"x", b"", dict(lost.blobs))
                    assert await store.commit(number, step) != Answer.OK
                await take_over(store, run, number)
                deaths += 1
                break
        rest = [record for record in log if _is_ahead(run, record)]
    return deaths


def _is_ahead(run: Run, record: LogRecord) -> bool:
    """Whether a record was not read yet."""
    return record.offset >= run.engines.partitions[record.partition].logs[record.kind].next_offset
