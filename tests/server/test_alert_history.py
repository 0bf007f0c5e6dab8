"""The history of an alert by the exporter's JSON API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from aiohttp.test_utils import TestClient, TestServer

from streamer.query.alert_history import AlertHistory
from streamer.server.app import application
from streamer.server.exporter import Exporter
from streamer.settings import limits
from streamer.state.memory import MemoryStore
from tests.query.test_alert_history import ALERTS, SETTINGS, faulty, history_of
from tests.support.agreement import to_log
from tests.support.engines import chunks_of
from tests.support.journals import finish, start


@pytest.fixture
async def client() -> AsyncIterator[TestClient[Any, Any]]:
    store = MemoryStore()
    run = await start(store, SETTINGS, 2)
    for chunk in chunks_of(to_log(faulty(9)[0]), 500):
        run.engines.feed(chunk)
    await finish(store, run)
    async with TestClient(TestServer(application(Exporter(SETTINGS, store)))) as found:
        yield found


async def test_the_document_is_the_history_of_the_panes(client: TestClient[Any, Any]) -> None:
    answer = await client.get("/api/alerts/days")
    document = await answer.json()
    assert answer.status == 200, document
    expected = history_of(ALERTS["days"], faulty(9)[1])
    assert document["step_ms"] == expected.step_ms
    assert document["from_ms"] == expected.looks_ms[0]
    assert [
        (tuple(each["segment"].values()), each["spans"], each["expected_ms"])
        for each in document["segments"]
    ] == [
        (each.segment, msgspec.to_builtins(each.spans), each.expected_ms)
        for each in expected.segments()
    ]
    assert any(span["fires_ms"] for each in document["segments"] for span in each["spans"])
    assert document["omitted"] == 0
    assert (document["metric"], document["form"]) == ("ctr_ratio", "percent")


async def test_it_is_kept_for_a_while(
    client: TestClient[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[AlertHistory] = []
    segments = AlertHistory.segments

    def counting(self: AlertHistory) -> Any:
        computed.append(self)
        return segments(self)

    monkeypatch.setattr(AlertHistory, "segments", counting)
    for share, expected in ((1e9, 4), (1e-6, 5)):  # of the time: it is never kept, then for long
        monkeypatch.setattr(limits, "SLOW_DOCUMENT_SHARE", share)
        bodies = {await (await client.get("/api/alerts/before")).read() for _ in range(4)}
        assert len(bodies) == 1
        assert len(computed) == expected


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("noon", 404, "no alert 'noon'; the settings have days, before, lagging, mixed"),
        ("days?at=1", 400, "unknown parameter 'at': /api/alerts/days takes none"),
    ],
)
async def test_what_there_is_not_is_said(
    client: TestClient[Any, Any], path: str, status: int, said: str
) -> None:
    answer = await client.get(f"/api/alerts/{path}")
    assert (answer.status, (await answer.json())["error"]) == (status, said)
