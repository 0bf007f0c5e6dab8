"""One partition number: the core, with what only Python knows of its logs.

    record batches or records → core.feed_… → core.end_apply → rejected records, changed state

The core is fed by one thread at a time; while it works the interpreter is free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from streamer._core import UNIT_TABLES, Core, PanicException
from streamer.encoding.segments import Label, segment_texts
from streamer.errors import CoreError, SumOverflowError
from streamer.ingest.hash_key import HashKey
from streamer.ingest.spec import Counted, core_spec, ranks_after
from streamer.kafka.chunk import Batches, Records
from streamer.kafka.registry import SchemaText
from streamer.metrics.alert_series import AlertSeries
from streamer.metrics.catalogue import Catalogue
from streamer.metrics.item_counts import ItemCounts
from streamer.settings import limits
from streamer.settings.logs import NO_IDS, ClusterIds
from streamer.settings.model import Settings
from streamer.state.counted_since import NEVER_CHANGED, CountedSince
from streamer.state.experiment_sums import ExperimentSums, FoundExperiment
from streamer.state.unit_rows import UnitRows
from streamer.stats.experiments.trials import (
    Scope,
    all_since,
    all_wanted,
    scopes_after,
    wanted_days,
)

T = TypeVar("T")
NEVER = -(2**62)
"""The arrival clock of a topic that has no records."""


class Rejected(NamedTuple):
    """A record that is late or invalid. ``headers``: as Kafka sends them, behind their number."""

    log: str
    offset: int
    record_ms: int
    reason: str
    value: bytes | None
    key: bytes | None
    headers: bytes


class Skipped(NamedTuple):
    """Offsets [first, end) that could not be read, and why."""

    log: str
    first: int
    end: int
    reason: str


@dataclass
class Applied:
    """The result of one apply."""

    rows: int = 0
    """Records that were read."""
    rejected: list[Rejected] = field(default_factory=list)
    omitted: int = 0
    """More rejected records, which are counted by reason and not kept."""
    skipped: list[Skipped] = field(default_factory=list)
    last: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Log → offset, timestamp and CRC-32 of the last record."""
    unknown_schemas: tuple[str, Sequence[int]] | None = None
    """Log, and ids of the schemas without which its next record, and others after it, cannot be
    read."""
    left: int = 0
    """How many of what was given, from the end, are to be given again: once they are known, or in
    the next turn where the time was up."""


@dataclass
class TopicLog:
    """Position in one topic of a partition. ``cluster_id``: Kafka's own id of its cluster, "" where
    that is unknown; ``topic``: its name there; ``gaps``: the last ranges of lost offsets."""

    name: str
    core: Core
    rank: int
    cluster_id: str
    topic: str
    is_new: bool = True
    """Whether nothing is stored of it."""
    first_offset: int = 0
    """Where reading began."""
    lost: int = 0
    gaps: list[tuple[int, int]] = field(default_factory=list)
    restarts: int = 0

    @property
    def next_offset(self) -> int:
        """The offset that is read next; setting it seeks."""
        return self.core.log(self.name)[0]

    @next_offset.setter
    def next_offset(self, offset: int) -> None:
        self.core.seek(self.name, offset)

    @property
    def arrival_ms(self) -> int:
        """Running maximum of record timestamps."""
        return self.core.log(self.name)[1]

    @property
    def clock_ms(self) -> int:
        """The clock of joins: arrival, or the watermark while the topic is idle."""
        return self.core.log(self.name)[2]

    def lose(self, first: int, last: int) -> None:
        """Declare records lost (deleted by Kafka, or unreadable), and continue after them."""
        if last >= first:
            self.lost += last - first + 1
            self.gaps = [*self.gaps, (first, last)][-limits.MAX_GAPS :]
        self.next_offset = max(self.next_offset, last + 1)

    def restart(self, offset: int) -> None:
        """Continue at an earlier offset of a log that was truncated or recreated."""
        self.restarts += 1
        self.next_offset = offset


@dataclass(frozen=True)
class PaneSeries:
    """An alert series of a partition, or its counts of items."""

    number: int
    declared: AlertSeries | ItemCounts
    names: Sequence[str]
    core: Core

    @property
    def labels(self) -> list[Label]:
        """Its labels, by number."""
        known = self.core.series_labels(self.number)
        return [dict(zip(self.names, label, strict=True)) for label in known]


