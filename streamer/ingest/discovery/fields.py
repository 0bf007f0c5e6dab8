"""Where our fields most likely stand in the records of one kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from streamer.ingest.discovery.names import OTHER_NAMES, PIECES, plain, rank
from streamer.ingest.discovery.profile import Profile, Seen, names_of, text_of
from streamer.settings import limits
from streamer.settings.event_fields import ELEMENT_FIELDS, field_names
from streamer.settings.paths import Path
from streamer.settings.sources import KIND_OF_RULE, FieldSource

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
)
"""What stands for users who are not known."""
_ENVELOPES = ("", "meta", "metadata", "event", "header", "message", "envelope")
"""Of which an `id` may be the event's; of any other object it is that object's."""
_OFTEN = 0.999


def _is_probability(seen: Seen) -> bool:
    return seen.is_numeric and seen.low > 0 and seen.high <= 1


def _is_position(seen: Seen) -> bool:
    return seen.whole == seen.count and seen.low >= 0 and seen.high <= limits.MAX_POSITION


def _is_id(seen: Seen) -> bool:
    return seen.is_id and seen.unit is None


_FITS: Mapping[str, Callable[[Seen], bool]] = {
    "ts": lambda seen: seen.unit is not None,
    "position": _is_position,
    "score": lambda seen: seen.is_numeric and max(-seen.low, seen.high) <= limits.MAX_SCORE,
    "propensity": _is_probability,
    "value": lambda seen: seen.is_numeric and seen.low >= 0,
    "dwell_ms": lambda seen: seen.whole == seen.count and seen.low >= 0,
    "request_id": lambda seen: seen.is_id and seen.distinct >= max(5, min(seen.count, 900) * 0.1),
    "event_id": lambda seen: seen.is_id and seen.distinct >= min(seen.count, 900) * 0.9,
}
"""Our field → whether values may be its; of others whether they may be ids."""
_OF_KIND = {
    "impression": ("position", "score", "propensity"),
    "click": ("position", "dwell_ms"),
    "conversion": ("value",),
    "session": ("session_id", "dwell_ms"),
}
_OPTIONAL = ("item_category", "reward_estimate", "feedback", "action")


@dataclass
class Found:
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


def find_fields(profile: Profile, kind: str) -> Found:
    """Where the fields of the records of a kind (impression, …) stand."""
    found = Found()
    _find_time(profile, found)
    _find_user(profile, found)
    for name in ("event_id", "request_id"):
        _take(found, name, places(profile, name))
    of_kind = list(_OF_KIND[kind])
    if kind != "session":
        of_kind = _find_items(profile, kind, of_kind, found)
    for name in of_kind:
        _take(found, name, places(profile, name))
    if kind == "conversion":
        _find_product(profile, found, "value")
    for name in _OPTIONAL:
        if name in field_names(KIND_OF_RULE[kind]) and (name,) in profile.scalars:
            found.taken.add((name,))
    return found


def places(profile: Profile, name: str, others: Sequence[str] = ()) -> list[_Place]:
    """Paths whose names say that they are a field, and whose values may be: the best first."""
    wanted = (name, *OTHER_NAMES.get(name, ()), *others)
    fits = _FITS.get(name, _is_id)
    found = []
    for path, seen in profile.scalars.items():
        names = names_of(path)
        place = rank(names, wanted)
        around = names[-2] if len(names) > 1 else ""
        is_other = name == "event_id" and names[-1:] == ["id"] and around not in _ENVELOPES
        if place is not None and fits(seen) and not is_other:
            found.append(_Place(path, seen, place, profile.share(path)))
    return sorted(found, key=lambda one: one.worth)


def _take(found: Found, name: str, candidates: Iterable[_Place]) -> _Place | None:
    """Uses the best place that no other field has."""
    best = next((one for one in candidates if one.path not in found.taken), None)
    if best is not None:
        found.taken.add(best.path)
        found.fields[name] = text_of(best.path)
        if name == "position" and best.seen.low == 0:
            found.positions_from = 0
    return best


def _find_time(profile: Profile, found: Found) -> None:
    candidates = [p for p in places(profile, "ts") if p.share > _LEAST_SHARE]
    if not candidates:
        candidates = [
            _Place(path, seen, 99, profile.share(path))
            for path, seen in profile.scalars.items()
            if seen.unit is not None and profile.share(path) > _LEAST_SHARE
        ]
    best = _take(found, "ts", candidates)
    if best is None:
        found.doubts["ts"] = "no field looks like the time of the event"
        return
    unit = best.seen.unit
    if unit not in ("ms", "iso"):
        found.fields["ts"] = {"path": text_of(best.path), "unit": unit}
    others = [text_of(p.path) for p in candidates[1:4]]
    if others:
        found.doubts["ts"] = f"{', '.join(others)} may be times, too"


def _find_user(profile: Profile, found: Found) -> None:
    candidates = places(profile, "user_id")
    best = _take(found, "user_id", candidates)
    if best is None:
        found.doubts["user_id"] = "none found: all events would be anonymous"
        return
    rest = [p for p in places(profile, "", _NOBODY) if p.path != best.path]
    is_full = best.share > _OFTEN
    if not is_full and rest:
        found.taken.add(rest[0].path)
        found.fields["user_id"] = (text_of(best.path), text_of(rest[0].path))
    elif not is_full:
        found.doubts["user_id"] = f"only {best.share:.0%} of the records have one"


def _find_items(profile: Profile, kind: str, of_kind: list[str], found: Found) -> list[str]:
    """An item, or a list of them; the fields that are still to be found in the record."""
    single = next(iter(places(profile, "item_id")), None)
    lists = sorted(_lists(profile), key=lambda one: one[0])
    if kind != "click" or single is None or single.share < _LEAST_SHARE:
        if lists and (single is None or lists[0][0][0] < 2):
            return _take_list(profile, lists[0][1], kind, of_kind, found)
        if single is None and (ids := _id_list(profile)) is not None:
            found.fields["items"] = text_of(ids)
            return of_kind
    best = _take(found, "item_id", places(profile, "item_id") or _named_id(profile))
    if best is None:
        found.doubts["item_id"] = "no field looks like the id of an item"
    return of_kind


def _lists(profile: Profile) -> Iterator[tuple[tuple[int, int, int], Path]]:
    """Lists whose elements have ids of items: how good they are, and where they stand."""
    for path, inner in profile.lists.items():
        own = places(inner, "item_id") or places(inner, "", ("id",))
        if own and own[0].share > _LEAST_SHARE:
            place = rank(names_of(path), ("items", *OTHER_NAMES["items"]))
            has_name = rank(names_of(own[0].path), ("id",)) is None
            yield (0 if place is not None else 1 if has_name else 2, place or 0, len(path)), path


def _take_list(
    profile: Profile, path: Path, kind: str, of_kind: list[str], found: Found
) -> list[str]:
    inner, own = profile.lists[path], Found()
    found.fields["items"] = text_of(path)
    _take(own, "item_id", places(inner, "item_id") or places(inner, "", ("id",)))
    of_element = ELEMENT_FIELDS[KIND_OF_RULE[kind]]
    for name in of_kind:
        if name in of_element:
            _take(own, name, places(inner, name))
    if kind == "conversion":
        _find_product(inner, own, "value")
    found.fields |= own.fields
    found.positions_from = own.positions_from
    return [name for name in of_kind if name not in of_element]


def _id_list(profile: Profile) -> Path | None:
    """A list of ids alone."""
    found = {
        path: place
        for path, seen in profile.id_lists.items()
        if (place := rank(names_of(path), ("items", *OTHER_NAMES["items"]))) is not None
        and seen.is_id
    }
    return min(found, key=lambda path: (found[path], len(path)), default=None)


def _named_id(profile: Profile) -> list[_Place]:
    """An `id` within an object that is called like an item."""
    return [p for p in places(profile, "", ("id",)) if len(p.path) > 1]


def _find_product(profile: Profile, found: Found, name: str) -> None:
    """A price times a number of pieces."""
    price = next((p for p in places(profile, name) if plain(names_of(p.path)[-1]) == "price"), None)
    pieces = next(iter(places(profile, "", PIECES)), None)
    if price is not None and pieces is not None and found.fields.get(name) == text_of(price.path):
        found.fields[name] = {"product": [text_of(price.path), text_of(pieces.path)]}
