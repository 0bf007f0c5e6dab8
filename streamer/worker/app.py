"""The Faust app: topics, agents, timers. Wiring only; ``streamer/app.py`` is what Faust is given.

Agents hand chunks to the runner; the runner claims, applies and commits.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import signal
import time
from collections.abc import AsyncIterable, Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import faust
from aiokafka.structs import TopicPartition
from faust.app.base import BootStrategy
from faust.types import TP

from streamer import logs
from streamer.errors import BrokerError, StoreError, StreamerError
from streamer.kafka.chunk import Chunk
from streamer.kafka.consumers import ConsumerPort, JoinedConsumers, Progress
from streamer.kafka.fingerprints import Fingerprint
from streamer.kafka.other_cluster import OtherCluster
from streamer.kafka.patterns import has_patterns
from streamer.kafka.record_lookup import records_at
from streamer.kafka.topics import Readable, readable, require_count
from streamer.kafka.transport import ChunkSchema, Consumer, ConsumerThread, Transport
from streamer.settings.model import Settings
from streamer.state.generations import fingerprint_of
from streamer.state.log_identity import group_of, require_group, resolve
from streamer.state.redis.store import RedisStore
from streamer.state.store import Store
from streamer.worker import interpreter
from streamer.worker.instance_name import Slot, directory_of
from streamer.worker.runner import Runner

logger = logging.getLogger("streamer")
_TELEMETRY_SECONDS = 2.0
_STORE_SECONDS = 5.0
"""The longest that a report waits for the store, and how often its settings are looked at."""
_READABLE_SECONDS = 1.0
"""For so long it is not asked again what can be read: partitions are recovered together."""
_TOPICS_SECONDS = 30.0
"""How often is looked whether other topics can be read."""
_PATTERN_SECONDS = 30.0
"""How often topics that fit a pattern are looked for."""
_CONNECTED = ("kafka", "clusters", "redis", "sources", "logs", "limits")
"""Settings that a worker uses beside those of counting: it takes others of them in a restart."""
_NAMESAKES, _NAMESAKES_SECONDS = 3, 60.0
"""A worker exits after so many reports of another one under its name within so many seconds. One
report proves nothing: it may come from a restored Redis."""


class ConsumerLog:
    """The runner's ``ConsumerPort``: Faust's consumer."""

    def __init__(self, app: App) -> None:
        self.app = app

    @property
    def _consumer(self) -> Consumer:
        return cast(Consumer, self.app.consumer)

    @property
    def _thread(self) -> ConsumerThread:
        return self._consumer.thread

    async def start_at(self, offsets: Any, epoch: int) -> None:
        await self._thread.start_at(offsets, epoch)

    async def bounds(self, tps: Sequence[TopicPartition]) -> Mapping[TopicPartition, Any]:
        return await self._thread.bounds(tps)

    async def records_at(
        self, offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, Fingerprint]:
        return await records_at(self.app.settings.kafka, offsets)

    async def progress(self) -> dict[TopicPartition, Progress]:
        if self._thread._consumer is None:
            return {}
        try:
            return await self._thread.progress()
        except BrokerError:
            return {}  # the worker is stopping

    async def tell_kafka(self, offsets: Any) -> None:
        with contextlib.suppress(BrokerError):  # the worker is stopping
            await self._thread.tell_kafka(offsets)

    def take_doubted(self) -> set[TopicPartition]:
        return self._thread.fetches.take_doubted()

    def away(self) -> Collection[str]:
        return ()

    def ignore(self, tps: Iterable[TopicPartition]) -> None:
        self._thread.ignore(tps)

    def problems(self) -> list[str]:
        return self._thread.fetches.problems()

    def is_assigned(self, tps: Iterable[TopicPartition]) -> bool:
        return {TP(*tp) for tp in tps} <= self._consumer.assignment()

    def pause(self, tps: Iterable[TopicPartition]) -> None:
        self._consumer.pause_partitions({TP(*tp) for tp in tps})

    def resume(self, tps: Iterable[TopicPartition]) -> None:
        assigned = self._consumer.assignment()
        self._consumer.resume_partitions({TP(*tp) for tp in tps} & assigned)


class _Boot(BootStrategy):
    """Without Faust's web server, whatever the command line says: it has no password."""

    enable_web = False


