"""The manifest: what one commit of a partition consists of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cramjam
import msgspec

from streamer.encoding.arrays import I64
from streamer.encoding.segments import group_texts, segment_texts, tuples_of
from streamer.errors import CodecError, DamagedError, SettingsError, StoreError
from streamer.ingest.hash_key import HashKey
from streamer.metrics.layout import Layout
from streamer.metrics.rings import rings_of
from streamer.settings.model import Settings
from streamer.state import codec
from streamer.state.frame import body_of, framed
from streamer.state.snapshot import Header
from streamer.state.topics import TopicState
from streamer.stats.experiments.scopes import all_since

VERSION = 11
GROUPS = 0
"""Where ``users`` names the blob of segment groups; all others are rings' sums."""


class BlobRef(msgspec.Struct, array_like=True):
    """A blob of rows of a table; it can be deleted once ``latest_event_ms`` is old enough."""

    name: str
    rows: int
    level: int
    latest_event_ms: int


class StoredSeries(msgspec.Struct, array_like=True):
    """One metric that alerts watch: since when, its labels by number, and blob → panes."""

    since_ms: int
    labels: list[dict[str, str]]
    panes: dict[str, list[int]]


class Manifest(msgspec.Struct):
    """Everything of a commit that is not a blob, and the names of its blobs.

    ``hash_key``: the partition is counted under it, and the prefix's key is put back from it.
    ``panes``: blob → the panes (``encoding.packed``) that are to be read from it.
    """

    version: int
    fingerprint: dict[str, str]
    hash_key: HashKey
    commit: int
    recounted: int
    stream_ms: int
    topics: dict[str, TopicState]
    segments: dict[str, Any]
    kept: list[list[tuple[str, int]]]
    capped: list[int]
    unattributed: dict[str, int]
    unsettled: dict[str, int]
    settled_moved: int
    join_gap: int
    dropped: int
    evicted_early: dict[str, int]
    dead_letters: int
    dead_letters_omitted: int
    tables: dict[str, list[BlobRef]]
    panes: dict[str, list[int]]
    users: dict[int, str]
    sample_bits: int
    users_behind_ms: int
    experiments: dict[str, str]
    labels: list[dict[str, str]]
    counted_since_ms: dict[str, int]
    scopes: dict[str, tuple[int, int, int, int]]
    exposures_final_ms: int
    day_sample_bits: int
    series: dict[str, StoredSeries]
    """The shape of alert series, and of counts of items → what is stored of them."""
    day_before_since_ms: dict[str, int] = {}
    """``DayBefore.shapes`` → the stream time from which on the ring is counted."""

    def encode(self) -> bytes:
        """The bytes to store: msgpack, lz4, with a checksum."""
        return framed(bytes(cramjam.lz4.compress_block(msgspec.msgpack.encode(self))))

    def header(self, groups: Mapping[str, I64] | None = None) -> Header:
        """What readers show; ``groups``: the columns of the blob of groups, if there is one."""
        return Header(
            commit=self.commit,
            stream_ms=self.stream_ms,
            topics=self.topics,
            unattributed=self.unattributed,
            unsettled=self.unsettled,
            join_gap=self.join_gap,
            dropped=self.dropped,
            capped=tuple(self.capped),
            kept=tuple(tuple(x) for x in self.kept),
            segments=tuple(segment_texts(self.segments)),
            groups=group_texts(tuples_of(groups), self.segments) if groups else (),
            sample_bits=self.sample_bits,
            users_behind_ms=self.users_behind_ms,
            counted_since_ms=all_since(self.counted_since_ms, self.scopes),
            settled_moved=self.settled_moved,
            day_sample_bits=self.day_sample_bits,
            day_before_since_ms=self.day_before_since_ms,
        )

    def shown_blobs(self) -> list[str]:
        """The blobs that readers show."""
        of_series = [name for series in self.series.values() for name in series.panes]
        return [*self.panes, *self.users.values(), *self.experiments.values(), *of_series]

    def blob_names(self) -> set[str]:
        """Every blob of the commit; others of the partition are orphans."""
        return {ref.name for refs in self.tables.values() for ref in refs}.union(self.shown_blobs())


