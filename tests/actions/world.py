"""A replayed log whose experiment goes wrong, and a receiver that notes what it is sent."""

from __future__ import annotations

import asyncio
import datetime
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.test_utils import TestServer

from streamer.actions.leader import Leader
from streamer.kafka.log_ends import LogEnds
from streamer.server.exporter import Exporter
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.sources.replay import Replay
from streamer.state.memory import MemoryStore

DAY = datetime.date(2026, 3, 2)
DAY_MS = 86_400_000
START_MS = int(datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC).timestamp()) * 1000


def settings_of(*hooks: Mapping[str, Any], **more: Any) -> Settings:
    experiment = {
        "name": "ranker",
        "dimension": "variant",
        "control": "A",
        "split": {"A": 1, "B": 1},
        "start": DAY,
        "metrics": [{"name": "ctr_ratio"}],
        "owner": "ads",
        **more,
    }
    return parse(
        {"dimensions": [{"name": "variant"}], "experiments": [experiment], "actions": [*hooks]}
    )


def lines_of(
    day: int, users: Sequence[int], share: Callable[[str, int], int], arm_of: Callable[[int], str]
) -> Iterator[tuple[str, int, bytes]]:
    """Impressions of users on a day, and clicks on so many of four: (log, time, record)."""
    for n, user in enumerate(users):
        arm = arm_of(user)
        for item in range(4):
            ts = START_MS + day * DAY_MS + n * 1000 + item * 10
            event = {"ts": ts, "user_id": f"u{user}", "item_id": f"i{item}", "variant": arm}
            yield "impressions", ts, msgspec.json.encode(event)
            if item < share(arm, user):
                yield "clicks", ts + 5, msgspec.json.encode({**event, "ts": ts + 5})


def even(user: int) -> str:
    return "AB"[user % 2]


def harmful(arm: str, user: int) -> int:
    """Of four impressions: about two clicks in A, none in B."""
    return (1 + user // 2 % 3) if arm == "A" else 0


def alike(arm: str, user: int) -> int:
    return 1 + user // 2 % 3


def nobody(arm: str, user: int) -> int:
    return 0


LEADERS: list[Leader] = []
"""Those of the test that runs: its end closes them, those that were killed in it, too."""


class World:
    """A state in memory that grows, and whoever acts on it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.replay = Replay(settings)
        self.store = MemoryStore()
        self.ahead_ms = 1000
        """How far the clock of the store is ahead of the last event."""

    async def feed(self, lines: Iterator[tuple[str, int, bytes]]) -> None:
        """Count lines, and commit; the store is always the same one."""
        self.replay.feed(list(lines))
        self.replay.finish()
        self.store = await self.replay.store()
        stream_ms = max(view.header.stream_ms for view in self.replay.views())

        async def clock() -> int:
            return stream_ms + self.ahead_ms

        self.store.now_ms = clock  # type: ignore[method-assign]

    def leader(self, ends: LogEnds | None = None) -> Leader:
        LEADERS.append(Leader(Exporter(self.settings, self.store, ends), wait=lambda _: 0.0))
        return LEADERS[-1]


class Receiver:
    """Answers as it is told: ``answers`` are statuses, or seconds to hang; then 200."""

    def __init__(self) -> None:
        self.got: list[tuple[Mapping[str, str], bytes, str]] = []
        self.times: list[float] = []
        self.answers: list[int | float] = []

    @property
    def keys(self) -> list[str]:
        return [headers["Idempotency-Key"] for headers, _, _ in self.got]

    def documents(self) -> list[Any]:
        return [json.loads(body) for _, body, _ in self.got]

    async def _take(self, request: web.Request) -> web.Response:
        self.got.append((dict(request.headers), await request.read(), request.method))
        self.times.append(time.time())
        answer = self.answers.pop(0) if self.answers else 200
        if isinstance(answer, float):
            await asyncio.sleep(answer)
            answer = 200
        location = {"Location": "/elsewhere"} if answer == 302 else {}
        return web.Response(status=answer, headers=location)


@asynccontextmanager
async def receiver() -> AsyncIterator[tuple[Receiver, str]]:
    found = Receiver()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", found._take)
    async with TestServer(app) as server:
        yield found, str(server.make_url("/hook"))


async def until_sent(leader: Leader) -> None:
    """What is being sent now has an answer."""
    while leader._sending:
        await asyncio.gather(*leader._sending.values(), return_exceptions=True)
        await asyncio.sleep(0)
