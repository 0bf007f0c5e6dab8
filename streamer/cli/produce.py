"""``streamer produce``: lines of files into the Kafka topics, keyed by user, in file order; or
made-up traffic until it is stopped.

Whoever reads the topics while they are written must not see one run ahead of another by more
than ``max_skew``: an idle topic takes its watermark from the others. So lines are sent in rounds
that cover at most so much event time, and a round begins when the one before is acknowledged.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from streamer._core import partition_of
from streamer.cli.files import progress
from streamer.cli.main import stopped
from streamer.cli.rejection_report import RejectionReport
from streamer.cli.terminal import note, waiting
from streamer.errors import BrokerError, UsageError
from streamer.ingest.dead_letters import DeadLetter
from streamer.ingest.record import IGNORED, reason_of_no_topic, record_decoder
from streamer.ingest.rejections import Explainer
from streamer.kafka.admin import TopicDescription, create_topics, describe_topics, quiet
from streamer.kafka.client import client_settings
from streamer.kafka.topics import admin_client
from streamer.settings.clusters import Cluster
from streamer.settings.durations import duration_ms
from streamer.settings.load import load
from streamer.settings.model import Settings
from streamer.sources.files import FileSource
from streamer.sources.line_batch import NO_TOPIC, Line, LineBatch
from streamer.sources.synthetic import LiveTraffic

_BATCH_BYTES = 256 * 1024
_IN_FLIGHT = 64
"""Batches sent and not acknowledged, at most."""
_DRAIN_SECONDS = 0.5
"""How long a line waits for others, at most."""
_TICK_SECONDS = 0.02
"""With ``--speed``: lines due within it are sent together."""
_Place = tuple[str | None, str, int]
"""Cluster, topic, partition."""
_NOT_IN_KAFKA = -1
"""Partition and offset of a dead letter that was never in a topic of events."""
T = TypeVar("T")
_WAITING = 4
"""Batches that are read ahead."""


def main(args: argparse.Namespace) -> int:
    """Send all lines; returns when Kafka has acknowledged them."""
    settings = load(args.config, os.environ)
    _refuse_formats(settings)
    source, speed = _source(args, settings), 1.0 if args.synthetic else args.speed
    retention_ms = duration_ms(args.retention, "--retention") if args.retention else -1
    if "debug" not in args:
        quiet()
    sender = asyncio.run(_produce(settings, source, speed, args.create, retention_ms))
    if sender is None:
        return 0
    note(f"{sender.lines:,} lines in Kafka")
    if sender.buried:
        topic = settings.kafka.topics.dead_letters
        note(
            f"{sender.buried:,} of them have no valid `type` and are in {topic!r}: set it to the "
            "kind of event; see docs/events.md"
        )
    accepted = sender.lines - sender.refused.total
    return sender.refused.report(sender.lines, accepted, args.strict, args.files)


def _refuse_formats(settings: Settings) -> None:
    """UsageError where a topic is not to hold JSON, which is all that is written here."""
    for source in settings.sources if settings.reads_sources else ():
        if source.format != "json":
            raise UsageError(
                f"produce writes JSON, and the topics of source {source.called!r} hold "
                f"{source.format}: write them with a producer that knows the registry"
            )


def _source(args: argparse.Namespace, settings: Settings) -> FileSource | LiveTraffic | None:
    """What is to be sent; None where only topics are to be created."""
    if args.synthetic and (args.files or args.speed):
        raise UsageError("--synthetic makes its own lines in real time: leave out FILE and --speed")
    if args.retention and not args.create:
        raise UsageError("--retention applies to the topics that --create makes: add --create")
    if args.synthetic:
        return LiveTraffic(args.synthetic, settings, time.time_ns() // 1_000_000)
    if args.files:
        return FileSource(args.files, settings)
    if not args.create:
        raise UsageError("nothing to send: name a FILE (- is standard input), or use --synthetic")
    return None


async def _produce(
    settings: Settings,
    source: FileSource | LiveTraffic | None,
    speed: float | None,
    create: int | None,
    retention_ms: int,
) -> Sender | None:
    with waiting("asking Kafka for the topics"):
        described = await _topics(settings, create, retention_ms)
    if source is None:
        return None
    stop = stopped() if isinstance(source, LiveTraffic) else None
    producers: dict[str | None, Any] = {}
    try:
        for cluster in settings.read_clusters:
            producers[cluster.name] = await _connected(cluster)
        sender = Sender(settings, producers, next(iter(described.values())).partitions)
        now_ms = time.time_ns() // 1_000_000
        pace = Pace(speed, since_ms=now_ms if isinstance(source, LiveTraffic) else 0)
        is_first = True
        with progress("produce", source) as show:
            batches = _Background(source)
            while not (stop is not None and stop.is_set()):
                try:
                    lines = await batches.next(_DRAIN_SECONDS)
                except _Silence:
                    await sender.drain()
                    continue
                if lines is None:
                    break
                if is_first:
                    is_first = not refuse_old(lines, settings, described, now_ms)
                await sender.send(lines, pace)
                show(len(lines))
        await sender.drain()
        return sender
    except (KafkaError, OSError) as error:
        reason = str(error) or type(error).__name__
        raise BrokerError(f"cannot write to Kafka: {reason}") from error
    finally:
        await asyncio.gather(*[producer.stop() for producer in producers.values()])


async def _topics(
    settings: Settings, create: int | None, retention_ms: int
) -> dict[str, TopicDescription]:
    """Facts of the topics by log, and of the dead letters; BrokerError where they do not fit."""
    described: dict[str, TopicDescription] = {}
    for cluster in settings.read_clusters:
        names = {log.name: log.plain for log in settings.logs_in(cluster)}
        if cluster.name is None:
            names["dead_letters"] = settings.kafka.topics.dead_letters
        described |= await _topics_of(settings, cluster, names, create, retention_ms)
    counts = {log.topic: described[name].partitions for name, log in settings.logs.items()}
    if len(set(counts.values())) > 1:
        raise BrokerError(
            f"topics need equal partition counts; they have {counts}: recreate them with "
            "equal counts"
        )
    return described


async def _topics_of(
    settings: Settings,
    cluster: Cluster,
    names: Mapping[str, str],
    create: int | None,
    retention_ms: int,
) -> dict[str, TopicDescription]:
    """Facts of the topics of one cluster; ``names``: log → topic."""
    async with admin_client(cluster.connection, cluster.section) as client:
        described = await describe_topics(client, names.values())
        missing = [name for name in names.values() if name not in described]
        if missing and create is not None:
            await create_topics(client, missing, create, retention_ms)
            described |= await _appeared(client, missing)
            missing = [name for name in missing if name not in described]
    if missing:
        raise BrokerError(
            f"no topic {', '.join(map(repr, missing))} at {cluster.connection.brokers}: "
            f"create it, correct {'sources' if settings.reads_sources else 'kafka.topics'}, or use "
            "--create PARTITIONS"
        )
    return {log: described[name] for log, name in names.items()}


async def _appeared(client: Any, names: list[str]) -> dict[str, TopicDescription]:
    """Descriptions of topics just created, which brokers know a moment later."""
    described: dict[str, TopicDescription] = {}
    for _ in range(50):
        described = await describe_topics(client, names)
        if all(name in described and described[name].partitions for name in names):
            break
        await asyncio.sleep(0.1)
    return described


async def _connected(cluster: Cluster) -> Any:
    """A started producer; without idempotence where the broker knows none."""
    options = {
        **client_settings(cluster.connection, cluster.section),
        "acks": "all",
        "compression_type": "lz4",
        "max_batch_size": _BATCH_BYTES,
    }
    producer = AIOKafkaProducer(**options, enable_idempotence=True)
    try:
        await producer.start()
        return producer
    except (KafkaError, OSError):
        await producer.stop()
    producer = AIOKafkaProducer(**options)
    try:
        await producer.start()
    except (KafkaError, OSError) as error:
        await producer.stop()
        reason = str(error) or type(error).__name__
        raise BrokerError(f"cannot use Kafka: {reason}; at {cluster.place}") from error
    note(
        "this broker refuses idempotent producers: a retry may write a line twice; events with an "
        "event_id are counted once all the same"
    )
    return producer


def refuse_old(
    lines: Iterable[Line], settings: Settings, described: dict[str, TopicDescription], now_ms: int
) -> bool:
    """BrokerError where a topic would stamp or delete old records; whether a line had a time."""
    oldest_ms = next((record_ms for _, record_ms, _ in lines if record_ms), None)
    if oldest_ms is None:
        return False
    age_ms = now_ms - oldest_ms
    for log in settings.logs:
        topic = described[log]
        if topic.is_stamped_by_broker and age_ms > settings.time.max_skew_ms:
            raise BrokerError(
                f"the first line is {age_ms // 1000} s old, but topic {topic.name!r} has "
                "message.timestamp.type=LogAppendTime, so it would count as late: "
                "use topics with CreateTime, or `streamer replay`"
            )
        retention_ms = topic.limit("retention.ms")
        if topic.deletes and retention_ms is not None and age_ms > retention_ms:
            raise BrokerError(
                f"the first line is {age_ms // 1000} s old, but topic {topic.name!r} has "
                f"retention.ms={retention_ms}, so Kafka would delete it: "
                "set retention.ms=-1, or use `streamer replay`"
            )
    return True


class Pace:
    """When lines are due: event time runs ``speed`` times as fast as the clock (None: at once)."""

    def __init__(
        self, speed: float | None, clock: Callable[[], float] = time.monotonic, since_ms: int = 0
    ) -> None:
        """``since_ms``: the epoch time of now, of lines that are due at the time they say."""
        self.speed, self._clock = speed, clock
        self._start = clock() if since_ms else 0.0
        self._first_ms = since_ms

    def wait_seconds(self, record_ms: int) -> float:
        """Seconds until a line is due."""
        if self.speed is None or not record_ms:
            return 0.0
        if not self._first_ms:
            self._start, self._first_ms = self._clock(), record_ms
        due = self._start + (record_ms - self._first_ms) / 1000 / self.speed
        return due - self._clock()


class Sender:
    """Sends lines in batches, one open batch for each topic-partition. ``producers``: by cluster,
    None for that of ``[kafka]``."""

    def __init__(
        self, settings: Settings, producers: Mapping[str | None, Any], partitions: int
    ) -> None:
        self.lines = self.buried = 0
        self.refused = RejectionReport(settings)
        letters = settings.kafka.topics.dead_letters
        self._places = {name: (log.cluster, log.plain) for name, log in settings.logs.items()}
        self._letters: tuple[str | None, str] = (None, letters)
        self._producers, self._partitions = producers, partitions
        self._decoder = record_decoder(settings)
        self._explainer = Explainer(settings)
        self._open: dict[_Place, Any] = {}
        self._sent: list[asyncio.Future[Any]] = []
        self._round_ms, self._skew_ms = 0, settings.time.max_skew_ms
        self._drained_s = time.monotonic()

    async def send(self, lines: LineBatch, pace: Pace) -> None:
        """Put lines into batches, and send those that are full or due."""
        for kind, record_ms, raw in lines:
            if record_ms > self._round_ms + self._skew_ms:
                await self.drain()
                self._round_ms = record_ms
            if pace.speed is not None:
                seconds = pace.wait_seconds(record_ms)
                if seconds > _TICK_SECONDS:
                    await self.drain()
                    await asyncio.sleep(seconds)
            if kind == NO_TOPIC:
                await self._bury(record_ms, raw)
                continue
            events = self._decoder.decode_all(kind, raw, timestamp_ms=record_ms)
            reasons = (one for one in events if isinstance(one, str) and one != IGNORED)
            reason = next(reasons, None)
            if reason is not None:
                self.refused.add(kind, raw, reason, (None, b"", record_ms))
            key = self._decoder.key(kind, raw, record_ms)
            target = (*self._places[kind], partition_of(key, self._partitions))
            await self._put(target, key, raw, record_ms)
        self.lines += len(lines)
        if time.monotonic() - self._drained_s >= _DRAIN_SECONDS:
            await self.drain()

    async def _bury(self, record_ms: int, raw: bytes) -> None:
        self.buried += 1
        reason = reason_of_no_topic(raw)
        self.refused.add(NO_TOPIC, raw, reason)
        refusal = self._explainer.explain(NO_TOPIC, raw, reason)
        letter = DeadLetter(NO_TOPIC, _NOT_IN_KAFKA, _NOT_IN_KAFKA, refusal, raw)
        await self._put((*self._letters, 0), None, raw, record_ms, letter.headers())

    async def _put(
        self,
        target: _Place,
        key: bytes | None,
        value: bytes,
        record_ms: int,
        headers: list[tuple[str, bytes]] | None = None,
    ) -> None:
        while True:
            batch = self._open.get(target)
            if batch is None:
                batch = self._open[target] = self._producers[target[0]].create_batch()
            if batch.append(key=key, value=value, timestamp=record_ms, headers=headers or []):
                return
            await self._send(target)

    async def _send(self, place: _Place) -> None:
        batch, (cluster, topic, partition) = self._open.pop(place), place
        producer = self._producers[cluster]
        self._sent.append(await producer.send_batch(batch, topic, partition=partition))
        if len(self._sent) >= _IN_FLIGHT:
            await self._acknowledged()

    async def _acknowledged(self) -> None:
        sent, self._sent = self._sent, []
        await asyncio.gather(*sent)

    async def drain(self) -> None:
        """Send what is left, and wait until Kafka has acknowledged everything."""
        places = list(self._open)
        sent = [self._send(place) for place in places]
        await asyncio.gather(*sent)
        await self._acknowledged()
        self._drained_s = time.monotonic()


class _Silence(Exception):  # noqa: N818 — it is no error
    """Nothing has come for a while."""


class _Background(Generic[T]):
    """What an iterable gives, in order; errors of it are raised by ``next``."""

    def __init__(self, source: Iterable[T]) -> None:
        self._source, self._loop = source, asyncio.get_running_loop()
        self._queue: asyncio.Queue[T | BaseException | None] = asyncio.Queue(_WAITING)
        self._waiting: asyncio.Task[T | BaseException | None] | None = None
        threading.Thread(target=self._read, name="source", daemon=True).start()

    async def next(self, seconds: float) -> T | None:
        """The next one; ``_Silence`` where there is none in so many seconds, None at the end."""
        if self._waiting is None:
            self._waiting = asyncio.create_task(self._queue.get())
        done, _ = await asyncio.wait({self._waiting}, timeout=seconds)
        if not done:
            raise _Silence
        batch, self._waiting = self._waiting.result(), None
        if isinstance(batch, BaseException):
            raise batch
        return batch

    def _read(self) -> None:
        end: BaseException | None = None
        try:
            for one in self._source:
                self._put(one)
        except BaseException as error:  # also the core's panics: the reader must not wait for ever
            end = error
        self._put(end)

    def _put(self, one: T | BaseException | None) -> None:
        putting = self._queue.put(one)
        try:
            asyncio.run_coroutine_threadsafe(putting, self._loop).result()
        except RuntimeError:  # the loop has ended
            putting.close()