class App(faust.App):
    """A Faust app that knows its settings and its runner."""

    BootStrategy = _Boot
    settings: Settings
    written: Settings
    """With patterns of topics, as they are in the file."""
    read_settings: Callable[[], Settings]
    """Reads the file again."""
    left_out: Mapping[str, str]
    """Topic that fits a pattern, and is not read → why."""
    store: Store
    slot: Slot
    """The name of this worker in its group; known once the app has started."""
    others: Mapping[str, OtherCluster]
    """The clusters besides that of ``[kafka]``, by name."""
    _runner: Runner | None = None
    _readable: Readable | None = None
    _looked_at = 0.0
    _asking: asyncio.Lock
    _reporting: asyncio.Lock
    _has_left = False
    _has_reported = False
    _namesakes: Sequence[float] = ()

    @property
    def runner(self) -> Runner:
        """The runner; only after the app has started."""
        assert self._runner is not None, "the app has not started"
        return self._runner

    def _new_transport(self) -> Transport:
        return Transport(self.conf.broker_consumer, self)

    def _new_producer_transport(self) -> Transport:
        return Transport(self.conf.broker_producer, self)

    async def on_first_start(self) -> None:
        """Check the store and take a worker name; SystemExit with one line where that fails."""
        await super().on_first_start()
        logs.quiet_kafka()
        try:
            await self.store.check()
            self.slot = Slot(self.settings.kafka)
        except StreamerError as error:
            raise SystemExit(f"streamer: {error}") from None
        self._asking, self._reporting = asyncio.Lock(), asyncio.Lock()
        self._runner = Runner(
            self.settings,
            self.store,
            self._log(),
            self.slot.worker,
            look_at_topics=self.look_at_topics,
            when_changed=self.report,  # readiness need not wait for the timer
            fingerprint=fingerprint_of(self.written),
        )
        await self.look_at_store()
        for other in self.others.values():
            other.start()

    def _log(self) -> ConsumerPort:
        """The logs of all clusters."""
        main = ConsumerLog(self)
        logs = self.settings.logs.values()
        places = {log.topic: self.others[log.cluster] if log.cluster else main for log in logs}
        return JoinedConsumers(places) if self.others else main

    async def on_assignment(self, assigned: set[TopicPartition]) -> None:
        """Recover the partitions that Kafka has assigned."""
        topics = {log.topic for log in self.settings.logs_in(self.settings.read_clusters[0])}
        numbers = {tp.partition for tp in assigned if tp.topic in topics}
        self._readable = None
        await self.take(numbers)

    async def take(self, numbers: Collection[int]) -> None:
        """Read and count these partition numbers; those of other clusters are ours as those of
        ``[kafka]`` are, until the next call: what is fetched of revoked ones is dropped."""
        for other in self.others.values():
            other.assign(numbers)
        await self.runner.assign(numbers)

    def offer(self, chunk: Chunk) -> None:
        """Hand a fetched chunk to the runner."""
        self.runner.offer(chunk)

    async def look_at_topics(self) -> Readable:
        """What can be read of the topics, asked before anything is recovered: the brokers now and
        then, the store each time, for it may have been emptied.

        It is the broker that is asked: a member of the group that does not lead it knows of no
        partitions but its own.
        """
        async with self._asking:
            found, now = self._readable, time.monotonic()
            if found is None or now - self._looked_at > _READABLE_SECONDS:
                found = self._readable = await self._ask_for_topics()
                self._looked_at = now
        ours = group_of(self.settings, found.cluster_ids)
        require_group(self.settings.redis.prefix, await self.store.set_group(ours), ours)
        require_count(await self.store.set_partitions(found.count), found.count)
        return found

    async def _ask_for_topics(self) -> Readable:
        for other in self.others.values():
            await other.has_tried()
        whys = {name: other.why_away for name, other in self.others.items()}
        away = {name: why for name, why in whys.items() if why is not None}
        found = await readable(self.settings, await self.store.partitions(), away)
        for name in found.away.keys() - away.keys():
            self.others[name].give_up(found.away[name])
        return dataclasses.replace(found, unread={**found.unread, **self.left_out})

    async def look_again(self) -> None:
        """Name what is not read, and recover all partitions where other topics can be read than
        before. A cluster that was away says itself when it is back."""
        if self._readable is None:
            return
        away = set(self.runner.log.away())
        with contextlib.suppress(BrokerError, StoreError):  # asked again
            self._readable = self.runner.readable = await self._ask_for_topics()
            if self.runner.recover_changed(away):
                for other in self.others.values():
                    other.assign(self.runner.partitions)

    async def on_stop(self) -> None:
        """Commit and release everything, then withdraw the report."""
        if self._runner is not None:
            await self._runner.stop()
            await asyncio.gather(*[other.stop() for other in self.others.values()])
            await self.leave()
        await super().on_stop()
        await self.store.close()
        if self._runner is not None:
            self.slot.close()

    async def look_at_store(self) -> None:
        """Compare its clock with this host's, and report whether it may lose what it is given: its
        settings change while it runs."""
        with contextlib.suppress(StoreError):  # asked again
            now_ms = await self.store.now_ms()
            self.runner.ahead_ms = now_ms - time.time_ns() // 1_000_000
            await self.runner.look_at_erasures()
        found, report = await self.store.eviction() or "", self.runner.worker_report
        if found and found != report.store_problem:
            logger.warning("%s", found)
        report.store_problem = found

    async def look_at_settings(self) -> None:
        """Where the file has become the newest settings, count by it: at once where it reads the
        same topics in the same way, else after a restart."""
        with contextlib.suppress(StreamerError):  # said where a partition is recovered
            own, newest = await self.runner.declare_settings()
            if own == newest:
                return
            written = self.read_settings()
            fingerprint = fingerprint_of(written)
            found = await self.store.declare_settings(fingerprint)
            if found.number < newest:
                return  # another file
            settings, self.left_out = await resolve(written)
            if any(getattr(settings, name) != getattr(self.settings, name) for name in _CONNECTED):
                logger.info("exiting, so that the restart takes the new settings")
                os.kill(os.getpid(), signal.SIGTERM)
                return
            self.written, self.settings = written, settings
            await self.runner.count_by(settings, fingerprint, found.number)
            named = {"generation": found.number}
            logger.info("counting by the new settings, generation %(generation)d", named)

    async def report(self) -> None:
        """Report what this worker does to the store, until it has deregistered."""
        with contextlib.suppress(StoreError, TimeoutError):  # reported as soon as the store is back
            async with asyncio.timeout(_STORE_SECONDS), self._reporting:
                if not self._has_left:
                    replaced = await self.store.report(self.runner.worker_report)
                    self._look_for_namesake(replaced)

    def _look_for_namesake(self, replaced: str) -> None:
        """Exit if another worker reports under this name; after the restart it gets another one."""
        ours, is_first = self.runner.worker_report.process, not self._has_reported
        self._has_reported = True
        if is_first or replaced in ("", ours):
            return
        now = time.monotonic()
        self._namesakes = [at for at in self._namesakes if at > now - _NAMESAKES_SECONDS] + [now]
        if len(self._namesakes) >= _NAMESAKES:
            text = "another worker is already called %s: exiting, to restart under another name"
            logger.error(text, self.slot.worker)
            self._has_left = True  # the report is theirs
            self.slot.tell_apart()
            os.kill(os.getpid(), signal.SIGTERM)

    async def leave(self) -> None:
        """Deregister: delete the report. If that fails, readers see a silent worker."""
        if self._has_left:
            return
        self._has_left = True
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_STORE_SECONDS), self._reporting:
                await self.store.leave(self.runner.worker_report.worker)


