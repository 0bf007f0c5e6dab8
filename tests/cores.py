"""The core fed with logs, and what a reader sees of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from streamer._core import Core
from streamer.config import Settings
from streamer.engine.groups import group_texts
from streamer.engine.segments import segment_texts
from streamer.events import KINDS
from streamer.ingest.spec import core_spec
from streamer.metrics.catalogue import Catalogue
from streamer.readout.readout import readout
from streamer.readout.view import Header, Panes, TopicCounts, TrackView, View
from streamer.testing import Chunk, LogRecord
from tests.agreement import SETTINGS, by_key
from tests.oracle.oracle import Record, records_of_log, run
from tests.oracle.random_log import random_log
from tests.oracle.shape import Readings

TABLES = (
    *(f"ids_{kind}" for kind in KINDS),
    *("impressions", "retained", "feedback", "sessions", "viewings", "user_items"),
)
"""In the order in which they are loaded."""


class Stored:
    """What commits of one partition wrote: blobs of each table, and the rest of the last one."""

    def __init__(self) -> None:
        self.blobs: dict[str, list[dict[str, Any]]] = {table: [] for table in TABLES}
        self.ends = dict.fromkeys(TABLES, 0)
        self.rest: dict[str, Any] = {}


class Cores:
    """The partitions of one run, fed chunk by chunk."""

    def __init__(self, settings: Settings, partitions: int) -> None:
        self.settings, self.catalogue = settings, Catalogue(settings)
        self.spec = core_spec(settings, self.catalogue)
        self.cores = [Core(self.spec) for _ in range(partitions)]
        self.stored = [Stored() for _ in range(partitions)]
        self.rejected: list[tuple[str, int, int, str]] = []

    def feed(self, chunk: Chunk) -> None:
        """Take in a chunk, as one apply."""
        core = self.cores[chunk.partition]
        offsets = np.array([r.offset for r in chunk.records], np.int64)
        record_ms = np.array([r.record_ms for r in chunk.records], np.int64)
        core.feed_records(chunk.kind, offsets, record_ms, [r.value for r in chunk.records])
        core.end_apply([])
        found = core.take_rejected()
        self.rejected += [(kind, chunk.partition, offset, why) for kind, offset, why in found]

    def finish(self) -> None:
        """Every topic was read to its end."""
        for core in self.cores:
            core.end_apply(list(KINDS))

    def commit(self, number: int) -> None:
        """Store what changed of a partition since the last time."""
        core, stored = self.cores[number], self.stored[number]
        core.seal()
        for table in TABLES:
            first, end = core.serials(table)
            columns = core.rows(table, max(first, stored.ends[table]), end)
            stored.ends[table] = end
            if columns and len(next(iter(columns.values()))):
                stored.blobs[table].append(columns)
        everything: list[int | None] = [None, *range(len(self.catalogue.alert_facts.tracks))]
        stored.rest = {
            "counters": core.counters(),
            "dimensions": core.dimensions(),
            "labels": [core.series_labels(i) for i in everything if i is not None],
            "panes": [core.dump_panes(core.live_panes(i), i) for i in everything],
        }

    def restart(self, number: int) -> None:
        """Begin again with what was stored."""
        self.commit(number)
        stored = self.stored[number]
        core = self.cores[number] = Core(self.spec)
        dimensions = stored.rest["dimensions"]
        values = [(v["texts"], v["events"], v["kept"]) for v in dimensions["values"]]
        core.restore_dimensions(values, dimensions["tuples"])
        core.restore(stored.rest["counters"])
        for i, labels in enumerate(stored.rest["labels"]):
            core.restore_series_labels(i, labels)
        for i, (pane, code, value) in enumerate(stored.rest["panes"]):
            for at, (codes, values_of) in _panes(pane, code, value).items():
                core.load_pane(at, codes, values_of, i - 1 if i else None)
        for table in TABLES:
            core.load(table, stored.blobs[table])
            stored.ends[table] = core.serials(table)[1]
        core.finish_load()

    def readings(self) -> Readings:
        """Readings at stream time."""
        views = [view_of_core(core, self.catalogue) for core in self.cores]
        return by_key(readout(self.settings, self.catalogue, views))


def view_of_core(core: Core, catalogue: Catalogue) -> View:
    """A partition as a reader sees it."""
    core.refresh_user_sums()
    counters, dimensions = core.counters(), core.dimensions()
    names = ("next_offset", "arrival_ms", "accepted", "duplicates", "late", "rejected")
    topics = counters["topics"]
    header = Header(
        commit=0,
        stream_ms=counters["stream_ms"],
        topics={kind: TopicCounts(*(t[name] for name in names)) for kind, t in topics.items()},
        unattributed=counters["unattributed"],
        unsettled=counters["unsettled"],
        join_gap=sum(t["join_gap"] for t in topics.values()),
        dropped=0,
        capped=tuple(v["events"][1] for v in dimensions["values"]),
        kept=tuple(tuple(v["unnamed"]) for v in dimensions["values"]),
        segments=tuple(segment_texts(dimensions)),
        groups=group_texts(core.user_groups(), dimensions),
        sample_bits=counters["sample_bits"],
    )
    rings = range(len(catalogue.settings.windows.lengths))
    return View(
        header,
        _panes(*core.dump_panes(core.live_panes(None), None)),
        {i + 1: core.user_sums(i) for i in rings},
        {},
        {t.shape: _series(core, catalogue, i) for i, t in enumerate(catalogue.alert_facts.tracks)},
    )


def _series(core: Core, catalogue: Catalogue, at: int) -> TrackView:
    watched = catalogue.alert_facts.tracks[at].dimensions
    names = [name for name in catalogue.settings.dimension_names if name in watched]
    labels = [dict(zip(names, label, strict=True)) for label in core.series_labels(at)]
    return TrackView(0, labels, _panes(*core.dump_panes(core.live_panes(at), at)))


def _panes(pane: Any, code: Any, value: Any) -> Panes:
    starts = [0, *(np.flatnonzero(np.diff(pane)) + 1).tolist(), len(pane)]
    return {
        int(pane[start]): (code[start:stop], value[start:stop])
        for start, stop in itertools.pairwise(starts)
        if stop > start
    }


@lru_cache(maxsize=16)
def random_records(
    seed: int, settings_name: str, lines: int, partitions: int
) -> tuple[Sequence[Record], Readings]:
    """Records of a random log, and what the oracle reads from them."""
    settings = SETTINGS[settings_name]
    records = records_of_log(random_log(seed, settings, lines), settings, partitions=partitions)
    return records, expected_of(records, settings)


def expected_of(records: Iterable[Record], settings: Settings) -> Readings:
    """What the oracle reads."""
    return run(list(records), settings).readings


def without_experiments(readings: Readings) -> Readings:
    """The readings but those of experiments."""
    return {k: v for k, v in readings.items() if not k[0].startswith("streamer_experiment")}


def log_of(records: Iterable[Record]) -> list[LogRecord]:
    """The oracle's records as the test kit's."""
    return [LogRecord(r.topic, r.partition, r.offset, r.record_ms, r.raw) for r in records]
