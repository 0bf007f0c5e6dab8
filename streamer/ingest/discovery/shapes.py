"""Topics whose records have one shape, and what was found of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from streamer.ingest.discovery import items
from streamer.ingest.discovery.fields import (
    Guesses,
    find_fields,
    guesses_of,
    item_fields,
    places,
    request_ids,
    unnamed_items,
)
from streamer.ingest.discovery.items import ItemField
from streamer.ingest.discovery.kinds import Kinds, classified, find_kinds, with_article
from streamer.ingest.discovery.marked import not_marked, with_marked
from streamer.ingest.discovery.opening import Opening, find_opening, written
from streamer.ingest.discovery.presets import (
    find_preset,
    preset_of_columns,
    shows_nothing,
    supplied,
)
from streamer.ingest.discovery.profile import (
    Profile,
    Seen,
    is_id,
    names_of,
    nearly_all,
    profile_of,
)
from streamer.ingest.lookup import parsed, values_at
from streamer.settings import limits
from streamer.settings.event_fields import LINE_TYPES
from streamer.settings.paths import Path, path_of, text_of
from streamer.settings.source_rules import paths_of, preset_alone, recognition
from streamer.settings.sources import FieldSource

_OF_ITEMS = ("impression", "click", "conversion")
"""Kinds of events that have an item."""


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """One record of a topic or file, with what stands beside it."""

    value: bytes
    key: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    encoded_headers: bytes = b""
    timestamp_ms: int = 0
    partition: int = 0
    offset: int = 0

    @property
    def beside(self) -> tuple[bytes | None, bytes, int]:
        """Key, headers (as Kafka sends them) and timestamp."""
        return self.key, self.encoded_headers, self.timestamp_ms


_MATRIX, _MATRIX_SHARE = 20, 0.9
"""Columns of numbers, and their share, that make a table a matrix."""
_MOST_OF_FIELD = 0.5
"""Share of the values of a field that must be those of one of its name in another file."""
_LEAST_ITEMS = 20
"""Of a catalogue, in which each item stands once."""
_Objects = list[tuple[FoundRecord, Mapping[str, Any]]]
"""Events, each with its record."""


@dataclass(frozen=True)
class SampledTopic:
    """Some records of a topic, or of a file, which is called like one: texts, whatever their format
    on Kafka."""

    topic: str
    records: Sequence[FoundRecord]
    format: str = "json"
    registry: str | None = None
    """Address of the registry of its schemas."""
    columns: tuple[str, ...] = ()
    """Of a table without a header row."""


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
    columns: tuple[str, ...] = ()
    opening: Opening = field(default_factory=Opening)
    whole_ids: bool = False
    """Whether ids are written with decimals that are 0."""
    taken: set[Path] = field(default_factory=set)

    @cached_property
    def guesses(self) -> Guesses:
        """What the values of its most frequent kind say."""
        profiles = self.profiles.values()
        main = max(profiles, key=lambda profile: profile.records, default=Profile())
        return guesses_of(main, self.kinds.path, self.profiles.get("conversion"))

    def said_of(self, kind: str) -> dict[str, FieldSource]:
        """The fields of a kind without those that stand under their own names."""
        return {name: said for name, said in self.fields[kind].items() if said != name}


def find_shapes(samples: Sequence[SampledTopic]) -> list[Shape]:
    """What the records of some topics look like; of those with objects only."""
    groups: dict[Any, list[_Looked]] = {}
    for sample in samples:
        records = parsed_records(sample.records)
        opening = find_opening([value for _, value in records])
        if objects := objects_of(records, opening):
            looked = _Looked([sample], opening, objects)
            groups.setdefault(looked.likeness, []).append(looked)
    shapes = [_shape(_together(group)) for group in groups.values()]
    _share_person(shapes)
    chosen = _items(shapes)
    for i, shape in enumerate(shapes):
        of_shape = {kind: item for (at, kind), item in chosen.items() if at == i}
        _fill_all(shape, of_shape)
        shape.kinds = with_marked(shape.kinds, shape.profiles, shape.fields)
        shape.doubts += not_marked(shape.profiles, shape.fields)
        shape.whole_ids = any(map(items.are_floats, _ids_of(shape, of_shape)))
    return shapes


def _share_person(shapes: Sequence[Shape]) -> None:
    """Looks for the person of impressions in other files, too: a field of its name, of whose values
    most are the same."""
    shown = [shape for shape in shapes if "impression" in shape.profiles and shape.guesses.persons]
    if not shown:
        return
    own, scalars = shown[0].guesses.persons[0], shown[0].profiles["impression"].scalars
    known = scalars[own.path].values.keys() if own.path in scalars else frozenset[str]()
    for shape in shapes:
        seen = [p.scalars[own.path] for p in shape.profiles.values() if own.path in p.scalars]
        if seen and len(known & seen[0].values.keys()) > _MOST_OF_FIELD * seen[0].distinct:
            here = replace(own, distinct=seen[0].distinct, records=seen[0].count)
            others = [one for one in shape.guesses.persons if one.path != own.path]
            shape.guesses = replace(shape.guesses, persons=[here, *others])


def _ids_of(shape: Shape, chosen: Mapping[str, ItemField]) -> Iterator[Seen]:
    """The values of all fields of a shape that are ids."""
    yield from (item.seen for item in chosen.values())
    for kind, profile in shape.profiles.items():
        for name in ("user_id", "request_id", "event_id", "session_id"):
            paths = map(path_of, paths_of(shape.fields.get(kind, {}).get(name, False)))
            yield from (profile.scalars[path] for path in paths if path in profile.scalars)


def _items(shapes: Sequence[Shape]) -> dict[tuple[int, str], ItemField]:
    """(number of a shape, kind) → the field that is its item: values of impressions and feedback
    are compared, wherever they come from."""
    of_items = [
        (i, kind) for i, of in enumerate(shapes) for kind in of.profiles if kind in _OF_ITEMS
    ]
    unnamed = {
        (i, kind): unnamed_items(shapes[i].profiles[kind], shapes[i].guesses)
        for i, kind in of_items
    }
    named = {(i, kind): item_fields(shapes[i].profiles[kind], kind) for i, kind in of_items}
    may = {at: named[at] or unnamed[at] for at in of_items}
    shown = next((at for at in may if at[1] == "impression"), None)
    others = [at for at in may if at != shown]
    own, of_others = items.chosen(may[shown] if shown else [], [may[at] for at in others])
    chosen = dict(zip(others, of_others, strict=True)) | ({shown: own} if shown else {})
    for at in others:
        item = chosen[at]
        is_other = own is not None and (item is None or not item.is_named)
        if shown and own and is_other and not (item and own.values & item.values):
            chosen[at] = None
            of_shown, of_feedback = (
                unnamed[i, kind] + request_ids(shapes[i].profiles[kind]) for i, kind in (shown, at)
            )
            if (known := chosen[shown]) and known.impression:  # by which other feedback joins
                of_shown = [one for one in of_shown if one.path == known.impression]
            if own.list is None and (pair := items.shared(of_shown, of_feedback)):
                by_id, chosen[at] = pair
                is_other = own.path != by_id.impression
                chosen[shown] = replace(own if is_other else by_id, impression=by_id.impression)
    return {at: item for at, item in chosen.items() if item is not None}


def no_log(profile: Profile) -> str:
    """What records without a time or an item are, where they are no events."""
    numbers = [path for path, seen in profile.scalars.items() if seen.is_numeric]
    sums = [path for path in numbers if profile.scalars[path].high > 1]
    counted = {classified(names_of(path)[-1])[0] for path in sums if not is_id(path)}
    if {"impression", "click"} <= counted:
        return "these are sums of events, not events: nothing can be counted again"
    if len(numbers) >= _MATRIX and len(numbers) > _MATRIX_SHARE * len(profile.scalars):
        return f"this is a matrix of {len(numbers)} numbers a row, not a log: make a row an event"
    item = next(iter(places(profile, "item_id")), None)
    is_whole = item is not None and nearly_all(item.seen.distinct, profile.records)
    others = ("user_id", "session_id", "request_id")
    is_event = any(places(profile, name) for name in others) or any(
        seen.is_moment for seen in profile.scalars.values()
    )
    if item is not None and is_whole and item.seen.distinct >= _LEAST_ITEMS and not is_event:
        things = text_of(item.path)
        return f"this is one row for each {things}, without a moment: a catalogue, not a log"
    has_time = any(seen.unit is not None for seen in profile.scalars.values())
    alone = [path for path, seen in profile.scalars.items() if seen.is_id and not seen.repeats]
    if not has_time and alone and is_id(alone[0]):
        people = text_of(alone[0])
        return f"this is one row for each {people} without a time, not a log: add when it was"
    person = next(iter(places(profile, "user_id")), None)
    is_acting = bool(profile.lists or profile.id_lists) or any(places(profile, "variant"))
    persons = 0 if person is None or is_acting else person.seen.distinct
    if person is not None and persons >= _LEAST_ITEMS and nearly_all(persons, profile.records):
        people = text_of(person.path)
        return f"this is one row for each {people}: what people are, not what they did"
    return ""


def parsed_records(records: Sequence[FoundRecord]) -> list[tuple[FoundRecord, Any]]:
    """Those records that hold an object or a list, each with that."""
    values = ((record, parsed(record.value)) for record in records)
    return [(record, value) for record, value in values if isinstance(value, dict | list)]


def objects_of(records: Iterable[tuple[FoundRecord, Any]], opening: Opening) -> _Objects:
    """The events of parsed records, each with its record."""
    return [(record, event) for record, value in records for event in opening.events(value)]


class _Looked:
    """Topics whose records are opened alike, the events of these, and what they are."""

    def __init__(self, samples: list[SampledTopic], opening: Opening, objects: _Objects) -> None:
        self.samples, self.opening, self.objects = samples, opening, objects
        profile = profile_of((value for _, value in objects), opening.each)
        headers, first = _headers_of(objects), samples[0]
        preset, kinds = _preset(profile, headers, first) or (None, None)
        if preset and first.columns and shows_nothing(preset, profile):
            own = find_kinds(profile, headers, first.topic)
            if {"impression", "click"} <= own.known.keys():
                preset, kinds = None, own
        self.preset = preset
        self.kinds = kinds or find_kinds(profile, headers, first.topic)
        self.given = opening, objects
        each = None if preset is None else preset_alone(preset).each
        if each is not None and not opening.each:
            self.opening = replace(opening, each=path_of(each))
            within = Opening(each=self.opening.each)
            self.objects = [(r, event) for r, one in objects for event in within.events(one)]

    @property
    def likeness(self) -> Any:
        """What topics have in common whose records are one shape."""
        kinds, opening, first = self.kinds, self.opening, self.samples[0]
        of_topic = first.topic if kinds.path is None and kinds.header is None else None
        of_opening = (opening.each, opening.json, *opening.split.items(), *opening.decimals)
        return self.preset, kinds.path, kinds.header, of_topic, first.format, of_opening


def _together(group: Sequence[_Looked]) -> _Looked:
    """Topics of one likeness as one."""
    if len(group) == 1:
        return group[0]
    samples = [sample for each in group for sample in each.samples]
    opening, _ = group[0].given
    return _Looked(samples, opening, [one for each in group for one in each.given[1]])


def _preset(
    profile: Profile, headers: Mapping[str, Seen], sample: SampledTopic
) -> tuple[str, Kinds] | None:
    """The preset that fits: of a table without a header row by its columns."""
    if sample.columns and (preset := preset_of_columns(sample.columns)):
        return preset, Kinds()
    return find_preset(profile, headers, sample.topic)


def _headers_of(objects: _Objects) -> dict[str, Seen]:
    """What headers say."""
    found: dict[str, Seen] = {}
    for record, _ in objects:
        for name, text in record.headers.items():
            if name in found or len(found) < limits.DISCOVERED_PATHS:
                found.setdefault(name, Seen()).add(text)
    return found


def _shape(looked: _Looked) -> Shape:
    opening, objects, kinds = looked.opening, looked.objects, looked.kinds
    topics, first = [sample.topic for sample in looked.samples], looked.samples[0]
    made = Shape(topics, kinds, looked.preset, records=len(objects))
    made.format, made.registry = first.format, first.registry
    made.columns, made.opening = first.columns, opening
    for kind in LINE_TYPES:
        own = [one for one in objects if kind in _kinds_of(kinds, *one, len(opening.each))]
        if own:
            made.profiles[kind] = profile_of((value for _, value in own), opening.each)
            distinct = {written(value) for _, value in own}
            made.profiles[kind].copies = len(own) - len(distinct)
    made.is_ours = made.preset is None and not made.columns and _is_ours(made)
    return made


def _fill_all(shape: Shape, chosen: Mapping[str, ItemField]) -> None:
    """Finds the fields of all kinds; ``chosen``: kind → its item."""
    doubts: dict[str, list[str]] = {}
    for kind, of_kind in shape.profiles.items():
        for doubt in _fill(shape, kind, of_kind, chosen.get(kind)):
            doubts.setdefault(doubt, []).append(kind)
    by_impression = any(item.impression for item in chosen.values())
    users = [fields.get("user_id") for fields in shape.fields.values()]
    if by_impression and None in users and any(users):
        at = next(filter(None, users))
        for fields in shape.fields.values():
            fields.pop("user_id", None)
        why = "clicks have none, and nobody would have clicked"
        doubts[f"user_id: {at} is not read: {why}"] = ["impression"]
    shape.doubts += [f"{doubt} ({', '.join(of)})" for doubt, of in doubts.items()]
    if shape.preset is not None and (doubt := recognition(shape.preset).doubt):
        shape.doubts.append(f"kind: {doubt}")
    if not shape.kinds.is_sure:
        topic = shape.topics[0]
        shape.doubts.append(f"kind: nothing says for sure what the records of {topic} are")
    for value in shape.kinds.values:
        if not value.is_sure:
            what = f"taken for {with_article(value.kind)}" if value.kind else "ignored"
            shape.doubts.append(f"kind: {value.label!r} is {what}")


def _kinds_of(
    kinds: Kinds, record: FoundRecord, value: Mapping[str, Any], within: int
) -> tuple[str, ...]:
    """``within``: steps of paths that lead to the event."""
    if kinds.header is not None:
        return kinds.kinds_of(record.headers.get(kinds.header), value)
    if kinds.path is None:
        return kinds.kinds_of(None, value)
    seen = Seen()
    for at in values_at(value, kinds.path[within:]):
        seen.add(at)
    return kinds.kinds_of(next(iter(seen.values), None), value)


def _is_ours(shape: Shape) -> bool:
    """Whether the records have our own names, and say in `type` what they are."""
    values = {value.text: value.kind for value in shape.kinds.values}
    is_typed = shape.kinds.path == ("type",) and all(values[v] == v for v in values)
    has_ours = all(
        ("ts",) in profile.scalars
        and (("item_id",) in profile.scalars or ("items",) in {*profile.lists, *profile.id_lists})
        for kind, profile in shape.profiles.items()
        if kind in _OF_ITEMS
    )
    return is_typed and has_ours and set(values) <= LINE_TYPES.keys()


def _fill(shape: Shape, kind: str, profile: Profile, item: ItemField | None) -> list[str]:
    """Finds the fields of a kind, and returns what is not sure."""
    of_value = (value.extra.get("has") for value in shape.kinds.values if value.kind == kind)
    own_time = next((path_of(path) for path in of_value if isinstance(path, str)), None)
    of_kind = find_fields(profile, kind, item, shape.guesses, own_time)
    shape.taken |= of_kind.taken | {shape.kinds.path or ()}
    fields = dict(of_kind.fields)
    if shape.preset is not None:
        source = preset_alone(shape.preset)
        fields = {n: s for n, s in fields.items() if not supplied(source, kind, n, profile)}
        for name in of_kind.doubts.keys() - fields.keys():
            if name == "user_id" or supplied(source, kind, name, profile):
                of_kind.doubts.pop(name)
    shape.fields[kind] = fields
    shape.positions_from = min(shape.positions_from, of_kind.positions_from)
    return [f"{name}: {doubt}" for name, doubt in of_kind.doubts.items()]
