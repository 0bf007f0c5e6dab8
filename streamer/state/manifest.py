"""The manifest: what one commit of a partition consists of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cramjam
import msgspec

from streamer._core import UNIT_TABLES
from streamer.encoding.segments import OTHER, Segment, segment_texts
from streamer.errors import CodecError, DamagedError, StoreError
from streamer.ingest.hash_key import HashKey
from streamer.state import codec
from streamer.state.codec import body_of, framed
from streamer.state.contents import Beside, Contents, decode_contents
from streamer.state.counted_since import NEVER_CHANGED, CountedSince
from streamer.state.experiment_sums import FoundExperiment
from streamer.state.migration import Holding
from streamer.state.snapshot import Header
from streamer.state.topics import TopicState
from streamer.state.upgrades import upgraded
from streamer.stats.experiments.trials import all_since

VERSION = 20
_PLACE = "the manifest"
_EARLIER_MARK, _EARLIER_HEAD = b"smc1", 8


def position_of(commit: int, offsets: Mapping[str, int]) -> bytes:
    """What a store compares commits by; ``offsets``: log → the next one."""
    return msgspec.msgpack.encode([commit, offsets])


def parts_of_position(position: bytes) -> tuple[int, dict[str, int]]:
    """The number of the commit, and log → its next offset; none of a store that holds nothing.
    MsgspecError where it is no position."""
    return (
        msgspec.msgpack.decode(position, type=tuple[int, dict[str, int]]) if position else (0, {})
    )


class BlobRef(msgspec.Struct, array_like=True):
    """A blob of rows of a table; it can be deleted once ``latest_event_ms`` is old enough."""

    name: str
    rows: int
    level: int
    latest_event_ms: int


class StoredSeries(msgspec.Struct, array_like=True):
    """One metric that alerts watch, or counts of items: since when, and blob → panes."""

    since_ms: int
    panes: dict[str, list[int]]


class DimensionTexts(msgspec.Struct, array_like=True):
    """Of a dimension: the text of each code, the values that are kept, and those of them that the
    settings do not name, with their hashes."""

    texts: list[str]
    kept: list[str]
    unnamed: list[tuple[str, int]]


@dataclass(frozen=True)
class ShownTexts:
    """What readers show of texts: see ``Header``."""

    kept: tuple[tuple[tuple[str, int], ...], ...]
    values: tuple[tuple[str, ...], ...]
    segments: tuple[tuple[str, ...], ...]
    rollups: tuple[int, ...]


class Texts(msgspec.Struct, array_like=True, dict=True):
    """What is said in words of a partition: a blob of its own, for it may be megabytes, and changes
    seldom. ``rollups``: places of the dimensions of each; ``segments``: by number; ``labels``: of
    experiments, by number; ``series``: shape of a series → its labels, by number."""

    dimensions: list[DimensionTexts]
    rollups: list[list[int]]
    segments: list[Segment]
    labels: list[dict[str, str]]
    series: dict[str, list[dict[str, str]]]

    def encode(self, name: str) -> bytes:
        """The bytes of the blob of that name: msgpack, lz4, with a checksum."""
        return framed(codec.packed(msgspec.msgpack.encode(self)), name)

    @classmethod
    def decode(cls, data: bytes, name: str) -> Texts:
        """What ``encode`` was called on; DamagedError where it changed, CodecError for others."""
        try:
            return msgspec.msgpack.decode(codec.unpacked(body_of(data, name)), type=cls)
        except (msgspec.MsgspecError, cramjam.DecompressionError, ValueError) as error:
            raise CodecError(f"texts of {len(data)} bytes cannot be read: {error}") from error

    def shown(self, dimensions: int) -> ShownTexts:
        """Of the first so many dimensions; the same object each time, for there are many texts, and
        they stay while commits go on."""
        made: dict[int, ShownTexts] = self.__dict__.setdefault("made", {})
        if dimensions not in made:
            own = self.dimensions[:dimensions]
            texts = [its.texts for its in own]
            made[dimensions] = ShownTexts(
                tuple(tuple(its.unnamed) for its in own),
                tuple(map(tuple, texts)),
                tuple(segment_texts(self.segments, self.rollups, texts)),
                tuple(rollup for rollup, _ in self.segments),
            )
        return made[dimensions]

    def with_events(self, events: Sequence[list[int]]) -> dict[str, Any]:
        """As the core has them (``Core.dimensions``); ``events``: those that carried each value."""
        return {
            "values": [
                {"texts": its.texts, "events": counts, "kept": its.kept}
                for its, counts in zip(self.dimensions, events, strict=True)
            ],
            "segments": self.segments,
        }


class Manifest(msgspec.Struct):
    """Everything of a commit that is not a blob, and the names of its blobs.

    ``texts``: the blob of values, segments and labels; ``events``: of each dimension those that
    carried each of its values, by code; ``counters``: by name (``state.counters``);
    ``overflowed``: ``Rollup.key`` → how often a segment beyond its bound was asked for.
    ``contents``: what the rows and sums are of (``Contents``), ``beside``: what those of readers by
    shape are of; ``unit_ms``: the unit of users' times, ``oldest_ms`` and
    ``newest_ms``: times of accepted events.
    ``hash_key``: the partition is counted under it, and the prefix's key is put back from it.
    ``panes``: blob → the panes (``encoding.packed``) that are to be read from it.
    """

    version: int
    contents: bytes
    beside: Beside
    hash_key: HashKey
    commit: int
    recounted: int
    stream_ms: int
    oldest_ms: int | None
    newest_ms: int
    unit_ms: int
    topics: dict[str, TopicState]
    texts: str
    events: list[list[int]]
    counters: dict[str, int]
    overflowed: dict[str, int]
    first_retained: int
    dead_letters: int
    dead_letters_omitted: int
    tables: dict[str, list[BlobRef]]
    panes: dict[str, list[int]]
    users: dict[int, str]
    users_behind_ms: int
    experiments: dict[str, int]
    """``CompiledExperiment.shape`` → the first of its keys on each day."""
    experiment_days: dict[int, str]
    """Day since 1970-01-01 → the blob of the sums of all experiments on it."""
    counted_since_ms: dict[str, int]
    scopes: dict[str, tuple[int, int, int, int]]
    exposures_final_ms: int
    series: dict[str, StoredSeries]
    """The shape of alert series, and of counts of items → what is stored of them."""
    day_before_since_ms: dict[str, int] = {}
    """``DayBefore.shapes`` → the stream time from which on the ring is counted."""
    began: CountedSince = NEVER_CHANGED
    """Since when what panes hold is counted, where settings were changed."""
    exposed_since_ms: dict[str, int] = {}
    """Name of an ``Exposure`` → when it exposed a user first."""
    found_experiments: list[FoundExperiment] = []
    """Experiments that events name and settings do not."""
    unit_bits: dict[str, tuple[int, int]] = {}
    """``Unit.name`` → how many bits are 0 of the hashes of its values, and of its rows."""
    other_fields: dict[str, dict[str, str]] = {}
    """``Contents.fields`` of logs that are not read any more, but were counted."""
    generation: int = 0
    """That of the settings; 0 where they have none."""
    erased_ms: int = 0
    """When the last erasure was asked for that is carried out here."""

    @property
    def counted_contents(self) -> Contents:
        """What every row and sum is of, logs that are not read any more included."""
        contents = decode_contents(self.contents)
        fields = {**self.other_fields, **contents.fields}
        return msgspec.structs.replace(contents, fields=fields)

    @property
    def holding(self) -> Holding:
        """What it holds, by name."""
        return Holding(decode_contents(self.contents), self.beside, self.unit_ms)

    def encode(self) -> bytes:
        """The bytes to store: msgpack, lz4, with a checksum."""
        return framed(codec.packed(msgspec.msgpack.encode(self)), _PLACE)

    def header(self, texts: Texts) -> Header:
        """What readers show."""
        contents = decode_contents(self.contents)
        shown = texts.shown(len(contents.dimensions))
        return Header(
            commit=self.commit,
            stream_ms=self.stream_ms,
            oldest_ms=self.oldest_ms,
            topics=self.topics,
            counters=self.counters,
            capped=tuple(counts[OTHER] for counts in self.events[: len(shown.values)]),
            kept=shown.kept,
            values=shown.values,
            segments=shown.segments,
            rollups=shown.rollups,
            overflowed=self.overflowed,
            users_behind_ms=self.users_behind_ms,
            counted_since_ms=all_since(self.counted_since_ms, self.scopes),
            day_before_since_ms=self.day_before_since_ms,
            began=self.began,
            exposed_since_ms=self.exposed_since_ms,
            found_experiments=tuple(self.found_experiments),
        )

    def shown_blobs(self) -> list[str]:
        """The blobs that readers show."""
        of_series = [name for series in self.series.values() for name in series.panes]
        return [
            self.texts,
            *self.panes,
            *self.users.values(),
            *self.experiment_days.values(),
            *of_series,
            *(ref.name for table in UNIT_TABLES for ref in self.tables.get(table, [])),
        ]

    def blob_names(self) -> set[str]:
        """Every blob of the commit; others of the partition are orphans."""
        return {ref.name for refs in self.tables.values() for ref in refs}.union(self.shown_blobs())


class _Versioned(msgspec.Struct):
    version: int


def decode(data: bytes) -> Manifest:
    """The manifest of stored bytes; CodecError for anything else, DamagedError where it was one."""
    try:
        raw = body_of(data, _PLACE)
    except DamagedError:
        _refuse_version(data)
        raise
    try:
        packed = codec.unpacked(raw)
        version = msgspec.msgpack.decode(packed, type=_Versioned).version
        if version == VERSION:
            return msgspec.msgpack.decode(packed, type=Manifest)
        found = upgraded(msgspec.msgpack.decode(packed), VERSION)
        if found is None:
            raise _other_version(version)
        return msgspec.convert(found, Manifest)
    except (msgspec.MsgspecError, cramjam.DecompressionError, ValueError) as error:
        raise CodecError(f"a manifest of {len(data)} bytes cannot be read: {error}") from error


def _refuse_version(data: bytes) -> None:
    """CodecError where these bytes are a manifest of an earlier version: those before version 7 had
    no checksum, those before 12 one without the place."""
    try:
        raw = codec.unpacked(data[_EARLIER_HEAD:] if data[:4] == _EARLIER_MARK else data)
        version = msgspec.msgpack.decode(raw, type=_Versioned).version
    except (msgspec.MsgspecError, cramjam.DecompressionError, ValueError):
        return
    raise _other_version(version)


def _other_version(version: int) -> CodecError:
    return CodecError(
        f"manifest of version {version}; this is version {VERSION}: use another redis.prefix and "
        "another kafka.group"
    )


def require_key(manifests: Mapping[int, Manifest], key: HashKey | None) -> None:
    """Raise StoreError where a partition was counted with a hash key other than the stored one (or,
    if that was lost, than the first partition's): it would keep other values of dimensions."""
    for number, manifest in manifests.items():
        key = key or manifest.hash_key
        if manifest.hash_key != key:
            raise StoreError(
                f"partition {number} was counted under another hash key than the one now in Redis: "
                "they are of different times; restore all of Redis from one backup, or use another "
                "redis.prefix and another kafka.group"
            )
