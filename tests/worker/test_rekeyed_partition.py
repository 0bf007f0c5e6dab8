"""A partition of a source while it is rekeyed, without Kafka."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition

from streamer.kafka.chunk import chunk_of
from streamer.settings import limits
from streamer.settings.load import parse
from streamer.worker import rekeyed_partition
from streamer.worker.rekeyed_partition import RekeyedPartition
from streamer.worker.schemas import SchemaLookup
from tests.support import encoded
from tests.support.encoded import as_avro, wire
from tests.support.registries import PlainRegistry, register

AT_MS = 1_700_000_000_000
SOURCE = {
    "topics": ["web"],
    "kind": {"header": "what", "click": ["clicked"]},
    "fields": {"item_id": {"key": True}, "ts": {"timestamp": True}},
}


class Producer:
    """Keeps what is sent, whatever the transaction."""

    def __init__(self, **_: Any) -> None:
        self.sent: list[tuple[str, Mapping[str, bytes]]] = []

    def create_batch(self) -> Any:
        rows: list[Mapping[str, bytes]] = []

        def append(headers: list[tuple[str, bytes]], **_: Any) -> bool:
            rows.append(dict(headers))
            return True

        return SimpleNamespace(rows=rows, append=append, close=lambda: None)

    async def send_batch(self, batch: Any, topic: str, partition: int) -> asyncio.Future[None]:
        self.sent += [(topic, headers) for headers in batch.rows]
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    async def begin_transaction(self) -> None: ...
    async def send_offsets_to_transaction(self, offsets: Any, group: str) -> None: ...
    async def commit_transaction(self) -> None: ...


@pytest.mark.parametrize(
    ("what", "key", "reason", "field", "found"),
    [
        (b"closed", b"i", b"kind", b"header what", b"closed"),
        (b"clicked", b"", b"item_id", b"the key", b"nothing"),
        (b"clicked", b"x" * 600, b"item_id", b"the key", b"xxx"),
    ],
)
async def test_dead_letters_say_what_stood_beside_the_record(
    monkeypatch: pytest.MonkeyPatch,
    what: bytes,
    key: bytes,
    reason: bytes,
    field: bytes,
    found: bytes,
) -> None:
    producer = Producer()
    monkeypatch.setattr(rekeyed_partition, "AIOKafkaProducer", lambda **_: producer)
    settings = parse({"sources": [SOURCE]})
    partition = RekeyedPartition(
        settings, "g", TopicPartition("web", 0), 1, 1, SchemaLookup(settings)
    )
    record = SimpleNamespace(
        offset=0, timestamp=AT_MS, value=b"{}", key=key, headers=[("what", what)]
    )
    partition.take(chunk_of("web", 0, 0, "web", [record]))
    await partition.write(2**62)
    ((topic, headers),) = producer.sent
    assert topic == settings.kafka.topics.dead_letters
    said = [headers[f"streamer.{name}"] for name in ("reason", "field")]
    assert said == [reason, field]
    assert found in headers["streamer.found"]
    assert partition.rejected == 1


async def test_a_schema_that_is_not_known_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    producer = Producer()
    monkeypatch.setattr(rekeyed_partition, "AIOKafkaProducer", lambda **_: producer)
    monkeypatch.setattr(limits, "RETRY_SECONDS_MAX", 0.0)
    with PlainRegistry() as registry:
        source = {"topics": ["web"], **encoded.SOURCE, "format": "avro", "registry": registry.url}
        settings = parse({"sources": [source]})
        partition = RekeyedPartition(
            settings, "g", TopicPartition("web", 0), 1, 1, SchemaLookup(settings)
        )
        first = register(registry.url, "web", json.dumps(encoded.AVRO), "AVRO")
        made = encoded.events(6, AT_MS)
        values = [wire(first + (n > 2), as_avro(event)) for n, event in enumerate(made)]
        records = [
            SimpleNamespace(offset=n, timestamp=AT_MS, value=value, key=None, headers=[])
            for n, value in enumerate(values)
        ]
        partition.take(chunk_of("web", 0, 0, "web", records))
        while "has no schema 2: register it" not in caplog.text:  # the registry is asked meanwhile
            await partition.write(2**62)
            await asyncio.sleep(0.01)
        assert (partition.next_offset, partition.written) == (3, 3)
        assert register(registry.url, "web", json.dumps(encoded.AVRO), "AVRO") == 2
        await partition.write(2**62)
        assert (partition.next_offset, partition.written, partition.rejected) == (6, 6, 0)
    assert len(producer.sent) == 6


async def test_nobody_waits_for_a_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock that a rebalance needs is held while a partition is written."""
    monkeypatch.setattr(rekeyed_partition, "AIOKafkaProducer", lambda **_: Producer())
    source = {"topics": ["web"], **encoded.SOURCE, "format": "avro", "registry": "http://127.0.0.1"}
    settings = parse({"sources": [source]})
    lookup, is_asked = SchemaLookup(settings), asyncio.Event()

    async def answers(log: str, ids: Any) -> Any:
        is_asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(lookup, "answers", answers)
    partition = RekeyedPartition(settings, "g", TopicPartition("web", 0), 1, 1, lookup)
    value = wire(7, as_avro(encoded.events(1, AT_MS)[0]))
    record = SimpleNamespace(offset=0, timestamp=AT_MS, value=value, key=None, headers=[])
    partition.take(chunk_of("web", 0, 0, "web", [record]))
    for _ in range(3):
        await asyncio.wait_for(partition.write(2**62), 5)
    assert is_asked.is_set()
    assert (partition.next_offset, partition.chunk is None) == (0, False)
    await partition.close()
