"""Single records of logs, read apart from any group."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import aiokafka
from aiokafka.errors import OffsetOutOfRangeError
from aiokafka.structs import TopicPartition

from streamer.errors import BrokerError
from streamer.kafka.client import client_settings
from streamer.kafka.fingerprints import Fingerprint, fingerprint_of
from streamer.settings.clusters import MAIN, Connection

_SECONDS = 30.0
_FETCH_BYTES = 64 * 1024
"""Kafka answers with one whole batch at least."""


async def records_at(
    kafka: Connection, offsets: Mapping[TopicPartition, int], section: str = MAIN
) -> dict[TopicPartition, Fingerprint]:
    """The first record of each log at or after an offset; none where the log ends before.

    BrokerError where Kafka does not answer in time.
    """
    consumer = aiokafka.AIOKafkaConsumer(
        **client_settings(kafka, section),
        enable_auto_commit=False,
        auto_offset_reset="none",
        isolation_level="read_committed",
        max_partition_fetch_bytes=_FETCH_BYTES,
    )
    try:
        async with asyncio.timeout(_SECONDS):
            await consumer.start()
            return await _read(consumer, offsets)
    except TimeoutError:
        asked = ", ".join(f"{tp.topic}/{tp.partition}" for tp in offsets)
        raise BrokerError(
            f"Kafka did not answer within {_SECONDS:.0f} s; asked for {asked}; at "
            f"{section}.brokers {kafka.brokers}"
        ) from None
    finally:
        await consumer.stop()


async def _read(
    consumer: aiokafka.AIOKafkaConsumer, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Fingerprint]:
    consumer.assign(list(offsets))
    for tp, offset in offsets.items():
        consumer.seek(tp, offset)
    fingerprints: dict[TopicPartition, Fingerprint] = {}
    left = set(offsets)
    while left:
        try:
            answer = await consumer.getmany(*left, timeout_ms=500, max_records=1)
        except OffsetOutOfRangeError as error:
            beyond = set(error.args[0])
            await _require_start(consumer, {tp: offsets[tp] for tp in beyond})
            left -= beyond
            continue
        for tp, records in answer.items():
            first = records[0]
            fingerprints[tp] = fingerprint_of(first.offset, first.timestamp, first.value)
            left.discard(tp)
        left = {tp for tp in left if not await _has_ended(consumer, tp)}
    return fingerprints


async def _require_start(
    consumer: aiokafka.AIOKafkaConsumer, offsets: Mapping[TopicPartition, int]
) -> None:
    """An offset outside the log is beyond its end, or retention was faster than we."""
    starts = await consumer.beginning_offsets(list(offsets))
    for tp, offset in offsets.items():
        if offset < starts[tp]:
            raise BrokerError(
                f"{tp.topic}/{tp.partition} begins at {starts[tp]} now: offset {offset} was "
                "deleted before it could be compared"
            )


async def _has_ended(consumer: aiokafka.AIOKafkaConsumer, tp: TopicPartition) -> bool:
    """Whether the log ends before the record asked for.

    By a fetch's answer. A new leader may report an end that the log has long passed; asking for the
    end of a log, too, is not answered rightly by every broker: who declares anything asks both.
    """
    end = consumer.last_stable_offset(tp)
    if end is None or end < 0:
        end = consumer.highwater(tp)
    return end is not None and await consumer.position(tp) >= end
