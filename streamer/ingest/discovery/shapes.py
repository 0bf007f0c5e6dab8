"""Topics whose records have one shape, and what was found of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from streamer.ingest.discovery.fields import find_fields
from streamer.ingest.discovery.kinds import Kinds, find_kinds
from streamer.ingest.discovery.presets import find_preset, source_of, supplied
from streamer.ingest.discovery.profile import Profile, Seen, profile_of
from streamer.settings import limits
from streamer.settings.event_fields import LINE_TYPES
from streamer.settings.paths import Path
from streamer.settings.sources import KIND_OF_RULE, FieldSource


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """One record of a topic or file, with what stands beside it."""

    value: bytes
    key: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    encoded_headers: bytes = b""
    timestamp_ms: int = 0


@dataclass(frozen=True)
class SampledTopic:
    """Some records of a topic, or of a file, which is called like one: texts, whatever their format
    on Kafka."""

    topic: str
    records: Sequence[FoundRecord]
    format: str = "json"
    registry: str | None = None
    """Address of the registry of its schemas."""


@dataclass
class Shape:
    """What was found of topics whose records look alike."""

    topics: list[str]
    kinds: Kinds
    preset: str | None = None
    is_ours: bool = False
    """Whether the records are events as they are documented."""
    profiles: dict[str, Profile] = field(default_factory=dict)
    """Kind → its records."""
    records: int = 0
    fields: dict[str, dict[str, FieldSource]] = field(default_factory=dict)
    """Kind → our field → where it stands; without those that a preset supplies."""
    doubts: list[str] = field(default_factory=list)
    positions_from: int = 1
    format: str = "json"
    registry: str | None = None
    taken: set[Path] = field(default_factory=set)

    def said_of(self, kind: str) -> dict[str, FieldSource]:
        """The fields of a kind without those that stand under their own names."""
        return {name: said for name, said in self.fields[kind].items() if said != name}


def find_shapes(samples: Sequence[SampledTopic]) -> list[Shape]:
    """What the records of some topics look like; of those with objects only."""
    groups: dict[Any, list[SampledTopic]] = {}
    for sample in samples:
        objects = objects_of(sample)
        if objects:
            groups.setdefault(_likeness(sample, objects), []).append(sample)
    return [_shape(group) for group in groups.values()]


def objects_of(sample: SampledTopic) -> list[tuple[FoundRecord, Mapping[str, Any]]]:
    """The records that are objects, parsed."""
    found: list[tuple[FoundRecord, Mapping[str, Any]]] = []
    for record in sample.records:
        try:
            value = msgspec.json.decode(record.value)
        except (ValueError, RecursionError):  # msgspec's and Unicode's errors are ValueErrors
            continue
        if isinstance(value, dict):
            found.append((record, value))
    return found


def _likeness(sample: SampledTopic, objects: Sequence[tuple[FoundRecord, Any]]) -> Any:
    """What topics have in common whose records are one shape."""
    profile, headers = profile_of(value for _, value in objects), headers_of(objects)
    preset, kinds = find_preset(profile, headers, sample.topic) or (None, None)
    kinds = kinds or find_kinds(profile, headers, sample.topic)
    of_topic = sample.topic if kinds.path is None and kinds.header is None else None
    return preset, kinds.path, kinds.header, of_topic, sample.format


def headers_of(objects: Sequence[tuple[FoundRecord, Any]]) -> dict[str, Seen]:
    """What headers say."""
    found: dict[str, Seen] = {}
    for record, _ in objects:
        for name, text in record.headers.items():
            if name in found or len(found) < limits.DISCOVERED_PATHS:
                found.setdefault(name, Seen()).add(text)
    return found


def _shape(samples: Sequence[SampledTopic]) -> Shape:
    objects = [one for sample in samples for one in objects_of(sample)]
    profile, headers = profile_of(value for _, value in objects), headers_of(objects)
    topic = samples[0].topic
    preset, kinds = find_preset(profile, headers, topic) or (None, None)
    kinds = kinds or find_kinds(profile, headers, topic)
    made = Shape([sample.topic for sample in samples], kinds, preset, records=len(objects))
    made.format, made.registry = samples[0].format, samples[0].registry
    for kind in KIND_OF_RULE:
        own = [value for record, value in objects if kind in _kinds_of(kinds, record, value)]
        if own:
            made.profiles[kind] = profile_of(own)
    made.is_ours = preset is None and _is_ours(made)
    doubts: dict[str, list[str]] = {}
    for kind, of_kind in made.profiles.items():
        for doubt in _fill(made, kind, of_kind):
            doubts.setdefault(doubt, []).append(kind)
    made.doubts += [f"{doubt} ({', '.join(of)})" for doubt, of in doubts.items()]
    if not kinds.is_sure:
        made.doubts.append(f"kind: nothing says for sure what the records of {topic} are")
    for value in kinds.values:
        if not value.is_sure:
            made.doubts.append(f"kind: {value.text!r} is taken for an {value.kind}")
    return made


def _kinds_of(kinds: Kinds, record: FoundRecord, value: Mapping[str, Any]) -> tuple[str, ...]:
    if kinds.header is not None:
        return kinds.kinds_of(record.headers.get(kinds.header))
    if kinds.path is None:
        return kinds.kinds_of(None)
    at: Any = value
    for step in kinds.path:
        at = at.get(step) if isinstance(at, Mapping) else None
    seen = Seen()
    if at is not None:
        seen.add(at)
    return kinds.kinds_of(next(iter(seen.values), None))


def _is_ours(shape: Shape) -> bool:
    """Whether the records have our own names, and say in `type` what they are."""
    values = {value.text: value.kind for value in shape.kinds.values}
    is_typed = shape.kinds.path == ("type",) and all(values[v] == v for v in values)
    has_ours = all(
        ("ts",) in profile.scalars
        and (("item_id",) in profile.scalars or ("items",) in {*profile.lists, *profile.id_lists})
        for kind, profile in shape.profiles.items()
        if kind != "session"
    )
    return is_typed and has_ours and set(values) <= LINE_TYPES.keys()


def _fill(shape: Shape, kind: str, profile: Profile) -> list[str]:
    """Finds the fields of a kind, and returns what is not sure."""
    found = find_fields(profile, kind)
    shape.taken |= found.taken | {shape.kinds.path or ()}
    fields = dict(found.fields)
    if shape.preset is not None:
        source = source_of(shape.preset)
        fields = {n: s for n, s in fields.items() if not supplied(source, kind, n, profile)}
        for name in found.doubts.keys() - fields.keys():
            if name == "user_id" or supplied(source, kind, name, profile):
                found.doubts.pop(name)
    shape.fields[kind] = fields
    shape.positions_from = min(shape.positions_from, found.positions_from)
    return [f"{name}: {text}" for name, text in found.doubts.items()]
