"""A partition in memory ↔ what is stored of it: each commit writes only what changed.

Rows of tables are immutable evidence (impressions, feedback, event ids); how they are joined is
computed again at recovery. Rows added since the last commit go into a new blob; sixteen blobs of a
size class become one of the next; a blob leaves when nothing in it can matter any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from streamer.kafka.fingerprints import Fingerprint
from streamer.metrics.rings import rings_of
from streamer.settings import limits
from streamer.state import codec
from streamer.state.contents import beside_of, contents_of
from streamer.state.manifest import (
    VERSION,
    BlobRef,
    DimensionTexts,
    Manifest,
    StoredSeries,
    Texts,
    position_of,
)
from streamer.state.panes import PaneBlobs
from streamer.state.partition import Partition
from streamer.state.store import Commit
from streamer.state.topics import TopicState


@dataclass
class Held:
    """A blob and the rows of the table that it holds, by their serial numbers."""

    ref: BlobRef
    first: int
    end: int


class Journal:
    """Writes one partition under one claim."""

    def __init__(self, partition: Partition, claim: str) -> None:
        self.partition, self.claim = partition, claim
        self.commit_number = 0
        self.recounted = 0
        """The commit after which the partition was counted again from Kafka; 0: never."""
        self.dead_letters = self.dead_letters_omitted = self.erased_ms = 0
        self.position = b""
        self.tables: dict[str, list[Held]] = {name: [] for name in partition.core.tables()}
        rings = rings_of(partition.settings)
        day_before = partition.catalogue.day_before
        self.panes = PaneBlobs(partition.core, rings, day_before=day_before.rings)
        self.series = {
            s.declared.shape: PaneBlobs(partition.core, s.declared.rings, s.number)
            for s in partition.series
        }
        self.texts: tuple[str, Texts] | None = None
        """The blob of texts, and what it says."""
        self.users: dict[int, str] = {}
        self.experiment_days: dict[int, str] = {}
        """Day → the blob of the sums of experiments on it."""
        self.fingerprints: dict[str, list[Fingerprint]] = {name: [] for name in partition.logs}
        self.other_topics: dict[str, TopicState] = {}
        """Topics that are not read any more: they go on where they stood, should they be again."""
        self.other_fields: dict[str, dict[str, str]] = {}
        """Log → where the fields of its events stood."""
        settings, catalogue = partition.settings, partition.catalogue
        self.contents = contents_of(settings, catalogue).encode()
        self.beside = beside_of(settings, catalogue)
        self.replaced: list[str] = []
        """Blobs of other settings, which leave with the next commit."""
        self.outdated: set[str] = set()
        """Tables whose blobs are to be written again."""
        self.is_of_others = False
        """Whether what is stored was written with settings that count something else, or of people
        who are erased since: it is to be committed anew."""
        self._blob_number = 0

    # Writing -----------------------------------------------------------------------------------

    def remember(self, log: str, fingerprint: Fingerprint) -> None:
        """Keep the fingerprint of an applied record; older ones are thinned out exponentially."""
        kept, offset = self.fingerprints[log], fingerprint.offset
        kept.append(fingerprint)
        if len(kept) > limits.FINGERPRINT_COUNT:
            gaps = [
                (kept[i + 1].offset - kept[i - 1].offset) / (offset - kept[i].offset + 1)
                for i in range(1, len(kept) - 1)
            ]
            del kept[1 + gaps.index(min(gaps))]

    def forget_fingerprints(self, log: str, offset: int) -> None:
        """Drop fingerprints from the offset on: the log differs there."""
        self.fingerprints[log] = [w for w in self.fingerprints[log] if w.offset < offset]

    def blob_names(self) -> list[str]:
        """The blobs that the last commit refers to."""
        tables = [h.ref.name for held in self.tables.values() for h in held if h.ref.name]
        panes = [name for p in (self.panes, *self.series.values()) for name in p.names]
        texts = [] if self.texts is None else [self.texts[0]]
        return [*tables, *panes, *texts, *self.users.values(), *self.experiment_days.values()]

    def prepare(self) -> Commit:
        """The next commit: everything that changed since the last one."""
        blobs: dict[str, bytes] = {}
        delete, self.replaced = self.replaced, []
        if self.partition.is_stale:
            self.partition.refresh_user_sums()
        self.partition.core.seal()
        self._put_panes(blobs, delete)
        self._put_users(blobs, delete)
        self._put_experiments(blobs, delete)
        for table in self.tables:
            self._put_table(table, blobs, delete)
        self.commit_number += 1
        state = self.partition.state()
        texts = self._put_texts(state["dimensions"], blobs, delete)
        manifest = self._manifest(state, texts)
        expected, self.position = self.position, self._position(manifest)
        return Commit(self.claim, expected, self.position, manifest.encode(), blobs, delete)

    def _put(self, columns: codec.Columns, blobs: dict[str, bytes]) -> str:
        """Add a blob under a fresh name."""
        name = self._name()
        blobs[name] = codec.encode(columns, name)
        return name

    def _name(self) -> str:
        self._blob_number += 1
        return f"{self.claim}.{self._blob_number}"

    def _put_texts(
        self, dimensions: Mapping[str, Any], blobs: dict[str, bytes], delete: list[str]
    ) -> str:
        """The blob of texts, written again where they changed."""
        now = self._texts(dimensions)
        if self.texts is None or self.texts[1] != now:
            if self.texts is not None:
                delete.append(self.texts[0])
            self.texts = self._name(), now
            blobs[self.texts[0]] = now.encode(self.texts[0])
        return self.texts[0]

    def _texts(self, dimensions: Mapping[str, Any]) -> Texts:
        p = self.partition
        return Texts(
            [DimensionTexts(v["texts"], v["kept"], v["unnamed"]) for v in dimensions["values"]],
            [list(rollup) for rollup in p.rollup_places],
            dimensions["segments"],
            [dict(zip(p.label_names, label, strict=True)) for label in p.core.experiment_labels()],
            {s.declared.shape: [dict(label) for label in s.labels] for s in p.series},
        )

    def _position(self, manifest: Manifest) -> bytes:
        offsets = {name: topic.next_offset for name, topic in manifest.topics.items()}
        return position_of(manifest.commit, offsets)

    def _put_panes(self, blobs: dict[str, bytes], delete: list[str]) -> None:
        for panes in (self.panes, *self.series.values()):
            panes.put(self.partition.stream_ms, lambda columns: self._put(columns, blobs), delete)

    def _put_users(self, blobs: dict[str, bytes], delete: list[str]) -> None:
        core = self.partition.core
        for ring in core.take_changed_rings():
            number, (key, value) = ring + 1, core.user_sums(ring)
            if number in self.users:
                delete.append(self.users.pop(number))
            if len(key):
                self.users[number] = self._put({"key": key, "value": value}, blobs)

    def _put_experiments(self, blobs: dict[str, bytes], delete: list[str]) -> None:
        core = self.partition.core
        for day in core.take_changed_experiment_days():
            sums = core.experiment_day(day)
            if day in self.experiment_days:
                delete.append(self.experiment_days.pop(day))
            if len(sums["key"]):
                self.experiment_days[day] = self._put(sums, blobs)

    def _put_table(self, table: str, blobs: dict[str, bytes], delete: list[str]) -> None:
        held = self.tables[table]
        for old in [h for h in held if self._is_gone(table, h)]:
            held.remove(old)
            if old.ref.name:
                delete.append(old.ref.name)
        if table in self.outdated:
            self.outdated.remove(table)
            self._write_again(held, table, blobs, delete)
        start, end = self.partition.core.serials(table)
        first = max(held[-1].end if held else start, start)
        if end > first:
            self._write(held, table, first, end, 0, blobs)
        self._merge(held, table, blobs, delete)

    def _write_again(
        self, held: list[Held], table: str, blobs: dict[str, bytes], delete: list[str]
    ) -> None:
        old, held[:] = list(held), []
        for blob in old:
            delete += [blob.ref.name] * bool(blob.ref.name)
            self._write(held, table, blob.first, blob.end, blob.ref.level, blobs)

    def _is_gone(self, table: str, held: Held) -> bool:
        """Whether nothing in a blob can matter any more."""
        horizon_ms = self.partition.core.horizon_ms(table)
        if horizon_ms is None:
            return held.end <= self.partition.core.serials(table)[0]
        return held.ref.latest_event_ms < horizon_ms

    def _write(
        self,
        held: list[Held],
        table: str,
        first: int,
        end: int,
        level: int,
        blobs: dict[str, bytes],
    ) -> None:
        columns, latest_ms = self.partition.core.rows(table, first, end)
        rows = len(next(iter(columns.values()))) if columns else 0
        if not rows:
            held.append(Held(BlobRef("", 0, level, 0), first, end))
            return
        ref = BlobRef(self._put(columns, blobs), rows, level, latest_ms)
        held.append(Held(ref, first, end))

    def _merge(
        self, held: list[Held], table: str, blobs: dict[str, bytes], delete: list[str]
    ) -> None:
        """Merge neighbouring blobs of a level when there are enough; at most one merge a commit."""
        fan_in = limits.BLOB_FAN_IN
        runs = [run for run in _levels(held) if run.stop - run.start >= fan_in]
        may_tidy = self.commit_number % fan_in == 0
        if not runs and not may_tidy:
            return
        live = self.partition.core.live(table, [h.first for h in held]) if held else None
        rows = live or [h.ref.rows for h in held]
        for run in runs:
            for start in range(run.stop - fan_in, run.start - 1, -1):
                if sum(rows[start : start + fan_in]) <= limits.BLOB_ROWS:
                    self._replace(held, start, start + fan_in, table, blobs, delete)
                    return
        if live and may_tidy:
            self._tidy(held, live, table, blobs, delete)

    def _tidy(
        self,
        held: list[Held],
        live: list[int],
        table: str,
        blobs: dict[str, bytes],
        delete: list[str],
    ) -> None:
        """Rewrite neighbouring blobs as one, where most of their rows are out of date."""
        best, most, stop = range(0), 0, 0
        kept = stale = 0
        for start in range(len(held)):
            while stop < len(held) and kept + live[stop] <= limits.BLOB_ROWS:
                kept += live[stop]
                stale += held[stop].ref.rows - live[stop]
                stop += 1
            if stale > max(most, kept):
                best, most = range(start, stop), stale
            if stop > start:
                kept -= live[start]
                stale -= held[start].ref.rows - live[start]
            stop = max(stop, start + 1)
        if best:
            self._replace(held, best.start, best.stop, table, blobs, delete)

    def _replace(
        self,
        held: list[Held],
        start: int,
        stop: int,
        table: str,
        blobs: dict[str, bytes],
        delete: list[str],
    ) -> None:
        """One blob in place of held[start:stop]."""
        old = held[start:stop]
        for blob in old:
            if blobs.pop(blob.ref.name, None) is None and blob.ref.name:
                delete.append(blob.ref.name)
        fresh: list[Held] = []
        level = max(blob.ref.level for blob in old) + 1
        self._write(fresh, table, old[0].first, old[-1].end, level, blobs)
        held[start:stop] = fresh

    def _manifest(self, state: Mapping[str, Any], texts: str) -> Manifest:
        p = self.partition
        return Manifest(
            version=VERSION,
            contents=self.contents,
            beside=self.beside,
            hash_key=p.key,
            commit=self.commit_number,
            recounted=self.recounted,
            stream_ms=state["stream_ms"],
            oldest_ms=state["oldest_ms"],
            newest_ms=state["newest_ms"],
            unit_ms=p.core.unit_ms,
            topics=self.other_topics
            | {name: self._topic(name, state["logs"][name]) for name in p.logs},
            texts=texts,
            events=[values["events"] for values in state["dimensions"]["values"]],
            counters=p.core.counters(),
            overflowed=p.overflowed(state),
            first_retained=state["first_retained"],
            dead_letters=self.dead_letters,
            dead_letters_omitted=self.dead_letters_omitted,
            tables={n: [h.ref for h in held if h.ref.name] for n, held in self.tables.items()},
            panes=self.panes.names,
            users=self.users,
            users_behind_ms=p.users_behind_ms,
            experiments=p.experiment_keys,
            experiment_days=self.experiment_days,
            counted_since_ms=p.since_ms,
            scopes=p.scopes,
            exposures_final_ms=state["exposures_final_ms"],
            series=self._series(),
            day_before_since_ms=p.day_before_since_ms,
            began=p.began.stored(),
            exposed_since_ms=p.exposed_since_ms(state),
            found_experiments=p.found_experiments(state),
            unit_bits=p.unit_bits,
            other_fields=self.other_fields,
            generation=p.generation,
            erased_ms=self.erased_ms,
        )

    def _topic(self, log: str, counted: dict[str, Any]) -> TopicState:
        return TopicState.of(self.partition.logs[log], counted, self.fingerprints[log])

    def _series(self) -> dict[str, StoredSeries]:
        p = self.partition
        return {
            s.declared.shape: StoredSeries(since_ms, self.series[s.declared.shape].names)
            for s, since_ms in zip(p.series, p.series_since_ms, strict=True)
        }


def _levels(held: list[Held]) -> Iterator[range]:
    """Neighbouring blobs of one level, the newest first."""
    stop = len(held)
    while stop:
        start = stop - 1
        while start and held[start - 1].ref.level == held[start].ref.level:
            start -= 1
        yield range(start, stop)
        stop = start
