"""What readiness depends on."""

from __future__ import annotations

from random import Random

from streamer.ingest.hash_key import FIXED_KEY
from streamer.kafka.log_ends import Bounds, LogEnds
from streamer.metrics.catalogue import Catalogue
from streamer.server.health import Health, LagAge, Standstill, lag_records
from streamer.server.health import health as health_of
from streamer.settings.model import Settings
from streamer.state.journal import Journal
from streamer.state.memory import MemoryStore
from streamer.state.partition import Partition
from streamer.state.reader import Reader
from streamer.state.restore import start_over
from streamer.state.store import Answer
from streamer.state.worker_report import WorkerReport


def health(reader: Reader, reports: list[WorkerReport]) -> Health:
    """Where no log is known."""
    return health_of(reader, reports, Standstill(), LogEnds())


async def reader_of(partitions: int) -> Reader:
    store = MemoryStore()
    if partitions:
        await store.set_partitions(partitions)
    reader = Reader(store)
    await reader.refresh()
    return reader


async def test_nobody_is_there_and_nobody_is_missed() -> None:
    assert health(await reader_of(2), []).is_ready


async def test_a_partition_that_was_not_given_back_is_missed() -> None:
    """Its worker may never have got round to a report."""
    reader = await reader_of(2)
    reader.claimed = {1}
    assert health(reader, []).problems == ("partition 1 of 2: no worker owns it",)
    assert health(reader, [WorkerReport("a", {0: "owned", 1: "owned"})]).is_ready


async def test_a_silent_worker_is_missed_while_nobody_else_has_its_partitions() -> None:
    reader = await reader_of(2)
    killed = WorkerReport("a", {0: "owned", 1: "owned"}, silent_seconds=60)
    assert health(reader, [killed]).problems == (
        "a: silent for 60 s",
        "partitions 0, 1 of 2: no worker owns it",
    )
    half = WorkerReport("b", {0: "owned", 1: "recovering"})
    assert not health(reader, [killed, half]).is_ready
    whole = WorkerReport("b", {0: "owned", 1: "owned"})
    assert health(reader, [killed, whole]).is_ready


async def test_an_empty_store_under_workers_is_reported() -> None:
    there = WorkerReport("a", {0: "owned"})
    assert health(await reader_of(0), [there]).problems == (
        "workers are running, but nothing is stored yet",
    )


async def test_many_partitions_are_shortened() -> None:
    there = WorkerReport("a", {0: "owned"}, problems={0: "no broker"})
    assert health(await reader_of(64), [there]).problems == (
        "a: partition 0: no broker",
        "partitions 1, 2, 3, 4, 5, 6, 7, 8 … of 64: no worker owns it",
    )


async def test_records_that_wait_without_a_commit_are_a_problem_after_a_while() -> None:
    reader, still = await reader_of(2), Standstill()
    waiting = {("clicks", 0): 7, ("clicks", 1): 0}
    still.look(1_000_000, waiting, {0: 400_000, 1: 400_000}, LogEnds())
    assert still.seconds == {0: 0.0, 1: 0.0}  # an idle partition's commit is old
    still.look(1_031_000, waiting, {0: 400_000, 1: 400_000}, LogEnds())
    assert still.seconds == {0: 31.0, 1: 0.0}
    there = [WorkerReport("a", {0: "owned", 1: "owned"})]
    assert health_of(reader, there, still, LogEnds()).problems == (
        "partition 0: records have waited for 31 s without a commit",
    )
    still.look(1_032_000, waiting, {0: 1_031_500, 1: 400_000}, LogEnds())  # it goes on, behind
    assert still.seconds == {0: 0.5, 1: 0.0}
    still.look(1_040_000, {("clicks", 0): 0}, {0: 1_031_500}, LogEnds())
    assert still.seconds == {0: 0.0}


