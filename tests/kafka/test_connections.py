"""Requests on a connection that hangs, on a slow one, and on one that waits for the group."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import RequestTimedOutError

from streamer.kafka import connections
from streamer.kafka.connections import Connections
from streamer.settings import limits
from tests.support.scripted import until

FETCH, JOIN = SimpleNamespace(API_KEY=1), SimpleNamespace(API_KEY=11)


class Client:
    """One connection, on which ``answer`` never comes by itself."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.reader = SimpleNamespace(_buffer=bytearray())
        self.closed: list[Any] = []
        connection = SimpleNamespace(_last_action=0.0, _reader=self.reader, close=self.close)
        self._conns = {(1, ConnectionGroup.DEFAULT): connection}
        self.cluster = SimpleNamespace(
            broker_metadata=lambda node: SimpleNamespace(host="broker", port=9092)
        )
        self.connected: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.updates = 0

    def close(self, reason: Any) -> None:
        self.closed.append(reason)

    async def _get_conn(self, node_id: int) -> Any:
        return await self.connected

    def force_metadata_update(self) -> None:
        self.updates += 1

    async def send(self, node_id: int, request: Any, *, group: Any) -> str:
        return await asyncio.shield(self.answer)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(limits, "SILENT_SECONDS", 0.2)
    monkeypatch.setattr(limits, "UNANSWERED_SECONDS", 0.1)
    monkeypatch.setattr(limits, "CONNECT_SECONDS", 0.1)


async def test_aiokafka_has_what_is_looked_at() -> None:
    names = AIOKafkaConnection.__init__.__code__.co_names
    assert {"_last_action", "_reader", "_writer"} <= set(names)
    assert "_conns" in AIOKafkaClient.__init__.__code__.co_names
    assert hasattr(asyncio.StreamReader(), "_buffer")


async def test_a_silent_connection_is_reported_and_closed() -> None:
    client: Any = Client()
    watched = Connections(client)
    asking = asyncio.ensure_future(client.send(1, FETCH))
    await until(watched.problems, "it is reported")
    assert watched.problems()[0].startswith("Kafka at broker:9092 has not answered for more than")
    assert not client.closed
    with pytest.raises(RequestTimedOutError):
        await asking
    assert len(client.closed) == 1
    client.answer.set_result("found")
    assert await client.send(1, FETCH) == "found"
    assert watched.problems() == []


async def test_a_large_answer_takes_as_long_as_it_takes() -> None:
    client: Any = Client()
    Connections(client)
    asking = asyncio.ensure_future(client.send(1, FETCH))
    for _ in range(40):
        client.reader._buffer.append(0)
        await asyncio.sleep(0.01)
    client.answer.set_result("large")
    assert await asking == "large"
    assert not client.closed


async def test_joining_the_group_waits_for_the_others() -> None:
    client: Any = Client()
    watched = Connections(client)
    joining = asyncio.ensure_future(client.send(1, JOIN))
    await asyncio.sleep(0.4)
    assert not joining.done()
    assert watched.problems() == []
    client.answer.set_result("joined")
    assert await joining == "joined"


async def test_a_connection_that_is_not_made_in_time() -> None:
    client: Any = Client()
    Connections(client)
    assert await client._get_conn(1) is None
    assert client.updates == 1
