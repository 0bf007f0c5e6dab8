"""Two clusters are not asked together: what one of them holds waits until the other one was asked
since."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from aiokafka.structs import TopicPartition

from streamer.errors import BrokerError
from streamer.ingest.hash_key import FIXED_KEY
from streamer.kafka.chunk import Chunk, chunk_of
from streamer.kafka.consumers import JoinedConsumers, Progress
from streamer.kafka.other_cluster import OtherCluster
from streamer.metrics.catalogue import Catalogue
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.state.journal import Journal
from streamer.state.partition import Partition
from streamer.worker.partition_task import PartitionTask, Phase
from tests.support.scripted import ScriptedLog

SHOWN, TAPPED = "shown", "taps@eu"
FIELDS = {"ts": "ts", "user_id": "user_id", "item_id": "item_id"}
SETTINGS: Settings = parse(
    {
        "sources": [
            {"topics": ["shown"], "kind": {"fixed": "impression"}, "fields": FIELDS},
            {"topics": ["taps"], "kind": {"fixed": "click"}, "fields": FIELDS, "cluster": "eu"},
        ],
        "clusters": {"eu": {"brokers": "127.0.0.1:1"}},
    }
)


def chunk(log: str, offset: int, at_ms: int, received_at: float) -> Chunk:
    raw = b'{"ts": %d, "user_id": "u", "item_id": "i"}' % at_ms
    record = SimpleNamespace(offset=offset, timestamp=at_ms, value=raw, key=None, headers=())
    made = chunk_of(log, 0, 0, log, [record])
    made.received_at = received_at
    return made


def owned() -> PartitionTask:
    task = PartitionTask(0, SETTINGS, phase=Phase.OWNED)
    task.partition = Partition(SETTINGS, Catalogue(SETTINGS), FIXED_KEY)
    task.journal = Journal(task.partition, "claim")
    task.epochs = {SHOWN: 0, TAPPED: 0}
    return task


def look(task: PartitionTask, shown: float, tapped: float) -> None:
    """Both clusters were asked at these times, and said that their logs end."""
    assert task.partition is not None
    ends = {name: log.next_offset for name, log in task.partition.logs.items()}
    queued = {name: ends[name] + task.rows(name) for name in ends}
    asked = {SHOWN: shown, TAPPED: tapped}
    task.look({name: Progress(queued[name], 0, queued[name], asked[name]) for name in ends})


def test_records_wait_for_an_answer_that_is_newer() -> None:
    task = owned()
    task.offer(chunk(SHOWN, 0, 1_700_000_000_000, received_at=5.0))
    look(task, shown=4.9, tapped=4.9)
    assert task.take(1, everything=True) == []
    look(task, shown=5.1, tapped=5.1)
    assert len(task.take(1, everything=True)) == 1


def test_a_log_does_not_end_before_what_was_applied() -> None:
    task = owned()
    task.apply([chunk(SHOWN, 0, 1_700_000_000_000, received_at=5.0)])
    look(task, shown=6.0, tapped=4.9)
    assert task.at_end == {SHOWN}
    look(task, shown=6.0, tapped=5.1)
    assert task.at_end == {SHOWN, TAPPED}


def test_a_log_that_cannot_be_read_holds_back_nobody_and_is_not_at_its_end() -> None:
    task = owned()
    late_ms = 1_700_000_000_000
    task.apply([chunk(TAPPED, 0, late_ms - 86_400_000, received_at=4.0)])
    task.offer(chunk(SHOWN, 0, late_ms, received_at=5.0))
    assert task.partition is not None
    log = task.partition.logs[SHOWN]
    progress = {SHOWN: Progress(log.next_offset + 1, 0, log.next_offset + 1, 6.0)}
    task.look(progress)
    assert task.take(1, everything=True) == []  # it is a day ahead
    task.look(progress, frozenset({TAPPED}))
    task.apply(task.take(1, everything=True))
    task.look(progress, frozenset({TAPPED}))
    assert task.at_end == {SHOWN}
    before_ms = task.partition.logs[TAPPED].clock_ms
    task.apply([])
    assert task.partition.logs[TAPPED].clock_ms == before_ms
    assert task.partition.logs[SHOWN].clock_ms == late_ms


async def test_each_cluster_is_asked_for_its_own_topics() -> None:
    """One that is away says so by its name, and the other one is asked all the same."""
    offered: list[Chunk] = []
    other = OtherCluster(SETTINGS, SETTINGS.read_clusters[1], offered.append)
    main = ScriptedLog()
    log = JoinedConsumers({SHOWN: main, TAPPED: other})
    shown, tapped = TopicPartition(SHOWN, 0), TopicPartition(TAPPED, 0)
    assert not log.is_assigned([shown, tapped])
    other.assign([0])
    assert log.is_assigned([shown, tapped])
    assert not log.is_assigned([TopicPartition(TAPPED, 1)])
    other.start()
    try:
        for _ in range(100):
            await asyncio.sleep(0.05)
            try:
                await log.bounds([shown, tapped])
            except BrokerError as error:
                said = str(error)
            if "cannot be reached" in said:
                break
        assert said.startswith("Kafka cluster 'eu': cannot be reached: ")
        assert said.endswith("; at clusters.eu.brokers 127.0.0.1:1")
        assert (await log.progress()).keys() >= {TopicPartition("impressions", 0)}
        await log.start_at({shown: 3}, 1)
        assert main.starts == [{shown: 3}]
    finally:
        await other.stop()
    assert offered == []
