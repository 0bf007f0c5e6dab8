"""Compiles where the fields of a source stand to what the core reads: values by number, and offsets
of the time zone of times without one."""

from __future__ import annotations

import json
import zoneinfo
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from streamer.settings.event_fields import ELEMENT_FIELDS, LINE_TYPES, field_names
from streamer.settings.logs import Log
from streamer.settings.model import Settings
from streamer.settings.paths import Path, Step, Where, path_of
from streamer.settings.source_rules import forms_of
from streamer.settings.sources import FieldSource, KindValue, Source

_RECORD = "$."
_FIRST_DAY, _LAST_DAY = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""Offsets of zones are known between them."""


@dataclass
class Values:
    """Numbers of the values that are looked at: those of paths, then what stands beside records."""

    paths: list[Path] = field(default_factory=list)
    beside: list[Any] = field(default_factory=list)

    def path(self, path: Path) -> int:
        """The number of the value at a path."""
        if path not in self.paths:
            self.paths.append(path)
        return self.paths.index(path)

    def aside(self, what: Any) -> int:
        """The number of a value beside records; below 0 until all paths are known."""
        if what not in self.beside:
            self.beside.append(what)
        return -1 - self.beside.index(what)

    def numbered(self, spec: Any) -> Any:
        """A spec whose numbers below 0 are those behind the paths."""
        if isinstance(spec, dict):
            return {key: self.numbered(value) for key, value in spec.items()}
        if isinstance(spec, list):
            return [self.numbered(value) for value in spec]
        is_aside = isinstance(spec, int) and not isinstance(spec, bool) and spec < 0
        return len(self.paths) - 1 - spec if is_aside else spec


def mapped_layout(settings: Settings, source: Source, log: Log) -> dict[str, Any]:
    """The core's spec of the records of one topic of a source."""
    values = Values()
    kind = _kind(source, log, values)
    kinds = {name: _Kind(settings, source, name, values).spec() for name in log.kinds}
    spec = values.numbered({"kind": kind, "kinds": kinds})
    return {
        **spec,
        "paths": [_steps(path) for path in values.paths],
        "beside": values.beside,
    }


def value_settings(source: Source) -> dict[str, Any]:
    """What values of a source mean."""
    return {
        "positions_from": source.positions_from,
        "zone": _zone_offsets(source.zone),
        "missing": source.missing,
    }


def _kind(source: Source, log: Log, values: Values) -> dict[str, Any]:
    """What a record is: by a value, or always the same."""
    kind = source.kind
    if kind.fixed is not None:
        return {"fixed": _rule(LINE_TYPES[kind.fixed], None)}
    if kind.field is None and kind.header is None:
        ((name, rule),) = topic_rules(source, log.plain)
        return {"fixed": _rule(name, rule)}
    paths = (kind.field,) if isinstance(kind.field, str) else kind.field or ()
    numbers = [values.path(path_of(path)) for path in paths]
    if kind.header is not None:
        numbers.append(values.aside({"header": kind.header}))
    rules = {v: _rule(name, rule) for name, of in kind.rules.items() for v, rule in of.items()}
    return {"by": {"values": numbers, "rules": rules, "ignored": list(kind.ignored)}}


def topic_rules(source: Source, topic: str) -> list[tuple[str, KindValue]]:
    """What the name of a topic says its records are."""
    rules = source.kind.rules
    return [(name, of[topic]) for name, of in rules.items() if topic in of]


def _rule(kind: str, rule: KindValue | None) -> dict[str, Any]:
    if rule is None:
        rule = KindValue(value=kind)
    said = {"feedback": rule.feedback, "action": rule.action, "shown": rule.shown}
    return {"kind": kind, **said}


class _Kind:
    """The fields of one kind of events in a source."""

    def __init__(self, settings: Settings, source: Source, kind: str, values: Values) -> None:
        self.source, self.values = source, values
        self.said = source.fields_of(kind)
        self.names = fields_of(settings, kind)
        of_policies = tuple(settings.policy_fields) if kind == "impressions" else ()
        self.of_element = (*ELEMENT_FIELDS[kind], *of_policies, *settings.custom_fields[kind])

    def spec(self) -> dict[str, Any]:
        """Where they stand."""
        has_items, items = "items" in self.names, self.said.get("items")
        is_list = has_items and items is not None and items is not False
        in_record = [f for name in self.names for f in self._field(name, is_list)]
        return {"fields": in_record, "items": self._items(items) if has_items else None}

    def _field(self, name: str, is_list: bool) -> Iterator[dict[str, Any]]:
        """A field of the record."""
        if name in ("items", "type"):
            return
        said = self.said.get(name)
        if is_list and name in self.of_element:
            said = _in_record(said)
            if said is None:
                return
        yield from self._wanted(name, self._default(name) if said is None else said, self.values)

    def _default(self, name: str) -> FieldSource:
        """Its own name, in each of the roots."""
        return tuple(rooted(root, name) for root in self.source.roots)

    def _items(self, items: FieldSource | None) -> dict[str, Any] | None:
        """The list, and the fields of its elements."""
        if items is False:
            return None
        inner, fields = Values(), list[dict[str, Any]]()
        for name in self.of_element:
            field_source = None if items is None else _in_element(self.said.get(name))
            fields += self._wanted(name, name if field_source is None else field_source, inner)
        where = self._default("items") if items is None else items
        return {
            "values": [self.values.path(path_of(form["path"])) for form in forms_of(where)],
            "paths": [_steps(path) for path in inner.paths],
            "fields": fields,
        }

    def _wanted(
        self, name: str, field_source: FieldSource, values: Values
    ) -> Iterator[dict[str, Any]]:
        """A field, from the first of some values; of times one for each unit, the first last."""
        forms = list(forms_of(field_source))
        products = [form for form in forms if "product" in form]
        for form in products:
            first, second = form["product"]
            yield {
                "field": name,
                "values": [values.path(path_of(first))],
                "times": [values.path(path_of(second))],
            }
        others = [form for form in forms if "product" not in form]
        if others:
            yield {
                "field": name,
                "values": [self._number(form, values) for form in others],
                "units": [form.get("unit", "any") for form in others],
            }

    def _number(self, form: dict[str, Any], values: Values) -> int:
        if "path" in form:
            return values.path(path_of(form["path"]))
        if "constant" in form:
            return self.values.aside({"constant": json.dumps(form["constant"])})
        if "header" in form:
            return self.values.aside({"header": form["header"]})
        return self.values.aside("key" if "key" in form else "timestamp")


