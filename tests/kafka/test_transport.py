"""The transport's hooks into Faust and aiokafka, and the worker as an ordinary Faust program."""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import aiokafka
import faust
import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.consumer import fetcher
from aiokafka.consumer.subscription_state import TopicPartitionState
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.structs import TopicPartition
from faust.transport.drivers import aiokafka as driver

from streamer.cli.run import worker_environment
from streamer.kafka import fetching, raw_batches, transport
from streamer.settings.event_fields import KINDS
from streamer.settings.model import Topics
from streamer.testing.embedded import HOST
from tests.oracle.oracle import records_of_log
from tests.oracle.random_log import random_log
from tests.support.agreement import to_log
from tests.support.cases import check_readings
from tests.support.engines import LogRecord
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long, shortened
from tests.support.workers import (
    Bench,
    bench,
    document_of,
    ends_of,
    produce,
    until,
)

PARTITIONS = 2
FAUST = [sys.executable, "-m", "faust", "-A", "streamer.app:app"]
WITHOUT_HOOK = """
import sys
import streamer.kafka.transport
streamer.kafka.transport.keep_batches_raw = lambda: False
from faust.cli.faust import cli
sys.argv = ["faust", *sys.argv[1:]]
cli()
"""


def parameters(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


@pytest.mark.parametrize(
    ("owner", "name", "takes"),
    [
        (driver.AIOKafkaConsumerThread, "__post_init__", ["self"]),
        (driver.AIOKafkaConsumerThread, "_create_worker_consumer", ["self", "transport"]),
        (
            driver.AIOKafkaConsumerThread,
            "_fetch_records",
            ["self", "consumer", "active_partitions", "timeout", "max_records"],
        ),
        (driver.AIOKafkaConsumerThread, "getmany", ["self", "active_partitions", "timeout"]),
        (driver.AIOKafkaConsumerThread, "seek_to_committed", ["self"]),
        (driver.AIOKafkaConsumerThread, "verify_event_path", ["self", "now", "tp"]),
        (driver.AIOKafkaConsumerThread, "_ensure_consumer", ["self"]),
        (driver.AIOKafkaConsumerThread, "assignment", ["self"]),
        (driver.Consumer, "_new_consumer_thread", ["self"]),
        (driver.Consumer, "_to_message", ["self", "tp", "record"]),
        (driver.Consumer, "pause_partitions", ["self", "tps"]),
        (driver.Consumer, "resume_partitions", ["self", "tps"]),
        (driver.Producer, "_settings_auth", ["self"]),
        (faust.App, "_new_transport", ["self"]),
        (faust.App, "_new_producer_transport", ["self"]),
        (faust.App, "on_first_start", ["self"]),
    ],
)
def test_what_we_override_or_call_is_there(owner: type, name: str, takes: list[str]) -> None:
    assert parameters(getattr(owner, name)) == takes


def test_overrides_take_what_they_override() -> None:
    for ours, theirs in (
        (transport.ConsumerThread, driver.AIOKafkaConsumerThread),
        (transport.Consumer, driver.Consumer),
        (transport.Producer, driver.Producer),
        (transport.Transport, driver.Transport),
    ):
        assert issubclass(ours, theirs)
        for name, function in vars(ours).items():
            if inspect.isfunction(function) and hasattr(theirs, name) and name != "__init__":
                assert parameters(function) == parameters(getattr(theirs, name)), name
    assert transport.Transport.Consumer is transport.Consumer
    assert transport.Transport.Producer is transport.Producer


def test_aiokafka_has_the_hook_for_raw_batches() -> None:
    assert raw_batches.keep_batches_raw()
    assert raw_batches.keep_batches_raw()  # once is enough, twice is harmless
    source = inspect.getsource(fetcher.Fetcher._proc_fetch_request)
    for used in ("MemoryRecords(part_data[-1])", "PartitionRecords(", "size_in_bytes()"):
        assert used in source
    assert "for msg in self._partition_records" in inspect.getsource(fetcher.FetchResult.getall)


def test_aiokafka_knows_how_far_a_partition_is() -> None:
    for name in ("lso", "highwater", "has_valid_position", "position"):
        assert hasattr(TopicPartitionState, name) or name in (
            TopicPartitionState.__init__.__code__.co_names
        )


async def test_a_failed_fetch_casts_doubt_on_its_logs() -> None:
    assert parameters(AIOKafkaClient.send) == ["self", "node_id", "request", "group"]
    asked = [("clicks", [(0, 5, 1000), (1, 7, 1000)])]
    request = FetchRequest(100, 1, 1000, 0, asked)
    assert request.API_KEY == 1
    assert request.topics == asked
    answers: list[Any] = [
        SimpleNamespace(topics=[("clicks", [(0, 0, 9, b""), (1, 3, -1, b"")])]),
        SimpleNamespace(topics=[("clicks", [(0, 6, -1, b""), (1, 0, 9, b"")])]),
        KafkaConnectionError("gone"),
    ]

    class Client:
        _conns: ClassVar[dict[Any, Any]] = {}

        async def _get_conn(self, node_id: int) -> Any:
            raise AssertionError

        async def send(self, node_id: int, request: Any, *, group: Any) -> Any:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

    client: Any = Client()
    made = fetching.Fetches({})
    made.watch(client)
    tps = [TopicPartition("clicks", number) for number in range(2)]
    expected = [{tps[1]}, {tps[0]}]
    for doubted in expected:
        made._epochs = dict.fromkeys(tps, 1)
        await client.send(1, request)
        assert made.take_doubted() == doubted
        assert made._asked_at.keys() == (
            set(tps) - expected[0] if doubted == expected[0] else set(tps)
        )
    made._epochs = dict.fromkeys(tps, 1)
    with pytest.raises(KafkaConnectionError):
        await client.send(1, request)
    assert made.take_doubted() == set(tps)


def test_faust_finds_the_transport_by_its_scheme() -> None:
    assert faust.transport.by_url("streamer://localhost") is transport.Transport


@pytest.fixture
def small() -> list[bytes]:
    from tests.support.agreement import SETTINGS

    return random_log(5, SETTINGS["defaults"], 1500)


async def read_all(made: Bench, topics: Topics, lines: list[bytes], brokers: str) -> None:
    """Produce the lines and read them by the workers of a bench; the numbers are the oracle's."""
    records = records_of_log(lines, made.settings, partitions=PARTITIONS)
    await produce(brokers, topics, to_log(records))
    await made.settle(ends_of(to_log(records)))
    await check_readings(made, records)


@long
async def test_without_the_hook_the_slower_way_reads_the_same(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
    small: list[bytes],
) -> None:
    made_topics = topics(partitions=PARTITIONS)
    document = document_of(kafka, made_topics, redis_url, redis_prefix, {})
    command = [sys.executable, "-c", WITHOUT_HOOK, *FAUST[3:], "worker"]
    async with bench(tmp_path, document) as made:
        records = records_of_log(small, made.settings, partitions=PARTITIONS)
        await produce(kafka, made_topics, to_log(records))
        made.start_worker(command)
        await made.settle(ends_of(to_log(records)))
        await check_readings(made, records)
        await made.stop_workers()


def test_without_the_hook_records_come_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher.PartitionRecords, "keeps_batches_raw", False, raising=False)
    monkeypatch.delattr(fetcher, "MemoryRecords")
    assert raw_batches.keep_batches_raw() is False


