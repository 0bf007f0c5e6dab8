"""Topics that are not keyed by user are refused at the start; a running system finds them, too, and
shows no users then."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from random import Random

import pytest
from aiokafka import AIOKafkaProducer

from streamer.cli import main, run
from streamer.errors import StreamerError
from streamer.ingest.keying import require_users
from streamer.server.exporter import Exporter
from streamer.settings.load import parse
from streamer.settings.model import Topics
from streamer.testing.embedded import HOST, free_port
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long
from tests.support.workers import as_toml, bench, document_of, until

PARTITIONS = 4


async def produce(brokers: str, topics: Topics, key: str) -> None:
    """Impressions and clicks of 200 users; the impressions keyed by a field of theirs."""
    dice = Random(1)
    producer = AIOKafkaProducer(bootstrap_servers=brokers)
    await producer.start()
    try:
        for number in range(2000):
            event = {
                "ts": int(time.time() * 1000),
                "user_id": f"u{dice.randrange(200)}",
                "item_id": f"i{dice.randrange(50)}",
            }
            kind, by = ("clicks", "user_id") if number % 10 == 0 else ("impressions", key)
            topic = getattr(topics, kind)
            await producer.send(topic, json.dumps(event).encode(), key=str(event[by]).encode())
    finally:
        await producer.stop()


async def test_topics_that_are_not_keyed_by_user_are_refused(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = topics(partitions=PARTITIONS)
    document = document_of(kafka, names, redis_url, redis_prefix, {})
    config = tmp_path / "streamer.toml"
    config.write_text(as_toml(document))
    await run.preflight_keys(parse(document))  # says nothing yet
    await produce(kafka, names, "item_id")
    assert await asyncio.to_thread(main.main, ["run", "-c", str(config)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"streamer: not keyed by user: topic {names.impressions!r} (of ")
    assert names.clicks not in said
    assert said.count("\n") == 1
    without = {"metrics": {"families": ["traffic", "ranking"]}}
    asserted = {"kafka": {**document["kafka"], "keyed_by": "user"}}
    unreachable = {"kafka": {**document["kafka"], "brokers": f"{HOST}:{free_port()}"}}
    for more in (without, asserted, unreachable):
        await run.preflight_keys(parse({**document, **more}))


@long
@pytest.mark.parametrize("key", ["item_id", "user_id"])
async def test_users_are_counted_where_topics_are_keyed_by_them(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path, key: str
) -> None:
    """It is found while workers run, too: at the start there was nothing to see."""
    names = topics(partitions=PARTITIONS)
    document = document_of(kafka, names, redis_url, redis_prefix, {})
    async with bench(tmp_path, document) as made:
        worker = made.start_worker(
            [sys.executable, "-m", "streamer", "run", "-c", str(made.config)]
        )
        exporter = Exporter(made.settings, made.store)

        async def is_running() -> bool:
            return "worker running" in worker.said()

        await until(is_running, "nothing is refused", made.said)
        await produce(kafka, names, key)

        async def is_known() -> bool:
            result = await exporter.read()
            total = [r.value for r in result.readings if r.name == "streamer_impressions_total"]
            behind = [m.users_behind_ms for m in exporter.reader.manifests.values()]
            return bool(exporter.reader.keyed) and total[:1] == [1800] and not any(behind)

        await until(is_known, "all is counted, and the keys were looked at", made.said)
        readings = {
            (r.name, r.labels.get("topic")): r.value
            for r in (await exporter.read()).readings
            if r.labels.get("variant", "all") == "all"
        }
        is_by_user = key == "user_id"
        assert exporter.reader.keyed == {"impressions": is_by_user, "clicks": True}
        assert readings["streamer_identity_exact", None] == is_by_user
        assert ("streamer_ctr_ratio", None) in readings
        assert (("streamer_window_users", None) in readings) is is_by_user
        if is_by_user:
            require_users(made.settings, exporter.reader.keyed)
        else:
            with pytest.raises(StreamerError, match="not keyed by user"):
                require_users(made.settings, exporter.reader.keyed)
        await worker.stop()
        assert ("metrics of users are off: not keyed by user" in worker.said()) is not is_by_user
