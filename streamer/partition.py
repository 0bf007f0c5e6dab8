"""One partition number: the core, with what only Python knows of its logs.

    records → core.feed → core.end_apply → rejected records, changed state

The core is fed by one thread at a time; while it works the interpreter is free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from streamer import limits
from streamer._core import Core
from streamer.config import Settings
from streamer.engine import integers
from streamer.engine.exposures import Scope, all_since, scopes_after, wanted_days
from streamer.engine.integers import Columns
from streamer.engine.labels import Label
from streamer.engine.tracks import Track
from streamer.errors import SumOverflowError
from streamer.events import KINDS
from streamer.ingest.hash_key import HashKey
from streamer.ingest.spec import Counted, core_spec
from streamer.metrics.catalogue import Catalogue

I64 = npt.NDArray[np.int64]
NEVER = -(2**62)
"""The arrival clock of a topic that has no records."""
_TOPIC_COUNTERS = ("accepted", "duplicates", "late", "rejected", "evicted_early", "join_gap")


@dataclass(frozen=True, slots=True)
class Records:
    """Records of one topic, in offset order."""

    kind: str
    offset: I64
    record_ms: I64
    values: Sequence[bytes | None]

    def __len__(self) -> int:
        return len(self.offset)


@dataclass
class TopicLog:
    """Where one topic of a partition stands. ``gaps``: the last ranges of lost offsets."""

    kind: str
    core: Core
    first_offset: int = 0
    """Where reading began."""
    lost: int = 0
    gaps: list[tuple[int, int]] = field(default_factory=list)
    restarts: int = 0

    @property
    def next_offset(self) -> int:
        return self.core.topic(self.kind)[0]

    @next_offset.setter
    def next_offset(self, offset: int) -> None:
        self.core.seek(self.kind, offset)

    @property
    def arrival_ms(self) -> int:
        """Running maximum of record timestamps."""
        return self.core.topic(self.kind)[1]

    @property
    def clock_ms(self) -> int:
        """The clock of joins: arrival, or the watermark while the topic is idle."""
        return self.core.topic(self.kind)[2]

    def lose(self, first: int, last: int) -> None:
        """Declare records lost that left the log before they were read; go on after them."""
        self.lost += last - first + 1
        self.gaps = [*self.gaps, (first, last)][-limits.MAX_GAPS :]
        self.next_offset = last + 1

    def restart(self, offset: int) -> None:
        """Go on at an earlier offset of a log that is not the one that was read."""
        self.restarts += 1
        self.next_offset = offset


@dataclass(frozen=True)
class Series:
    """One alert series of a partition. ``since_ms``: stream time from which on it is counted."""

    number: int
    track: Track
    names: Sequence[str]
    core: Core
    partition_names: Sequence[str]
    """Names of all dimensions."""

    @property
    def labels(self) -> list[Label]:
        """Its labels, by number."""
        known = self.core.series_labels(self.number)
        return [dict(zip(self.names, label, strict=True)) for label in known]


class Partition:
    """State of one partition number, over all four topics. ``key``: ids are hashed under it; that
    of the store, if there is one."""

    def __init__(self, settings: Settings, catalogue: Catalogue, key: HashKey) -> None:
        self.settings, self.catalogue, self.key = settings, catalogue, key
        trials = catalogue.experiment_facts.trials
        self.since_ms = dict.fromkeys(catalogue.experiment_facts.components, 0)
        """Component of experiments → the stream time from which on it is counted; 0: always."""
        self.scopes: dict[str, Scope] = {
            e.name: (days.start, days.stop, 0, 0) for e, days in wanted_days(trials).items()
        }
        """Exposure → the days that are wanted, and likewise."""
        self._begin()

    def _begin(self) -> None:
        counted = Counted(self.since_ms, {name: scope[3] for name, scope in self.scopes.items()})
        self.core = Core(core_spec(self.settings, self.catalogue, self.key, counted))
        self.logs = {kind: TopicLog(kind, self.core) for kind in KINDS}
        names = self.settings.dimension_names
        self.series = [
            Series(i, track, [n for n in names if n in track.dimensions], self.core, names)
            for i, track in enumerate(self.catalogue.alert_facts.tracks)
        ]
        self.series_since_ms = [0] * len(self.series)

    def continue_counting(
        self, since_ms: Mapping[str, int], scopes: Mapping[str, Scope], stream_ms: int
    ) -> None:
        """Begin again as an empty partition that goes on where another one stood: what experiments
        need and was not counted there is counted from this stream time on."""
        self.since_ms = {name: since_ms.get(name, stream_ms) for name in self.since_ms}
        trials = self.catalogue.experiment_facts.trials
        self.scopes = scopes_after(trials, scopes, stream_ms)
        self._begin()

    @property
    def counted_since_ms(self) -> dict[str, int]:
        """Component or exposure → the stream time from which on it is counted; 0: always."""
        return all_since(self.since_ms, self.scopes)

    @property
    def label_names(self) -> list[str]:
        """The dimensions that experiments look at."""
        watched = {trial.dimension for trial in self.catalogue.experiment_facts.trials}
        return [name for name in self.settings.dimension_names if name in watched]

    @property
    def experiment_sums(self) -> dict[str, Columns]:
        """``Trial.shape`` → the sums of the experiment, as columns."""
        found: dict[str, Columns] = {}
        for i, trial in enumerate(self.catalogue.experiment_facts.trials):
            sums = self.core.experiment_sums(i)
            found[trial.shape] = sums if sums is not None else integers.columns({})
        return found

    def apply(
        self, records: Sequence[Records], at_end: Sequence[str] = ()
    ) -> list[tuple[str, int, str]]:
        """Take in records; ``at_end``: topics read to their end. Returns the records that do not
        count: kind, offset, reason. SumOverflowError where a sum would pass 2**62."""
        try:
            for some in records:
                self.core.feed_records(some.kind, some.offset, some.record_ms, some.values)
            self.core.end_apply(list(at_end))
        except OverflowError as error:
            raise SumOverflowError(str(error)) from error
        return self.core.take_rejected()

    @property
    def stream_ms(self) -> int:
        return self.core.stream_ms

    def refresh_user_sums(self) -> None:
        """Bring the sums over users up to date: everything else is so after each apply."""
        self.core.refresh_user_sums()

    @property
    def is_dirty(self) -> bool:
        """Whether something changed that the sums over users do not show yet."""
        return self.core.is_dirty

    @property
    def is_stale(self) -> bool:
        """Whether all sums over users are to be computed anew, as after recovery."""
        return self.core.is_stale

    @property
    def users_behind_ms(self) -> int:
        """How far, in stream time, the sums over users are behind everything else."""
        behind_ms = self.stream_ms - self.core.refreshed_ms
        return max(1, behind_ms) if self.is_dirty else 0

    def state(self) -> dict[str, Any]:
        """Counters, clocks and segments: all that is stored besides tables and panes."""
        return {**self.core.counters(), "dimensions": self.core.dimensions()}

    @property
    def dropped_by_bounds(self) -> int:
        """Everything that left before its time, because a bound of memory was hit."""
        counters = self.core.counters()
        ids = sum(topic["evicted_early"] for topic in counters["topics"].values())
        early = sum(counters["evicted_early"].values())
        labels = sum(
            len(series.labels) > limits.MAX_TRACK_LABELS
            for series in self.series
            if not series.track.is_by_time
        )
        users = counters["dropped_user_rows"] + counters["dropped_day_rows"]
        return int(ids + early + counters["segments_overflowed"] + labels + users)