def rooted(root: str, name: str) -> str:
    """The path of a field below a root.

    >>> rooted("context", "arm"), rooted("", "arm"), rooted("params[key={}].text", "arm")
    ('context.arm', 'arm', 'params[key=arm].text')
    """
    if "{}" in root:
        return root.replace("{}", name)
    return f"{root}.{name}" if root else name


def fields_of(settings: Settings, kind: str) -> tuple[str, ...]:
    """All fields of a kind of events, those of settings too."""
    of_policies = tuple(settings.policy_fields) if kind == "impressions" else ()
    names = (*field_names(kind), *settings.dimension_names, *ELEMENT_FIELDS[kind], *of_policies)
    return tuple(dict.fromkeys((*names, *settings.custom_fields[kind])))


def said_of(source: Source, kind: str, name: str) -> str:
    """Where a field stands in the events of a kind of a source, in full."""
    said = source.fields_of(kind).get(name)
    if said is None:
        said = tuple(rooted(root, name) for root in source.roots)
    places = [form["path"] if form.keys() == {"path"} else form for form in forms_of(said)]
    is_path = len(places) == 1 and isinstance(places[0], str)
    return str(places[0]) if is_path else json.dumps(places, sort_keys=True)


def place_of(settings: Settings, log: Log, kind: str | None, name: str) -> str:
    """Where a field stands in the records of a log, for people: the first path, or what stands in
    for one."""
    source = settings.read_sources[log.source]
    if name == "type" and not source.is_own:
        field = source.kind.field
        return source.kind.header or log.plain if field is None else _first_text(field)
    field_source = source.fields_of(kind or log.kinds[0]).get(name)
    if field_source is None or field_source is True or field_source is False:
        return rooted(source.roots[0], name) if source.roots else name
    form = next(forms_of(field_source))
    if "product" in form:
        return " × ".join(form["product"])
    return str(form.get("path") or form.get("header") or name).removeprefix(_RECORD)


def _first_text(field: str | tuple[str, ...]) -> str:
    return field if isinstance(field, str) else field[0]


def _in_record(said: FieldSource | None) -> FieldSource | None:
    """The forms of a field of items that begin at the record."""
    return _those(said, is_record=True)


def _in_element(said: FieldSource | None) -> FieldSource | None:
    """The other ones; false where the field is not to be read."""
    return said if isinstance(said, bool) else _those(said, is_record=False)


def _those(said: FieldSource | None, *, is_record: bool) -> FieldSource | None:
    forms: Iterable[dict[str, Any]] = () if said is None else forms_of(said)
    found = tuple(form for form in forms if _is_of_record(form) == is_record)
    return found or None


def _is_of_record(form: dict[str, Any]) -> bool:
    path = form.get("path")
    return path.startswith(_RECORD) if isinstance(path, str) else "product" not in form


def _steps(path: Path) -> list[Any]:
    return [_step(step) for step in path]


def _step(step: Step) -> Any:
    return {"key": step.key, "equals": step.equals} if isinstance(step, Where) else step


@lru_cache(maxsize=8)
def _zone_offsets(name: str) -> list[tuple[int, int]]:
    """From which UTC millisecond on a zone of the IANA database has which offset (ms), from 1970 to
    2100; ``zoneinfo.ZoneInfoNotFoundError`` where there is no such zone.

    >>> _zone_offsets("UTC"), _zone_offsets("Asia/Kolkata")
    ([(0, 0)], [(0, 19800000)])
    >>> _zone_offsets("Europe/Berlin")[:2]
    [(0, 3600000), (323830800000, 7200000)]
    """
    zone = zoneinfo.ZoneInfo(name)
    offsets = [(0, _offset_ms(_FIRST_DAY, zone))]
    day = _FIRST_DAY
    while day < _LAST_DAY:
        following = day + timedelta(days=1)
        if _offset_ms(following, zone) != offsets[-1][1]:
            offsets.append(_change(day, following, zone))
        day = following
    return offsets


def _offset_ms(moment: datetime, zone: zoneinfo.ZoneInfo) -> int:
    offset = moment.astimezone(zone).utcoffset()
    assert offset is not None
    return offset // timedelta(milliseconds=1)


def _change(low: datetime, high: datetime, zone: zoneinfo.ZoneInfo) -> tuple[int, int]:
    """When, to the second, the offset changes between two moments, and the one from then on."""
    before, after = _offset_ms(low, zone), _offset_ms(high, zone)
    while high - low > timedelta(seconds=1):
        middle = (low + (high - low) / 2).replace(microsecond=0)
        low, high = (middle, high) if _offset_ms(middle, zone) == before else (low, middle)
    return (high - _FIRST_DAY) // timedelta(milliseconds=1), after
