"""Some records, decoded one by one, for what counters do not say: how many feedback events join an
impression, why the others do not, and whether conversions have a value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np

from streamer._core import Core, RecordDecoder, arms_said
from streamer.ingest.discovery.shapes import FoundRecord
from streamer.ingest.hash_key import FIXED_KEY
from streamer.ingest.lookup import FieldsSeen, parsed
from streamer.ingest.record import of_texts, record_decoder
from streamer.ingest.spec import core_spec
from streamer.metrics.catalogue import Catalogue
from streamer.settings.event_fields import EXPOSURES, KINDS
from streamer.settings.experiments import Experiment
from streamer.settings.model import Settings

MOST_EVENTS = 20_000
_FOR_EVER = 2**62
_MOST_SHOWN = 400_000
"""Items of impressions."""
_LONG_MS = 300_000
"""Between impressions of one request: longer than a list is looked at."""
_LOOKED_INTO = 50
"""Records of impressions in which fields are looked for that say what was clicked."""
_CLICKED = re.compile(r"(is_?)?clicked(_?\w+)?|(has|is)_click", re.IGNORECASE)


MISSES = {
    "impression": "impression not shown",
    "item": "item not shown",
    "person": "nothing shown to the person",
    "pair": "item not shown to the person",
    "request": "shown in another request",
    "before": "before the impression",
    "late": "after the horizon",
    "unclicked": "no click before",
}
"""Why feedback joins no impression, as the core says it, and in words."""


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
    with_impression: int = 0
    """Those of which an item says the id of its impression."""
    longest_ms: int = 0
    """From the first to the last event, on the partition where that is longest."""
    compared: int = 0
    """Feedback, conversions: those that joined, and those whose impression would have been read."""
    joined: int = 0
    apart: int = 0
    """Of those that joined: in another record than their impression."""
    at_once: int = 0
    """Of those: at the very time of the impression."""
    misses: Counter[str] = field(default_factory=Counter)
    """Why the others did not join → how many: a key of ``MISSES`` each."""
    late_ms: list[int] = field(default_factory=list)
    """How long after the impression those come that are too late."""
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

    @property
    def missed(self) -> str:
        """Why others did not join, the most common reason first."""
        return ", ".join(f"{MISSES[why]} {n:,}" for why, n in self.misses.most_common())


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


class ReadSample:
    """What records of all topics have in common."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.events = 0
        self.last_ms = 0
        self.clicked_at = set[str]()
        """Fields in records of impressions that may say what was clicked."""
        self.arms: dict[str, Counter[str]] = {}
        """What says the arm of an experiment → what it says: in impressions where it is a
        dimension, else in events of any kind."""
        self._kinds: dict[str, KindRead] = {}
        self._ids: dict[tuple[str, int], int] = {}
        self._joins: dict[int, set[int]] = {}
        """User → ids of joins of the same events."""
        self._items = 0
        """Of impressions."""
        self._records: list[tuple[int, bool]] = []
        """The partition of each, and whether it says events of several kinds."""
        self._read_ms: dict[tuple[str, str, int], tuple[int, int]] = {}
        """(kind, log, partition) → times of the first and the last event."""
        self._whole: set[tuple[str, int]] = set()
        """Logs and partitions that were read from their beginning on."""
        self.of_ratios = Counter[tuple[str, int | str]]()
        """Of items, and events without, that ratios ask: ``items`` by kind; by place those that
        have an amount (``said``), another one than 0 (``nonzero``), and that meet a condition
        (``met``); ``feedback`` by kind."""
        self._looked_into = 0
        self._spans: dict[tuple[int, int], tuple[int, int]] = {}
        """(user or request, request) → times of its first and its last impression."""
        self._arms = {settings.says_arm(e): _Arm(settings, e) for e in settings.experiments}

    @cached_property
    def decoder(self) -> RecordDecoder:
        """What decodes the records that are taken in."""
        return record_decoder(self.settings)

    @cached_property
    def fields_seen(self) -> FieldsSeen:
        """Which of the fields of the settings were in records."""
        return FieldsSeen(self.settings, self.decoder)

    @cached_property
    def _core(self) -> Core:
        """What joins feedback: it keeps all that it is fed."""
        settings = of_texts(self.settings)
        return Core(core_spec(settings, Catalogue(settings), FIXED_KEY), is_traced=True)

    @property
    def is_full(self) -> bool:
        """Whether no more records are wanted."""
        return self.events >= MOST_EVENTS or self._items >= _MOST_SHOWN

    def add(self, log: str, record: FoundRecord, decoded: Sequence[dict[str, Any] | str]) -> None:
        """Take in a record of a log, and the events that the decoder makes of it. Of one partition
        they come in their order, and only what has offset 0 is read from the beginning on."""
        events = [event for event in decoded if isinstance(event, dict)]
        for event in events:
            self._add(log, record.value, event)
            at, ms = (event["kind"], log, record.partition), event["event_ms"]
            self._read_ms[at] = self._read_ms.get(at, (ms, ms))[0], ms
        kinds = {event["kind"] for event in events}
        self.fields_seen.add(log, kinds, record.value, record.beside)
        if record.offset == 0:
            self._whole.add((log, record.partition))
        number = np.array([len(self._records)])
        self._records.append((record.partition, any(event["is_shared"] for event in events)))
        ms = record.timestamp_ms or max((event["event_ms"] for event in events), default=0)
        text = self.decoder.text(log, record.value)
        self._core.feed_records(log, number, np.array([ms]), [text], [record.beside[:2]])

    def topics(self) -> list[TopicRead]:
        """What became of the records of each log."""
        names = ("accepted", "duplicates", "ignored", "anonymous")
        topics = list[TopicRead]()
        for log, counted in self._core.state()["logs"].items():
            counters = {name: counted["counters"][name] for name in names}
            of_log = TopicRead(log, rejected=counted["rejected"], **counters)
            refused = sum(of_log.rejected.values())
            of_log.records = of_log.accepted + of_log.duplicates + of_log.ignored + refused
            topics.append(of_log)
        return topics

    def _add(self, log: str, raw: bytes | None, decoded: dict[str, Any]) -> None:
        kind = self._kinds.setdefault(decoded["kind"], KindRead(decoded["kind"]))
        kind.logs[log] = None
        kind.events += 1
        self.events += 1
        self.last_ms = max(self.last_ms, decoded["event_ms"])
        if self._is_duplicate(kind, decoded):
            return
        self._see_arms(decoded)
        self._see_values(decoded)
        kind.with_person += bool(decoded["user"] or decoded["join"])
        kind.with_join += bool(decoded["join"])
        kind.with_request += bool(decoded["request"])
        kind.with_impression += any(decoded.get("impressions", ()))
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

    def _see_values(self, event: Mapping[str, Any]) -> None:
        """What an event says to ratios."""
        self.of_ratios["feedback", event.get("feedback", -1)] += 1
        self.of_ratios["items", event["kind"]] += len(event["values"]) or 1
        for met, amounts in event["values"]:
            for place, value in amounts:
                self.of_ratios["said", place] += 1
                self.of_ratios["nonzero", place] += value != 0
            for place in range(met.bit_length()):
                self.of_ratios["met", place] += met >> place & 1

    def _show(self, kind: KindRead, raw: bytes | None, event: Mapping[str, Any]) -> None:
        request, event_ms = event["request"], event["event_ms"]
        apart = int(event["join"] or event["user"] or request)
        self._items += len(event["items"])
        if request:
            low, high = self._spans.get((apart, request), (event_ms, event_ms))
            self._spans[apart, request] = min(low, event_ms), max(high, event_ms)
        if not event["is_shared"] and self._looked_into < _LOOKED_INTO and raw:
            self._looked_into += 1
            self.clicked_at.update(_clicked_in(raw))

    def _give(self, kind: KindRead, event: Mapping[str, Any]) -> None:
        lines = event.get("lines", ())
        if kind.kind == "conversions":
            kind.valued += any(value > 0 for _, value in lines)
        kind.other += event.get("feedback") == -1

    def kinds(self) -> list[KindRead]:
        """What was read of each kind, with what feedback joined."""
        for name, kind in self._kinds.items():
            spans = [end - begin for (of, *_), (begin, end) in self._read_ms.items() if of == name]
            kind.longest_ms = max(0, *spans)
            kind.compared = kind.joined = kind.apart = kind.at_once = 0
            kind.misses, kind.late_ms = Counter(), []
        between = cache(self._between)
        for number, name, event_ms, verdict, since_ms in self._core.joins():
            kind, (partition, is_shared) = self._kinds[name], self._records[number]
            begin_ms, end_ms = between(name, partition)
            if verdict == "joined":
                kind.joined += 1
                kind.apart += not is_shared
                is_exact = event_ms % 1000 != 0  # of whole seconds many are the same
                kind.at_once += not is_shared and is_exact and not since_ms
            elif begin_ms <= event_ms <= end_ms:
                kind.misses[verdict] += 1
                kind.late_ms += [since_ms] if verdict == "late" else []
            kind.compared = kind.joined + kind.misses.total()
        return [self._kinds[name] for name in KINDS if name in self._kinds]

    @property
    def users_of_several(self) -> tuple[int, int]:
        """Users with several ids of joins, and all that have one."""
        return sum(len(ids) > 1 for ids in self._joins.values()), len(self._joins)

    @property
    def long_requests(self) -> tuple[int, int]:
        """Requests with impressions far apart, and all requests."""
        spans = self._spans.values()
        return sum(high - low > _LONG_MS for low, high in spans), len(spans)

    def _between(self, kind: str, partition: int) -> tuple[int, int]:
        """Between which times all was read that feedback on a partition may join."""
        is_conversion = kind == "conversions"
        join = self.settings.attribution
        horizon_ms = join.conversion_ms if is_conversion else join.click_ms
        begins, begin_ms, end_ms = list[int](), 0, -1
        for (what, log, at), (first_ms, last_ms) in self._read_ms.items():
            is_shown, is_whole = what == "impressions", (log, at) in self._whole
            if at != partition or not (is_shown or (what == "clicks" and is_conversion)):
                continue
            if not is_whole:
                begin_ms = max(begin_ms, first_ms + horizon_ms)
            if is_shown:
                begins.append(first_ms)
                end_ms = max(end_ms, _FOR_EVER if is_whole else last_ms)
        return max(begin_ms, min(begins, default=0)), end_ms


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
