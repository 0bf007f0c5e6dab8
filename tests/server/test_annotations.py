"""Marks from outside by the JSON API."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from streamer.errors import SettingsError
from streamer.server.annotations import token_of
from streamer.server.app import application
from streamer.server.exporter import Exporter
from streamer.settings import limits
from streamer.settings.durations import DAY_MS, HOUR_MS
from streamer.settings.load import parse
from streamer.state.memory import MemoryStore

TOKEN = "a secret token"
LOGIN = {"Authorization": f"Bearer {TOKEN}"}


def client(**exporter: Any) -> TestClient[Any, Any]:
    settings = parse({"exporter": exporter})
    return TestClient(TestServer(application(Exporter(settings, MemoryStore()))))


async def test_a_mark_is_listed() -> None:
    async with client(annotations_token=TOKEN) as found:
        for at_ms, text in ((2000, "model 8"), (1000, "campaign")):
            body = {"text": text, "at_ms": at_ms, "until_ms": 3000}
            answer = await found.post("/api/annotations", json=body, headers=LOGIN)
            assert answer.status == 200, await answer.text()
        answer = await found.post("/api/annotations", json={"text": "now"}, headers=LOGIN)
        assert (await answer.json())["at_ms"] > 1_600_000_000_000
        listed = (await (await found.get("/api/annotations")).json())["annotations"]
        assert [mark["text"] for mark in listed] == ["campaign", "model 8", "now"]
        assert listed[0].pop("id")
        assert listed[0] == {"at_ms": 1000, "text": "campaign", "until_ms": 3000}


async def test_a_mark_may_be_of_tomorrow_but_no_later() -> None:
    async with client(annotations_token=TOKEN) as found:
        now_ms = time.time_ns() // 1_000_000
        for hours, status in ((23, 200), (25, 400)):
            body = {"text": "launch", "at_ms": now_ms + hours * HOUR_MS}
            answer = await found.post("/api/annotations", json=body, headers=LOGIN)
            assert answer.status == status
        assert "more than a day after now" in (await answer.json())["error"]
        body = {"text": "campaign", "until_ms": now_ms + 90 * DAY_MS}
        assert (await found.post("/api/annotations", json=body, headers=LOGIN)).status == 200
        assert len((await (await found.get("/api/annotations")).json())["annotations"]) == 2


async def test_a_mark_can_be_deleted() -> None:
    login = {"username": "me", "password": "secret"}
    reading = {"Authorization": f"Basic {base64.b64encode(b'me:secret').decode()}"}
    async with client(annotations_token=TOKEN, **login) as found:
        names = []
        for text in ("wrong", "right"):
            answer = await found.post("/api/annotations", json={"text": text}, headers=LOGIN)
            names.append((await answer.json())["id"])
        path = f"/api/annotations/{names[0]}"
        assert (await found.delete(path)).status == 401
        assert (await found.delete(path, headers=reading)).status == 401
        assert (await found.delete(path, headers=LOGIN)).status == 200
        answer = await found.delete(path, headers=LOGIN)
        assert answer.status == 404
        assert "no mark has the id" in (await answer.json())["error"]
        listed = await (await found.get("/api/annotations", headers=reading)).json()
        assert [(m["id"], m["text"]) for m in listed["annotations"]] == [(names[1], "right")]
    async with client() as found:
        assert (await found.delete(path, headers=LOGIN)).status == 403


@pytest.mark.parametrize(
    ("body", "headers", "status", "said"),
    [
        ("{}", LOGIN, 400, "text"),
        ("[" * 4000, LOGIN, 400, "the body must be JSON"),
        ('{"text": "x", "colour": 1}', LOGIN, 400, "colour"),
        ('{"text": "' + "x" * 201 + '"}', LOGIN, 400, "1 to 200 printable characters"),
        ('{"text": "a\\nb"}', LOGIN, 400, "printable"),
        ('{"text": "x", "at_ms": -1}', LOGIN, 400, "at_ms"),
        ('{"text": "x", "at_ms": 5, "until_ms": 4}', LOGIN, 400, "until_ms is before at_ms"),
        ("x" * (limits.MAX_ANNOTATION_BYTES + 1), LOGIN, 400, "more than 4096 bytes"),
        ('{"text": "x"}', {}, 401, "Bearer"),
        ('{"text": "x"}', {"Authorization": "Bearer wrong"}, 401, "Bearer"),
        ('{"text": "x"}', {"Authorization": f"Basic {TOKEN}"}, 401, "Bearer"),
    ],
)
async def test_what_is_refused(body: str, headers: dict[str, str], status: int, said: str) -> None:
    async with client(annotations_token=TOKEN) as found:
        answer = await found.post("/api/annotations", data=body, headers=headers)
        assert (answer.status, said in await answer.text()) == (status, True)
        assert (await (await found.get("/api/annotations")).json()) == {"annotations": []}


async def test_without_a_token_nobody_writes() -> None:
    async with client() as found:
        answer = await found.post("/api/annotations", json={"text": "x"}, headers=LOGIN)
        assert answer.status == 403


async def test_the_token_is_enough_where_pages_ask_for_a_password() -> None:
    login = {"username": "me", "password": "secret"}
    async with client(annotations_token=TOKEN, **login) as found:
        post = await found.post("/api/annotations", json={"text": "x"}, headers=LOGIN)
        assert post.status == 200
        assert (await found.get("/api/annotations", headers=LOGIN)).status == 401
        assert (await found.post("/api/annotations", json={"text": "x"})).status == 401


def test_a_token_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    settings = parse({"exporter": {"annotations_token_file": str(file)}})
    assert token_of(settings.exporter) == TOKEN
    file.write_text("\n")
    for problem in ("is an empty file", "cannot read"):
        with pytest.raises(SettingsError, match=problem):
            token_of(settings.exporter)
        file.unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("exporter", "said"),
    [
        ({"annotations_token": "short"}, "shorter than 8"),
        ({"annotations_token": TOKEN, "annotations_token_file": "/x"}, "keep one"),
    ],
)
def test_settings_that_cannot_be(exporter: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        parse({"exporter": exporter})
