"""What stands where in some records: paths with their values, counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from streamer.ingest.discovery.names import (
    EXPERIMENTS,
    OTHER_NAMES,
    VARIANT,
    plain,
    rank,
    words,
)
from streamer.ingest.lookup import values_at
from streamer.ingest.rejections import unit_of
from streamer.settings import limits
from streamer.settings.paths import Each, Path, Where, text_of

_RFC_3339 = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(?!,)")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_KEYS = ("key", "name", "experiment", "experiment_id", "test")
"""Fields by which elements of a list may be told apart, whatever else they hold."""
_LIKE_KEYS = ("name", "id", "key", "slug")
"""Last words of other names of fields that tell apart experiments: ``test_name``."""
_NESTED = 4
"""How deep a list may stand in an element of another."""
_MOST_KEYS = 20
"""Values of such a field."""
_WHOLE = re.compile(r"-?\d+\.0+")
_FORMATS = (
    *("%m/%d/%Y %I:%M:%S %p", "%d/%m/%Y %I:%M:%S %p", "%m/%d/%Y %H:%M:%S", "%d/%m/%Y %H:%M:%S"),
    *("%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M"),
    *("%Y/%m/%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y%m%d%H%M%S", "%d/%b/%Y:%H:%M:%S %z"),
    *("%a, %d %b %Y %H:%M:%S GMT", "%d %b %Y %H:%M:%S", "%Y-%m-%d", "%y%m%d%H"),
    "%Y-%m-%d %H:%M:%S,%f",
    "%Y-%m-%d-%H:%M:%S",
)
"""Formats of times that are looked for, beside RFC 3339."""
_MAY_BE_TIME = re.compile(r"\d{1,4}[/.-]|\d{14}$|\d{8}$|[A-Z][a-z]{2}, \d|\d{1,2} [A-Z][a-z]{2} ")
_FIRST_YEAR, _LAST_YEAR = 1995, 2100
_MOST_RANKS, _DENSE = 60, 0.6
_ABSENT = ("", "-", "NULL", "null", "None", "\\N")
"""Texts that stand where there is nothing."""
NO_AMOUNT = (None, "0", "0.0", "0.00", *_ABSENT)
"""What stands where there is no amount."""
_UNITS = {"seconds": "s", "microseconds": "us", "nanoseconds": "ns"}
_GENERIC = frozenset(
    {
        *("value", "string_value", "int_value", "float_value", "double_value", "text", "string"),
        *("int", "stringValue", "intValue", "doubleValue", "boolValue", "arrayValue", "values"),
        *("kvlistValue",),
    }
)


@dataclass
class Seen:
    """The values at one path: texts, numbers, true and false as they are written."""

    count: int = 0
    texts: int = 0
    numeric: int = 0
    """Numbers, and texts that are some."""
    whole: int = 0
    whole_floats: int = 0
    """Numbers with decimals that are all 0, like 78.0."""
    units: Counter[str] = field(default_factory=Counter)
    """Units in which they would be times."""
    values: Counter[str] = field(default_factory=Counter)
    """At most ``limits.DISCOVERED_VALUES`` of them."""
    low: float = float("inf")
    high: float = float("-inf")

    def add(self, value: Any) -> None:
        """Take a value in."""
        text = value if isinstance(value, str) else written(value)
        self.count += 1
        self.texts += isinstance(value, str)
        if text in self.values or len(self.values) < limits.DISCOVERED_VALUES:
            self.values[text] += 1
        if not isinstance(value, bool) and _NUMBER.fullmatch(text):
            magnitude = float(text)
            self.numeric += 1
            is_whole = magnitude.is_integer()
            self.whole += is_whole and "." not in text
            self.whole_floats += is_whole and _WHOLE.fullmatch(text) is not None
            self.low, self.high = min(self.low, magnitude), max(self.high, magnitude)
        if unit := time_unit(value):
            self.units[unit] += 1

    @property
    def distinct(self) -> int:
        """Different values, as far as they are known."""
        return len(self.values)

    @property
    def repeats(self) -> int:
        """Values that were there before, as far as they are known."""
        return sum(self.values.values()) - len(self.values)

    @property
    def is_numeric(self) -> bool:
        """Whether nearly all are numbers, or texts of numbers."""
        return nearly_all(self.numeric, self.count)

    @property
    def is_whole(self) -> bool:
        """Whether nearly all are whole numbers."""
        return nearly_all(self.whole + self.whole_floats, self.count)

    @property
    def are_ranks(self) -> bool:
        """Whether they are most of the whole numbers from 0 or 1 to some few."""
        is_begun = self.is_whole and 0 <= self.low <= 1 and self.high <= _MOST_RANKS
        return is_begun and self.distinct > _DENSE * self.high

    @property
    def is_id(self) -> bool:
        """Whether they may be ids: texts, or whole numbers."""
        return nearly_all(self.texts, self.count) or self.is_whole

    @property
    def unit(self) -> str | None:
        """In which unit they are times, where nearly all are; `iso` for texts, `format` for those
        of another one."""
        ((unit, count),) = self.units.most_common(1) or (("", -1),)
        if nearly_all(count, self.count):
            return unit
        return "format" if self.formats else None

    @property
    def formats(self) -> list[str]:
        """The formats of times that nearly all of them have, the likeliest first."""
        texts = [text for text in self.values if _MAY_BE_TIME.match(text)]
        if not nearly_all(self.texts, self.count) or not nearly_all(len(texts), self.distinct):
            return []
        return [
            each
            for each in _FORMATS
            if nearly_all(sum(_has(each, text) for text in texts), self.distinct)
        ]

    @property
    def is_moment(self) -> bool:
        """Whether they say times of a day, not days alone."""
        return self.unit not in (None, "format") or any("%H" in form for form in self.formats)

    def within(self, low: float, high: float) -> bool:
        """Whether nearly all are numbers between two."""
        if low <= self.low and self.high <= high:
            return self.is_numeric
        fitting = sum(n for text, n in self.values.items() if low <= _magnitude(text) <= high)
        return self.is_numeric and nearly_all(fitting, sum(self.values.values()))


def nearly_all(part: int, whole: int) -> bool:
    """Whether a rule holds by majority: for 99 % of records, for all but three of a small sample;
    the others are refused, and counted.

    >>> nearly_all(990, 1000), nearly_all(97, 100), nearly_all(96, 100), nearly_all(3, 5)
    (True, True, False, False)
    """
    return part > 0 and whole - part <= max(whole // 100, min(3, whole // 10))


@dataclass
class Profile:
    """Some objects: what stands at each path, lists apart."""

    records: int = 0
    copies: int = 0
    """Objects that are there before, whole."""
    scalars: dict[Path, Seen] = field(default_factory=dict)
    lists: dict[Path, Profile] = field(default_factory=dict)
    """Of lists of objects: their elements."""
    id_lists: dict[Path, Seen] = field(default_factory=dict)
    """Of lists of texts or numbers: their elements."""
    within: Path = ()
    """The path to the objects, where they are elements of records."""
    objects: Sequence[Mapping[str, Any]] = ()
    """They themselves, in their order; not of elements of lists."""

    @cached_property
    def with_list(self) -> list[bool]:
        """Whether each object holds a list of several."""
        return [any(len(found) > 1 for _, found in _lists_in(one, ())) for one in self.objects]

    def share(self, path: Path) -> float:
        """The share of objects that have a value at a path."""
        seen = self.scalars.get(path)
        return seen.count / self.records if seen and self.records else 0.0


def profile_of(objects: Iterable[Mapping[str, Any]], within: Path = ()) -> Profile:
    """A profile of parsed objects. ``within``: the path to them, where they are elements of
    records."""
    objects, keys = list(objects), dict[Path, str]()
    made = _profile(objects, keys, within)
    for path, elements in made.lists.items():
        if key := _key_of_experiments(path, elements):
            keys[path] = key
    return _profile(objects, keys, within) if keys else made


def _profile(
    objects: Sequence[Mapping[str, Any]], keys: Mapping[Path, str], within: Path
) -> Profile:
    """``keys``: list → the field that tells its elements apart, where it is none of ``_KEYS``."""
    made = Profile(within=within, objects=objects)
    for one in objects:
        made.records += 1
        _add(made, within, one, keys)
        if isinstance(one, EventWithin):
            _add(made, (), one.around, keys)
    return made


class EventWithin(dict[str, Any]):
    """An event of a record that holds several, with the scalars around them."""

    def __init__(self, event: Mapping[str, Any], around: Mapping[str, Any]) -> None:
        super().__init__(event)
        self.around = around


def values_of(profile: Profile, path: Path) -> list[str | None]:
    """The first value at a path in each object, as ids are compared."""
    return [next(map(written, at(profile, one, path)), None) for one in profile.objects]


def at(profile: Profile, one: Mapping[str, Any], path: Path) -> Iterator[Any]:
    """The values at a path of an object."""
    depth = len(profile.within)
    if depth and path[:depth] != profile.within:
        return values_at(one.around if isinstance(one, EventWithin) else {}, path)
    return values_at(one, path[depth:])


def is_of_all(path: Path) -> bool:
    """Whether a path leads to the same in lists of any length: past no element by its number."""
    return not any(isinstance(step, int) for step in path)


def is_around(profile: Profile, path: Path) -> bool:
    """Whether a path stands around the events of records."""
    return path[: len(profile.within)] != profile.within


def _key_of_experiments(path: Path, elements: Profile) -> str | None:
    """The field that names the experiment of an element, where a list is one of experiments: of
    texts, few of them, in nearly all elements."""
    names = [step[0] for step in elements.scalars if len(step) == 1 and isinstance(step[0], str)]
    items = ("item_id", *OTHER_NAMES["item_id"])
    is_items = rank(names_of(path), ("items", *OTHER_NAMES["items"])) is not None
    if is_items or any(name in _KEYS or rank([name], items) is not None for name in names):
        return None
    has_arm = any(rank([name], (VARIANT, *OTHER_NAMES[VARIANT])) is not None for name in names)
    keys = []
    for name in names:
        seen, own = elements.scalars[(name,)], words(name)
        about = EXPERIMENTS.intersection(own) or EXPERIMENTS.intersection(words(text_of(path)))
        is_key = own[-1:] and own[-1] in _LIKE_KEYS and "=" not in name and "]" not in name
        is_arm = rank(["".join(own[:-1])], (VARIANT, *OTHER_NAMES[VARIANT], "group")) is not None
        is_often = elements.share((name,)) > 0.9 and seen.texts == seen.count
        if (
            is_key
            and not is_arm
            and is_often
            and seen.distinct <= _MOST_KEYS
            and (has_arm or about)
        ):
            keys.append((not EXPERIMENTS & set(own), _LIKE_KEYS.index(own[-1]), name))
    return min(keys)[2] if keys else None


def _add(to: Profile, path: Path, value: Any, keys: Mapping[Path, str]) -> None:
    if len(path) > limits.MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name and '"' not in name:  # no path leads to others
                _add(to, (*path, name), inner, keys)
    elif isinstance(value, list):
        _add_list(to, path, value, keys)
    elif value is not None and value not in _ABSENT:
        seen = to.scalars.get(path)
        if seen is None:
            if len(to.scalars) >= limits.DISCOVERED_PATHS:
                return
            seen = to.scalars[path] = Seen()
        seen.add(value)


def _add_list(
    to: Profile, path: Path, values: list[Any], keys: Mapping[Path, str], is_nested: bool = False
) -> None:
    """``is_nested``: in elements of another list, so that no path leads to one of its values."""
    elements = values[: limits.DISCOVERED_ELEMENTS]
    objects = [x for x in elements if isinstance(x, Mapping)]
    for one in elements:
        for nested, found in _lists_in(one, ()):
            _add_list(to, (*path, Each(), *nested), found, {}, is_nested=True)
    if not objects:
        if len(to.id_lists) < limits.DISCOVERED_PATHS:
            seen = to.id_lists.setdefault(path, Seen())
            for value in elements:
                if isinstance(value, str | int | float):
                    seen.add(value)
        return
    if len(to.lists) < limits.DISCOVERED_PATHS:
        inner = to.lists.setdefault(path, Profile())
        for one in objects:
            inner.records += 1
            _add(inner, (), one, {})
    for one in objects if not is_nested else ():
        for step in _steps_of(one, [keys[path]] if path in keys else _KEYS):
            own = {name: x for name, x in one.items() if name != step.key}
            _add(to, (*path, step), own, keys)
    if len(values) == 1 and not is_nested:
        _add(to, (*path, 0), objects[0], keys)


def _lists_in(value: Any, path: Path) -> Iterator[tuple[Path, list[Any]]]:
    """The lists in an element of a list, which may be one itself, and where they stand."""
    if isinstance(value, list):
        yield path, value
    elif isinstance(value, Mapping) and len(path) < _NESTED:
        for name, inner in value.items():
            if name and '"' not in name:
                yield from _lists_in(inner, (*path, name))


def _steps_of(element: Mapping[str, Any], keys: Iterable[str]) -> Iterator[Where]:
    """The key that tells an element of a list from the others, where it has one."""
    for key in keys:
        value = element.get(key)
        if isinstance(value, str) and 0 < len(value) <= limits.MAX_LABEL_CHARS and "]" not in value:
            yield Where(key, value)
            return


def _magnitude(text: str) -> float:
    """The number that a text is; NaN, which is between no two, where it is none."""
    return float(text) if _NUMBER.fullmatch(text) else float("nan")


def _parsed(form: str, text: str) -> datetime | None:
    try:
        return datetime.strptime(text.strip(), form)
    except ValueError:
        return None


def _has(form: str, text: str) -> bool:
    at = _parsed(form, text)
    return at is not None and _FIRST_YEAR <= at.year < _LAST_YEAR


def time_unit(value: Any) -> str | None:
    """In which unit a value is a time from 1995 to 2100; None where it is none.

    >>> [time_unit(x) for x in (1_700_000_000.5, 1_700_000_000_000, "2024-01-01 00:00:00Z", 7, [])]
    ['s', 'ms', 'iso', None, None]
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str):
        if _RFC_3339.match(value):
            return "iso"
        if not _NUMBER.fullmatch(value):
            return None
        value = float(value)
    if limits.MIN_SECONDS * 1000 <= value <= limits.MAX_SECONDS * 1000:
        return "ms"
    return _UNITS.get(unit_of(value) or "")


