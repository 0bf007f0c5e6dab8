"""Workers on topics of two Kafka clusters, of which the other one has clicks of another shape."""

from __future__ import annotations

import asyncio
import functools
import json
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from streamer.server.exporter import Exporter
from streamer.settings.model import Topics
from streamer.sources.files import FileSource
from streamer.sources.replay import Replay
from streamer.testing.embedded import create_topics
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long
from tests.support.own_names import own_names
from tests.support.required import require
from tests.support.servers import KafkaServer
from tests.support.workers import Bench, bench, document_of, until

PARTITIONS = 2
USERS = 60
LIMIT_SECONDS = 200
COMMAND = [sys.executable, "-m", "streamer", "run"]
AWAY = "Kafka cluster 'eu'"
SHOWN: dict[str, Any] = {"kind": {"fixed": "impression"}, "fields": own_names()}
"""Impressions, on the cluster of ``[kafka]``: in our own shape."""
TAPPED: dict[str, Any] = {
    "cluster": "eu",
    "kind": {"field": "what.did", "click": [{"value": "tapped"}]},
    "fields": {"ts": "at", "user_id": "who", "item_id": "what.sku", "event_id": "n"},
}
"""Clicks, on the other one."""


def lines(first: int, count: int, ms: int) -> list[bytes]:
    """Impressions half a second apart, and clicks on some of them soon after."""
    dice, made = Random(first), list[tuple[int, Any]]()
    for number in range(first, first + count):
        at, user, item = ms + 500 * number, dice.randrange(USERS), f"i{dice.randrange(20)}"
        shown = {"type": "impression", "ts": at, "user_id": f"u{user}", "item_id": item}
        made.append((at, {**shown, "event_id": f"s{number}", "variant": "AB"[user % 2]}))
        if dice.random() < 0.3:
            later = at + dice.randrange(1, 20_000)
            tap = {"at": later, "who": f"u{user}", "n": f"t{number}"}
            made.append((later, {**tap, "what": {"did": "tapped", "sku": item}}))
    return [json.dumps(event).encode() for _, event in sorted(made, key=lambda pair: pair[0])]