def create_app(
    settings: Settings,
    resolved: Settings | None = None,
    left_out: Mapping[str, str] = MappingProxyType({}),
    read_settings: Callable[[], Settings] | None = None,
) -> App:
    """The app of the given settings; ``resolved``: with topics in place of patterns, without those
    ``left_out``; ``read_settings``: as they are later."""
    written, settings = settings, resolved or settings
    kafka = settings.kafka
    app = App(
        kafka.group,
        broker=[f"streamer://{address.strip()}" for address in kafka.brokers.split(",")],
        logging_config=logs.logging_config(settings.log.level, settings.log.format),
        datadir=str(directory_of(kafka)),
        store="memory://",
        topic_disable_leader=True,
        topic_allow_declare=False,
        stream_wait_empty=False,
        stream_buffer_maxsize=64,
        broker_session_timeout=_seconds(settings),
        broker_heartbeat_interval=_seconds(settings) / 10,
        broker_request_timeout=max(90.0, 2 * _seconds(settings)),
    )
    app.written, app.settings, app.left_out = written, settings, left_out
    app.read_settings = read_settings or (lambda: written)
    app.store = RedisStore(settings.redis)
    app.others = {
        cluster.name: OtherCluster(settings, cluster, app.offer)
        for cluster in settings.read_clusters
        if cluster.name is not None
    }
    _add_agents(app)
    _add_tasks(app)
    return app


