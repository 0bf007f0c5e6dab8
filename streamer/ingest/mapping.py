"""Compiles where the fields of a source stand to what the core reads: values by number, on levels
of the record, and offsets of the time zone of times without one."""

from __future__ import annotations

import json
import zoneinfo
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from streamer.settings.durations import moment_of
from streamer.settings.event_fields import ELEMENT_FIELDS, EXPOSURES, field_names
from streamer.settings.logs import Log
from streamer.settings.model import Settings
from streamer.settings.paths import (
    Lists,
    Path,
    Step,
    Where,
    lists_in,
    path_of,
    step_of,
    through_lists,
)
from streamer.settings.source_rules import LONG_UNITS, forms_of, paths_in, paths_of
from streamer.settings.sources import COMMA, KindValue, Source, several

_FIRST_DAY, _LAST_DAY = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""Offsets of zones are known between them."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A value that is looked at, by its place on a level; level -1: beside records."""

    level: int
    place: int


@dataclass
class _Level:
    within: _Value | None = None
    """The list that it is an element of."""
    only: list[dict[str, Any]] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)


@dataclass
class Values:
    """The values that are looked at: what stands beside records, and those of each level: the
    record, and elements of lists."""

    beside: list[Any] = field(default_factory=list)
    levels: list[_Level] = field(default_factory=lambda: [_Level()])
    _by_lists: dict[Lists, int] = field(default_factory=lambda: {(): 0})

    def path(self, path: Path) -> _Value:
        """The value at a path."""
        lists, rest = through_lists(path)
        return self._at(self.level(lists), rest)

    def aside(self, what: Any) -> _Value:
        """A value beside records."""
        if what not in self.beside:
            self.beside.append(what)
        return _Value(-1, self.beside.index(what))

    def level(self, lists: Lists) -> int:
        """The level of elements behind some lists."""
        if lists in self._by_lists:
            return self._by_lists[lists]
        *outer, (path, only) = lists
        level = _Level(within=self._at(self.level(tuple(outer)), path))
        self.levels.append(level)
        number = self._by_lists[lists] = len(self.levels) - 1
        if only is not None:
            step: Step = step_of(only.key)
            value = self._at(number, (step,))
            level.only.append({"values": [value], "test": {"one_of": [only.equals]}})
        return number

    def chain(self, lists: Lists, outer: Lists) -> list[int]:
        """The levels of some lists within those of others, from without."""
        return [self.level(lists[:n]) for n in range(len(outer) + 1, len(lists) + 1)]

    def _at(self, level: int, path: Path) -> _Value:
        paths = self.levels[level].paths
        if path not in paths:
            paths.append(path)
        return _Value(level, paths.index(path))

    def numbered(self, spec: Any) -> Any:
        """A spec with the numbers of its values."""
        if isinstance(spec, dict):
            return {key: self.numbered(value) for key, value in spec.items()}
        if isinstance(spec, list):
            return [self.numbered(value) for value in spec]
        return self._number(spec) if isinstance(spec, _Value) else spec

    def _number(self, value: _Value) -> int:
        if value.level < 0:
            return value.place
        before = sum(len(level.paths) for level in self.levels[: value.level])
        return len(self.beside) + before + value.place

    def spec(self) -> dict[str, Any]:
        """The core's spec of all of them."""
        levels = [
            {"list": level.within, "only": level.only, "paths": list(map(_steps, level.paths))}
            for level in self.levels
        ]
        return {"beside": self.beside, "levels": self.numbered(levels)}


def mapped_layout(settings: Settings, source: Source, log: Log) -> dict[str, Any]:
    """The core's spec of the records of one topic of a source."""
    values = Values()
    events = events_of(source)
    kind = _kind(source, log, values, events)
    kinds = {name: _Kind(settings, source, name, values).spec() for name in log.kinds}
    each = values.chain(events, ())
    spec = values.numbered({"kind": kind, "kinds": kinds, "each": each})
    return {**spec, **values.spec(), "unfold": _unfold(source)}


def events_of(source: Source) -> Lists:
    """The lists whose elements are events."""
    return () if source.each is None else lists_in(source.each)


def _unfold(source: Source) -> list[dict[str, Any]]:
    """How the texts are taken apart that hold other values."""
    return [
        {
            "path": _steps(text.path),
            "split": text.split,
            "decimals": text.decimals if isinstance(text.decimals, int) else None,
            "comma": text.decimals == COMMA,
        }
        for text in source.texts
    ]


def value_settings(source: Source) -> dict[str, Any]:
    """What values of a source mean."""
    return {
        "positions_from": source.positions_from,
        "zone": _zone_offsets(source.zone),
        "missing": source.missing,
        "whole_ids": source.whole_ids,
    }


