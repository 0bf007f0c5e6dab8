"""An ordinary Faust app of the kind one writes first: event by event, its state in Redis.

Per event: decode, a SET NX against duplicates, then one pipeline that increments the cell of each
window; a click first looks its impression up. These two or three round trips, in the Redis client,
are most of its time. It keeps none of streamer's promises (a crash counts again what was not
committed to Kafka) and joins only by request_id.

    python -m benchmarks.ordinary_faust --brokers localhost:9092 --redis redis://localhost \\
        --events 100000
"""

from __future__ import annotations

import os
import signal
import tempfile
import uuid
from typing import Any

import faust
import msgspec
import redis.asyncio

from benchmarks.event import Event
from benchmarks.measure import Meter, parser
from streamer.settings.model import Settings

SETTINGS = Settings()
WINDOWS_MS = SETTINGS.windows.lengths_ms
CELL_SECONDS = 2 * 86_400


class Counter:
    """Counts one event at a time into Redis hashes; one hash a (window, pane, segment)."""

    def __init__(self, url: str, prefix: str, stop_after: int) -> None:
        self._redis = redis.asyncio.from_url(url, decode_responses=True)
        self._prefix = prefix
        self._decoder = msgspec.json.Decoder(Event)
        self._cells: set[str] = set()
        self._stop_after = stop_after
        self._events = 0
        self._meter = Meter()

    async def impression(self, value: bytes) -> None:
        """Count an impression and remember it for the clicks that follow."""
        event = self._start(value)
        if event is not None and await self._is_new(event):
            pipeline = self._redis.pipeline(transaction=False)
            segment = f"{event.variant}|{event.surface}"
            pipeline.set(self._slot(event), segment, px=SETTINGS.attribution.click_ms)
            self._increment(pipeline, event.ts, segment, "impressions")
            await pipeline.execute()
        self._finish()

    async def click(self, value: bytes) -> None:
        """Count a click under the segment of its impression."""
        event = self._start(value)
        if event is not None and await self._is_new(event):
            shown = await self._redis.get(self._slot(event))
            segment = str(shown) if shown else f"{event.variant}|{event.surface}"
            pipeline = self._redis.pipeline(transaction=False)
            self._increment(pipeline, event.ts, segment, "clicks")
            if shown:
                self._increment(pipeline, event.ts, segment, "attributed")
            await pipeline.execute()
        self._finish()

    def _start(self, value: bytes) -> Event | None:
        self._meter.start()
        try:
            return self._decoder.decode(value)
        except msgspec.MsgspecError:
            return None

    async def _is_new(self, event: Event) -> bool:
        if not event.event_id:
            return True
        key = f"{self._prefix}:seen:{event.event_id}"
        return bool(await self._redis.set(key, 1, nx=True, px=SETTINGS.time.dedup_horizon_ms))

    def _slot(self, event: Event) -> str:
        return f"{self._prefix}:shown:{event.user_id}:{event.request_id}:{event.item_id}"

    def _increment(self, pipeline: Any, event_ms: int, segment: str, field: str) -> None:
        for label, length_ms in WINDOWS_MS.items():
            pane = event_ms // (length_ms // 60)
            cell = f"{self._prefix}:{label}:{pane}:{segment}"
            pipeline.hincrby(cell, field, 1)
            if cell not in self._cells:
                self._cells.add(cell)
                pipeline.expire(cell, CELL_SECONDS)

    def _finish(self) -> None:
        self._events += 1
        if self._events == self._stop_after:
            self._meter.report(self._events)
            os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Read the backlog from its start in a group of its own."""
    arguments = parser(__doc__)
    arguments.add_argument("--redis", required=True, help="URL")
    given = arguments.parse_args()
    name = f"ordinary-{uuid.uuid4().hex[:8]}"
    data = tempfile.TemporaryDirectory(prefix="streamer-bench-")  # removed at exit
    app = faust.App(
        name,
        broker=f"kafka://{given.brokers}",
        topic_disable_leader=True,
        web_enabled=False,
        datadir=data.name,
    )
    counter = Counter(given.redis, name, given.events)
    impressions = app.topic(f"impressions{given.suffix}", value_serializer="raw")
    clicks = app.topic(f"clicks{given.suffix}", value_serializer="raw")

    @app.agent(impressions)
    async def count_impressions(stream: faust.StreamT[bytes]) -> None:
        async for value in stream:
            await counter.impression(value)

    @app.agent(clicks)
    async def count_clicks(stream: faust.StreamT[bytes]) -> None:
        async for value in stream:
            await counter.click(value)

    worker = faust.Worker(app, loglevel="warning", quiet=True, redirect_stdouts=False)
    worker.spinner = None  # writes escape codes to stdout
    worker.execute_from_commandline()


if __name__ == "__main__":
    main()
