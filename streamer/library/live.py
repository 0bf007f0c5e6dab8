"""Reading the state that workers keep in Redis, from a notebook."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import NoReturn

from streamer.errors import StoreError, UsageError
from streamer.ingest.keying import require_users
from streamer.library.background import BackgroundLoop
from streamer.library.events_read import EventsRead
from streamer.library.reader import CountedEvents, MetricReader
from streamer.library.selection import time_of
from streamer.library.settings import SettingsLike, settings_of
from streamer.library.table import Cell, Table
from streamer.query.experiments import StoredExperiment
from streamer.query.what_was_read import of_counters
from streamer.settings.model import Settings
from streamer.settings.redis_url import place_of
from streamer.state.contents import contents_of
from streamer.state.reader import Reader
from streamer.state.redis.store import RedisStore
from streamer.state.user_days import RowsOfUsers, SumsByValue, sums_of_days


class LiveMetrics(MetricReader):
    """The metrics of running workers: each call reads what was committed up to then, whole commits
    only. Windows end at the latest event. ``close`` it, or use it in a ``with`` statement."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._store = RedisStore(settings.redis)
        self._reader = Reader(self._store, contents_of(settings, self._catalogue))
        self._last: tuple[int, CountedEvents] | None = None
        self._closing = threading.Lock()
        self._loop = BackgroundLoop()  # at last: its thread would outlive an error

    @property
    def what_was_read(self) -> EventsRead:
        """How many events of each topic the workers have read, and what is implausible."""
        return EventsRead(of_counters(self.settings, self._readout(self._counted())))

    def compare(self, *_: object, **__: object) -> NoReturn:
        """Not possible: UsageError. Users are counted by arm from the event on, so an experiment
        has to be declared in ``[[experiments]]`` before."""
        raise UsageError(
            "compare() reads all events again, which Redis does not keep: declare the experiment "
            "in [[experiments]], or use streamer.read() with the events"
        )

    def decisions(self) -> Table:
        """What `streamer act` acted on, the oldest first: when, of which experiment, what was said,
        and who was told."""
        self._loop.run(self._reader.refresh())
        acted = self._reader.acted
        rows: list[dict[str, Cell]] = [
            {
                "time": time_of(record.at_ms),
                "experiment": record.experiment,
                "kind": record.kind,
                "arm": record.arm,
                "sentence": record.sentence,
                "told": ", ".join(d.place for d in acted.of_record(record.key) if d.is_told),
            }
            for record in acted.ordered()
        ]
        return Table.of_rows(rows, ["time", "experiment", "kind", "arm", "sentence", "told"])

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        with self._closing:
            try:
                if self._loop.is_open:
                    self._loop.run(self._store.close())
            finally:
                self._loop.close()

    def __enter__(self) -> LiveMetrics:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def require_state(self) -> None:
        """StoreError where nothing is stored."""
        if not self._counted().views:
            place = place_of(self.settings.redis.url)
            raise StoreError(
                f"no state with the prefix {self.settings.redis.prefix!r}: start a worker, and "
                f"wait for its first commit; at {place}"
            )

    def _counted(self) -> CountedEvents:
        self._loop.run(self._reader.refresh())
        reader = self._reader
        if self._last is None or self._last[0] != reader.updates:
            self._last = (
                reader.updates,
                CountedEvents(reader.views, dict(reader.keyed), reader.acted),
            )
        return self._last[1]

    def _stored(self, counted: CountedEvents) -> dict[str, StoredExperiment]:
        require_users(self.settings, counted.keyed)
        return dict(super()._stored(counted))

    def _sums_of_days(self, rows: RowsOfUsers) -> SumsByValue:
        found = sums_of_days(self._store, self.settings, self._catalogue, rows)
        return self._loop.run(found)

    def __repr__(self) -> str:
        return repr(self.what_was_read)

    def _repr_html_(self) -> str:
        return self.what_was_read._repr_html_()


def connect(settings: SettingsLike = "streamer.toml") -> LiveMetrics:
    """Read what workers of these settings have counted.

    ``settings``: the workers' own file, or the same as a mapping; their section ``[redis]`` says
    where the state is. StoreError where Redis cannot be reached or has no state, CodecError where
    the state is one of other settings.
    """
    live = LiveMetrics(settings_of(settings))
    try:
        live.require_state()
    except BaseException:
        live.close()
        raise
    return live
