"""Errors of joining the group that aiokafka keeps until a fetch, of which there is none yet."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import GroupAuthorizationFailedError, KafkaError
from faust.transport.drivers import aiokafka as driver

from streamer.kafka import transport
from streamer.kafka.transport import ConsumerThread
from tests.support.scripted import until


class Coordinator:
    """As much of aiokafka's as errors need."""

    check_errors = GroupCoordinator.check_errors
    reset_generation = GroupCoordinator.reset_generation

    def __init__(self) -> None:
        self._pending_exception: Exception | None = None
        self._error_consumed_fut: asyncio.Future[None] | None = None
        self._coordination_task = asyncio.get_running_loop().create_future()
        self.generation, self.member_id, self.rejoins = 7, "member", 0

    def request_rejoin(self) -> None:
        self.rejoins += 1

    def keep(self, error: Exception) -> asyncio.Future[None]:
        """What its task does with an error: it goes on when somebody has taken it."""
        self._pending_exception = error
        self._error_consumed_fut = asyncio.get_running_loop().create_future()
        return self._error_consumed_fut


class Thread:
    """A consumer thread that runs, with its consumer."""

    should_stop = False

    def __init__(self) -> None:
        self._coordinator = Coordinator()
        self.assigned: set[object] = set()

    def _ensure_consumer(self) -> Thread:
        return self

    def assignment(self) -> set[object]:
        return self.assigned

    def start(self) -> asyncio.Task[None]:
        work: Any = ConsumerThread._join_again
        return asyncio.create_task(work(self))


def has_rejoined(coordinator: Coordinator, times: int) -> bool:
    return coordinator.rejoins == times


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_JOIN_AGAIN_SECONDS", 0.005)


async def test_an_error_is_taken_and_the_worker_joins_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    thread = Thread()
    coordinator, task = thread._coordinator, thread.start()
    for n in (1, 2):
        taken = coordinator.keep(KafkaError("Unexpected error: [Error 15]"))
        await until(taken.done, "the coordinator may go on")
        await until(partial(has_rejoined, coordinator, n), "it joins again")
        assert (coordinator.generation, coordinator.member_id) == (-1, "")
        coordinator.generation, coordinator.member_id = 7, "member"
    assert caplog.text.count("could not join the consumer group, trying again: KafkaError") == 2
    thread.should_stop = True
    await asyncio.wait_for(task, 10)


async def test_an_error_that_trying_again_does_not_cure_is_raised() -> None:
    thread = Thread()
    task = thread.start()
    thread._coordinator.keep(GroupAuthorizationFailedError("group"))
    with pytest.raises(GroupAuthorizationFailedError):
        await asyncio.wait_for(task, 10)
    assert thread._coordinator.rejoins == 0


async def test_an_error_of_a_consumer_that_fetches_is_left_to_the_fetch() -> None:
    thread = Thread()
    thread.assigned = {"a partition"}
    task = thread.start()
    taken = thread._coordinator.keep(KafkaError("of a later rebalance"))
    await asyncio.sleep(0.05)
    assert not taken.done()
    assert thread._coordinator.rejoins == 0
    thread.should_stop = True
    await asyncio.wait_for(task, 10)


async def test_a_consumer_thread_watches_from_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []

    async def started(thread: object) -> None:
        begun.append("thread")

    def add(thread: object, work: Any) -> None:
        begun.append(work.__name__)
        work.close()

    monkeypatch.setattr(driver.AIOKafkaConsumerThread, "on_start", started)
    monkeypatch.setattr(ConsumerThread, "add_future", add)
    await ConsumerThread.on_start(object.__new__(ConsumerThread))
    assert begun == ["thread", "_join_again"]
