"""What an exporter shows: the state in the store, and readings made of it when somebody asks."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeVar

from streamer.errors import CodecError, StoreError, StreamerError
from streamer.kafka.log_ends import LogEnds
from streamer.metrics.catalogue import Catalogue
from streamer.query.exactness import rows_left_early
from streamer.query.experiment_list import Readouts
from streamer.query.readings import ReadingSet, ReadoutCache, SeriesBlock, readout, sampled_blocks
from streamer.query.silence import Silence, silences
from streamer.query.unit_sums import UnitReadings
from streamer.query.what_was_read import WhatWasRead, of_counters
from streamer.server import processor
from streamer.server.failures import place_of
from streamer.server.health import (
    Health,
    LagAge,
    Lags,
    Standstill,
    health,
    lag_records,
    unread_topics,
)
from streamer.server.processor import ProcessorInputs
from streamer.server.recent import Recent
from streamer.settings import limits
from streamer.settings.model import Settings
from streamer.settings.redis_url import place_of as place_of_url
from streamer.state.contents import contents_of
from streamer.state.reader import Reader
from streamer.state.store import Store
from streamer.state.worker_report import WorkerReport

_CLOSE_MS = 60_000
"""Stream time within this of the store's clock, when it last moved, is live traffic."""
T = TypeVar("T")


