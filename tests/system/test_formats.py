"""Workers on topics in Avro and Protobuf: schemas that change while they run, and ones that the
registry does not have yet."""

from __future__ import annotations

import asyncio
import copy
import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from streamer._core import partition_of
from streamer.query.readings import readout
from streamer.server.exporter import Exporter
from streamer.settings.load import parse
from streamer.state.snapshot import view_of
from tests.support.encoded import AVRO, PROTOBUF, SOURCE, as_avro, as_json, as_protobuf, wire
from tests.support.encoded import events as made_events
from tests.support.engines import Engines, LogRecord, chunks_of
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long, shortened
from tests.support.registries import register, registry
from tests.support.workers import Bench, bench, document_of, until

PARTITIONS = 2
Object = dict[str, Any]
Encoded = list[tuple[Object, bytes]]


async def produce(brokers: str, topic: str, some: Encoded) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=brokers, linger_ms=5)
    await producer.start()
    try:
        for event, value in some:
            place = place_of(event)
            await producer.send(topic, value, partition=place, timestamp_ms=event["at"])
    finally:
        await producer.stop()


def place_of(event: Object) -> int:
    user = event["who"]["id"]
    return partition_of(None if user is None else str(user).encode(), PARTITIONS)


def expected(document: Object, logs: dict[str, Iterable[Object]]) -> dict[Any, float]:
    """All readings, had the events come as JSON."""
    sources = [
        {k: v for k, v in source.items() if k not in ("format", "registry")}
        for source in document["sources"]
    ]
    settings = parse({**document, "sources": sources})
    engines, records = Engines(settings, PARTITIONS), list[LogRecord]()
    for topic, some in logs.items():
        ends = [0] * PARTITIONS
        for event in some:
            place = place_of(event)
            records.append(LogRecord(topic, place, ends[place], event["at"], as_json(event)))
            ends[place] += 1
    for chunk in chunks_of(sorted(records, key=lambda r: r.record_ms), 500):
        engines.feed(chunk)
    engines.finish()
    for partition in engines.partitions:
        partition.refresh_user_sums()
    views = [view_of(partition) for partition in engines.partitions]
    return by_labels(readout(settings, engines.catalogue, views).readings)


def by_labels(readings: Any) -> dict[Any, float]:
    """Readings that do not depend on a clock, nor on a key of hashes."""
    return {
        (r.name, *sorted(r.labels.items())): r.value
        for r in readings
        if r.name.startswith(("streamer_window_", "streamer_ctr", "streamer_accepted"))
        and "_lower" not in r.name
        and "_upper" not in r.name
    }


async def counted(made: Bench, exporter: Exporter, accepted: int) -> dict[Any, float]:
    """The readings, once so many events are in them, and users are up to date."""

    async def is_there() -> dict[Any, float]:
        found = by_labels((await exporter.read()).readings)
        total = sum(v for key, v in found.items() if key[0] == "streamer_accepted_total")
        behind = any(m.users_behind_ms for m in exporter.reader.manifests.values())
        return found if total == accepted and not behind else {}

    return dict(await until(is_there, f"{accepted} events are counted", made.said))


async def checked(made: Bench) -> str:
    """What `streamer check` prints."""
    words = [sys.executable, "-m", "streamer", "check", "-c", str(made.config)]
    done = await asyncio.to_thread(
        subprocess.run, words, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout + done.stderr


def changed_schemas() -> tuple[Object, Object]:
    """The schema with a field before the others, and that without another one."""
    wider: Object = copy.deepcopy(AVRO)
    wider["fields"].insert(0, {"name": "page", "type": "string"})
    narrower: Object = copy.deepcopy(wider)
    narrower["name"] = "Narrower"
    narrower["fields"] = [f for f in wider["fields"] if f["name"] != "arm"]
    return wider, narrower


@pytest.mark.parametrize("kind", shortened(["plain", "apicurio"]))
@long
async def test_schemas_change_while_workers_run(
    kind: str, kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    names = topics(partitions=PARTITIONS)
    avro, proto = names.impressions, names.clicks
    some = made_events(1500, int(time.time() * 1000) - 60_000)
    with registry(kind) as url:
        sources = [
            {"topics": [avro], "format": "avro", "registry": url, **SOURCE},
            {"topics": [proto], "format": "protobuf", "registry": {"url": url}, **SOURCE},
        ]
        document = document_of(kafka, names, redis_url, redis_prefix, {"sources": sources})
        first = register(url, "avro", json.dumps(AVRO), "AVRO")
        of_proto = register(url, "proto", PROTOBUF, "PROTOBUF")
        seen, liked = some[:1000], some[1000:]
        old = [(event, wire(first, as_avro(event))) for event in seen[:400]]
        await produce(kafka, avro, old)
        await produce(kafka, proto, [(e, wire(of_proto, as_protobuf(e))) for e in liked])
        async with bench(tmp_path, document) as made:
            made.start_worker()
            exporter = Exporter(made.settings, made.store)
            await counted(made, exporter, len(old) + len(liked))

            wider, narrower = changed_schemas()  # nobody has registered them yet
            second = max(first, of_proto) + 1
            new = [(e, wire(second, as_avro({**e, "page": "home"}, wider))) for e in seen[400:700]]
            await produce(kafka, avro, new)

            async def waits() -> bool:
                return "waits for schema" in made.said()

            await until(waits, "the worker says what it waits for", made.said)
            assert f"has no schema {second}: register it" in made.said()
            made.workers[0].kill()  # nothing of it is lost
            made.start_worker()
            assert register(url, "avro-2", json.dumps(wider), "AVRO") == second
            await counted(made, exporter, 700 + len(liked))

            third = register(url, "avro-3", json.dumps(narrower), "AVRO")
            last = [(e, wire(third, as_avro({**e, "page": "x"}, narrower))) for e in seen[700:]]
            await produce(kafka, avro, last)
            found = await counted(made, exporter, len(some))
            await made.stop_workers()
            assert "records decode" in await checked(made)
    assert "schemas: cannot reach the schema registry" in await checked(made)
    without = [{k: v for k, v in event.items() if k != "arm"} for event in seen[700:]]
    right = expected(document, {avro: [*seen[:700], *without], proto: liked})
    assert len(right) > 100
    assert found == right
