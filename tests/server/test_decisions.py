"""What was acted on as a feed: what is new since a time, and Atom."""

from __future__ import annotations

import datetime
import xml.etree.ElementTree as ET
from typing import Any

from aiohttp.test_utils import TestClient, TestServer

from streamer.server.app import application
from streamer.server.exporter import Exporter
from streamer.settings.load import parse
from streamer.state.acted import ActionRecord, Delivery, Told, stored
from streamer.state.memory import MemoryStore

START = datetime.date(2026, 3, 2)
ATOM = "{http://www.w3.org/2005/Atom}"


def record(at_ms: int, kind: str, url: str = "") -> ActionRecord:
    return ActionRecord(
        key=f"ranker/{kind}/1",
        kind=kind,
        experiment="ranker",
        start=START,
        arm="B",
        action="stop: harm",
        sentence=f"ranker: {kind} & more",
        reason="",
        at_ms=at_ms,
        stream_ms=1,
        commits={0: 1},
        url=url,
    )


RECORDS = [record(2000, "withdrawn"), record(1000, "harm", url="https://wiki/ranker")]
DELIVERY = Delivery("ranker/harm/1", "hook", "example.org", Told.DELIVERED, 1, 1500)


async def client() -> TestClient[Any, Any]:
    store = MemoryStore()
    assert await store.lead("w", 0, stored(RECORDS, [DELIVERY]))
    return TestClient(TestServer(application(Exporter(parse({}), store))))


async def test_decisions_are_listed_since_a_time() -> None:
    async with await client() as asked:
        for since, expected in (("", ["harm", "withdrawn"]), ("?since=1000", ["withdrawn"])):
            found = await (await asked.get(f"/api/decisions{since}")).json()
            assert [each["record"]["kind"] for each in found["decisions"]] == expected
        found = await (await asked.get("/api/decisions")).json()
        told = [each["told"] for each in found["decisions"]]
        assert [[d["state"] for d in each] for each in told] == [["delivered"], []]
        for wrong in ("?since=soon", "?since=-1", "?until=1"):
            assert (await asked.get(f"/api/decisions{wrong}")).status == 400


async def test_the_feed_is_atom() -> None:
    """By RFC 4287: ids, titles and times of the feed and of each entry, the newest first."""
    async with await client() as asked:
        answer = await asked.get("/decisions.atom")
        assert answer.content_type == "application/atom+xml"
        feed = ET.fromstring(await answer.read())
        entries = feed.findall(f"{ATOM}entry")
        assert [e.findtext(f"{ATOM}title") for e in entries] == [
            "ranker: withdrawn & more",
            "ranker: harm & more",
        ]
        for each in (feed, *entries):
            assert (each.findtext(f"{ATOM}id") or "").startswith("urn:streamer:")
            datetime.datetime.fromisoformat(each.findtext(f"{ATOM}updated") or "")
        link = entries[1].find(f"{ATOM}link")
        assert link is not None
        assert link.get("href") == "https://wiki/ranker"
        assert (await asked.get("/decisions.atom?x=1")).status == 400
