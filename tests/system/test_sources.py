"""Workers on topics of other shapes: nested events of several kinds in one topic, and events whose
kind stands in a header in another."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer

from streamer._core import partition_of
from streamer.cli.main import main
from streamer.kafka.patterns import with_topics
from streamer.server.exporter import Exporter
from streamer.settings.model import Topics
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long
from tests.support.own_names import own_names
from tests.support.workers import Bench, bench, document_of, read_topic, until

PARTITIONS = 2
USERS = 300


def shown_to(user: int, ms: int) -> dict[str, Any]:
    """What a user sees, as Segment sends it."""
    return {
        "type": "track",
        "event": "Product List Viewed",
        "userId": user,
        "messageId": f"m{user}",
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms / 1000)) + "Z",
        "context": {"experiment": {"variant": "New York" if user % 2 else "old"}},
        "properties": {"products": [{"product_id": 1}, {"product_id": 2}, {"product_id": 3}]},
    }


async def produce(brokers: str, web: str, ui: str) -> None:
    """Lists to one topic, clicks on them to another, by user; and what is not counted."""
    ms = int(time.time() * 1000) - 60_000
    producer = AIOKafkaProducer(bootstrap_servers=brokers, linger_ms=5)
    await producer.start()
    try:
        for user in range(USERS):
            place = partition_of(str(user).encode(), PARTITIONS)
            seen = json.dumps(shown_to(user, ms)).encode()
            await producer.send(web, seen, partition=place, timestamp_ms=ms)
            if user % 2 and user % 3 == 0:
                click = {"user_id": str(user), "item_id": "2"}
                headers = [("ce_type", b"click"), ("ce_id", b"c%d" % user)]
                headers.append(("ce_time", time.strftime("%Y-%m-%dT%H:%M:%SZ").encode()))
                await producer.send(
                    ui, json.dumps(click).encode(), partition=place, headers=headers
                )
        await producer.send(web, b'{"event": "Product Viewed"}', partition=0, timestamp_ms=ms)
        await producer.send(web, b'{"event": "Plan Upgraded"}', partition=0, timestamp_ms=ms)
        wrong = shown_to(1, ms) | {"properties": {"products": [{"product_id": {"id": 5}}]}}
        await producer.send(web, json.dumps(wrong).encode(), partition=0, timestamp_ms=ms)
    finally:
        await producer.stop()


def sources(names: Topics) -> list[dict[str, Any]]:
    return [
        {"topics": [f"^{names.impressions}$"], "preset": "segment"},
        {"topics": [names.clicks], "preset": "cloudevents", "kind": {"click": ["click"]}},
    ]


@long
async def test_sources_of_two_shapes_count_together(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    names = topics(partitions=PARTITIONS)
    web, ui = names.impressions, names.clicks
    await produce(kafka, web, ui)
    document = document_of(kafka, names, redis_url, redis_prefix, {"sources": sources(names)})
    async with bench(tmp_path, document) as made:
        made.start_worker()
        exporter = Exporter(await with_topics(made.settings), made.store)
        clicks = len([u for u in range(USERS) if u % 2 and u % 3 == 0])

        async def is_known() -> dict[tuple[Any, ...], float]:
            readings = {
                (r.name.removeprefix("streamer_"), *sorted(r.labels.items())): r.value
                for r in (await exporter.read()).readings
            }
            seen = readings.get(("accepted_total", ("topic", ui)), 0)
            is_all = seen == clicks and readings["accepted_total", ("topic", web)] == USERS
            users = ("window_users", ("surface", "all"), ("variant", "all"), ("window", "24h"))
            return readings if is_all and readings.get(users) == USERS else {}

        found = await until(is_known, "all is counted", made.said)

        def ctr(variant: str) -> float:
            labels = (("surface", "all"), ("variant", variant), ("window", "1h"))
            return float(found["ctr_ratio", *labels])

        assert ctr("New York") == clicks / (3 * USERS / 2)
        assert ctr("old") == 0
        assert found["ignored_total", ("topic", web)] == 1
        assert found["rejected_total", ("reason", "kind"), ("topic", web)] == 1
        assert found["rejected_total", ("reason", "items"), ("topic", web)] == 1
        assert found["identity_exact",] == 1
        await made.stop_workers()
        letters = await read_topic(kafka, names.dead_letters, PARTITIONS)
        said = {dict(x.headers)["streamer.field"]: dict(x.headers) for x in letters}
        assert said.keys() == {b"event", b"properties.products[0].product_id"}
        assert said[b"event"]["streamer.found"] == b'"Plan Upgraded"'
        assert said[b"properties.products[0].product_id"]["streamer.found"] == b'{"id": 5}'
        check = [sys.executable, "-m", "streamer", "check", "-c", str(made.config)]
        checked = await asyncio.to_thread(
            subprocess.run, check, capture_output=True, text=True, timeout=60, check=False
        )
        assert f"topic {web!r}: 2 of the last" in checked.stdout, checked.stdout + checked.stderr
        assert f"topic {ui!r}: the last {clicks} records decode" in checked.stdout


async def send_own(brokers: str, names: Topics, first: int, count: int) -> None:
    """Impressions in our own shape, and a click on each."""
    ms = int(time.time() * 1000) - 60_000
    producer = AIOKafkaProducer(bootstrap_servers=brokers, linger_ms=5)
    await producer.start()
    try:
        for n in range(first, first + count):
            event = {"ts": ms, "user_id": f"u{n}", "item_id": "i", "request_id": f"r{n}"}
            place = partition_of(f"u{n}".encode(), PARTITIONS)
            for topic in (names.impressions, names.clicks):
                value = json.dumps({**event, "event_id": f"{topic}{n}"}).encode()
                await producer.send(topic, value, partition=place, timestamp_ms=ms)
    finally:
        await producer.stop()


@long
async def test_topics_that_become_sources_go_on_where_they_stood(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    names = topics(partitions=PARTITIONS)
    kinds = {"impressions": "impression", "clicks": "click", "conversions": "conversion"}
    as_sources = [
        {
            "topics": [getattr(names, topic)],
            "kind": {"fixed": kind},
            "fields": own_names(lists=False),
        }
        for topic, kind in (kinds | {"sessions": "session"}).items()
    ]
    in_cluster = [as_sources[0], {**as_sources[1], "cluster": "eu"}, *as_sources[2:]]
    steps: list[tuple[dict[str, Any], str]] = [
        ({}, "clicks"),
        ({"sources": as_sources}, names.clicks),
        ({"sources": in_cluster, "clusters": {"eu": {"brokers": kafka}}}, f"{names.clicks}@eu"),
    ]
    for number, (more, log) in enumerate(steps):
        document = document_of(kafka, names, redis_url, redis_prefix, more)
        await send_own(kafka, names, 40 * number, 40)
        async with bench(tmp_path / str(number), document) as made:
            check = [sys.executable, "-m", "streamer", "check", "-c", str(made.config)]
            if number:
                checked = await asyncio.to_thread(
                    subprocess.run, check, capture_output=True, text=True, timeout=60, check=False
                )
                assert "2 partitions, written with these settings" in checked.stdout
                assert await asyncio.to_thread(main, ["apply", str(made.config)]) == 0
            made.start_worker()
            wanted = 40 * (number + 1)

            async def is_counted(made: Bench = made, log: str = log, wanted: int = wanted) -> bool:
                await made.reader.refresh()
                states = [m.topics.get(log) for m in made.reader.manifests.values()]
                return (
                    sum(0 if state is None else state.counters["accepted"] for state in states)
                    >= wanted
                )

            await until(is_counted, f"{wanted} clicks are counted", made.said)
            manifests = made.reader.manifests.values()
            assert sum(m.topics[log].counters["accepted"] for m in manifests) == wanted
            expected = {*made.settings.logs, "exposures"}  # which stays in the state, never read
            assert [set(m.topics) for m in manifests] == [expected] * PARTITIONS, "twice"
            assert not any(t.restarts for m in manifests for t in m.topics.values())
            await made.stop_workers()
            assert "Traceback" not in made.said()
