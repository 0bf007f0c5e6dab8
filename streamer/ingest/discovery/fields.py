"""Where our fields most likely stand in the records of one kind."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import inf
from time import time

from streamer.ingest.discovery import roles
from streamer.ingest.discovery.items import ItemField
from streamer.ingest.discovery.names import (
    ARM_NAMES,
    OTHER_NAMES,
    PIECES,
    PRICES,
    RATINGS,
    is_item,
    is_unnamed,
    plain,
    rank,
    rank_of_end,
    words,
)
from streamer.ingest.discovery.profile import (
    NO_AMOUNT,
    Profile,
    Seen,
    is_around,
    is_id,
    is_of_all,
    joined,
    names_of,
    nearly_all,
    seconds_of,
    values_of,
)
from streamer.ingest.discovery.roles import FieldGuess
from streamer.settings.event_fields import (
    ELEMENT_FIELDS,
    EXPOSURES,
    FIELDS,
    LINE_TYPES,
    MOMENTS,
    TYPE_OF_KIND,
    field_names,
)
from streamer.settings.paths import Each, Path, text_of
from streamer.settings.sources import FieldSource

_LEAST_SHARE = 0.5
"""Of the records that have a field that records need."""
_NOBODY = (
    "anonymous_id",
    "anonymous",
    "visitor_id",
    "cookie_id",
    "device_id",
    "client_id",
    "guest_id",
    "cookie",
    "visitor",
)
"""What stands for users who are not known."""
_ENVELOPES = ("", "meta", "metadata", "event", "header", "message", "envelope")
"""Of which an `id` may be the event's; of any other object it is that object's."""
_OFTEN = 0.999
_LEAST_OF_ITEMS = 0.05
"""Of the records that have an item; fewer are odd ones."""
_LEAST_VALUES = 5
"""Of a field that is taken for the item by its values alone."""
_NEVER_ITEMS = ("user_id", "event_id", "session_id", "request_id", "position", "score", "ts")


_DAY_SECONDS, _UNNAMED = 86_400, 1_000
"""The latter: the rank of a field that no name says, behind all names."""
_DAY = re.compile(r"\d{1,4}([/.-])\d{1,2}\1\d{1,4}", re.ASCII)
_CLOCK = re.compile(r"\d{1,2}:\d\d(:\d\d)?", re.ASCII)
_WITH_OUTLIERS = ("value", "dwell_ms")
"""Numbers of which a few may be too large."""


def _is_id(seen: Seen) -> bool:
    return seen.is_id and seen.unit is None


def _fits(name: str, seen: Seen) -> bool:
    """Whether values may be those of a field of ours; of what is none, whether they may be ids."""
    if name == "request_id":
        return seen.is_id and seen.distinct >= max(5, min(seen.count, 900) * 0.1)
    field = FIELDS.get(name)
    if field is None or field.low is None or field.high is None:
        return seen.unit is not None if name in MOMENTS else _is_id(seen)
    low = 0 if name == "position" else field.low  # they may begin at 0
    high = inf if name in _WITH_OUTLIERS else field.high
    return (field.holds != "integer" or seen.is_whole) and seen.within(low, high)


_MINOR = {"cents", "cent", "pence", "minor"}
_MONEY = {
    *("eur", "usd", "gbp", "chf", "jpy", "inr", "euro", "euros", "dollars", "money", "paid"),
    *("sum", "turnover", "gmv", "sales", "revenue", "total", "amount", "price"),
}
"""Words in names of what something is worth."""
_TEXTS = ("feedback", "action")
"""Fields that may hold any text."""
_NAMED_APART = ("item_id", "session_id", "request_id", "user_id", "variant", "event_id", "type")
"""Names that values may contradict."""
_FOUND_APART = frozenset(
    {"type", "ts", "user_id", "event_id", "request_id", "item_id", "items", "feedback"}
    | {"impression_id"}
)
"""Fields that are not found by names and values alone."""


@dataclass
class FoundFields:
    """Where the fields of a kind stand, as settings say it, and what is not sure."""

    fields: dict[str, FieldSource] = field(default_factory=dict)
    doubts: dict[str, str] = field(default_factory=dict)
    """Our field → what about it is not sure."""
    taken: set[Path] = field(default_factory=set)
    """Paths of the record that are used."""
    positions_from: int = 1


@dataclass(frozen=True, slots=True)
class _Place:
    path: Path
    seen: Seen
    rank: int
    share: float

    @property
    def worth(self) -> tuple[bool, int, int, float]:
        """The smallest is the best."""
        return self.share < _LEAST_SHARE, self.rank, len(self.path), -self.share


@dataclass(frozen=True)
class Guesses:
    """What values say where names say nothing: of the records of the most frequent kind, the likely
    fields for each of ours, the best first."""

    persons: Sequence[FieldGuess] = ()
    requests: Sequence[FieldGuess] = ()
    items: Sequence[FieldGuess] = ()
    positions: Sequence[FieldGuess] = ()
    values: Sequence[FieldGuess] = ()
    apart: Sequence[_Place] = ()
    """A day, with the texts of its time of day, and that, where no field alone is the time."""


def guesses_of(profile: Profile, kind_at: Path | None, sold: Profile | None = None) -> Guesses:
    """What the values of some records say. ``kind_at``: what says their kind. ``sold``:
    conversions, of which a number is the value that other records do not have."""
    by_name = {name: next(iter(places(profile, name)), None) for name in OTHER_NAMES}
    named = {name: place.path for name, place in by_name.items() if place is not None}
    taken = {path for name, path in named.items() if name not in _NAMED_APART}
    taken |= {kind_at or ()} | {p for p, seen in profile.scalars.items() if _is_measure(p, seen)}
    apart = _day_and_clock(profile)
    taken |= {place.path for place in apart[:2]}
    own_request, own_person = named.get("request_id"), named.get("user_id")
    times = [path for path, seen in profile.scalars.items() if seen.unit is not None]
    time = named.get("ts") or next(iter(times), None)
    found = roles.requests(profile, taken | {own_person or ()}, time)
    request = own_request or next((one.path for one in found), None)
    item = named.get("item_id", ())
    people = roles.persons(profile, taken | {request or (), item}, request)
    person = own_person or next((one.path for one in people), None)
    around = {path for path in profile.scalars if is_around(profile, path)}
    used = taken | around | {request or (), person or ()}
    ranks = [] if request is None else roles.ranks(profile, used, request)
    used |= {one.path for one in ranks}
    together = request or person
    of_sold = sold.scalars if sold is not None and sold is not profile else {}
    amounts = [  # money has decimals before numbers of pieces
        FieldGuess(path, 0.0, seen.distinct, seen.count)
        for path, seen in sorted(of_sold.items(), key=lambda one: one[1].is_whole)
        if _amounts(profile.scalars.get(path, Seen())) <= _amounts(seen)
        if _fits("value", seen) and seen.unit is None and not seen.are_ranks
        if is_of_all(path) and not is_id(path) and rank(names_of(path), PIECES) is None
    ]
    return Guesses(people, found, roles.shown(profile, used, together), ranks, amounts, apart)


def _are_of_all(named: Sequence[_Place], of_sold: Sequence[FieldGuess]) -> bool:
    """Whether amounts by their names stand in other records, too, while one stands in conversions
    alone."""
    own = {one.path for one in of_sold}
    return bool(own) and all(place.path not in own for place in named)


def _amounts(seen: Seen) -> int:
    """How many values are amounts that are not 0."""
    return sum(n for text, n in seen.values.items() if text not in NO_AMOUNT)


def _is_measure(path: Path, seen: Seen) -> bool:
    """Whether a field is called like a price, a number of pieces, or a grade."""
    is_money = bool({*words(names_of(path)[-1])} & _MONEY) and seen.is_numeric
    return (
        is_money
        or rank(names_of(path), (*PRICES, *PIECES, *RATINGS, *OTHER_NAMES["value"])) is not None
    )


def find_fields(
    profile: Profile,
    kind: str,
    item: ItemField | None = None,
    guesses: Guesses | None = None,
    own_time: Path | None = None,
) -> FoundFields:
    """Where the fields of the records of a kind (impression, …) stand. ``item``: the one that was
    chosen of ``item_fields``; by default the first of them. ``own_time``: the time that makes a
    record one of the kind."""
    fields, guesses = FoundFields(), guesses or Guesses()
    if item is not None and item.list is None:
        fields.taken |= {path for path in (item.path, item.impression) if path is not None}
    _find_time(profile, own_time, fields, guesses.apart)
    _find_user(profile, fields, guesses.persons)
    _find_event_id(profile, fields)
    if kind == TYPE_OF_KIND[EXPOSURES]:
        _find_arm(profile, fields)
        return fields
    if _take(fields, "request_id", places(profile, "request_id")) is None:
        _guess(profile, fields, "request_id", guesses.requests)
    names = field_names(LINE_TYPES[kind])
    of_kind = [name for name in names if name in OTHER_NAMES and name not in _FOUND_APART]
    if kind != "session":
        item = item or next(iter(item_fields(profile, kind)), None)
        of_kind = _take_item(profile, item, kind, of_kind, fields)
    for name in of_kind:
        if name != "value":
            _take(fields, name, places(profile, name))
        elif kind != "conversion" or not _are_of_all(places(profile, name), guesses.values):
            _find_value(profile, fields)
    if kind == "conversion" and "value" not in fields.fields:
        if "value" in of_kind:
            _guess(profile, fields, "value", guesses.values)
        if "value" not in fields.fields and (paid := _paid(profile, fields.taken)):
            fields.doubts["value"] = f"none found: is it in {paid}?"
    if "position" in of_kind and "position" not in fields.fields:
        _guess(profile, fields, "position", guesses.positions)
    _take_our_names(profile, names, fields)
    return fields


def _guess(
    profile: Profile, found: FoundFields, name: str, candidates: Sequence[FieldGuess]
) -> Path | None:
    """Uses the first field that has the values of ours, and says so."""
    free = [one for one in candidates if one.path not in found.taken]
    free = [one for one in free if profile.share(one.path) >= _LEAST_SHARE]
    if not free:
        return None
    path = free[0].path
    found.taken.add(path)
    found.fields[name] = text_of(path)
    if name == "position" and not profile.scalars[path].within(1, inf):
        found.positions_from = 0
    others = "; or ".join(f"{text_of(one.path)} ({one.evidence})" for one in free[1:3])
    what = f"by its values {text_of(path)} ({free[0].evidence})"
    found.doubts[name] = f"{what}; or {others}" if others else what
    return path


def _take_our_names(profile: Profile, names: Sequence[str], found: FoundFields) -> None:
    """Fields that are called as ours are, and have no other names."""
    for name in names:
        path = (name,)
        if (name in OTHER_NAMES and name != "feedback") or name in _FOUND_APART - {"feedback"}:
            continue
        seen = profile.id_lists.get(path) if name == "reference" else profile.scalars.get(path)
        if seen is not None and (name in _TEXTS or _fits(name, seen)):
            found.taken.add(path)
            found.fields.setdefault(name, name)


def places(profile: Profile, name: str, others: Sequence[str] = ()) -> list[_Place]:
    """Paths whose names say that they are a field, and whose values may be: the best first."""
    wanted = (name, *OTHER_NAMES.get(name, ()), *others)
    candidates = []
    for path, seen in profile.scalars.items():
        names = names_of(path)
        rank_of_name = rank(names, wanted)
        if rank_of_name is None:
            rank_of_name = rank_of_end(names, wanted)
        around = names[-2] if len(names) > 1 else ""
        is_other = name == "event_id" and names[-1:] == ["id"] and around not in _ENVELOPES
        is_other |= name == "event_id" and seen.repeats > profile.copies
        is_other |= not is_of_all(path)
        if rank_of_name is not None and _fits(name, seen) and not is_other:
            candidates.append(_Place(path, seen, rank_of_name, profile.share(path)))
    return sorted(candidates, key=lambda one: one.worth)


def _take(found: FoundFields, name: str, candidates: Iterable[_Place]) -> _Place | None:
    """Uses the best place that no other field has."""
    best = next((one for one in candidates if one.path not in found.taken), None)
    if best is not None:
        found.taken.add(best.path)
        found.fields[name] = text_of(best.path)
        if name == "position" and not best.seen.within(1, inf):
            found.positions_from = 0
    return best


def times(profile: Profile) -> list[_Place]:
    """Fields that may be when something was: those that are called so, behind them all others that
    are no ids and not to come."""
    named = places(profile, "ts")
    known = {place.path for place in named}
    others = [
        _Place(path, seen, _UNNAMED, profile.share(path))
        for path, seen in profile.scalars.items()
        if path not in known and _is_past(path, seen)
    ]
    return [*named, *others]


def _day_and_clock(profile: Profile) -> Sequence[_Place]:
    """Where no field alone says when something was: the first field of days, with both texts, that
    of times of day, and others of these."""
    if any(place.seen.is_moment for place in times(profile)):
        return ()
    days, clocks = (
        [
            _Place(path, seen, 0, profile.share(path))
            for path, seen in profile.scalars.items()
            if nearly_all(sum(map(bool, map(pattern.fullmatch, seen.values))), seen.distinct)
        ]
        for pattern in (_DAY, _CLOCK)
    )
    for day, clock in product(days, clocks):
        both = Seen()
        for texts in zip(values_of(profile, day.path), values_of(profile, clock.path), strict=True):
            both.add(" ".join(filter(None, texts)))
        if both.is_moment:
            others = [one for one in (*days, *clocks) if one not in (day, clock)]
            return [replace(day, seen=both), clock, *others]
    return ()


def _find_time(
    profile: Profile, own: Path | None, fields: FoundFields, apart: Sequence[_Place]
) -> None:
    """``own``: the time that makes a record an event of the kind."""
    places_of_time = [place for place in times(profile) if place.share > _LEAST_SHARE]
    named = [place for place in places_of_time if place.rank < _UNNAMED]
    candidates = [p for p in places_of_time if p.path == own] or named or places_of_time
    clock = dict[str, str]()
    if own is None and apart and profile.scalars.keys() >= {place.path for place in apart[:2]}:
        candidates, clock["time"] = [apart[0], *apart[2:]], text_of(apart[1].path)
        fields.taken.add(apart[1].path)
    best = _take(fields, "ts", candidates)
    if best is None:
        fields.doubts["ts"] = "no field looks like the time of the event"
        return
    unit = best.seen.unit
    if unit == "format":
        form, *forms = best.seen.formats
        fields.fields["ts"] = {"path": text_of(best.path), **clock, "format": form}
        if forms:
            fields.doubts["ts"] = f"its format may be {forms[0]}, too"
        if forms or not clock:
            return
    elif clock:
        fields.fields["ts"] = {"path": text_of(best.path), **clock}
    elif unit not in ("ms", "iso"):
        fields.fields["ts"] = {"path": text_of(best.path), "unit": unit}
    if len(candidates) > 1:
        more = ", ".join(text_of(p.path) for p in candidates[1:4])
        fields.doubts["ts"] = f"{more} may be times, too"


def _is_past(path: Path, seen: Seen) -> bool:
    """Whether a field that no name says may be when something was: no id, and not to come."""
    unit = None if is_id(path) else seen.unit
    if unit in (None, "format"):
        return unit is not None
    tomorrow = time() + _DAY_SECONDS
    past = sum((seconds_of(text) or 0) < tomorrow for text in seen.values)
    return nearly_all(past, seen.distinct)


def _find_arm(profile: Profile, found: FoundFields) -> None:
    """The experiment of an exposure, and the arm: any values of fields that are called so."""
    for name, others in ARM_NAMES.items():
        ranks = [
            (place, len(path), text_of(path))
            for path in profile.scalars
            if (place := rank(names_of(path), (name, *others))) is not None
        ]
        if ranks:
            _, _, found.fields[name] = min(ranks)


def _find_event_id(profile: Profile, found: FoundFields) -> None:
    """A field that is different in every record; others of its name are not to be read."""
    if _take(found, "event_id", places(profile, "event_id")) is not None:
        return
    own = profile.scalars.get(("event_id",))
    if own is not None and own.repeats > profile.copies:
        found.fields["event_id"] = False
        found.doubts["event_id"] = "records with equal ones differ, so it is not the event's"


def _find_user(profile: Profile, fields: FoundFields, guesses: Sequence[FieldGuess]) -> None:
    candidates = places(profile, "user_id")
    best = _take(fields, "user_id", candidates)
    if best is None:
        sessions = [
            FieldGuess(p.path, 0.0, p.seen.distinct, p.seen.count)
            for p in places(profile, "session_id")
        ]
        if _guess(profile, fields, "user_id", [*guesses, *sessions]) is None:
            fields.doubts["user_id"] = "none found: all events would be anonymous"
        return
    rest = [p for p in places(profile, "", _NOBODY) if p.path != best.path]
    is_full = best.share > _OFTEN
    if not is_full and rest:
        fields.taken.add(rest[0].path)
        fields.fields["user_id"] = (text_of(best.path), text_of(rest[0].path))
    elif not is_full:
        fields.doubts["user_id"] = f"only {best.share:.0%} of the records have one"


def item_fields(profile: Profile, kind: str) -> list[ItemField]:
    """Where the item may stand in the records of a kind, by names, the most likely first."""
    places_of_item = [p for p in places(profile, "item_id") if p.share > _LEAST_OF_ITEMS]
    single = next(iter(places_of_item), None)
    within = [p for p in _ids(profile, 2) if p.share > _LEAST_OF_ITEMS]
    singles = [ItemField(None, p.path, p.seen) for p in places_of_item or within]
    lists = sorted(_lists(profile), key=lambda one: one[0])
    in_lists = [
        ItemField(path, own.path, own.seen)
        for _, path in lists
        for own in _of_elements(profile, path)
    ]
    ids = _id_list(profile)
    alone = [] if ids is None else [ItemField(ids, None, profile.id_lists[ids])]
    is_single = kind == "click" and single is not None and single.share >= _LEAST_SHARE
    if not is_single and lists and (single is None or lists[0][0][0] < 2):
        return [*in_lists, *singles]
    return [*alone, *singles] if single is None else [*singles, *in_lists]


def unnamed_items(profile: Profile, guesses: Guesses) -> list[ItemField]:
    """Fields that may be the item by their values: ids that no name says, in lists and beside
    them."""
    alone = [ItemField(path, None, seen, is_named=False) for path, seen in _id_lists(profile)]
    of_lists = [
        ItemField(path, own, seen, is_named=False)
        for path, inner in profile.lists.items()
        for own, seen in inner.scalars.items()
        if _is_id(seen) and seen.distinct >= _LEAST_VALUES and not _is_measure(own, seen)
    ]
    used = {one.path for of in (guesses.persons[:1], guesses.requests[:1]) for one in of}
    used |= {p.path for name in _NEVER_ITEMS for p in places(profile, name)}
    used |= {place.path for place in guesses.apart[:2]}
    best = {one.path: number for number, one in enumerate(guesses.items)}
    singles = [
        ItemField(None, path, seen, is_named=False)
        for path, seen in profile.scalars.items()
        if path not in used and _is_id(seen) and not _is_measure(path, seen)
        if seen.distinct >= _LEAST_VALUES and not is_around(profile, path) and is_of_all(path)
        if seen.repeats or not (alone or of_lists)  # the id of a list is none of its items
    ]
    singles.sort(key=lambda one: (not one.seen.repeats, best.get(one.path or (), len(best))))
    return [*alone, *of_lists, *singles]


def request_ids(profile: Profile) -> list[ItemField]:
    """Fields whose names say an id of a request, which may be one of its only impression."""
    return [ItemField(None, p.path, p.seen, is_named=False) for p in places(profile, "request_id")]


def _id_lists(profile: Profile) -> list[tuple[Path, Seen]]:
    return [
        (path, seen)
        for path, seen in profile.id_lists.items()
        if seen.is_id and seen.distinct > 1 and Each() not in path[len(profile.within) :]
    ]


def _take_item(
    profile: Profile, item: ItemField | None, kind: str, of_kind: list[str], fields: FoundFields
) -> list[str]:
    """An item, or a list of them; the fields that are still to be found in the record."""
    if item is not None and item.impression is not None:
        fields.taken.add(item.impression)
        fields.fields["impression_id"] = text_of(item.impression)
        if rank(names_of(item.impression), OTHER_NAMES["impression_id"]) is None:
            what = f"by its values {text_of(item.impression)}, {item.seen.distinct:,} values"
            fields.doubts["impression_id"] = f"{what}: clicks have no item"
    if item is None:
        fields.doubts["item_id"] = "no field looks like the id of an item"
    elif (item.list, item.path) == (None, None):
        if kind == "impression":
            fields.doubts["item_id"] = "there is none: numbers by item are by impression"
    elif item.path is None:
        fields.fields["item_id"] = joined(f"{text_of(item.list or ())}[]", "")
    elif item.list is not None:
        return _take_list(profile, item.list, item.path, kind, of_kind, fields)
    else:
        fields.taken.add(item.path)
        fields.fields["item_id"] = text_of(item.path)
        doubts = list[str]()
        if not item.is_named:
            doubts.append(f"by its values {text_of(item.path)}, {item.seen.distinct:,} values")
        if others := ", ".join(_numbered(profile, item.path)):
            doubts.append(
                f"{others} hold such values, too: to count them, put the ids into one list"
            )
        if doubts:
            fields.doubts["item_id"] = "; ".join(doubts)
    return of_kind


def _numbered(profile: Profile, path: Path) -> list[str]:
    """Fields with values of another one, and its name but for the number: ``a_2`` of ``a_1``."""
    own, stem = profile.scalars[path], str(path[-1]).rstrip("0123456789")
    if not stem or stem == path[-1] or is_unnamed(path):
        return []
    return [
        str(other[-1])
        for other, seen in profile.scalars.items()
        if other != path and other[:-1] == path[:-1]
        if str(other[-1]).rstrip("0123456789") == stem
        if seen.values.keys() & own.values.keys()
    ]


def _lists(profile: Profile) -> Iterator[tuple[tuple[int, int, int], Path]]:
    """Lists whose elements have ids of items: how good they are, and where they stand."""
    for path in profile.lists:
        own = _of_elements(profile, path)
        if own and own[0].share > _LEAST_SHARE:
            place = rank(names_of(path), ("items", *OTHER_NAMES["items"]))
            has_name = rank(names_of(own[0].path), ("id",)) is None
            yield (0 if place is not None else 1 if has_name else 2, place or 0, len(path)), path


def _take_list(
    profile: Profile, path: Path, item: Path, kind: str, of_kind: list[str], fields: FoundFields
) -> list[str]:
    inner, own = profile.lists[path], FoundFields()
    own.taken.add(item)
    own.fields["item_id"] = text_of(item)
    of_element = ELEMENT_FIELDS[LINE_TYPES[kind]]
    for name in of_kind:
        if name == "value":
            _find_value(inner, own)
        elif name in of_element:
            _take(own, name, places(inner, name))
    of_each = f"{text_of(path)}[]"
    fields.fields |= {name: _below(of_each, said) for name, said in own.fields.items()}
    fields.positions_from = own.positions_from
    has_value = "value" in own.fields
    return [n for n in of_kind if n not in of_element or (n == "value" and not has_value)]


def _below(outer: str, said: FieldSource) -> FieldSource:
    """Where a field stands, said from the record instead of from an element."""
    if isinstance(said, dict) and "product" in said:
        return {"product": [joined(outer, path) for path in said["product"]]}
    return joined(outer, said) if isinstance(said, str) else said


def _id_list(profile: Profile) -> Path | None:
    """A list of ids alone."""
    found = {
        path: place
        for path, seen in profile.id_lists.items()
        if (place := rank(names_of(path), ("items", *OTHER_NAMES["items"]))) is not None
        and seen.is_id
    }
    return min(found, key=lambda path: (found[path], len(path)), default=None)


def _of_elements(profile: Profile, path: Path) -> list[_Place]:
    """Ids of items in elements of a list, the best first; the only value of each, where the list is
    called like one of items."""
    inner = profile.lists[path]
    found = places(inner, "item_id") or _ids(inner, 1)
    is_list = rank(names_of(path), ("items", *OTHER_NAMES["items"])) is not None
    if found or not is_list or len(inner.scalars) != 1:
        return found
    ((own, seen),) = inner.scalars.items()
    return [_Place(own, seen, 0, inner.share(own))] if seen.is_id else []


def _ids(profile: Profile, least: int) -> list[_Place]:
    """An `id` of the object itself (``least`` 1: that it is an item is clear), or within one that
    is called like an item."""
    return [
        p
        for p in places(profile, "", ("id",))
        if (depth := len(p.path) - len(profile.within)) >= least
        and (depth == 1 or any(map(is_item, names_of(p.path)[-2:-1])))
    ]


def _find_value(profile: Profile, fields: FoundFields) -> None:
    """A price times a number of pieces; or what the whole is worth, before a price."""
    candidates = places(profile, "value")
    price = next((p for p in candidates if words(names_of(p.path)[-1])[-1:] == ["price"]), None)
    price = next((p for p in candidates if plain(names_of(p.path)[-1]) in PRICES), price)
    pieces = next(iter(places(profile, "", PIECES)), None)
    is_exact = candidates and candidates[0].rank == 0
    if price is not None and pieces is not None and not is_exact:
        fields.taken.add(price.path)
        fields.fields["value"] = {"product": [text_of(price.path), text_of(pieces.path)]}
    elif _take(fields, "value", candidates) is None:
        _take_money(profile, fields)


def _paid(profile: Profile, taken: Container[Path]) -> str | None:
    """Where a number stands in an object that is called like money."""
    objects: dict[Path, Mapping[Path, Seen]] = {(): profile.scalars}
    objects |= {(*path, Each()): of.scalars for path, of in profile.lists.items()}
    for outer, scalars in objects.items():
        for inner, seen in scalars.items():
            path = (*outer, *inner)
            is_free = path not in taken and is_of_all(path) and not is_id(path)
            is_number = seen.is_numeric and seen.unit is None and len(path) > 1
            if is_free and is_number and {*words(".".join(names_of(path)))} & _MONEY:
                return text_of(path)
    return None


def _take_money(profile: Profile, fields: FoundFields) -> None:
    """A number that is called like money: of minor units, such as cents, a hundredth of it."""
    for path, seen in profile.scalars.items():
        own = words(names_of(path)[-1])
        if path in fields.taken or not own or not _fits("value", seen):
            continue
        if {*own} & _MINOR:
            fields.fields["value"] = {"path": text_of(path), "scale": 0.01}
        elif {*own} & _MONEY:
            fields.fields["value"] = text_of(path)
        else:
            continue
        fields.taken.add(path)
        return