async def test_sigterm_flushes_and_releases(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    made_topics = topics(partitions=PARTITIONS)
    document = document_of(kafka, made_topics, redis_url, redis_prefix, {})
    value = b'{"ts": 1700000000000, "user_id": "u", "item_id": "i"}'
    async with bench(tmp_path, document) as made:
        worker = made.start_worker()

        async def owned() -> bool:
            owners = [await made.store.owner(n) for n in range(PARTITIONS)]
            reports = await made.store.reports()
            phases = [phase for report in reports for phase in report.owned.values()]
            return None not in owners and phases == ["owned"] * PARTITIONS

        async def applied() -> bool:
            return sum(report.applied_records for report in await made.store.reports()) == 100

        await until(owned, "the worker owns its partitions")
        log = [LogRecord("clicks", i % 2, 0, 1_700_000_000_000, value) for i in range(100)]
        await produce(kafka, made_topics, log)
        await until(applied, "the worker has applied 100 records")
        await worker.stop()
        await made.reader.refresh()
        counted = [m.topics["clicks"].next_offset for m in made.reader.manifests.values()]
        assert counted == [50, 50]
        assert [await made.store.owner(n) for n in range(PARTITIONS)] == [None] * PARTITIONS


@pytest.mark.usefixtures("apache_kafka")
async def test_aborted_transactions_do_not_count_and_control_records_are_no_loss(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    # clicks/0: 10 committed | marker | 10 aborted | marker | 10 committed | marker
    made_topics = topics(partitions=PARTITIONS)
    document = document_of(kafka, made_topics, redis_url, redis_prefix, {})
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=kafka, transactional_id=redis_prefix)
    await producer.start()
    for i, ending in enumerate(["commit", "abort", "commit"]):
        await producer.begin_transaction()
        for j in range(10):
            value = b'{"ts": 1700000000000, "user_id": "u", "item_id": "i%d-%d"}' % (i, j)
            await producer.send(
                made_topics.clicks, value, partition=0, timestamp_ms=1_700_000_000_000
            )
        await getattr(producer, f"{ending}_transaction")()
    await producer.stop()
    async with bench(tmp_path, document) as made:
        made.start_worker()

        async def counted() -> bool:
            await made.reader.refresh()
            manifest = made.reader.manifests.get(0)
            # Idle: the topic is known to be read to its end.
            return manifest is not None and manifest.topics["clicks"].idle_ms > 0

        await until(counted, "the log is read to its end", made.said)
        topic = made.reader.manifests[0].topics["clicks"]
        assert topic.counters["accepted"] == 20
        assert topic.next_offset in (32, 33)  # before or after the last marker
        assert (topic.lost, topic.restarts) == (0, 0)
        await made.stop_workers()


def listening(process: int) -> set[str]:
    """Addresses at which a process accepts TCP connections, in hexadecimal."""
    files = map(os.path.realpath, Path(f"/proc/{process}/fd").iterdir())  # some are closed by now
    sockets = {file.partition("socket:[")[2][:-1] for file in files}
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/{process}/net/{name}").read_text().splitlines()[1:]
    ]
    return {row[1] for row in rows if row[3] == "0A" and row[9] in sockets}


