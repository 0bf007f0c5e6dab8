"""A person is erased while workers count; without workers it is said that it is to be done."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from streamer._core import hash_of
from streamer.cli.main import main
from streamer.state.redis.store import RedisStore
from tests.support.fixtures import MakeTopics
from tests.support.workers import bench, document_of, ends_of, produce, until
from tests.system.test_prefix_owner import count, everything, impressions

EVENTS, MORE = 40, 60


async def test_a_person_is_erased_while_workers_count(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = topics(partitions=2)
    await produce(kafka, names, impressions(EVENTS))
    async with bench(tmp_path, document_of(kafka, names, redis_url, redis_prefix, {})) as made:
        await count(made, EVENTS)
        command = ["erase", "--person", "u", "-c", str(made.config)]
        assert await asyncio.to_thread(main, command) == 1
        assert "the person is erased when one starts" in capsys.readouterr().err
        made.start_worker()
        assert isinstance(made.store, RedisStore)

        async def is_present() -> bool:
            return any(report.is_present for report in await made.store.reports())

        await until(is_present, "the worker reports", made.said)
        assert await asyncio.to_thread(main, command) == 0
        assert not await made.store.erasures()
        assert "no row or unit under" in capsys.readouterr().out
        await made.reader.refresh()
        for manifest in made.reader.manifests.values():
            assert sum(ref.rows for ref in manifest.tables["user_items"]) == 0
        digest = hash_of(await made.hash_key(), "u")
        stored = b"".join((await everything(made.store)).values())
        assert digest.to_bytes(8, "little") not in stored
        assert str(digest).encode() not in stored
        more = impressions(EVENTS + MORE)
        await produce(kafka, names, more[EVENTS:])
        await made.settle(ends_of(more))
        await made.stop_workers()