def _seconds(settings: Settings) -> float:
    return settings.kafka.session_timeout_ms / 1000


def _add_agents(app: App) -> None:
    """One agent a topic of ``[kafka]``: it hands chunks on."""

    async def hand_on(stream: AsyncIterable[Chunk]) -> None:
        async for chunk in stream:
            app.offer(chunk)

    for log in app.settings.logs_in(app.settings.read_clusters[0]):
        topic = app.topic(log.topic, schema=ChunkSchema(), acks=False)
        app.agent(topic, name=f"streamer.app.{log.name}", concurrency=1)(hand_on)


def _add_tasks(app: App) -> None:
    @app.task  # type: ignore[untyped-decorator]  # Faust's
    async def process() -> None:
        interpreter.calm()
        await app.runner.run()

    @app.timer(interval=_TELEMETRY_SECONDS)  # type: ignore[untyped-decorator]  # Faust's
    async def report() -> None:
        await app.report()

    @app.timer(interval=_STORE_SECONDS)  # type: ignore[untyped-decorator]  # Faust's
    async def look_at_store() -> None:
        await app.look_at_store()
        await app.look_at_settings()

    @app.timer(interval=_TOPICS_SECONDS)  # type: ignore[untyped-decorator]  # Faust's
    async def look_at_topics() -> None:
        await app.look_again()

    if has_patterns(app.written):

        @app.timer(interval=_PATTERN_SECONDS)  # type: ignore[untyped-decorator]  # Faust's
        async def look_for_topics() -> None:
            with contextlib.suppress(BrokerError):  # asked again
                found, app.left_out = await resolve(app.written, may_be_away=False)
                if found.logs.keys() - app.settings.logs.keys():
                    new = ", ".join(sorted(found.logs.keys() - app.settings.logs.keys()))
                    logger.info("exiting, so that the restart counts additions: %s", new)
                    os.kill(os.getpid(), signal.SIGTERM)

    @app.on_partitions_assigned.connect
    async def on_assigned(*args: Any, **kwargs: Any) -> None:
        if not args[-1]:  # Faust seeks, and so calls the runner, only where there is something
            await app.take(())

    @app.on_partitions_revoked.connect
    async def on_revoked(*args: Any, **kwargs: Any) -> None:
        await app.runner.revoke()