class Partition:
    """State of one partition number, over all topics. ``key``: ids are hashed under it; that
    of the store, if there is one. ``cluster_ids``: cluster → Kafka's own id of it;
    ``generation``: of the settings, 0 where nobody else counts."""

    def __init__(
        self,
        settings: Settings,
        catalogue: Catalogue,
        key: HashKey,
        cluster_ids: ClusterIds = NO_IDS,
        generation: int = 0,
    ) -> None:
        self.settings, self.catalogue, self.key = settings, catalogue, key
        self.cluster_ids, self.generation = cluster_ids, generation
        trials = catalogue.experiment_measures.trials
        self.since_ms = dict.fromkeys(catalogue.experiment_measures.sums, 0)
        """Component of experiments → the stream time from which on it is counted; 0: always."""
        self.scopes: dict[str, Scope] = {
            what.name: (days.start, days.stop, 0, 0) for what, days in all_wanted(trials)
        }
        """Exposure or unit → the days that are wanted, and likewise."""
        self.day_before_since_ms = dict.fromkeys(catalogue.day_before.shapes.values(), 0)
        """``DayBefore.shapes`` → the stream time from which on the ring is counted; 0: always."""
        self.ranks: dict[str, int] = {}
        """Log → its rank: see ``ranks_after``."""
        self.began = NEVER_CHANGED
        """Since when what the panes hold is counted, where settings were changed."""
        self._begin(0)

    def _begin(self, stream_ms: int) -> None:
        counted = Counted(self.since_ms, {name: scope[3] for name, scope in self.scopes.items()})
        since = self.began.core_spec(self.catalogue, stream_ms)
        self.ranks = ranks_after(self.settings, self.ranks)
        spec = core_spec(self.settings, self.catalogue, self.key, counted, since, self.ranks)
        self.core = Core(spec)
        self.logs = {
            name: TopicLog(
                name, self.core, self.ranks[name], self.cluster_ids.get(log.cluster, ""), log.plain
            )
            for name, log in self.settings.logs.items()
        }
        names, items = self.settings.dimension_names, self.catalogue.item_counts
        measures = self.catalogue.alert_measures
        declared: list[AlertSeries | ItemCounts] = [*measures.series]
        declared += [] if items is None else [items]
        self.series = [
            PaneSeries(i, one, [n for n in names if n in one.dimensions], self.core)
            for i, one in enumerate(declared)
        ]
        self.series_since_ms = [0] * len(self.series)

    def continue_counting(
        self,
        since_ms: Mapping[str, int],
        scopes: Mapping[str, Scope],
        stream_ms: int,
        began: CountedSince = NEVER_CHANGED,
        found: Sequence[FoundExperiment] = (),
    ) -> None:
        """Begin again as an empty partition that goes on where another one stood: what experiments
        need and was not counted there is counted from this stream time on, and what panes hold as
        ``began`` says. ``found``: experiments that were counted there without being declared."""
        self.since_ms = {name: since_ms.get(name, stream_ms) for name in self.since_ms}
        trials = self.catalogue.experiment_measures.trials
        days = {each.key: each.first_day for each in found}
        self.scopes = scopes_after(trials, scopes, stream_ms, days)
        self.began = began
        self._begin(stream_ms)

    def continue_day_before(self, since_ms: Mapping[str, int], stream_ms: int) -> set[int]:
        """Go on with the rings of the day before that were counted elsewhere in the same way, and
        begin the others at this stream time. Returns the numbers of the former."""
        shapes = self.catalogue.day_before.shapes
        for number, shape in shapes.items():
            now_ms = max(self.began.rings.get(number, 0), stream_ms)
            self.day_before_since_ms[shape] = since_ms.get(shape, now_ms)
        return {number for number, shape in shapes.items() if shape in since_ms}

    def exposed_since_ms(self, state: Mapping[str, Any]) -> dict[str, int]:
        """Name of an ``Exposure`` → when it exposed a user first, by what the core says."""
        exposures = wanted_days(self.catalogue.experiment_measures.of_users)
        found = zip(exposures, state["first_exposures_ms"], strict=False)  # then those of slots
        return {exposure.name: first_ms for exposure, first_ms in found if first_ms is not None}

    def found_experiments(self, state: Mapping[str, Any]) -> list[FoundExperiment]:
        """Experiments that events name and settings do not, by what the core says."""
        slots = len(self.catalogue.experiment_measures.slots)
        first_ms = state["first_exposures_ms"][-slots:]
        return [
            FoundExperiment(slot, key, tuple(arms), *days, code, first_ms[slot], tuple(named_by))
            for slot, (key, *arms), named_by, days, code in self.core.found_experiments()
        ]

    def overflowed(self, state: Mapping[str, Any]) -> dict[str, int]:
        """``Rollup.key`` → how often a segment beyond its bound was asked for."""
        keys = (rollup.key for rollup in self.catalogue.rollups)
        return dict(zip(keys, state["segments_overflowed"], strict=True))

    @property
    def counted_since_ms(self) -> dict[str, int]:
        """Component or exposure → the stream time from which on it is counted; 0: always."""
        return all_since(self.since_ms, self.scopes)

    @cached_property
    def rollup_places(self) -> list[list[int]]:
        """Places of the dimensions of each rollup."""
        names = self.settings.dimension_names
        return [[names.index(name) for name in r.dimensions] for r in self.catalogue.rollups]

    @property
    def segments(self) -> list[tuple[str, ...]]:
        """The values of each segment, as shown, by its number."""
        found = self.core.dimensions()
        texts = [each["texts"] for each in self.of_dimensions(found["values"])]
        return segment_texts(found["segments"], self.rollup_places, texts)

    def of_dimensions(self, values: Sequence[T]) -> Sequence[T]:
        """Of what there is of all fields whose values are kept, that of dimensions."""
        return values[: len(self.settings.dimensions)]

    @property
    def label_names(self) -> list[str]:
        """The dimensions that experiments look at."""
        return list(self.settings.user_dimensions)

    @property
    def experiment_keys(self) -> dict[str, int]:
        """``CompiledExperiment.shape`` → the first of its keys on each day."""
        trials = self.catalogue.experiment_measures.counted
        keys = self.core.experiment_keys()
        return {trial.shape: key for trial, key in zip(trials, keys, strict=True)}

    @property
    def unit_rows(self) -> UnitRows:
        """The rows of units that are not users."""
        tables = {}
        for table in UNIT_TABLES:
            columns, _ = self.core.rows(table, 0, self.core.serials(table)[1] + 1)
            tables[table] = (columns,) if columns else ()
        return UnitRows(tables, self.unit_bits, self.key, self.since_ms, self.scopes)

    @property
    def unit_bits(self) -> dict[str, tuple[int, int]]:
        """``Unit.name`` → how many bits are 0 of the hashes of its values, and of its rows."""
        units = self.catalogue.experiment_measures.by_unit
        return {unit.name: bits for unit, bits in zip(units, self.core.unit_bits(), strict=True)}

    def restore_unit_bits(self, bits: Mapping[str, tuple[int, int]]) -> None:
        """Take over what ``unit_bits`` was."""
        units = self.catalogue.experiment_measures.by_unit
        self.core.restore_unit_bits([bits.get(unit.name, (0, 0)) for unit in units])

    @property
    def experiment_sums(self) -> ExperimentSums:
        """The sums of all experiments, as of the last refresh."""
        days = self.core.experiment_days()
        return ExperimentSums(
            self.experiment_keys, {day: self.core.experiment_day(day) for day in days}
        )

    def apply(
        self,
        fed: Sequence[Records | Batches],
        at_end: Sequence[str] = (),
        wall_ms: int | None = None,
        left_ms: Callable[[], int] | None = None,
    ) -> Applied:
        """Take in records; ``at_end``: logs read to their end; ``wall_ms``: the wall clock, beyond
        which by more than the skew records are refused; ``left_ms``: how long they may
        still take before the rest is left. SumOverflowError where a sum would pass 2**62;
        CoreError: the partition is not to be used any more."""
        applied = Applied()
        if wall_ms is not None:
            self.core.set_wall_clock(wall_ms)
        with self.guarded():
            for i, some in enumerate(fed):
                is_late = self._feed(some, applied, None if left_ms is None else left_ms())
                if applied.unknown_schemas is not None or is_late:
                    applied.left = len(fed) - i
                    break
            self.core.end_apply(list(at_end))
            rejected, applied.omitted = self.core.take_rejected()
        applied.rejected = [Rejected(*record) for record in rejected]
        return applied

    def _feed(self, some: Records | Batches, applied: Applied, most_ms: int | None) -> bool:
        """Returns whether the time was up before the end."""
        rows, last, skipped, unknown, is_late = some.feed(self.core, most_ms)
        applied.rows += rows
        applied.unknown_schemas = (some.log, unknown) if unknown else None
        if last is not None:
            applied.last[some.log] = last
        for first, end, reason in skipped:
            applied.skipped.append(Skipped(some.log, first, end, reason))
            self.logs[some.log].lose(first, end - 1)
        return is_late

    def set_schema(self, log: str, number: int, schema: SchemaText | None) -> None:
        """Make a schema known. Where there is none its records are rejected from now on; likewise,
        with ValueError, where it cannot be used."""
        self.core.set_schema(log, number, schema)

    @staticmethod
    @contextmanager
    def guarded() -> Iterator[None]:
        """Turn the core's failures into SumOverflowError and CoreError."""
        try:
            yield
        except OverflowError as error:
            raise SumOverflowError(str(error)) from error
        except PanicException as error:
            raise CoreError("the core failed, which is a bug in streamer: see the log") from error

    @property
    def stream_ms(self) -> int:
        """Stream time: the newest accepted event time, in epoch milliseconds."""
        return self.core.stream_ms

    def refresh_user_sums(self) -> None:
        """Bring the sums over users up to date: everything else is so after each apply. Raises
        what ``apply`` raises."""
        with self.guarded():
            self.core.refresh_user_sums()

    @property
    def is_dirty(self) -> bool:
        """Whether something changed that the sums over users do not show yet."""
        return self.core.is_dirty

    @property
    def is_stale(self) -> bool:
        """Whether all sums over users are to be computed again, as after recovery."""
        return self.core.is_stale

    @property
    def users_behind_ms(self) -> int:
        """How far, in stream time, the sums over users are behind everything else."""
        behind_ms = self.stream_ms - self.core.refreshed_ms
        return max(1, behind_ms) if self.is_dirty else 0

    def state(self) -> dict[str, Any]:
        """Clocks, logs and segments: what is stored besides counters, tables and panes."""
        return {**self.core.state(), "dimensions": self.core.dimensions()}
