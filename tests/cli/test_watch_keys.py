"""The supervisor's look at how topics are keyed goes on, whatever a look ends with."""

from __future__ import annotations

import asyncio

import pytest

from streamer.cli import run
from streamer.errors import BrokerError, RegistryError
from streamer.ingest.keying import Keying
from streamer.settings import limits
from streamer.settings.event_fields import KINDS
from streamer.settings.model import Settings
from streamer.state.memory import MemoryStore
from tests.support.scripted import until


class Store(MemoryStore):
    async def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            ValueError("nobody expected it"),
            "streamer: cannot check how topics are keyed: ValueError: nobody expected it; trying "
            "again\n",
        ),
        (BrokerError("away"), ""),  # the workers say it
        (RegistryError("away"), ""),
    ],
)
async def test_no_error_ends_the_looks(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    said: str,
) -> None:
    monkeypatch.setattr(run, "_FIRST_LOOK_SECONDS", 0.005)
    monkeypatch.setattr(limits, "KEYING_SECONDS", 0.01)
    store, looks = Store(), 0

    async def look(settings: Settings) -> dict[str, Keying]:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise error
        is_by_user = looks < 4
        return dict.fromkeys(KINDS, Keying(True, 50, 0)) | {"clicks": Keying(is_by_user, 50, 9)}

    monkeypatch.setattr(run, "RedisStore", lambda redis: store)
    monkeypatch.setattr(run, "look_at_keys", look)
    stop = asyncio.Event()
    task = asyncio.create_task(run._watch_keys(Settings(), stop))
    await until(lambda: looks > 2 or task.done(), "looked again")
    assert capsys.readouterr().err == said
    await asyncio.wait_for(task, 10)
    assert looks == 4  # until it is known that a topic is not keyed by user
    assert store.keys["clicks"] is False
    assert "metrics of users are off: not keyed by user: topic 'clicks'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [BrokerError("away"), RegistryError("away"), ValueError("nobody expected it"), None],
)
async def test_a_look_that_fails_or_finds_too_little_stops_nobody(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    async def look(settings: Settings) -> dict[str, Keying]:
        if error is not None:
            raise error
        return dict.fromkeys(KINDS, Keying(None, 9, 0))

    monkeypatch.setattr(run, "look_at_keys", look)
    await run.preflight_keys(Settings())
