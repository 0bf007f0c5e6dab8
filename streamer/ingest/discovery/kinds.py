"""What says what a record is, and which of its values are impressions, clicks, …"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamer.ingest.discovery.names import ARM_NAMES, CLICK_COLUMNS, OTHER_NAMES, rank, words
from streamer.ingest.discovery.profile import Profile, Seen, names_of
from streamer.ingest.lookup import values_at
from streamer.settings.paths import Path, text_of

_MOST_VALUES = 100
_LEAST_SHARE = 0.6
"""Of the records that have the field."""
NO, YES = ("0", "false", "False", "no", "0.0"), ("1", "true", "True", "yes", "1.0")
_OTHERS = frozenset(
    words(
        "add added remove removed cart basket wishlist refund refunded cancel cancelled canceled "
        "fail failed error entered applied denied login logout signup signed hide hidden dismiss "
        "dismissed scroll ping hover updated promotion promo coupon begin started abandoned info "
        "shipping"
    )
)
_CONVERSIONS = frozenset(
    words(
        "purchase purchases purchased bought buy conversion conversions converted convert "
        "transaction order orders ordered sale sales sold subscribed booked booking install"
    )
)
_CLICKS = frozenset(words("click clicks clicked clickthrough tap tapped select selected opened"))
_FEEDBACK = {
    **{"like": "like", "liked": "like", "favorite": "like", "favorited": "like"},
    **{"save": "save", "saved": "save", "share": "share", "shared": "share"},
    **{"upvote": "like", "upvoted": "like", "dislike": "dislike", "disliked": "dislike"},
}
_IMPRESSIONS = frozenset(
    words(
        "impression impressions imp shown show displayed display served serve exposed exposure "
        "rendered recommended"
    )
)
_LISTS = frozenset(
    words("list search searched results recommendations feed slate filtered recs carousel")
)
_VIEWS = frozenset(words("view viewed views seen"))
_EXPERIMENTS = frozenset(words("experiment experiments abtest"))
_EXPOSED = frozenset(words("exposure exposures exposed impression started assigned assignment"))
_ENDS = {"start": "start", "started": "start", "begin": "start", "end": "end", "ended": "end"}


def with_article(kind: str) -> str:
    """What a record of a kind is called in a sentence.

    >>> with_article("impression"), with_article("click")
    ('an impression', 'a click')
    """
    return f"an {kind}" if kind[:1] in "aeiou" else f"a {kind}"


@dataclass(frozen=True, slots=True)
class Value:
    """A value that says what a record is. ``kind``: impression, click, conversion, session or
    exposure; "" where it is not to be counted."""

    text: str
    kind: str
    records: int
    extra: Mapping[str, str | bool] = field(default_factory=dict)
    """`feedback`, `action`."""
    is_sure: bool = True
    there: str | None = None
    """What must stand at `Kinds.where`, besides."""


@dataclass(frozen=True)
class Kinds:
    """What says what a record is: a field, a header, or nothing, as all are of one kind."""

    path: Path | None = None
    header: str | None = None
    fixed: tuple[str, ...] | None = None
    values: tuple[Value, ...] = ()
    is_sure: bool = True
    where: Path | None = None
    """A second field that tells kinds apart."""

    @property
    def at(self) -> str:
        """Where it stands, for people."""
        if self.path is not None:
            return text_of(self.path)
        return f"header {self.header}" if self.header else "the topic"

    @property
    def known(self) -> dict[str, list[Value]]:
        """Kind → its values; "" has those that are not to be counted."""
        found: dict[str, list[Value]] = {}
        for value in self.values:
            found.setdefault(value.kind, []).append(value)
        return found

    def kinds_of(self, text: str | None, record: Mapping[str, Any]) -> tuple[str, ...]:
        """Kinds of events that a record with a value is; none where it is not to be counted."""
        if self.fixed is not None:
            return self.fixed
        if self.where is not None:
            found = {str(each) for each in values_at(record, self.where)}
            text_there = next(iter(found), None)
            return tuple(
                value.kind
                for value in self.values
                if value.text == text and value.kind and value.there == text_there
            )
        return tuple(value.kind for value in self.values if value.text == text and value.kind)


def classified(name: str) -> tuple[str, dict[str, str | bool]]:
    """What a name of an event most likely is, "" where it is nothing that counts.

    >>> [classified(x)[0] for x in ("Product Clicked", "view_item_list", "add_to_cart")]
    ['click', 'impression', '']
    """
    words_of_name = words(name)
    own = frozenset(words_of_name)
    if "session" in own or "visit" in own:
        end = next((_ENDS[word] for word in words_of_name if word in _ENDS), None)
        return ("session", {"action": end}) if end else ("", {})
    if own & {"page", "screen", "pageview"} and own & {*_VIEWS, "pageview"}:
        return "session", {"action": "view"}
    if own & _OTHERS:
        return "", {}
    if own & _EXPERIMENTS and own & {*_VIEWS, *_EXPOSED}:
        return "exposure", {}
    if own & _CLICKS:
        return "click", {}
    if own & _CONVERSIONS or ("checkout" in own and own & {"complete", "completed", "success"}):
        return "conversion", {}
    if own & _IMPRESSIONS or (own & _LISTS and own & {*_VIEWS, "searched", "filtered"}):
        return "impression", {}
    feedback = next((_FEEDBACK[word] for word in words_of_name if word in _FEEDBACK), None)
    return ("click", {"feedback": feedback}) if feedback else ("", {})


def kinds_of_topic(topic: str) -> str | None:
    """Which events a topic or file most likely holds, by its name."""
    return classified(topic)[0] or None


def find_kinds(profile: Profile, headers: Mapping[str, Seen], topic: str) -> Kinds:
    """What says what the records of a topic are."""
    candidates: list[tuple[tuple[float, ...], Kinds]] = []
    for path, seen in profile.scalars.items():
        rank_of_name = rank(names_of(path), ("type", *OTHER_NAMES["type"]))
        _judge(candidates, seen, profile, rank_of_name, len(path), Kinds(path=path))
    for header, seen in headers.items():
        rank_of_name = rank([header], ("type", "ce_type", *OTHER_NAMES["type"]))
        _judge(candidates, seen, profile, rank_of_name, 1, Kinds(header=header))
    best = max(candidates, key=lambda one: one[0], default=None)
    if best is not None and best[0][0] >= 2:
        return best[1]
    if shown := _click_column(profile):
        return shown
    fixed = kinds_of_topic(topic)
    if fixed is not None and fixed != "session":
        return Kinds(fixed=(fixed,))
    if best is not None:
        return best[1]
    return Kinds(fixed=("exposure" if _says_arms(profile) else "impression",), is_sure=False)


def _says_arms(profile: Profile) -> bool:
    """Whether records have an experiment and an arm, and no item."""

    def has(name: str, others: Sequence[str]) -> bool:
        return any(rank(names_of(path), (name, *others)) is not None for path in profile.scalars)

    has_item = has("item_id", OTHER_NAMES["item_id"]) or profile.lists or profile.id_lists
    return not has_item and all(has(name, others) for name, others in ARM_NAMES.items())


def _judge(
    to: list[tuple[tuple[float, ...], Kinds]],
    seen: Seen,
    profile: Profile,
    rank_of_name: int | None,
    depth: int,
    at: Kinds,
) -> None:
    """Adds a candidate, with what speaks for it."""
    share = seen.count / max(1, profile.records)
    if seen.distinct > _MOST_VALUES or share < _LEAST_SHARE or seen.is_numeric:
        return
    values = _values(seen, profile)
    of_kinds = {value.kind for value in values if value.kind and value.is_sure}
    if not of_kinds or (rank_of_name is None and len(of_kinds) < 2):
        return
    of_known_kind = sum(value.records for value in values if value.kind)
    worth = (
        len(of_kinds),
        rank_of_name is not None,
        of_known_kind / seen.count,
        -(rank_of_name or 0),
        -depth,
    )
    to.append((worth, Kinds(path=at.path, header=at.header, values=tuple(values))))


def _values(seen: Seen, profile: Profile) -> list[Value]:
    found = []
    has_arms = ("experiment",) in profile.scalars and ("arm",) in profile.scalars
    for text, records in seen.values.most_common():
        is_ours = has_arms and text == "exposure"  # else of items: exposed are they, too
        kind, extra = ("exposure", {}) if is_ours else classified(text)
        found.append(Value(text, kind, records, extra))
    if not any(value.kind == "impression" for value in found):
        found = [_as_view(value) for value in found]
    return found


def _as_view(value: Value) -> Value:
    """Where nothing else is shown, what is viewed may be an impression."""
    said = frozenset(words(value.text))
    is_view = not value.kind and said & _VIEWS and not said & _OTHERS
    return Value(value.text, "impression", value.records, {}, False) if is_view else value


def _click_column(profile: Profile) -> Kinds | None:
    """A column of 0 and 1 that says whether an impression was clicked."""
    columns: list[tuple[int, Path, Seen]] = []
    for path, seen in profile.scalars.items():
        rank_of_name = rank(names_of(path), CLICK_COLUMNS)
        is_flag = set(seen.values) <= {*NO, *YES}
        if rank_of_name is not None and is_flag and profile.share(path) > _LEAST_SHARE:
            columns.append((rank_of_name, path, seen))
    if not columns:
        return None
    _, path, seen = min(columns, key=lambda one: (one[0], len(one[1])))
    texts = list(seen.values)
    yes = [flag for flag in texts if flag in YES] or [_opposite(texts[0])]
    no = [flag for flag in texts if flag in NO] or [_opposite(yes[0])]
    values = [Value(flag, "impression", seen.values[flag]) for flag in (*no, *yes)]
    values += [Value(flag, "click", seen.values[flag]) for flag in yes]
    return Kinds(path=path, values=tuple(values), is_sure=rank(names_of(path), _SURE) is not None)


_SURE: Sequence[str] = CLICK_COLUMNS[:5]


def _opposite(text: str) -> str:
    pairs = dict(zip(NO, YES, strict=True))
    return pairs.get(text) or next(no for no, yes in pairs.items() if yes == text)