async def test_a_transaction_that_stays_open_is_said_while_all_else_is_read() -> None:
    reader, still = await reader_of(2), Standstill()
    there = [WorkerReport("a", {0: "owned", 1: "owned"})]

    def warnings(now_ms: int, *ends: int) -> tuple[str, ...]:
        """``ends``: of each log of clicks, of which 10 records can be read."""
        known = LogEnds({("clicks", n): Bounds(0, 10, end) for n, end in enumerate(ends)})
        still.look(now_ms, {("clicks", 0): 0, ("clicks", 1): 0}, {}, known)
        found = health_of(reader, there, still, known)
        assert found.is_ready
        return found.warnings

    assert warnings(1_000_000, 10, 61) == ()
    assert warnings(1_020_000, 12, 62) == (
        "topic clicks: 54 records have waited for 20 s behind an open transaction: its producer has"
        " to commit or abort it",
    )
    assert warnings(1_021_000, 12, 10) == ()
    assert "waited for 8 s" in warnings(1_028_000, 12, 10)[0]
    still.look(1_029_000, {}, {}, LogEnds({("clicks", 0): Bounds(0, 11, 12)}))  # the next one's
    assert still.held_seconds == {"clicks": 0.0}


async def test_a_kafka_that_does_not_answer_is_a_problem() -> None:
    found = health_of(await reader_of(1), [], Standstill(), LogEnds(problem="no broker"))
    assert found.problems == ("the lag is unknown: Kafka: no broker",)


def test_the_lag_is_true_without_workers_and_leaves_out_what_is_no_record() -> None:
    ends = LogEnds({("clicks", 0): Bounds(5, 12, 12), ("clicks", 1): Bounds(0, 0, 9)})
    assert lag_records(ends, {}, []) == {("clicks", 0): 7, ("clicks", 1): 0}
    past_a_marker = WorkerReport("a", read_to={"clicks/0": 12})
    assert lag_records(ends, {}, [past_a_marker]) == {("clicks", 0): 0, ("clicks", 1): 0}


async def test_what_is_counted_again_after_damage_is_behind_until_it_has_read_as_far() -> None:
    """Also where a log was recreated before: restarts are counted again, too."""
    store, settings = MemoryStore(), Settings()
    await store.set_partitions(1)
    reader = Reader(store)

    async def commit(journal: Journal, offset: int) -> None:
        journal.partition.logs["clicks"].next_offset = offset
        assert await store.commit(0, journal.prepare()) is Answer.OK

    claim, stored = await store.claim(0)
    partition = Partition(settings, Catalogue(settings), FIXED_KEY)
    partition.logs["clicks"].restart(0)
    await commit(Journal(partition, claim), 1000)
    await reader.refresh()
    claim, stored = await store.claim(0)
    again = start_over(Partition(settings, Catalogue(settings), FIXED_KEY), claim, stored)
    await commit(again, 10)
    await reader.refresh()
    assert reader.behind == [0]
    lags = lag_records(
        LogEnds({("clicks", 0): Bounds(0, 1500, 1500)}), {0: reader.stored[0][0]}, []
    )
    assert lags == {("clicks", 0): 1490}  # of what is stored, not of what is shown
    await commit(again, 1001)
    await reader.refresh()
    assert reader.behind == []
    assert reader.manifests[0].topics["clicks"].next_offset == 1001


def test_the_oldest_record_that_waits_has_an_age() -> None:
    """By an obvious account: when each offset was seen first, and which are counted."""
    end, counted, now_ms = 10, 10, 1_000_000
    random, age = Random(7), LagAge(lambda: now_ms / 1000)
    seen_ms: dict[int, int] = {}
    for _ in range(500):
        now_ms += 15_000
        end += random.choice((0, 0, 1, 50))
        counted = min(end, counted + random.choice((0, 0, 0, 5, 80)))
        for offset in range(end):
            seen_ms.setdefault(offset, now_ms)
        place = ("clicks", 0)
        lags = {place: end - counted, ("clicks", 1): 0, ("views", 0): 0}
        ends = LogEnds({at: Bounds(0, end if at == place else 5, end) for at in lags})
        age.look(now_ms, lags, ends, {})
        waits = (now_ms - seen_ms[counted]) / 1000 if counted < end else 0.0
        assert age.seconds == {"clicks": waits, "views": 0.0}
