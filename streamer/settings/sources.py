"""Settings of sources: topics whose records have another shape than ours, and where our fields
stand in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from streamer.settings.event_fields import LINE_TYPES
from streamer.settings.paths import path_to
from streamer.settings.registry import Registry
from streamer.settings.section import Section

OWN = "own"
"""The preset of sources whose records have our own shape; settings cannot name it."""
FieldSource = str | bool | dict[str, Any] | tuple[str | dict[str, Any], ...]
"""Where a field stands: a path, a table, or several of which the first counts that has a value;
false where it is not to be read."""


def is_pattern(topic: str) -> bool:
    """Whether `topics` of a source names topics by a regular expression.

    >>> is_pattern("^web-"), is_pattern("web-")
    (True, False)
    """
    return topic.startswith("^")


def full_name(topic: str, cluster: str | None) -> str:
    """What a topic of a cluster is called wherever there may be several clusters.

    >>> full_name("clicks", None), full_name("clicks", "eu")
    ('clicks', 'clicks@eu')
    """
    return topic if cluster is None else f"{topic}@{cluster}"


class KindValue(Section, frozen=True):
    """A value that says what a record is, with what follows from it."""

    value: str
    feedback: str | None = None
    """Of clicks: the kind of feedback."""
    action: str | None = None
    """Of sessions: `start`, `view`, `dwell` or `end`."""
    shown: bool = False
    """Of clicks: whether the record is the impression, too, as in logs with a column `click`."""


class SourceKind(Section, frozen=True):
    """[sources.kind]: what a record is. Without `field`, `header` and `fixed` the values are names
    of topics."""

    field: str | tuple[str, ...] | None = None
    """Path of the field that says it; of several the first that is there."""
    header: str | None = None
    """Kafka header that says it."""
    fixed: str | None = None
    """`impression`, `click`, `conversion` or `session`, where all records are of one kind."""
    impression: tuple[str | KindValue, ...] = ()
    """Values of impressions."""
    click: tuple[str | KindValue, ...] = ()
    """Values of clicks and other feedback: `"Product Clicked"`, or
    `{ value = "Product Liked", feedback = "like" }`. With `shown = true` a record is an impression
    of one item and the click on it: `impression = ["0"]`, `click = [{ value = "1", shown = true }]`
    with `field = "click"`. Numbers, true and false are compared as they are written."""
    conversion: tuple[str | KindValue, ...] = ()
    """Values of conversions."""
    session: tuple[str | KindValue, ...] = ()
    """Values of sessions: `{ value = "page", action = "view" }`."""
    ignored: tuple[str, ...] = ()
    """Values that are known and not counted. All others are rejected as `kind`."""

    @property
    def rules(self) -> dict[str, dict[str, KindValue]]:
        """Kind of events → value → what follows from it."""
        found: dict[str, dict[str, KindValue]] = {}
        for key, kind in LINE_TYPES.items():
            values = [
                v if isinstance(v, KindValue) else KindValue(value=v) for v in getattr(self, key)
            ]
            found[kind] = {each.value: each for each in values}
        return found


class KindFields(Section, frozen=True):
    """[sources.KIND]: what is different in records of one kind."""

    fields: dict[str, FieldSource] = msgspec.field(default_factory=dict)
    """As `fields` of the source, which they override."""


class Source(Section, frozen=True):
    """[[sources]]: topics that are read instead of those of `[kafka.topics]`."""

    topics: tuple[str, ...]
    """Names of topics; one that begins with `^` is a regular expression."""
    name: str | None = None
    """What the source is called in messages. Default: its first topic."""
    cluster: str | None = None
    """The cluster of its topics, of those of `[clusters.NAME]`. Default: that of `[kafka]`."""
    preset: str | None = None
    """A shape to start from, of which each key here overrides its own: `segment`, `ga4`,
    `snowplow`, `cloudevents` or `debezium`."""
    format: str = "json"
    """How values are written: `json`; or in Confluent's wire format, behind the id of their schema,
    `avro`, `protobuf` or `json-schema`."""
    registry: str | Registry | None = None
    """Schema registry of `avro` and `protobuf`: its address, or a table."""
    kind: SourceKind = SourceKind()
    roots: tuple[str, ...] = ("",)
    """Paths of the objects in which a field that is not mapped is looked for under its own name;
    `""`: the record. `{}` stands for the name, where it is not last:
    `event_params[key={}].value.string_value`."""
    fields: dict[str, FieldSource] = msgspec.field(default_factory=dict)
    """Our name of a field or dimension = where it stands. `items` is a list: fields of an item are
    then relative to its elements, or begin with `$.` at the record."""
    impression: KindFields = KindFields()
    click: KindFields = KindFields()
    conversion: KindFields = KindFields()
    session: KindFields = KindFields()
    positions_from: int = 1
    """The number of the first position: 0 or 1."""
    zone: str = "UTC"
    """Time zone of times without an offset, by its name in the IANA database."""
    columns: tuple[str, ...] = ()
    """Names of the columns of .csv and .tsv files without a header row, in order."""
    missing: tuple[str, ...] = ()
    """Texts that stand for no value wherever one is the whole value of a field: `["(not set)"]`."""

    @property
    def is_own(self) -> bool:
        """Whether its records have our own shape: it stands for one of `[kafka.topics]`."""
        return self.preset == OWN

    @property
    def called(self) -> str:
        """Its name in messages."""
        return self.name or full_name(self.topics[0], self.cluster)

    @property
    def schemas(self) -> Registry | None:
        """The registry of its schemas."""
        return Registry(url=self.registry) if isinstance(self.registry, str) else self.registry

    def fields_of(self, kind: str) -> dict[str, FieldSource]:
        """Where the fields of a kind of events stand, as far as that is said."""
        key = next(key for key, its in LINE_TYPES.items() if its == kind)
        own: KindFields = getattr(self, key)
        return self.fields | own.fields


def own_source(
    topic: str, kind: str, names: Mapping[str, str], positions_from: int, zone: str
) -> Source:
    """The source that one of `[kafka.topics]` stands for: events of one kind, whose fields stand at
    the top. ``names``: our name of a field → theirs.

    >>> own_source("shown", "impressions", {"item_id": "sku"}, 1, "UTC").kind.fixed
    'impression'
    """
    key = next(key for key, of in LINE_TYPES.items() if of == kind)
    fields: dict[str, FieldSource] = {ours: path_to(theirs) for ours, theirs in names.items()}
    return Source(
        topics=(topic,),
        name=kind,
        preset=OWN,
        kind=SourceKind(fixed=key),
        fields=fields,
        positions_from=positions_from,
        zone=zone,
    )