@pytest.mark.parametrize("web", shortened([["--with-web"], []]))
@pytest.mark.usefixtures("apache_kafka")
async def test_it_starts_as_any_faust_app_and_listens_on_no_port(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
    small: list[bytes],
    web: list[str],
) -> None:
    made_topics = topics(partitions=PARTITIONS)
    document = document_of(kafka, made_topics, redis_url, redis_prefix, {})
    async with bench(tmp_path, document) as made:
        worker = made.start_worker([*FAUST, "worker", *web, "--loglevel", "info"])
        await read_all(made, made_topics, small[:300], kafka)
        assert listening(worker.process.pid) == set()
        with socket.create_server((HOST, 0)):
            assert listening(os.getpid()), "the test sees none"
        await made.stop_workers()


@pytest.mark.parametrize("arguments", shortened([["agents"], ["--help"], ["worker", "--help"]]))
@long
async def test_fausts_other_commands_work(arguments: list[str], tmp_path: Path) -> None:
    done = await asyncio.to_thread(
        subprocess.run,
        [*FAUST, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env=worker_environment(None),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    if arguments == ["agents"]:
        for kind in KINDS:
            assert kind in done.stdout


@long
async def test_another_number_of_partitions_is_reported_and_recovers_nothing(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    made_topics = topics(partitions=PARTITIONS)
    document = document_of(kafka, made_topics, redis_url, redis_prefix, {})
    async with bench(tmp_path, document) as made:
        await made.store.set_partitions(PARTITIONS + 1)
        made.start_worker()

        async def reported() -> bool:
            return any(
                f"the state has {PARTITIONS + 1} partitions" in str(report.problems)
                for report in await made.store.reports()
            )

        await until(reported, "the worker reports its problem", made.said)
        assert [await made.store.owner(n) for n in range(PARTITIONS)] == [None] * PARTITIONS
        await made.stop_workers()


def test_the_versions_are_those_the_hooks_were_read_in() -> None:
    # pyproject.toml bounds them; beyond, read the hooks again and raise the bounds.
    assert aiokafka.__version__.split(".")[:2] in (["0", "12"], ["0", "13"], ["0", "14"])
    assert faust.__version__.split(".")[:2] == ["0", "15"]