def _kind(source: Source, log: Log, values: Values, events: Lists) -> dict[str, Any]:
    """What a record, or each of its events, is."""
    kind = source.kind
    by = [values.path(path_of(path)) for path in several(kind.field or ())]
    if kind.header is not None:
        by.append(values.aside({"header": kind.header}))
    if kind.schema:
        by.append(values.aside("schema"))
    rules = [_rule(name, rule, values) for name, rule in kind.rules_of_topic(log.plain)]
    return {"by": by, "rules": rules}


def _rule(kind: str | None, rule: KindValue, values: Values) -> dict[str, Any]:
    when = []
    for path, wanted in rule.conditions:
        test = {"is": wanted} if isinstance(wanted, bool) else {"one_of": list(wanted)}
        when.append({"values": [values.path(path_of(path))], "test": test})
    said = {"feedback": rule.feedback, "action": rule.action, "refund": rule.refund}
    return {"kind": kind, "value": rule.value, "when": when, **said}


class _Kind:
    """The fields of one kind of events in a source."""

    def __init__(self, settings: Settings, source: Source, kind: str, values: Values) -> None:
        self.values, self.events = values, events_of(source)
        self.said = source.fields_of(kind)
        self.names, self.arm_paths = fields_of(settings, kind), settings.arm_paths

    def spec(self) -> dict[str, Any]:
        """Where they stand: in the event, and in the elements of its lists of items, where its kind
        has any."""
        items = self.said.get("item_id", False) if "items" in self.names else False
        lists = dict.fromkeys(
            of for form in forms_of(items) if len(of := _lists_of(form)) > len(self.events)
        )
        return {
            "fields": [*self._fields(lambda own: len(own) <= len(self.events)), *self._arms()],
            "lists": [
                {
                    "levels": self.values.chain(of, self.events),
                    "fields": self._fields(self._within(of)),
                }
                for of in lists
            ],
        }

    def _arms(self) -> Iterator[dict[str, Any]]:
        """The values that say arms of experiments, where they stand in the event, or around it."""
        for path in self.arm_paths:
            lists, _ = through_lists(path_of(path))
            if lists == self.events[: len(lists)]:
                value = self.values.path(path_of(path))
                yield {"field": f"arm {path}", "values": [value], "forms": []}

    def _within(self, lists: Lists) -> Callable[[Lists], bool]:
        """Whether a value belongs to an element of some lists, or to one that it stands in."""
        least = len(self.events)
        return lambda own: len(own) > least and own == lists[: len(own)]

    def _fields(self, wanted: Callable[[Lists], bool]) -> list[dict[str, Any]]:
        """The fields that have forms of which the lists are wanted."""
        found: list[dict[str, Any]] = []
        for name in self.names:
            forms = [f for f in forms_of(self.said.get(name, False)) if wanted(_lists_of(f))]
            found += self._wanted(name, forms)
        return found

    def _wanted(self, name: str, forms: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """A field, from the first of some values."""
        for form in forms:
            if "product" in form:
                first, second = form["product"]
                yield {
                    "field": name,
                    "values": [self.values.path(path_of(first))],
                    "times": [self.values.path(path_of(second))],
                    "forms": [_how(form)],
                }
        others = [form for form in forms if "product" not in form]
        if others:
            yield {
                "field": name,
                "values": [self._value(form) for form in others],
                "forms": [self._form(form) for form in others],
            }

    def _form(self, form: dict[str, Any]) -> dict[str, Any]:
        """How a value is written, and where the time of a day stands."""
        if "time" not in form:
            return _how(form)
        return {"unit": "iso", **_how(form), "time": self.values.path(path_of(form["time"]))}

    def _value(self, form: dict[str, Any]) -> _Value:
        if "path" in form:
            return self.values.path(path_of(form["path"]))
        if "constant" in form:
            return self.values.aside({"constant": json.dumps(form["constant"])})
        if "header" in form:
            return self.values.aside({"header": form["header"]})
        return self.values.aside("key" if "key" in form else "timestamp")


def _how(form: dict[str, Any]) -> dict[str, Any]:
    """How a value is written."""
    said: dict[str, Any] = {n: form[n] for n in ("unit", "format", "scale") if n in form}
    if "from" not in form:
        return said
    if (unit := said.get("unit")) in LONG_UNITS:
        said |= {"unit": "ms", "scale": LONG_UNITS[unit]}
    return {**said, "from_ms": moment_of(form["from"], "from")}


def _lists_of(form: dict[str, Any]) -> Lists:
    """The lists that a form passes through."""
    return next(map(lists_in, paths_in(form)), ())


def fields_of(settings: Settings, kind: str) -> tuple[str, ...]:
    """All fields of a kind of events, those of settings too."""
    if kind == EXPOSURES:
        return field_names(kind)
    of_policies = tuple(settings.policy_fields) if kind == "impressions" else ()
    names = (*field_names(kind), *settings.kept_fields, *ELEMENT_FIELDS[kind], *of_policies)
    return tuple(dict.fromkeys((*names, *settings.own_fields[kind])))


def said_of(source: Source, kind: str, name: str) -> str:
    """Where a field stands in the events of a kind of a source, in full; "" where it is not
    read."""
    said = source.fields_of(kind).get(name, name if source.is_own else False)
    places = [form["path"] if form.keys() == {"path"} else form for form in forms_of(said)]
    if not places:
        return ""
    is_path = len(places) == 1 and isinstance(places[0], str)
    return str(places[0]) if is_path else json.dumps(places, sort_keys=True, default=str)


def place_of(
    settings: Settings, log: Log, kind: str | None, name: str, element: int | None = None
) -> str:
    """Where a field stands in the records of a log, for people: the first path, or what stands in
    for one. ``element``: the number of the item it is of."""
    source = settings.read_sources[log.source]
    if source.is_own:
        shown = _own_name(settings, name)
        if element is None:
            return shown
        items = _own_name(settings, "items")
        return f"{items}[{element}]" if name == "items" else f"{items}[{element}].{shown}"
    if name == "type":
        fields = several(source.kind.field or ())
        header = f"header {source.kind.header}" if source.kind.header else log.plain
        return next(iter(fields), header)
    if name == "items" and (kind is None or element is None):
        item = place_of(settings, log, kind, "item_id")
        return source.each or item.rpartition("[]")[0] or item
    said = source.fields_of(kind or log.kinds[0]).get("item_id" if name == "items" else name, False)
    form = next(iter(forms_of(said)), {})
    if "product" in form:
        return " × ".join(_numbered(path, element) for path in form["product"])
    if "header" in form or "key" in form:
        return f"header {form['header']}" if "header" in form else "the key"
    return _numbered(str(form.get("path") or name), element)


def path_said(source: Source, kind: str, name: str) -> str | None:
    """The first path of a field of a kind of events, or of what says the kind; None where it is no
    path."""
    if name == "type":
        return next(iter(several(source.kind.field or ())), None)
    said = source.fields_of(kind).get("item_id" if name == "items" else name, False)
    return next(paths_of(said), None)


UNITS = {"ms": "milliseconds", "s": "seconds", "us": "microseconds", "ns": "nanoseconds"}
UNITS |= {"min": "minutes", "h": "hours", "d": "days"}


def how_written(source: Source, kind: str, name: str) -> str | None:
    """What a time of a source must look like, where that is said.

    >>> from streamer.settings.load import parse
    >>> fields = {"item_id": "i", "ts": {"path": "t", "unit": "s"}}
    >>> one = {"topics": ["a"], "kind": {"fixed": "click"}, "fields": fields}
    >>> how_written(parse({"sources": [one]}).sources[0], "clicks", "ts")
    'epoch seconds, as unit = "s" says'
    """
    form = next(iter(forms_of(source.fields_of(kind).get(name, False))), {})
    if "time" in form:
        like = form.get("format", "2026-11-24 07:00:01")
        return f"a time like {like} in {form['path']} and {form['time']}"
    if "format" in form:
        return f"a time like {form['format']}, as format says"
    unit = form.get("unit")
    if "from" in form:
        return f"{UNITS.get(str(unit), 'milliseconds')} from {form['from']} on, as from says"
    if unit == "iso":
        return 'RFC 3339 text, as unit = "iso" says'
    return None if unit is None else f'epoch {UNITS[unit]}, as unit = "{unit}" says'


def _own_name(settings: Settings, name: str) -> str:
    return settings.events.fields.get(name, name)


def _numbered(path: str, element: int | None) -> str:
    """A path to a field of an element.

    >>> _numbered("recs[].id", 1), _numbered("shelves[].recs[].id", 1)
    ('recs[1].id', 'shelves[].recs[].id (item 1)')
    >>> _numbered("recs[a=1][].id", 1)
    'recs[a=1][].id (item 1)'
    """
    if element is None or "[]" not in path:
        return path
    is_plain = path.count("[]") == 1 and "][]" not in path
    return path.replace("[]", f"[{element}]") if is_plain else f"{path} (item {element})"


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
