"""The state of workers, read from a notebook: the numbers of a counter that was given the same."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import streamer
from streamer.errors import CodecError, StoreError
from streamer.settings.load import parse
from streamer.state.acted import stored
from streamer.state.redis.store import RedisStore
from tests.library.test_reading import EVENTS, MINUTE_MS, SETTINGS
from tests.oracle.oracle import records_of_file
from tests.server.test_decisions import DELIVERY, RECORDS
from tests.support.agreement import to_log
from tests.support.engines import chunks_of
from tests.support.journals import Run, commit, finish, start

PARTITIONS = 2


def settings_of(url: str, prefix: str) -> dict[str, Any]:
    return {**SETTINGS, "redis": {"url": url, "prefix": prefix}}


async def fill(settings: dict[str, Any], events: list[dict[str, Any]], is_whole: bool) -> None:
    """What workers committed: all, or half of the chunks."""
    own = parse(settings)
    store = RedisStore(own.redis)
    run: Run = await start(store, own, PARTITIONS)
    lines = [msgspec.json.encode(event) for event in events]
    chunks = list(chunks_of(to_log(records_of_file(lines, own, PARTITIONS)), 400))
    for chunk in chunks if is_whole else chunks[: len(chunks) // 2]:
        run.engines.feed(chunk)
        await commit(store, run, chunk.partition)
    if is_whole:
        await finish(store, run)
    await store.close()


async def act(settings: dict[str, Any]) -> None:
    """What who acts stored."""
    store = RedisStore(parse(settings).redis)
    assert await store.lead("w", 0, stored(RECORDS[1:], [DELIVERY]))
    await store.close()


def rows_of(reader: Any, name: str | None = None, by: str | None = None) -> list[Any]:
    return sorted(map(repr, reader.metrics(name, by=by).to_dicts()))


def test_live_metrics_are_those_of_a_counter(redis_url: str, redis_prefix: str) -> None:
    settings = settings_of(redis_url, redis_prefix)
    counter = streamer.Counter(settings)  # read() has one window more, all of what it reads
    counter.add(EVENTS)
    asyncio.run(fill(settings, EVENTS, is_whole=True))
    asyncio.run(act(settings))
    with streamer.connect(settings) as live:
        (decision,) = live.decisions().to_dicts()
        assert (decision["kind"], decision["told"]) == ("harm", "example.org")
        for by in (None, "variant", "surface"):
            assert rows_of(live, by=by) == rows_of(counter, by=by)
        assert len(live.metrics()) > 20
        history = live.history("ctr", by="variant").to_dicts()
        assert history == counter.history("ctr", by="variant").to_dicts()
        of_counter = counter.experiment("ranker", by="surface")
        of_live = live.experiment("ranker", by="surface")
        assert of_live.document == of_counter.document
        assert of_live.explorations == of_counter.explorations
        change = live.explain("ctr", by="surface", window="5m")
        assert change.explanation == counter.explain("ctr", by="surface", window="5m").explanation
        topics = live.what_was_read.topics
        assert topics.to_dicts() == counter.what_was_read.topics.to_dicts()
        plans = [
            streamer.plan(reader, "ctr_ratio", lift=0.05, experiment="ranker").document
            for reader in (live, counter)
        ]
        assert plans[0] == plans[1]
        with pytest.raises(streamer.UsageError, match="which Redis does not keep"):
            live.compare("variant", control="A", treatment="B")
    live.close()


def test_each_call_reads_the_newest_commits(redis_url: str, redis_prefix: str) -> None:
    settings = settings_of(redis_url, redis_prefix)
    with pytest.raises(StoreError, match="no state with the prefix"):
        streamer.connect(settings)
    asyncio.run(fill(settings, EVENTS, is_whole=False))
    with streamer.connect(settings) as live:
        before = live.metrics("window_impressions")["value"][0]
        own = parse(settings)

        async def more() -> None:
            store = RedisStore(own.redis)
            run = await start(store, own, PARTITIONS)  # other workers take over
            last = EVENTS[-1]["ts"] + 1
            extra = [{**EVENTS[0], "ts": last + i} for i in range(50)]
            lines = [msgspec.json.encode(event) for event in extra]
            for chunk in chunks_of(to_log(records_of_file(lines, own, PARTITIONS)), 400):
                engine = run.engines.partitions[chunk.partition]
                offset = engine.logs[chunk.kind].next_offset
                moved = [
                    record.__class__(
                        record.kind,
                        record.partition,
                        offset + i,
                        record.record_ms,
                        record.value,
                    )
                    for i, record in enumerate(chunk.records)
                ]
                run.engines.feed(chunk.__class__(chunk.kind, chunk.partition, moved))
            for number in range(PARTITIONS):
                await commit(store, run, number)
            await store.close()

        asyncio.run(more())
        after = live.metrics("window_impressions")["value"][0]
    assert isinstance(before, int)
    assert after == before + 50


def test_a_state_of_other_settings_is_not_shown(redis_url: str, redis_prefix: str) -> None:
    settings = settings_of(redis_url, redis_prefix)
    asyncio.run(fill(settings, EVENTS, is_whole=True))
    with pytest.raises(CodecError, match="written with other settings"):
        streamer.connect({**settings, "windows": {"lengths": ["1h"]}})


def test_no_redis_is_an_error(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(StoreError):
            streamer.connect({"redis": {"url": f"redis://127.0.0.1:{port}/0"}})
    with pytest.raises(streamer.SettingsError, match=r"cannot read settings.*nothing\.toml"):
        streamer.connect(tmp_path / "nothing.toml")


def test_a_call_reads_one_commit(redis_url: str, redis_prefix: str) -> None:
    settings = settings_of(redis_url, redis_prefix)
    asyncio.run(fill(settings, EVENTS, is_whole=True))
    with streamer.connect(settings) as live:
        refresh, count = live._reader.refresh, 0

        async def counted() -> None:
            nonlocal count
            count += 1
            await refresh()

        live._reader.refresh = counted  # type: ignore[method-assign]
        calls: list[Callable[[], object]] = [
            lambda: live.metrics("ctr"),
            lambda: live.metrics("ctr", window="5m", at=EVENTS[-1]["ts"] - 10 * MINUTE_MS),
            lambda: live.history("ctr"),
            lambda: live.explain("ctr", by="variant"),
            lambda: live.experiment("ranker", by="surface"),
        ]
        for number, call in enumerate(calls, 1):
            call()
            assert count == number


def test_a_closed_connection_says_so(redis_url: str, redis_prefix: str) -> None:
    settings = settings_of(redis_url, redis_prefix)
    asyncio.run(fill(settings, EVENTS, is_whole=True))
    live = streamer.connect(settings)
    closers = [threading.Thread(target=live.close) for _ in range(4)]
    for each in closers:
        each.start()
    for each in closers:
        each.join()
    with pytest.raises(streamer.UsageError, match="the connection is closed"):
        live.metrics("ctr")


def test_a_forked_process_says_so(redis_url: str, redis_prefix: str) -> None:
    settings = settings_of(redis_url, redis_prefix)
    asyncio.run(fill(settings, EVENTS, is_whole=True))
    with streamer.connect(settings) as live:
        child = os.fork()
        if not child:
            code = 1
            try:
                live.metrics("ctr")
            except streamer.UsageError:
                live.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(live.metrics("ctr"))
