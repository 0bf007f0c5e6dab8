"""``streamer rekey`` beside the floor: one process that only passes bytes from topic to topic, with
plain aiokafka, by ``send`` or by whole batches. Each reads the same backlog of nested events.

    python -m benchmarks.studies.rekeying --events 500000

What was written is read back and compared with the backlog.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Iterator
from random import Random
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from benchmarks.backlog import BATCH_BYTES
from benchmarks.measure import Meter, program
from benchmarks.throughput import cpu, rate
from streamer._core import partition_of
from streamer.settings.event_fields import KINDS
from streamer.settings.load import parse
from streamer.testing.embedded import create_topics
from streamer.worker.instance_name import Slot
from streamer.worker.rekeying import Counts, Membership, plan_of
from tests.support.servers import FAST, kafka_server

SOURCE, PARTITIONS, USERS = "web", 4, 20_000
START_MS = 1_700_000_000_000
JOBS = ("send", "batches", "rekey")


def document(brokers: str) -> dict[str, Any]:
    """Settings that read the backlog."""
    kind = {"field": "event", "impression": ["shown"], "click": ["clicked"]}
    fields = {
        "user_id": "user.id",
        "ts": "at",
        "event_id": "message",
        "item_id": "product.sku",
        "position": "product.slot",
        "variant": "context.arm",
    }
    topics = {name: f"rekeyed-{name}" for name in (*KINDS, "dead_letters")}
    return {
        "kafka": {"brokers": brokers, "rekeyed": True, "topics": topics},
        "sources": [{"topics": [SOURCE], "kind": kind, "fields": fields}],
    }


def events(count: int) -> Iterator[tuple[str, int, bytes]]:
    """Item, time and value."""
    dice = Random(1)
    for number in range(count):
        item, at = f"item-{dice.randrange(1000)}", START_MS + number // 5
        event = {
            "event": "clicked" if number % 10 == 0 else "shown",
            "message": f"message-{number:09}",
            "at": at,
            "user": {"id": f"user-{dice.randrange(USERS)}"},
            "context": {"arm": "AB"[number % 2], "page": {"path": "/home"}},
            "product": {"sku": item, "slot": number % 10 + 1},
        }
        yield item, at, json.dumps(event).encode()


async def fill(brokers: str, count: int) -> None:
    """The backlog, keyed by item, and empty topics to write to."""
    names = list(document(brokers)["kafka"]["topics"].values())
    passed = [f"passed-{job}" for job in JOBS[:2]]
    await create_topics(brokers, [SOURCE, *names, *passed], PARTITIONS)
    producer = AIOKafkaProducer(bootstrap_servers=brokers, max_batch_size=BATCH_BYTES)
    async with producer:
        rows: dict[int, list[Any]] = {}
        for item, at, value in events(count):
            key = item.encode()
            rows.setdefault(partition_of(key, PARTITIONS), []).append((at, key, value))
        for number, some in rows.items():
            await write(producer, TopicPartition(SOURCE, number), some)


async def write(producer: AIOKafkaProducer, to: TopicPartition, rows: list[Any]) -> None:
    """Rows (time, key, value) as batches."""
    answers, batch = [], producer.create_batch()
    for at, key, value in rows:
        if batch.append(timestamp=at, key=key, value=value) is None:
            answers.append(await producer.send_batch(batch, to.topic, partition=to.partition))
            batch = producer.create_batch()
            batch.append(timestamp=at, key=key, value=value)
    answers.append(await producer.send_batch(batch, to.topic, partition=to.partition))
    await asyncio.gather(*answers)


async def pass_through(brokers: str, job: str, count: int) -> None:
    """The floor."""
    consumer = AIOKafkaConsumer(bootstrap_servers=brokers, max_partition_fetch_bytes=4 << 20)
    producer = AIOKafkaProducer(
        bootstrap_servers=brokers, enable_idempotence=True, max_batch_size=BATCH_BYTES
    )
    async with consumer, producer:
        consumer.assign([TopicPartition(SOURCE, number) for number in range(PARTITIONS)])
        await consumer.seek_to_beginning()
        meter, done, topic = Meter(), 0, f"passed-{job}"
        meter.start()
        while done < count:
            fetched = await consumer.getmany(timeout_ms=1000)
            for tp, records in fetched.items():
                done += len(records)
                if job == "batches":
                    rows = [(r.timestamp, r.key, r.value) for r in records]
                    await write(producer, TopicPartition(topic, tp.partition), rows)
                    continue
                sent = [
                    await producer.send(topic, r.value, key=r.key, timestamp_ms=r.timestamp)
                    for r in records
                ]
                await asyncio.gather(*sent)
        meter.report(done)


async def rekey(brokers: str) -> None:
    """The same by streamer, from joining the group to the end of the backlog."""
    plan, counts = await plan_of(parse(document(brokers))), Counts()
    membership = Membership(plan, Slot(plan.settings.kafka), counts)
    work = asyncio.create_task(membership.run(asyncio.Event(), until_end=True))
    meter = Meter()
    await membership.has_joined.wait()
    meter.start()
    await work
    meter.report(counts.written)


async def is_right(brokers: str, count: int) -> bool:
    """Whether every event was written once, to the partition of its user."""
    wanted = {json.loads(value)["message"]: json.loads(value) for _, _, value in events(count)}
    consumer = AIOKafkaConsumer(bootstrap_servers=brokers, isolation_level="read_committed")
    async with consumer:
        topics = [f"rekeyed-{kind}" for kind in KINDS]
        consumer.assign([TopicPartition(t, n) for t in topics for n in range(PARTITIONS)])
        await consumer.seek_to_beginning()
        deadline = time.monotonic() + 120
        while wanted and time.monotonic() < deadline:
            for tp, records in (await consumer.getmany(timeout_ms=1000)).items():
                for record in records:
                    event = json.loads(record.value)
                    given = wanted.pop(event["event_id"])
                    ours = (event["user_id"], event["item_id"], event["ts"], event["position"])
                    product = given["product"]
                    theirs = (given["user"]["id"], product["sku"], given["at"], product["slot"])
                    at = partition_of(given["user"]["id"].encode(), PARTITIONS)
                    if (ours, tp.partition) != (theirs, at):
                        return False
        ends = await consumer.end_offsets(consumer.assignment())
        more = [tp for tp in ends if await consumer.position(tp) < ends[tp]]
        return not wanted and not more


def main(arguments: argparse.Namespace) -> int:
    """One job in this process; without one, all of them side by side."""
    if arguments.job == "rekey":
        asyncio.run(rekey(arguments.brokers))
        return 0
    if arguments.job:
        asyncio.run(pass_through(arguments.brokers, arguments.job, arguments.events))
        return 0
    with kafka_server(jvm=FAST) as kafka:
        brokers, count = kafka.address, arguments.events
        asyncio.run(fill(brokers, count))
        flags = (f"--brokers={brokers}", f"--events={count}")
        found = {
            job: program("benchmarks.studies.rekeying", *flags, f"--job={job}") for job in JOBS
        }
        for job, result in found.items():
            against = ", ".join(
                f"{rate(result) / rate(found[floor]):.2f} of {floor}" for floor in JOBS[:2]
            )
            print(f"{job}: {rate(result):,.0f} events/s, {cpu(result):.2f} CPU s/M, {against}")
        right = asyncio.run(is_right(brokers, count))
    print(f"results {'right' if right else 'WRONG'}")
    return 0 if right else 1


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--events", type=int, default=500_000)
    options.add_argument("--brokers", help="of a job that is run alone")
    options.add_argument("--job", choices=JOBS, help="only this, on a backlog that is there")
    raise SystemExit(main(options.parse_args()))