_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def seconds_of(text: str) -> float | None:
    """Epoch seconds of a time, as far as they can be told without settings.

    >>> seconds_of("1700000000000"), seconds_of("2026-01-01 00:00:10"), seconds_of("x")
    (1700000000.0, 1767225610.0, None)
    """
    unit = time_unit(text)
    if unit is not None and unit != "iso":
        return float(text) / _PER_SECOND[unit]
    is_iso = unit == "iso"
    own = text[:19].upper().replace(" ", "T") if is_iso else text
    forms = ("%Y-%m-%dT%H:%M:%S",) if is_iso else _FORMATS
    at = next(filter(None, (_parsed(form, own) for form in forms)), None)
    return None if at is None else at.replace(tzinfo=UTC).timestamp()


def names_of(path: Path) -> list[str]:
    """The names along a path, their parts where they have dots: of elements that are told apart by
    a key that key.

    >>> from streamer.settings.paths import path_of
    >>> names_of(path_of("params[key=page].value.string_value")), names_of(path_of("a[0].b"))
    (['params', 'page'], ['a', 'b'])
    """
    names: list[str] = []
    is_keyed = False
    for step in path:
        if isinstance(step, Where):
            names.append(step.equals)
            is_keyed = True
        elif isinstance(step, str) and not (is_keyed and step in _GENERIC):
            names.append(step)
    return [part for name in names for part in name.split(".") if part]


def is_id(path: Path) -> bool:
    """Whether a field is called like an id."""
    name = names_of(path)[-1] if path else ""
    own = words(name)[-1:]
    return own in (["id"], ["ids"]) or (own != ["paid"] and plain(name).endswith(("id", "ids")))


def joined(outer: str, inner: str) -> str:
    """The path of what stands at ``inner`` below ``outer``.

    >>> joined("recs[]", "id"), joined("recs[]", '["item.id"]'), joined("recs[]", "")
    ('recs[].id', 'recs[]["item.id"]', 'recs[]')
    """
    return f"{outer}.{inner}" if inner and not inner.startswith("[") else f"{outer}{inner}"


def written(value: Any) -> str:
    """A value as its profile has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
