"""Some records, decoded one by one, for what counters do not say: how many feedback events join an
impression, which field keeps the others from it, and whether conversions have a value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from streamer._core import RecordDecoder, arms_said
from streamer.ingest.lookup import FieldsSeen, parsed
from streamer.ingest.record import IGNORED, record_decoder
from streamer.settings.event_fields import EXPOSURES
from streamer.settings.experiments import Experiment
from streamer.settings.model import Settings

MOST_EVENTS = 20_000
_MOST_SHOWN = 400_000
"""Items of impressions that are held."""
_LONG_MS = 300_000
"""Between impressions of one request: longer than a list is looked at."""
_LOOKED_INTO = 50
"""Records of impressions in which fields are looked for that say what was clicked."""
_CLICKED = re.compile(r"(is_?)?clicked(_?\w+)?|(has|is)_click", re.IGNORECASE)


@dataclass
class TopicRead:
    """What became of the records of one topic."""

    topic: str
    records: int = 0
    """Events, of which a record may hold several."""
    accepted: int = 0
    duplicates: int = 0
    late: int | None = None
    """None where nobody looked at it."""
    ignored: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    """Reason → records."""
    anonymous: int = 0
    """Accepted events of no person."""


@dataclass
class KindRead:
    """What was read of the events of one kind."""

    kind: str
    logs: dict[str, None] = field(default_factory=dict)
    """Logs that have such events."""
    events: int = 0
    with_person: int = 0
    """Those that say who the person is: by an id of joins, or a user."""
    with_join: int = 0
    with_request: int = 0
    within: int = 0
    """Feedback, conversions: those that stand in the record of their impression."""
    compared: int = 0
    """Feedback, conversions: those whose impression could have been read."""
    joined: int = 0
    """Of those: with an impression of the item before it."""
    at_once: int = 0
    """Of those that joined: at the very time of the impression."""
    misses: Counter[str] = field(default_factory=Counter)
    """Of the others: field → those with a value that no impression has."""
    valued: int = 0
    """Conversions with a value above 0."""
    other: int = 0
    """Feedback of no kind of `metrics.feedback`, which joins nothing."""
    duplicates: int = 0
    changed: int = 0
    """Events with the event_id of another one that differs from them."""

    @property
    def counted(self) -> int:
        """Events without duplicates."""
        return self.events - self.duplicates


class _Arm:
    """What says the arm of an experiment."""

    def __init__(self, settings: Settings, experiment: Experiment) -> None:
        names = settings.dimension_names
        own = experiment.dimension
        self._dimension = names.index(own) if own else None
        self._paths = {settings.arm_paths.index(p) for p in settings.arm_paths_of(experiment)}
        self._key = experiment.called

    def in_event(
        self, event: Mapping[str, Any], said: Sequence[tuple[int, str | None, str]]
    ) -> Iterator[str]:
        """The arms that an event says; ``said``: (path, key or None, arm)."""
        if event["kind"] == EXPOSURES and event["experiment"] == self._key:
            yield event["arm"]
        if event["kind"] == "impressions" and self._dimension is not None:
            yield event["dimensions"][self._dimension]
        for path, key, arm in said:
            if path in self._paths and key in (None, self._key):
                yield arm


class _Feedback(NamedTuple):
    kind: str
    event_ms: int
    user: int
    request: int
    item: int


class ReadSample:
    """What records of all topics have in common. ``is_partial``: they are not the first ones of a
    log, so impressions of some feedback are missing."""

    def __init__(self, settings: Settings, *, is_partial: bool = False) -> None:
        self.settings, self.is_partial = settings, is_partial
        self.topics = {name: TopicRead(name) for name in settings.logs}
        self.events = 0
        self.last_ms = 0
        self.clicked_at = set[str]()
        """Fields in records of impressions that may say what was clicked."""
        self.arms: dict[str, Counter[str]] = {}
        """What says the arm of an experiment → what it says: in impressions where it is a
        dimension, else in events of any kind."""
        self._kinds: dict[str, KindRead] = {}
        self._ids: dict[tuple[str, int], int] = {}
        self._shown: dict[tuple[int, int], tuple[int, int]] = {}
        """(user or request, item) → times of its first and its last impression."""
        self._joins: dict[int, set[int]] = {}
        """User → ids of joins of the same events."""
        self._slates: set[tuple[int, int, int]] = set()
        self._users, self._requests = set[int](), set[int]()
        self._items: set[int] = set()
        self._first_ms, self._last_ms = 2**62, 0
        """Times of impressions."""
        self._feedback: list[_Feedback] = []
        self._looked_into = 0
        self.fields_seen = FieldsSeen(settings)
        self._spans: dict[tuple[int, int], tuple[int, int]] = {}
        """(user or request, request) → times of its first and its last impression."""
        self._arms = {settings.says_arm(e): _Arm(settings, e) for e in settings.experiments}

    @cached_property
    def decoder(self) -> RecordDecoder:
        """What decodes the records that are taken in."""
        return record_decoder(self.settings)

    @property
    def is_full(self) -> bool:
        """Whether no more records are wanted."""
        return self.events >= MOST_EVENTS or len(self._shown) >= _MOST_SHOWN

    def add(self, log: str, raw: bytes | None, decoded: Sequence[dict[str, Any] | str]) -> None:
        """Take in a record of a log, and the events that the decoder makes of it."""
        self.topics[log].records += len(decoded)
        for event in decoded:
            self._add(log, raw, event)

    def _add(self, log: str, raw: bytes | None, decoded: dict[str, Any] | str) -> None:
        topic = self.topics[log]
        if isinstance(decoded, str):
            if decoded == IGNORED:
                topic.ignored += 1
            else:
                topic.rejected[decoded] = topic.rejected.get(decoded, 0) + 1
            return
        kind = self._kinds.setdefault(decoded["kind"], KindRead(decoded["kind"]))
        kind.logs[log] = None
        kind.events += 1
        self.events += 1
        self.last_ms = max(self.last_ms, decoded["event_ms"])
        if self._is_duplicate(kind, decoded):
            topic.duplicates += 1
            return
        topic.accepted += 1
        if raw:
            self.fields_seen.add(log, kind.kind, raw)
        self._see_arms(decoded)
        kind.with_person += bool(decoded["user"] or decoded["join"])
        kind.with_join += bool(decoded["join"])
        kind.with_request += bool(decoded["request"])
        topic.anonymous += not (decoded["user"] or decoded["join"])
        if decoded["user"] and decoded["join"]:
            self._joins.setdefault(decoded["user"], set()).add(decoded["join"])
        if decoded["kind"] == "impressions":
            self._show(kind, raw, decoded)
        else:
            self._give(kind, decoded)

    def _is_duplicate(self, kind: KindRead, event: Mapping[str, Any]) -> bool:
        if not event["dedup_id"]:
            return False
        key = (kind.kind, event["dedup_id"])
        about = event.get("items", event.get("lines", ()))
        mark = hash((event["event_ms"], event["user"], tuple(each[0] for each in about)))
        if key not in self._ids:
            self._ids[key] = mark
            return False
        kind.duplicates += 1
        kind.changed += self._ids[key] != mark
        return True

    def _see_arms(self, event: Mapping[str, Any]) -> None:
        """What an event says of arms."""
        said = [(path, *each) for path, json in event["arms"] for each in arms_said(json)]
        for name, of in self._arms.items():
            self.arms.setdefault(name, Counter()).update(of.in_event(event, said))

    def _show(self, kind: KindRead, raw: bytes | None, event: Mapping[str, Any]) -> None:
        request, event_ms = event["request"], event["event_ms"]
        apart = _apart(event)
        self._users.add(apart)
        self._requests.add(request)
        if request:
            low, high = self._spans.get((apart, request), (event_ms, event_ms))
            self._spans[apart, request] = min(low, event_ms), max(high, event_ms)
        self._first_ms = min(self._first_ms, event_ms)
        self._last_ms = max(self._last_ms, event_ms)
        for item, *_ in event["items"]:
            self._items.add(item)
            if not apart:  # each such record is another nobody's, whom nothing joins
                continue
            first, last = self._shown.get((apart, item), (event_ms, event_ms))
            self._shown[apart, item] = min(first, event_ms), max(last, event_ms)
            if request:
                self._slates.add((apart, request, item))
        if not event["is_shared"] and self._looked_into < _LOOKED_INTO and raw:
            self._looked_into += 1
            self.clicked_at.update(_clicked_in(raw))

    def _give(self, kind: KindRead, event: Mapping[str, Any]) -> None:
        lines = event.get("lines", ())
        if kind.kind == "conversions":
            kind.valued += any(value > 0 for _, value in lines)
        if event.get("feedback") == -1:
            kind.other += 1
            return
        if event["is_shared"]:
            kind.within += 1
            return
        apart = _apart(event)
        for item, *_ in lines[:1]:
            one = (kind.kind, event["event_ms"], apart, event["request"], item)
            self._feedback.append(_Feedback(*one))

    def kinds(self) -> list[KindRead]:
        """What was read of each kind, with what feedback joined."""
        for kind in self._kinds.values():
            kind.compared = kind.joined = kind.within
            kind.at_once = 0
            kind.misses = Counter()
        for one in self._feedback:
            if one.event_ms < self._first_ms or (self.is_partial and one.event_ms > self._last_ms):
                continue
            kind = self._kinds[one.kind]
            kind.compared += 1
            missed = list(self._missed(one))
            kind.joined += not missed
            shown = self._shown.get((one.user, one.item), ())
            is_exact = one.event_ms % 1000 != 0  # of whole seconds many are the same
            kind.at_once += not missed and is_exact and one.event_ms in shown
            kind.misses.update(missed)
        order = ("impressions", "clicks", "conversions", "sessions")
        return [self._kinds[name] for name in order if name in self._kinds]

    @property
    def users_of_several(self) -> tuple[int, int]:
        """Users with several ids of joins, and all that have one."""
        return sum(len(ids) > 1 for ids in self._joins.values()), len(self._joins)

    @property
    def long_requests(self) -> tuple[int, int]:
        """Requests with impressions far apart, and all requests."""
        spans = self._spans.values()
        return sum(high - low > _LONG_MS for low, high in spans), len(spans)

    def _missed(self, one: _Feedback) -> Iterator[str]:
        """Why feedback joins nothing: fields with a value that no impression has; where each has
        been seen, `request_id` or `pair`, as they never come together, or `ts`."""
        is_conversion = one.kind == "conversions"
        shown = self._shown.get((one.user, one.item))
        within_ms = self.settings.feedback_horizon_ms if is_conversion else self._click_ms
        in_time = shown and shown[0] <= one.event_ms <= shown[1] + within_ms
        is_of_slate = (
            is_conversion or not one.request or (one.user, one.request, one.item) in self._slates
        )
        if in_time and is_of_slate:
            return
        fields = {
            "item_id": one.item in self._items,
            "user_id": one.user != 0 and one.user in self._users,
            "request_id": is_conversion or not one.request or one.request in self._requests,
        }
        if not all(fields.values()):
            yield from (name for name, is_seen in fields.items() if not is_seen)
        elif shown is None:
            yield "pair"
        else:
            yield "request_id" if in_time else "ts"

    @property
    def _click_ms(self) -> int:
        return self.settings.attribution.click_ms


def _apart(event: Mapping[str, Any]) -> int:
    """What joins depend on; 0: nothing that is known."""
    return int(event["join"] or event["user"] or event["request"])


def _clicked_in(raw: bytes) -> Iterator[str]:
    """Paths of fields of a record that are called `clicked`, or the like."""
    waiting: list[tuple[str, Any]] = [("", parsed(raw))]
    for at, each in waiting:
        if isinstance(each, dict):
            for name, inner in each.items():
                path = f"{at}.{name}" if at else name
                if _CLICKED.fullmatch(name):
                    yield path
                waiting.append((path, inner))
        elif isinstance(each, list):
            waiting.extend((f"{at}[]", inner) for inner in each[:3])
