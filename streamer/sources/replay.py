"""The engine over lines of files: no Kafka, no Redis, the same result.

Lines are grouped by topic and partition, gathered, decoded and applied; at the end every topic
was read to its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

import numpy as np

from streamer._core import partition_of
from streamer.encoding.arrays import I64, runs_of
from streamer.ingest.hash_key import FIXED_KEY, HashKey
from streamer.ingest.lookup import Beside
from streamer.ingest.record import reason_of_no_topic, record_decoder
from streamer.kafka.chunk import Records
from streamer.metrics.catalogue import Catalogue
from streamer.query.experiments import StoredExperiment, stored_experiments
from streamer.query.readings import ReadingSet, readout
from streamer.settings.model import Settings
from streamer.sources.line_batch import NO_LOG, NO_TOPIC, Line, LineBatch
from streamer.state.counters import added
from streamer.state.journal import Journal
from streamer.state.memory import MemoryStore
from streamer.state.partition import Partition
from streamer.state.restore import load_partition
from streamer.state.snapshot import View, view_of
from streamer.state.user_days import Arm, RowsOfUsers, SumsByValue, by_value, pairs_in

_GATHERS = 4
"""Gathers applied at once: a file has no latency to keep, and larger ones are faster."""
_MAX_BATCHES = 64
"""Batches of lines held at most, whatever ``gather_rows`` is: lines may be long."""


@dataclass(frozen=True, slots=True)
class Dead:
    """A line that does not count; ``value`` is the line unchanged, ``topic`` the name of its log. A
    line that belongs to no topic has the topic "", partition and offset -1, and nothing beside."""

    topic: str
    partition: int
    offset: int
    reason: str
    value: bytes
    beside: Beside = ()


@dataclass(slots=True)
class _Log:
    """Lines of one topic-partition that wait to be applied; ``offset`` is that of the first."""

    offset: int = 0
    record_ms: list[I64] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)


class Replay:
    """The partitions of one run. ``on_dead`` gets each line that does not count; under ``key`` ids
    are hashed."""

    def __init__(
        self,
        settings: Settings,
        partitions: int = 1,
        on_dead: Callable[[Dead], None] | None = None,
        key: HashKey = FIXED_KEY,
        catalogue: Catalogue | None = None,
    ) -> None:
        self.settings = settings
        self.catalogue = catalogue or Catalogue(settings)
        self.partitions = [Partition(settings, self.catalogue, key) for _ in range(partitions)]
        self.lines = self.last_ms = 0
        """Lines so far, and the record timestamp of the last one."""
        self._decoder, self._names = record_decoder(settings), tuple(settings.logs)
        self._on_dead = on_dead
        self._logs = [{name: _Log() for name in settings.logs} for _ in range(partitions)]
        self._waiting = self._batches = 0
        self._views: list[View] | None = None
        self._is_whole = False
        self._stored: tuple[MemoryStore, list[Journal]] | None = None

    def feed(self, lines: LineBatch | Iterable[Line]) -> None:
        """Take in lines in log order."""
        batch = lines if isinstance(lines, LineBatch) else LineBatch.of(lines, self._names)
        self._distribute(batch)
        self._views, self._is_whole = None, False
        self.last_ms = max(self.last_ms, int(batch.record_ms[-1]) if len(batch) else 0)
        self.lines += len(batch)
        self._waiting += len(batch)
        self._batches += 1
        rows = _GATHERS * self.settings.limits.gather_rows * len(self.partitions)
        if self._waiting >= rows or self._batches >= _MAX_BATCHES * len(self.partitions):
            self.apply_all()

    def _distribute(self, batch: LineBatch) -> None:
        """To each log of each partition its lines."""
        n = len(self.partitions)
        keys = batch.logs.astype(np.int64) * n
        if n > 1:
            keys += [
                0 if log == NO_TOPIC else partition_of(self._decoder.key(log, raw, record_ms), n)
                for log, record_ms, raw in batch
            ]
        order = np.argsort(keys, kind="stable")
        for places in np.split(order, runs_of(keys[order])[1:]) if len(batch) else ():
            number, partition = divmod(int(keys[places[0]]), n)
            record_ms, raws = batch.at(places)
            if number == NO_LOG:
                for raw in raws:
                    self._refuse(raw)
                continue
            log = self._logs[partition][batch.names[number]]
            log.record_ms.append(record_ms)
            log.values += raws

    def _refuse(self, raw: bytes) -> None:
        """A line that belongs to no topic: the engine never sees it."""
        if self._on_dead is not None:
            self._on_dead(Dead(NO_TOPIC, -1, -1, reason_of_no_topic(raw), raw))

    def finish(self) -> None:
        """Every topic was read to its end."""
        self._views, self._is_whole = None, True
        self.apply_all()
        for partition in self.partitions:
            partition.apply((), at_end=list(partition.logs))

    @property
    def accepted(self) -> int:
        """Lines that count."""
        logs = [log for p in self.partitions for log in p.core.state()["logs"].values()]
        return added("accepted", (log["counters"] for log in logs))

    def views(self) -> list[View]:
        """What a reader sees of the partitions; made once for all that was fed."""
        if self._views is None:
            self._views = [view_of(partition, is_live=True) for partition in self.partitions]
        return self._views

    def readout(
        self, only: Collection[str] | None = None, windows: Collection[str] | None = None
    ) -> ReadingSet:
        """The readings at stream time; ``only``: metrics, and of which ``windows``, where no others
        are shown."""
        catalogue = self.catalogue if only is None else self.catalogue.only(only)
        return readout(self.settings, catalogue, self.views(), of_windows=windows)

    async def store(self) -> MemoryStore:
        """A store that holds the partitions as workers commit them, for readers of stores: always
        the same one, brought up to date."""
        if self._stored is None:
            store, key = MemoryStore(), self.partitions[0].key
            await store.set_partitions(len(self.partitions))
            await store.set_hash_key(key)
            claims = [(await store.claim(n))[0] for n in range(len(self.partitions))]
            journals = map(Journal, self.partitions, claims)
            self._stored = store, list(journals)
        store, kept = self._stored
        for number, journal in enumerate(kept):
            journal.partition.refresh_user_sums()
            store.claims[number] = journal.claim
            await store.commit(number, journal.prepare())
            await store.release(number, journal.claim)
        return store

    @classmethod
    async def of_store(
        cls, settings: Settings, store: MemoryStore, on_dead: Callable[[Dead], None] | None = None
    ) -> Replay:
        """A run that goes on where a store was filled, and keeps its own state there. SettingsError
        where these settings cannot go on with it."""
        count, key = await store.partitions() or 1, await store.hash_key() or FIXED_KEY
        replay, journals = cls(settings, count, on_dead, key), list[Journal]()
        for number, partition in enumerate(replay.partitions):
            claim, stored = await store.claim(number)
            journals.append(await load_partition(store, number, partition, claim, stored))
            for name, log in replay._logs[number].items():
                log.offset = max(0, partition.logs[name].next_offset)
                _, arrival_ms, _ = partition.core.log(name)
                replay.last_ms = max(replay.last_ms, arrival_ms)
        replay._stored = store, journals
        return replay

    def experiments(self) -> dict[str, StoredExperiment]:
        """Name → what is known of it, of the experiments of the settings."""
        measures = self.catalogue.experiment_measures
        stored = stored_experiments(self.settings, measures, self.views())
        return (
            {name: one.read_whole() for name, one in stored.items()} if self._is_whole else stored
        )

    def sums_of_days(self, rows: RowsOfUsers) -> SumsByValue:
        """The sums of an experiment over some of its days, or over those before."""
        return by_value(map(rows.sums_in, self.partitions))

    def pairs(self) -> Counter[tuple[Arm, Arm]]:
        """Users who are in two experiments, by their arms."""
        return sum(map(pairs_in, self.partitions), Counter[tuple[Arm, Arm]]())

    def apply_all(self) -> None:
        """Count what was fed and waits."""
        self._waiting = self._batches = 0
        for number, logs in enumerate(self._logs):
            self._apply(number, logs)

    def _apply(self, partition: int, logs: dict[str, _Log]) -> None:
        chunks = [
            Records(
                kind,
                np.arange(log.offset, log.offset + len(log.values)),
                np.concatenate(log.record_ms),
                log.values,
            )
            for kind, log in logs.items()
            if log.values
        ]
        if not chunks:
            return
        applied = self.partitions[partition].apply(chunks)
        if self._on_dead is not None:
            for each in applied.rejected:
                beside = (each.key, each.headers, each.record_ms)
                value = each.value or b""
                self._on_dead(Dead(each.log, partition, each.offset, each.reason, value, beside))
        for log in logs.values():
            log.offset += len(log.values)
            log.record_ms, log.values = [], []