class Exporter:
    """Reads the store at scrape time; readings are computed in a thread."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        ends: LogEnds | None = None,
        files: Sequence[str] = (),
        about: str = "",
    ) -> None:
        """``files``: names of those that the store was filled from, once and for all; ``about``:
        what readers of the page should know of its data."""
        self.settings, self.store, self.ends = settings, store, ends or LogEnds()
        self.files, self.about = tuple(files), about
        self.catalogue = Catalogue(settings)
        self.reader = Reader(store, contents_of(settings, self.catalogue))
        self.reports: list[WorkerReport] = []
        self.present: list[WorkerReport] = []
        self.health = Health()
        self.lags: Lags = {}
        """Records that are not counted yet; empty where Kafka was not asked."""
        self.standstill, self.lag_age = Standstill(), LagAge()
        self.readout_seconds = 0.0
        self._live: int | None = None
        self._last: dict[bool, tuple[tuple[int, int | None, bool], ReadingSet]] = {}
        """Whether at stream time → the last readout, and what it was of."""
        self.now_ms = 0
        """Time of the store's clock, which is that of commits, when it was read last."""
        self.at_ms = 0
        """Time at which windows were read last."""
        self.recent = Recent()
        self._read_of: tuple[ReadingSet, WhatWasRead, list[Silence]] | None = None
        self._turns = SingleFlight()
        self.units = UnitReadings(time.monotonic)
        """Sums over units of experiments that are not users."""
        self._sums = ReadoutCache(experiments=Readouts(time.monotonic), units=self.units)

    async def refresh(self) -> None:
        """Bring what is known of the store up to date; StreamerError where it cannot be read."""
        await self._turns.share("refresh", self._refresh)

    async def _refresh(self) -> None:
        prefix = self.settings.redis.prefix
        await self._require_answer()
        with _damage_at(f"{prefix}:*"):
            await self.reader.refresh()
        with _damage_at(f"{prefix}:workers"):
            now_ms, self.reports = await self.store.now_ms(), await self.store.reports()
        self.now_ms = now_ms
        self.present = [report for report in self.reports if report.is_present]
        stored = self.reader.stored
        manifests = {partition: manifest for partition, (manifest, _) in stored.items()}
        self.lags = lag_records(self.ends, manifests, self.present)
        committed_ms = {partition: seen_ms for partition, (_, seen_ms) in stored.items()}
        self.standstill.look(now_ms, self.lags, committed_ms, self.ends)
        self.lag_age.look(now_ms, self.lags, self.ends, manifests)
        stands = any(s > limits.STANDSTILL_SECONDS for s in self.standstill.seconds.values())
        fullness = await self.store.fullness() if stands else None
        self.health = health(self.reader, self.reports, self.standstill, self.ends, fullness)
        self._live = self._live_ms(now_ms)
        self.at_ms = max(self.reader.stream_ms, self._live or 0)

    async def _require_answer(self) -> None:
        """StoreError where the store hangs."""
        try:
            async with asyncio.timeout(limits.STORE_SECONDS):
                await self.store.now_ms()
        except TimeoutError:
            raise StoreError(
                f"Redis does not answer within {limits.STORE_SECONDS:g} s: it hangs, or the "
                f"network does; at {place_of_url(self.settings.redis.url)}"
            ) from None

    async def read(self, at_stream: bool = False) -> ReadingSet:
        """The present readings, computed again where anything but a part of a second has passed;
        StreamerError where the store cannot be read."""
        kind = "at stream time" if at_stream else "live"
        return await self._turns.share(kind, lambda: self._read(at_stream))

    async def _read(self, at_stream: bool) -> ReadingSet:
        started = time.perf_counter()
        await self._refresh()
        live_ms = None if at_stream else self._live
        unread = bool(unread_topics(self.present))
        state = (self.reader.updates, live_ms and live_ms // 1000, unread)
        last = self._last.get(at_stream)
        if last is not None and last[0] == state:
            return last[1]
        views, keyed = self.reader.views, self.reader.keyed
        result = await asyncio.to_thread(
            readout, self.settings, self.catalogue, views, live_ms, self._sums, keyed, unread
        )
        self._last[at_stream] = state, result
        if not at_stream and self.recent.is_due(self.now_ms):
            self.what_was_read(result)
        self.readout_seconds = time.perf_counter() - started
        return result

    def what_was_read(self, result: ReadingSet) -> tuple[WhatWasRead, list[Silence]]:
        """What was read of the topics by the last readout, and of what nothing comes any more."""
        if self._read_of is None or self._read_of[0] is not result:
            read = of_counters(self.settings, result)
            self._read_of = result, read, silences(self.settings, result)
        counters = [view.header.counters for view in self.reader.views]
        self.recent.note(self.now_ms, self._read_of[1], rows_left_early(counters))
        return self._read_of[1], self._read_of[2]

    def behind_seconds(self) -> float | None:
        """How far what is shown is behind the logs: by their records at the present rate, or by the
        age of the newest event. None where records wait, and neither is known yet."""
        waiting = self._waiting
        if not waiting or self.files:
            return 0.0
        rate = self.recent.per_second()
        age = max(0.0, (self.now_ms - self.reader.stream_ms) / 1000)
        return max(age, waiting / rate) if rate else (age or None)

    @property
    def _waiting(self) -> int:
        """Records that are not counted yet, and those that cannot be read."""
        return sum(self.lags.values()) + sum(self.ends.unstable.values())

    def _live_ms(self, now_ms: int) -> int | None:
        """Stream time plus the time that live traffic has been silent, if it was live and all of
        it has been read: so that windows drain."""
        reader = self.reader
        is_live = abs(reader.moved_ms - reader.stream_ms) <= _CLOSE_MS
        if self.ends.problem is not None:
            return None  # of some cluster nobody knows whether all of it has been read
        if not is_live or not self.lags or self._waiting:
            return None
        return reader.stream_ms + max(0, now_ms - reader.moved_ms)

    def processor(self) -> Iterator[SeriesBlock]:
        """The processor's own series, as of the last refresh."""
        known = ProcessorInputs(
            *(self.settings, self.reader, self.present, self.health, self.lags, self.ends.unstable),
            *(self.standstill.seconds, unread_topics(self.present), self.readout_seconds),
            self.lag_age.seconds,
        )
        return sampled_blocks(self.settings, processor.FAMILY, known)


@contextlib.contextmanager
def _damage_at(keys: str) -> Iterator[None]:
    """CodecError for whatever stored bytes raise that the codec took, or that no codec reads."""
    try:
        yield
    except CodecError as error:
        raise CodecError(f"{error}; at {keys}") from error
    except StreamerError:
        raise
    except Exception as error:
        raise CodecError(
            f"what is stored at {keys} is damaged ({place_of(error)}): restore Redis from a backup"
        ) from error


class SingleFlight:
    """One piece of work at a time. Who asks while a piece runs shares the next run of it with all
    who ask until that begins: whoever asks waits for at most one run of every kind, and none gets
    a result that is older than the question."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._next: dict[str, asyncio.Task[Any]] = {}

    async def share(self, kind: str, work: Callable[[], Awaitable[T]]) -> T:
        """The result of the next run of ``work``; of one ``kind`` it is always the same work. It
        runs to its end even if all who wait for it leave."""
        task = self._next.get(kind)
        if task is None:
            task = self._next[kind] = asyncio.create_task(self._run(kind, work))
            task.add_done_callback(_look)
        result: T = await asyncio.shield(task)
        return result

    async def _run(self, kind: str, work: Callable[[], Awaitable[T]]) -> T:
        async with self._lock:
            del self._next[kind]
            return await work()


def _look(done: asyncio.Task[Any]) -> None:
    """Asyncio logs an exception that nobody looked at; all who waited may have left."""
    if not done.cancelled():
        done.exception()