class Clusters:
    """A bench on two clusters, and what was sent to them."""

    def __init__(self, made: Bench, names: Topics, directory: Path) -> None:
        self.made, self.names, self.directory = made, names, directory
        self.sent: list[Path] = []
        self._at, self._ms = 0, int(time.time() * 1000) - 4 * 3_600_000

    async def streamer(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "streamer", *arguments, "-c", str(self.made.config)]
        done = await asyncio.to_thread(
            subprocess.run, command, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    async def send(self, count: int) -> None:
        """More events, each to its cluster."""
        path = self.directory / f"events-{len(self.sent)}.ndjson"
        path.write_bytes(b"\n".join(lines(self._at, count, self._ms)) + b"\n")
        self._at, self._ms = self._at + count, self._ms + 60_000
        self.sent.append(path)
        await self.streamer("produce", str(path))

    async def is_counted(self) -> None:
        """Wait until all is; it is as of one run in memory over the same lines."""
        key = await until(self.made.store.hash_key, "a worker has begun", self.made.said)
        replay, settings = Replay(self.made.settings, PARTITIONS, key=key), self.made.settings
        for path in self.sent:
            for some in FileSource([path], settings):
                replay.feed(some)
        replay.finish()
        for partition in replay.partitions:
            partition.refresh_user_sums()
        ends = {
            (name, number): log.next_offset
            for number, partition in enumerate(replay.partitions)
            for name, log in partition.logs.items()
        }
        await self.made.settle(ends)
        found = await Exporter(settings, self.made.store).read(at_stream=True)
        wanted = by_labels(replay.readout().readings)
        assert by_labels(found.readings) == wanted
        assert wanted["streamer_identity_exact",] == 1
        segment = (("surface", "all"), ("variant", "A"), ("window", "24h"))
        assert wanted["streamer_ctr_ratio", *segment] > 0.1
        name = f"{self.names.clicks}@eu"
        source = {"source": name, "topic": name, "cluster": "eu", "format": "json"}
        assert wanted["streamer_source_info", *sorted(source.items())] == 1


def by_labels(readings: Any) -> dict[Any, float]:
    return {(r.name, *sorted(r.labels.items())): r.value for r in readings}


@pytest.fixture
def eu() -> Iterator[KafkaServer]:
    """The other cluster, of one test alone: it may be killed."""
    require("Apache Kafka")
    with KafkaServer() as server:
        yield server


@pytest.fixture
async def both(
    kafka: str,
    eu: KafkaServer,
    topics: MakeTopics,
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
) -> AsyncIterator[Clusters]:
    """Two clusters with the settings for them."""
    names = topics(partitions=PARTITIONS)
    more = {
        "sources": [SHOWN | {"topics": [names.impressions]}, TAPPED | {"topics": [names.clicks]}],
        "clusters": {"eu": {"brokers": eu.brokers}},
        "time": {"max_skew": "10s"},
    }
    await create_topics(eu.brokers, [names.clicks], PARTITIONS)
    async with bench(tmp_path, document_of(kafka, names, redis_url, redis_prefix, more)) as made:
        yield Clusters(made, names, tmp_path)


async def owned(made: Bench) -> list[list[int]]:
    """The partitions that each worker has, the most first."""
    reports = [report for report in await made.store.reports() if report.is_present]
    phases = [[n for n, phase in r.owned.items() if phase == "owned"] for r in reports]
    return sorted(phases, key=len, reverse=True)


@long
async def test_a_worker_is_killed(both: Clusters, eu: KafkaServer, kafka: str) -> None:
    await both.send(400)
    made = both.made
    first = made.start_worker()
    await both.is_counted()
    first.kill()
    await both.send(400)
    made.start_worker()
    await both.is_counted()
    await made.stop_workers()
    said = await both.streamer("check")
    assert f"Kafka: reachable at {kafka}" in said
    assert f"Kafka cluster 'eu': reachable at {eu.brokers}" in said
    assert f"topic '{both.names.clicks}@eu': the last" in said
    assert (
        f"topics: {both.names.impressions}, {both.names.clicks}@eu: {PARTITIONS} partitions each"
        in said
    )


@long
@pytest.mark.timeout(LIMIT_SECONDS)
async def test_the_other_cluster_is_away(both: Clusters, eu: KafkaServer) -> None:
    """Its last records are there and not read: what is read of the first cluster must not be taken
    for all there is."""
    made, exporter = both.made, Exporter(both.made.settings, both.made.store)
    await both.send(400)
    worker = made.start_worker()
    await both.is_counted()

    for _ in range(2):
        worker.process.send_signal(signal.SIGSTOP)
        await both.send(400)
        await asyncio.to_thread(eu.kill)
        worker.process.send_signal(signal.SIGCONT)

        await until(lambda: goes_on(both, exporter), "the first one is counted", made.said)
        if len(both.sent) == 3:  # at the start, too
            worker.kill()
            worker = made.start_worker([*COMMAND, "-c", str(made.config)])
            await until(lambda: says(made, AWAY), "the new one says it", made.said)
            await until(lambda: goes_on(both, exporter), "by the new one, too", made.said)
        await asyncio.to_thread(eu.start)
        await both.is_counted()
    await made.stop_workers()


@long
@pytest.mark.timeout(LIMIT_SECONDS)
async def test_the_other_cluster_is_away_when_the_state_begins(
    both: Clusters, eu: KafkaServer
) -> None:
    made, exporter = both.made, Exporter(both.made.settings, both.made.store)
    await both.send(400)
    await asyncio.to_thread(eu.kill)
    made.start_worker([*COMMAND, "-c", str(made.config)])
    await until(lambda: goes_on(both, exporter), "the first one is counted", made.said)
    await asyncio.to_thread(eu.start)
    await both.is_counted()
    await made.stop_workers()


@long
@pytest.mark.timeout(LIMIT_SECONDS)
async def test_the_other_cluster_is_away_at_a_start_and_its_topics_are_named_by_a_pattern(
    both: Clusters, eu: KafkaServer
) -> None:
    made, exporter = both.made, Exporter(both.made.settings, both.made.store)
    plain = made.config.read_text()
    pattern = plain.replace(f'["{both.names.clicks}"]', f'["^{both.names.clicks}"]')
    assert pattern != plain
    await both.send(400)
    await asyncio.to_thread(eu.kill)
    for is_known in (False, True):  # as the state begins; once topics are counted
        made.config.write_text(pattern)
        worker = made.start_worker([*COMMAND, "-c", str(made.config)])
        goes = functools.partial(goes_on, both, exporter, is_known=is_known)
        await until(goes, "the first one is counted", made.said)
        await asyncio.to_thread(eu.start)
        await both.is_counted()
        made.config.write_text(plain)  # `produce` sends to no pattern
        await worker.stop()
        if not is_known:
            await both.send(400)
            await asyncio.to_thread(eu.kill)


async def goes_on(both: Clusters, exporter: Exporter, *, is_known: bool = True) -> bool:
    """Whether all impressions are counted, and it is said that clicks are not; ``is_known``:
    whether their topic is, of which the worker waits for more."""
    result = await exporter.read()
    shown = sum(path.read_bytes().count(b"impression") for path in both.sent)
    stored = exporter.reader.manifests.values()
    return (
        AWAY in str(exporter.health.problems if is_known else exporter.health.warnings)
        and f"{both.names.clicks}@eu" in str(exporter.health.warnings)
        and by_labels(result.readings)["streamer_identity_exact",] == 0
        and sum(m.topics[both.names.impressions].counters["accepted"] for m in stored) == shown
    )


async def says(made: Bench, text: str) -> bool:
    return text in made.workers[-1].said()


@long
@pytest.mark.timeout(LIMIT_SECONDS)
async def test_workers_share_both_clusters(both: Clusters) -> None:
    made = both.made
    await both.send(400)
    first = made.start_worker()
    await both.is_counted()
    made.start_worker()

    async def is_shared() -> bool:
        return [len(each) for each in await owned(made)] == [1, 1]

    await until(is_shared, "each has one", made.said)
    await both.send(4000)
    await both.is_counted()
    await both.send(4000)  # they are read while the first one leaves
    await first.stop()
    await both.is_counted()

    async def is_whole() -> bool:
        return [len(each) for each in await owned(made)] == [2]

    await until(is_whole, "the other one has both", made.said)
    await made.stop_workers()
