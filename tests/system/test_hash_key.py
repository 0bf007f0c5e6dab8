"""The key under which ids are hashed, of real workers on a real Redis."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from streamer.cli import main
from streamer.errors import CodecError
from streamer.ingest.hash_key import FIXED_KEY, key_text, random_key
from streamer.settings.model import Redis
from streamer.sources.replay import Replay
from streamer.state.redis.store import RedisStore
from tests.support.agreement import DOCUMENTS
from tests.support.canonical import canonical
from tests.support.cases import check_readings, check_states, random_case
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long
from tests.support.workers import bench, document_of, ends_of, produce


@long
async def test_two_prefixes_have_different_keys_and_the_oracles_numbers(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = topics(partitions=4)
    case = random_case(DOCUMENTS["few values"], 2000, 12)
    await produce(kafka, names, case.log)
    keys = {FIXED_KEY}
    for prefix in (f"{redis_prefix}-a", f"{redis_prefix}-b"):
        document = document_of(kafka, names, redis_url, prefix, DOCUMENTS["few values"])
        async with bench(tmp_path / prefix, document) as made:
            worker = made.start_worker()
            await made.settle(ends_of(case.log))
            await worker.stop()
            await check_readings(made, case.records)
            await check_states(made, case)
            key = await made.hash_key()
            keys.add(key)
            assert {m.hash_key for m in made.reader.manifests.values()} == {key}
            command = ["inspect", "--hash-key", "-c", str(made.config)]
            assert await asyncio.to_thread(main.main, command) == 0
            assert capsys.readouterr().out == key_text(key) + "\n"
            for words in (["inspect"], ["inspect", "--json"], ["check"]):
                await asyncio.to_thread(main.main, [*words, "-c", str(made.config)])
                assert key_text(key) not in "".join(capsys.readouterr())
            assert key_text(key) not in made.said()
    assert len(keys) == 3


@long
async def test_a_replay_under_the_key_holds_what_the_worker_stored(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    names = topics(partitions=1)
    case = random_case(DOCUMENTS["defaults"], 1000, 13)
    await produce(kafka, names, [r for r in case.log if r.partition == 0])
    document = document_of(kafka, names, redis_url, redis_prefix, DOCUMENTS["defaults"])
    async with bench(tmp_path, document) as made:
        worker = made.start_worker()
        log = [r for r in case.log if r.partition == 0]
        await made.settle(ends_of(log))
        await worker.stop()
        replay = Replay(made.settings, key=await made.hash_key())
        replay.feed([(r.kind, r.record_ms, r.value or b"") for r in log])
        replay.finish()
        assert canonical(replay.partitions[0]) == (await made.states(1))[0]


async def test_what_is_no_key_is_named_and_not_shown(redis_url: str, redis_prefix: str) -> None:
    store = RedisStore(Redis(url=redis_url, prefix=redis_prefix))
    await store.redis.set(store.keys.hash_key, b"another program's secret")
    for ask in (store.hash_key(), store.set_hash_key(random_key())):
        with pytest.raises(CodecError) as error:
            await ask
        assert str(error.value).startswith(f"{redis_prefix}:hash_key in Redis is not a hash key")
        assert "another" not in str(error.value)
    await store.redis.delete(store.keys.hash_key)
    key = await store.set_hash_key(random_key())
    assert await store.redis.get(store.keys.hash_key) == key_text(key).encode()
    assert await store.hash_key() == key
    await store.close()


async def test_there_is_no_key_before_the_first_worker(
    redis_url: str, redis_prefix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "streamer.toml"
    config.write_text(f'[redis]\nurl = "{redis_url}"\nprefix = "{redis_prefix}"\n')
    command = ["inspect", "--hash-key", "-c", str(config)]
    assert await asyncio.to_thread(main.main, command) == 1
    said = capsys.readouterr().err
    assert said.endswith(
        f"{redis_prefix}:hash_key is not in Redis: start a worker, which creates it\n"
    )