class _Versioned(msgspec.Struct):
    version: int


def decode(data: bytes) -> Manifest:
    """The manifest of stored bytes; CodecError for anything else, DamagedError where it was one."""
    try:
        raw = body_of(data, "a manifest")
    except DamagedError:
        _refuse_version(data)  # those before version 7 had no checksum
        raise
    try:
        packed = codec.unpacked(raw)
        version = msgspec.msgpack.decode(packed, type=_Versioned).version
        if version != VERSION:
            raise _other_version(version)
        return msgspec.msgpack.decode(packed, type=Manifest)
    except (msgspec.MsgspecError, cramjam.DecompressionError, ValueError) as error:
        raise CodecError(f"a manifest of {len(data)} bytes cannot be read: {error}") from error


def _refuse_version(data: bytes) -> None:
    """CodecError where these bytes are a manifest without checksum."""
    try:
        raw = codec.unpacked(data)
        version = msgspec.msgpack.decode(raw, type=_Versioned).version
    except (msgspec.MsgspecError, cramjam.DecompressionError, ValueError):
        return
    raise _other_version(version)


def _other_version(version: int) -> CodecError:
    return CodecError(
        f"manifest of version {version}; this is version {VERSION}: use another redis.prefix and "
        "another kafka.group"
    )


def fingerprint(settings: Settings, layout: Layout) -> dict[str, str]:
    """The settings that stored state depends on, by name."""
    time, join = settings.time, settings.attribution
    return {
        "dimensions": repr([(d.name, d.values, d.max_values) for d in settings.dimensions]),
        "windows.lengths": repr([(r.label, r.pane_ms, r.panes) for r in rings_of(settings)]),
        "attribution": repr((join.click_ms, join.conversion_ms, join.session_gap_ms)),
        "time": repr((time.max_lateness_ms, time.max_skew_ms, time.dedup_horizon_ms)),
        "metrics.feedback": repr(settings.user_feedback_kinds),
        "metrics.families": repr(sorted(settings.metrics.families)),
        **_of_slates(settings),
        **_of_policies(settings),
        **_of_custom(settings),
        **_of_lists(settings),
        "statistics": layout.fingerprint,
    }


def _of_slates(settings: Settings) -> dict[str, str]:
    """What the sums over slates mean."""
    metrics = settings.metrics
    if not {"ranking", "scoring"} & set(metrics.families):
        return {}
    return {
        "gains of metrics.feedback": repr(sorted(metrics.feedback.items())),
        "metrics.k": repr(sorted(metrics.k)),
        "metrics.margin": repr(metrics.margin),
        "metrics.conventions": repr(
            sorted((name, sorted(some)) for name, some in metrics.conventions.items() if some)
        ),
    }


def _of_policies(settings: Settings) -> dict[str, str]:
    """What the weights of stored impressions mean."""
    if not settings.policies:
        return {}
    policies = [(p.name, p.propensity, p.positions, p.estimate) for p in settings.policies]
    return {"policies": repr(policies), "metrics.max_weight": repr(settings.metrics.max_weight)}


def _of_lists(settings: Settings) -> dict[str, str]:
    """What is a category in sums over lists."""
    if "diversity" not in settings.metrics.families:
        return {}
    return {"items.category": settings.items.category or "a field"}


def _of_custom(settings: Settings) -> dict[str, str]:
    """What the sums of custom metrics, and the values of stored feedback, mean."""
    if not settings.custom:
        return {}
    of = [(c.name, c.kind, c.field, sorted(c.where.items()), c.quantiles) for c in settings.custom]
    return {"custom": repr(of)}


def require_same(stored: dict[str, str], ours: dict[str, str], prefix: str) -> None:
    """SettingsError naming the settings under which the state was written, where they differ."""
    for name, value in ours.items():
        if stored.get(name) != value:
            raise SettingsError(
                f"the state under {prefix!r} was written with other {name}: "
                f"{stored.get(name)} there, {value} now; use another redis.prefix"
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
