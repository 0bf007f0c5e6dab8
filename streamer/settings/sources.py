"""Settings of sources: topics whose records have another shape than ours, and where our fields
stand in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from streamer.settings.event_fields import LINE_TYPES, TYPE_OF_KIND
from streamer.settings.paths import Path, path_of, path_to
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


Texts = str | tuple[str, ...]


def several(one: Texts) -> tuple[str, ...]:
    """One text or several, as several."""
    return (one,) if isinstance(one, str) else one


class KindValue(Section, frozen=True):
    """What a record may be, with what follows from it: one whose value is `value`, or of which all
    that is said here is true. Of several for one kind those with conditions come first."""

    value: str | None = None
    where: dict[str, Texts] = msgspec.field(default_factory=dict)
    """Path = the text that stands there, or one of several: `{ op = ["c", "r"], of = "shown" }`."""
    has: Texts = ()
    """Paths at which there must be a value."""
    lacks: Texts = ()
    """Paths at which there must be none."""
    feedback: str | None = None
    """Of clicks: the kind of feedback."""
    action: str | None = None
    """Of sessions: `start`, `view`, `dwell` or `end`."""
    refund: bool = False
    """Of conversions: whether it gives back an order, or lines ([refunds](events.md#refunds))."""

    @property
    def conditions(self) -> list[tuple[str, tuple[str, ...] | bool]]:
        """Path → the texts of which one must stand there, or whether there must be a value."""
        texts = [(path, several(wanted)) for path, wanted in self.where.items()]
        there = [(path, True) for path in several(self.has)]
        return [*texts, *there, *((path, False) for path in several(self.lacks))]


ANY = "*"
"""Among ignored values: all that no kind has."""


class SourceKind(Section, frozen=True):
    """[sources.kind]: the kind of a record. Without `field`, `header`, `schema` and `fixed`, the
    values are names of topics, or patterns that begin with `^`. A record of several kinds is an
    event of each."""

    field: Texts | None = None
    """Path of the field with the kind; of several paths, the first that exists."""
    header: str | None = None
    """Kafka header with the kind."""
    schema: bool = False
    """Whether the kind is the full name of the record or message in the schema, with namespace or
    package."""
    fixed: Texts | None = None
    """`impression`, `click`, `conversion` or `session`, if all records have one kind. With several,
    each record is an event of each: `["impression", "click"]` if it holds the clicks, too."""
    impression: tuple[str | KindValue, ...] = ()
    """Values of impressions. Numbers, true and false are compared as texts."""
    click: tuple[str | KindValue, ...] = ()
    """Values of clicks and other feedback: `"Product Clicked"`, or
    `{ value = "Product Liked", feedback = "like" }`. A value may be in several lists: with a column
    `click` of 0 and 1 `impression = ["0", "1"]` and `click = ["1"]`."""
    conversion: tuple[str | KindValue, ...] = ()
    """Values of conversions: `"Order Completed"`, `{ value = "Order Refunded", refund = true }`."""
    session: tuple[str | KindValue, ...] = ()
    """Values of sessions: `{ value = "page", action = "view" }`."""
    exposure: tuple[str | KindValue, ...] = ()
    """Values of events that put a user into an arm of an experiment: `"Experiment Viewed"`."""
    ignored: tuple[str | KindValue, ...] = ()
    """Values that are not counted, unless a kind has them, too; `["*"]`: all others. Without it all
    other values are rejected as `kind`."""

    @property
    def by_topic(self) -> bool:
        """Whether values are names of topics."""
        return not (self.field or self.header or self.schema or self.fixed)

    @property
    def rules(self) -> list[tuple[str | None, KindValue]]:
        """(kind of events, None where it is ignored; what a record must be), in order."""
        found: list[tuple[str | None, KindValue]] = []
        fixed = () if self.fixed is None else several(self.fixed)
        for key, kind in (*LINE_TYPES.items(), ("ignored", None)):
            found += [(kind, KindValue()) for _ in range(key in fixed)]
            for value in getattr(self, key):
                is_any = key == "ignored" and value == ANY
                rule = value if isinstance(value, KindValue) else KindValue(value=value)
                rule = KindValue() if is_any else rule
                found.append((kind, rule))
        return found

    def rules_of_topic(self, topic: str) -> list[tuple[str | None, KindValue]]:
        """The rules that records of a topic may meet; what its name says is left out of them."""
        if not self.by_topic:
            return self.rules
        found = []
        for kind, rule in self.rules:
            if rule.value is None or _is_topic(topic, rule.value):
                found.append((kind, msgspec.structs.replace(rule, value=None)))
        return found


def _is_topic(topic: str, value: str) -> bool:
    """Whether a topic is called so, or like a pattern.

    >>> _is_topic("web-shown", "^web-"), _is_topic("web-shown", "web")
    (True, False)
    """
    return re.match(value, topic) is not None if is_pattern(value) else topic == value


class KindFields(Section, frozen=True):
    """[sources.KIND]: fields that differ in records of one kind."""

    fields: dict[str, FieldSource] = msgspec.field(default_factory=dict)
    """Like `fields` of the source; these override them."""


COMMA = ","
"""What parts the decimals of numbers that are texts."""


class HeldText(NamedTuple):
    """A text in a record that holds other values: parts that stand between those of ``split``, a
    number with ``decimals`` digits behind its point or with a comma, and JSON without either."""

    path: Path
    split: tuple[str, ...] = ()
    decimals: int | str | None = None


class Source(Section, frozen=True):
    """[[sources]]: topics that are read instead of `[kafka.topics]`."""

    topics: tuple[str, ...]
    """Names of topics; one that begins with `^` is a regular expression."""
    name: str | None = None
    """Name of the source in messages. Default: its first topic."""
    cluster: str | None = None
    """The cluster of the topics, one of `[clusters.NAME]`. Default: `[kafka]`."""
    preset: str | None = None
    """A shape to start from, such as `segment`, `ga4`, `snowplow`, `cloudevents` or `debezium`.
    Your keys override those of the preset."""
    format: str = "json"
    """Format of records: `json`; or, in Confluent's wire format with a schema id in front, `avro`,
    `protobuf` or `json-schema`."""
    registry: str | Registry | None = None
    """Schema registry of `avro` and `protobuf`: its address, or a table."""
    kind: SourceKind = SourceKind()
    each: str | None = None
    """Path to each event of a record with several events: `"batch[]"`; `"[]"` if the record is a
    list."""
    json: tuple[str, ...] = ()
    """Paths of texts that hold JSON; longer paths lead into the JSON."""
    split: dict[str, Texts] = msgspec.field(default_factory=dict)
    """Path of a text = its separator, which makes the text a list: `"|"`. A second separator splits
    each part: `[" ", "-"]`."""
    decimals: dict[str, int | str] = msgspec.field(default_factory=dict)
    """Path of a decimal in base64 bytes, as in Debezium and Kafka Connect = its number of decimals;
    of a text with a decimal comma = `","`."""
    fields: dict[str, FieldSource] = msgspec.field(default_factory=dict)
    """Our name of a field or dimension = its path; nothing else is read. An `item_id` behind `[]`
    makes a list of items, whose other fields are behind the same `[]`. A time whose date stands
    apart: `{ path = "Date", time = "Hour", format = "%d/%m/%Y %H:%M" }`, without `format` if the
    date is ISO."""
    impression: KindFields = KindFields()
    click: KindFields = KindFields()
    conversion: KindFields = KindFields()
    session: KindFields = KindFields()
    exposure: KindFields = KindFields()
    positions_from: int = 1
    """The number of the first position: 0 or 1."""
    zone: str = "UTC"
    """Time zone of times without an offset, by its name in the IANA database."""
    columns: tuple[str, ...] = ()
    """Names of the columns of .csv and .tsv files without a header row, in order."""
    missing: tuple[str, ...] = ()
    """Texts that mean "no value" if they are a field's whole value: `["(not set)"]`."""
    whole_ids: bool = False
    """Whether ids lose decimals that are all 0: `78.0` is 78."""

    @property
    def is_own(self) -> bool:
        """Whether its records have our own shape: it stands for one of `[kafka.topics]`."""
        return self.preset == OWN

    @property
    def called(self) -> str:
        """Its name in messages."""
        return self.name or full_name(self.topics[0], self.cluster)

    @cached_property
    def texts(self) -> list[HeldText]:
        """The texts that hold other values, first those that others stand in."""
        split = dict.fromkeys(self.json, ()) | {at: several(by) for at, by in self.split.items()}
        texts = [HeldText(path_of(path), split=by) for path, by in split.items()]
        texts += (HeldText(path_of(path), decimals=n) for path, n in self.decimals.items())
        return sorted(texts, key=lambda text: len(text.path))

    @property
    def schemas(self) -> Registry | None:
        """The registry of its schemas."""
        return Registry(url=self.registry) if isinstance(self.registry, str) else self.registry

    def fields_of(self, kind: str) -> dict[str, FieldSource]:
        """Where the fields of a kind of events stand, as far as that is said."""
        own: KindFields = getattr(self, TYPE_OF_KIND[kind])
        return self.fields | own.fields


def own_source(
    topic: str, kind: str, names: Mapping[str, str], positions_from: int, zone: str
) -> Source:
    """The source that one of `[kafka.topics]` stands for: events of one kind, whose fields stand at
    the top. ``names``: our name of a field → theirs.

    >>> own_source("shown", "impressions", {"item_id": "sku"}, 1, "UTC").kind.fixed
    'impression'
    """
    fields: dict[str, FieldSource] = {ours: path_to(theirs) for ours, theirs in names.items()}
    return Source(
        topics=(topic,),
        name=kind,
        preset=OWN,
        kind=SourceKind(fixed=TYPE_OF_KIND[kind]),
        fields=fields,
        positions_from=positions_from,
        zone=zone,
    )
