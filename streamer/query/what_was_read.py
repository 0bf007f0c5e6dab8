"""What was read of the topics, and what about it is implausible: mappings that are wrong refuse
nothing, and the numbers look as if all were well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median

from msgspec import Struct

from streamer.encoding.segments import ALL
from streamer.ingest.mapping import place_of
from streamer.ingest.read_sample import KindRead, ReadSample, TopicRead
from streamer.metrics.catalogue import PREFIX
from streamer.query.readings import Reading, ReadingSet
from streamer.settings.durations import about
from streamer.settings.experiments import USER
from streamer.settings.file_window import widest
from streamer.settings.labels import UNKNOWN
from streamer.settings.model import Settings
from streamer.settings.own_metrics import event_kind, in_words, own_sum
from streamer.settings.source_rules import says_itself

LEAST_DUPLICATES = 10
"""Fewer may be records that were sent twice."""
MOST_CHANGED = 0.001
"""Share of events that may have the id of an event that differs from them."""
MOST_DUPLICATES = 0.01
"""Share of a topic that may be sent twice."""
_LEAST_COMPARED, _LEAST_OF_PART = 10, 50
"""Feedback events of which one may be expected to join."""
_FEW, _HALF, _NEARLY_ALL = 0.1, 0.5, 0.9
_MOST_OF_SEVERAL = 0.01
"""Share of users that may have several ids of joins, and of feedback that may have none."""
_MOST_VALUES = 5
_REJECTED, _VALUE = f"{PREFIX}rejected_total", f"{PREFIX}conversion_value_total"
_UNATTRIBUTED = f"{PREFIX}unattributed_total"
_SETTLED = {f"{PREFIX}feedback_total": "clicks", f"{PREFIX}conversions_total": "conversions"}
_WINDOWED = tuple(
    f"{PREFIX}window_{name}"
    for name in ("clicks", "conversions", "ctr_attributed_impressions", "ctr_attributed_clicked")
)
_ALONE = {
    "before": ("come before it", "the time of the event"),
    "pair": ("are of items that were shown to others alone", "the item"),
}


class Implausible(Struct, frozen=True):
    """Something about what was read that is most likely a wrong mapping."""

    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.what}: {self.fix}"


class FeedbackRead(Struct, frozen=True):
    """What became of clicks, or of conversions, since the state began."""

    kind: str
    events: int
    """Those that are settled."""
    unattributed: int
    """Those that joined no impression, and no longer can."""


@dataclass(frozen=True)
class WhatWasRead:
    """Rows of topics and of kinds, and what about them is implausible. ``kinds``: of a sample."""

    topics: Sequence[TopicRead]
    implausible: Sequence[Implausible]
    kinds: Sequence[KindRead] = ()
    sampled: int = 0
    """Events that ``kinds`` are about."""
    feedback: Sequence[FeedbackRead] = ()
    """Of counters."""
    arms: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """``ReadSample.arms``."""

    @property
    def counted(self) -> CountedRead:
        """As part of ``/api/health``."""
        return CountedRead(self.topics, self.feedback, self.implausible)


class CountedRead(Struct, frozen=True):
    """What of it is known without records."""

    topics: Sequence[TopicRead]
    feedback: Sequence[FeedbackRead]
    findings: Sequence[Implausible]


def of_sample(
    settings: Settings, sample: ReadSample, result: ReadingSet | None = None
) -> WhatWasRead:
    """What was read of some records; ``result``: of all since the state began, of which they are
    the first."""
    kinds = sample.kinds()
    topics = sample.topics() if result is None else _topics(settings, result)
    implausible = (
        *_duplicates(settings, topics, kinds),
        *_of_kinds(settings, sample, kinds),
        *_without_user(settings, topics),
        *_of_ratios(settings, sample),
        *(() if result is None else _unknown(settings, result)),
    )
    return WhatWasRead(topics, implausible, kinds, sample.events, arms=sample.arms)


def of_counters(settings: Settings, result: ReadingSet) -> WhatWasRead:
    """What was read since the state began, where nobody can look at records."""
    topics = _topics(settings, result)
    implausible = (
        *_refused(topics),
        *_duplicates(settings, topics, ()),
        *_of_windows(settings, result, _is_anonymous(topics)),
        *_without_user(settings, topics),
        *_unknown(settings, result),
    )
    return WhatWasRead(topics, implausible, feedback=_feedback(result))


def _feedback(result: ReadingSet) -> list[FeedbackRead]:
    settled = dict.fromkeys(_SETTLED.values(), 0)
    for reading in _readings(result, *_SETTLED):
        segment = {name: x for name, x in reading.labels.items() if name != "feedback"}
        if set(segment.values()) <= {ALL}:
            settled[_SETTLED[reading.name]] += int(reading.value)
    unattributed = {r.labels["topic"]: int(r.value) for r in _readings(result, _UNATTRIBUTED)}
    return [FeedbackRead(kind, n, unattributed[kind]) for kind, n in settled.items() if n]


def _readings(result: ReadingSet, *names: str) -> Iterator[Reading]:
    return (reading for b in result.blocks if b.name in names for reading in b.readings())


def _topics(settings: Settings, result: ReadingSet) -> list[TopicRead]:
    topics = {name: TopicRead(name) for name in settings.logs}
    columns = {
        f"{PREFIX}{counter}_total": column
        for counter, column in (
            *(("events", "records"), ("accepted", "accepted"), ("duplicates", "duplicates")),
            *(("late", "late"), ("ignored", "ignored"), ("anonymous", "anonymous")),
        )
    }
    for reading in _readings(result, *columns, _REJECTED):
        topic = topics.get(reading.labels.get("topic", ""))
        if topic is None:
            continue
        if reading.name in columns:
            setattr(topic, columns[reading.name], int(reading.value))
        else:
            topic.rejected[reading.labels["reason"]] = int(reading.value)
    return list(topics.values())


def _refused(topics: Sequence[TopicRead]) -> Iterator[Implausible]:
    for topic in topics:
        refused = sum(topic.rejected.values())
        if 2 * refused > topic.records:
            reasons = ", ".join(f"{n:,} {reason}" for reason, n in topic.rejected.items())
            what = f"{refused:,} of {topic.records:,} records of {topic.topic} were refused"
            yield Implausible(f"{what} ({reasons})", "correct the paths of its fields")


def _duplicates(
    settings: Settings, topics: Sequence[TopicRead], kinds: Sequence[KindRead]
) -> Iterator[Implausible]:
    """Events with an id that others have."""
    changed = [kind for kind in kinds if _has_changed(kind)]
    for kind in changed:
        share = (
            f"{kind.changed:,} of {kind.events:,} {kind.kind} ({kind.changed / kind.events:.1%})"
        )
        yield _of_id(settings, list(kind.logs), f"{share} have the event_id of a different event")
    sent_twice = sum(kind.duplicates for kind in kinds)
    for topic in topics if not changed and not sent_twice else ():
        events = topic.accepted + topic.duplicates
        if topic.duplicates >= max(LEAST_DUPLICATES, MOST_DUPLICATES * events):
            share = f"{topic.duplicates:,} of {events:,} events of {topic.topic}"
            what = f"{share} ({topic.duplicates / events:.1%}) have an event_id seen before"
            yield _of_id(settings, [topic.topic], what)


def _of_ratios(settings: Settings, sample: ReadSample) -> Iterator[Implausible]:
    """Fields that no event has, conditions that none meets, and what nothing is divided by."""
    seen, own = sample.of_ratios, settings.own_sums
    for place, (kind, name) in enumerate(own.amounts):
        if (events := seen["items", kind]) and not seen["said", place]:
            what = f"none of {events:,} {kind} has the field {name} that a ratio adds up"
            yield Implausible(what, _advice(settings, name))
    for place, asked in enumerate(own.conditions):
        if (events := seen["items", asked.kind]) and not seen["met", place]:
            what = f"none of {events:,} {asked.kind} is as a ratio asks: {asked.field}"
            yield Implausible(f"{what} {asked.words}", _advice(settings, asked.field))
    for ratio in settings.ratios:
        below = ratio.denominator
        of = None if below is None else event_kind(below.kind)
        if below is None or of is None or not (events := seen["items", of]):
            continue
        counted = True
        if below.field is not None:
            counted = seen["nonzero", own.amounts.index((of, below.field))] > 0
        if (feedback := own_sum(below, (), False).feedback) is not None:
            counted &= seen["feedback", settings.feedback_kinds.index(feedback)] > 0
        if not counted:
            what = f"the denominator of {ratio.name} is always 0: {in_words(below)}"
            yield Implausible(f"{what}, of {events:,} {of}", "correct its kind or field")


def _has_changed(kind: KindRead) -> bool:
    return kind.changed >= max(LEAST_DUPLICATES, MOST_CHANGED * kind.events)


def _of_id(settings: Settings, logs: Sequence[str], what: str) -> Implausible:
    where = _place(settings, logs, None, "event_id")
    fix = f"is {where} different in every event? Correct event_id in {_section(settings)}"
    return Implausible(f"{what}, and are not counted", fix)


def _of_kinds(
    settings: Settings, sample: ReadSample, kinds: Sequence[KindRead]
) -> Iterator[Implausible]:
    by_kind = {kind.kind: kind for kind in kinds}
    shown = by_kind.get("impressions")
    found = list[Implausible]()
    for name in ("clicks", "conversions"):
        kind = by_kind.get(name)
        if kind is not None and shown is not None:
            without = [*_of_no_kind(settings, kind), *_without_join(settings, kind, shown)]
            are_clicked = "clicks" in by_kind and not found
            found = without or list(_of_joins(settings, kind, shown, are_clicked=are_clicked))
            yield from found
    clicks, conversions = by_kind.get("clicks"), by_kind.get("conversions")
    if conversions is not None and not conversions.valued:
        yield from _without_value(settings, list(conversions.logs), conversions.counted)
    yield from missing_arms(settings, sample)
    yield from _of_several(settings, sample)
    yield from _of_fields(settings, sample, by_kind)
    if shown is not None and clicks is None and sample.clicked_at:
        places = ", ".join(sorted(sample.clicked_at)[:_MOST_VALUES])
        what = f"no click was read, but impressions have {places}"
        fix = 'a record may be both: fixed = ["impression", "click"] in [sources.kind]'
        yield Implausible(what, fix)


def _of_fields(
    settings: Settings, sample: ReadSample, by_kind: Mapping[str, KindRead]
) -> Iterator[Implausible]:
    """Fields that no event has, and those that hold something else."""
    for one in sample.fields_seen.never():
        if one.records < _LEAST_COMPARED:
            continue
        there = ", ".join(one.names) or "no fields"
        what = f"{one.name}: none of {one.records:,} {one.kind} has it, nothing is at {one.path}"
        where = f"at {one.near} there are" if one.near else "there are"
        yield Implausible(f"{what}; {where} {there}", f"correct or remove {one.name}")
    clicks = by_kind.get("clicks")
    apart = 0 if clicks is None else clicks.apart
    if clicks is not None and apart >= _LEAST_OF_PART and clicks.at_once > _HALF * apart:
        where = _place(settings, list(clicks.logs), "clicks", "ts")
        what = f"{clicks.at_once:,} of {apart:,} clicks are at the very time of the impression"
        fix = f"is {where} the time of the click? Correct ts in {_section(settings)}"
        yield Implausible(what, fix)
    long, requests = sample.long_requests
    shown = by_kind.get("impressions")
    if shown is not None and requests >= _LEAST_COMPARED and long > _FEW * requests:
        where = _place(settings, list(shown.logs), "impressions", "request_id")
        what = f"{long:,} of {requests:,} requests have impressions more than 5 minutes apart"
        fix = f"is {where} the id of a session? Correct request_id in {_section(settings)}"
        yield Implausible(what, fix)


def joins_in_words(kind: KindRead, shown: KindRead) -> tuple[str, str]:
    """How much feedback joined an impression, and why others did not; or that the impression of too
    little of it was read, and how long what was read is."""
    if kind.compared >= min(_LEAST_COMPARED, kind.counted - kind.other):
        return f"{kind.joined:,} of {kind.compared:,}", kind.missed
    spans = (f"{each.kind} of {about(each.longest_ms)}" for each in (shown, kind))
    return "too short to tell how many", ", ".join(dict.fromkeys(spans))


def _of_no_kind(settings: Settings, kind: KindRead) -> Iterator[Implausible]:
    """Feedback that is all of kinds that the settings do not name."""
    if kind.other >= max(_LEAST_COMPARED, kind.counted):
        known = ", ".join(settings.feedback_kinds)
        what = f"none of {kind.counted:,} clicks is of a kind in metrics.feedback ({known})"
        yield Implausible(what, "add theirs, or correct feedback in [sources.kind]")


def _of_joins(
    settings: Settings, kind: KindRead, shown: KindRead, *, are_clicked: bool
) -> Iterator[Implausible]:
    """``are_clicked``: there are clicks, without which no conversion joins, and they are right."""
    n, missed = kind.compared, kind.compared - kind.joined
    can_join = shown.with_person or shown.with_request or shown.with_impression
    if n < _LEAST_COMPARED or not missed or not can_join:
        return
    ((why, count),) = kind.misses.most_common(1)
    if kind.kind == "conversions":
        is_clear = count >= _NEARLY_ALL * missed and (are_clicked or why != "unclicked")
        is_wrong = not kind.joined and is_clear
    else:
        is_most = why != "pair" and count > _HALF * missed
        is_wrong = kind.joined < _FEW * n or (kind.joined < _HALF * n and is_most)
    if is_wrong:
        miss = _of_miss(settings, why, kind, shown)
        joined = f"{kind.joined:,} of {n:,} {kind.kind} joined an impression"
        yield Implausible(f"{joined}; {miss.what}", miss.fix)


def _of_miss(settings: Settings, why: str, kind: KindRead, shown: KindRead) -> Implausible:
    """Why most feedback joined nothing, and what to do."""
    n, own = f"{kind.misses[why]:,}", "conversion" if kind.kind == "conversions" else "click"
    if why == "late":
        longest = getattr(settings.attribution, own)
        what = f"{n} come {about(median(kind.late_ms))} after it (median), and attribution.{own}"
        return Implausible(f"{what} is {longest}", "raise it if they belong to the impression")
    if why == "unclicked":
        what = f"{n} have no click before them (view-through), and a conversion joins an impression"
        fix = "send their clicks, or the dimensions with each conversion"
        return Implausible(f"{what} that was clicked", fix)
    person = "join_id" if kind.with_join else "user_id"
    if not (kind.with_person or shown.with_person):
        person = "request_id"
    by_id = {"person": person, "request": "request_id", "impression": "impression_id"}
    name = {**by_id, "before": "ts"}.get(why, "item_id")
    place, section = _place(settings, list(kind.logs), kind.kind, name), _section(settings)
    if why in _ALONE:
        what, meaning = _ALONE[why]
        return Implausible(f"{n} {what}", f"is {place} {meaning}? Correct {name} in {section}")
    other = _place(settings, list(shown.logs), "impressions", name)
    what = f"{name} differs between {kind.kind} ({place}) and impressions ({other})"
    return Implausible(f"{what}: {n} match no impression", f"correct {name} in {section}")


def _without_join(settings: Settings, kind: KindRead, shown: KindRead) -> Iterator[Implausible]:
    """Feedback that lacks an id by which impressions are joined alone."""
    for name, given, shown_with in (
        ("join_id", kind.with_join, shown.with_join),
        ("impression_id", kind.with_impression, shown.with_impression),
    ):
        missing = kind.counted - given
        is_joined_by = shown_with >= _NEARLY_ALL * shown.counted
        if not is_joined_by or missing <= _MOST_OF_SEVERAL * kind.counted:
            continue
        where = _place(settings, list(kind.logs), kind.kind, name)
        what = f"{missing:,} of {kind.counted:,} {kind.kind} have no {name} ({where})"
        unmap = f"set {name} = false in [sources.fields]"
        other = unmap if settings.reads_sources else "send none at all"
        fix = f"send it with every event, or {other}"
        yield Implausible(f"{what}, so they join no impression", fix)


def _of_several(settings: Settings, sample: ReadSample) -> Iterator[Implausible]:
    """Experiments on people, where users have several ids of joins."""
    several, users = sample.users_of_several
    names = [repr(e.name) for e in settings.experiments if e.unit == USER and not e.switchback]
    if names and several > _MOST_OF_SEVERAL * users:
        what = f"{several:,} of {users:,} users have several join_ids, each a person of its own in "
        what += f"{', '.join(names[:_MOST_VALUES])}"
        yield Implausible(what, 'where arms are drawn by user, set unit = "user_id"')


def _without_value(settings: Settings, logs: Sequence[str], events: int) -> Iterator[Implausible]:
    """Conversions that are worth nothing, unless the settings say that they have no value."""
    wanted = [name for name in logs if _wants_value(settings, name)]
    if wanted:
        where = _place(settings, wanted, "conversions", "value")
        section = _section(settings)
        fix = f"nothing above 0 is at {where}: correct value in {section}"
        fix += ", or set value = false there" if settings.reads_sources else ""
        yield Implausible(f"value: none of {events:,} conversions has one", fix)


def _wants_value(settings: Settings, log: str) -> bool:
    source = settings.read_sources[settings.logs[log].source]
    said = source.fields_of("conversions").get("value")
    return said is not False and (said is not None or not source.is_own)


def missing_arms(settings: Settings, sample: ReadSample) -> Iterator[Implausible]:
    """Experiments that have begun, of which no event has an arm."""
    today = datetime.fromtimestamp(sample.last_ms / 1000, UTC).date()
    for experiment in settings.experiments:
        where = settings.says_arm(experiment)
        seen = set(sample.arms.get(where, ()))
        is_over = experiment.end is not None and experiment.end < today
        is_by_time = experiment.switchback is not None
        if experiment.start > today or is_over or is_by_time or seen & set(experiment.shares):
            continue
        values = ", ".join(sorted(map(repr, seen - {""}))[:_MOST_VALUES]) or "nothing"
        arms = ", ".join(experiment.shares)
        event = "impression" if experiment.dimension else "event"
        what = f"no {event} has an arm of {experiment.name} ({arms}): {where}"
        section = _section(settings) if experiment.dimension else "[[experiments]]"
        fix = f"correct {where} in {section}, or the arms in split"
        yield Implausible(f"{what} is {values}", fix)


def unknown_arms(settings: Settings, said: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """What is said in place of an arm and is none of any experiment, with the events that say it.
    ``said``: ``ReadSample.arms``."""
    found: dict[str, int] = {}
    for where, seen in said.items():
        arms = {a for e in settings.experiments if settings.says_arm(e) == where for a in e.shares}
        found |= {f"{where} {text}": n for text, n in seen.items() if text not in {*arms, ""}}
    return found


def _of_windows(
    settings: Settings, result: ReadingSet, is_anonymous: bool
) -> Iterator[Implausible]:
    """What the longest window says where no record can be looked at."""
    window = widest(settings)
    whole = dict.fromkeys(settings.dimension_names, ALL)
    values: dict[str, float] = {}
    for reading in _readings(result, *_WINDOWED, _VALUE):
        labels = dict(reading.labels)
        is_last = labels.pop("window", window) == window
        if is_last and labels.pop("maturity", "provisional") == "provisional" and labels == whole:
            values[reading.name] = reading.value
    clicks, conversions, shown, clicked = (int(values.get(name, 0)) for name in _WINDOWED)
    if clicks >= _LEAST_OF_PART and shown and not clicked and not is_anonymous:
        what = f"0 of {clicks:,} clicks of the last {window} joined an impression"
        yield Implausible(what, "streamer check says why")
    if conversions >= _LEAST_COMPARED and not values.get(_VALUE, 1):
        logs = [name for name, log in settings.logs.items() if "conversions" in log.kinds]
        yield from _without_value(settings, logs, conversions)


def _without_user(settings: Settings, topics: Sequence[TopicRead]) -> Iterator[Implausible]:
    if _is_anonymous(topics) and _is_mapped(settings, "user_id"):
        what = "user_id: no event has it or join_id, so there are no metrics of users"
        yield Implausible(what, _advice(settings, "user_id"))


def _is_anonymous(topics: Sequence[TopicRead]) -> bool:
    """Whether there are events, of which none has a user."""
    accepted = sum(topic.accepted for topic in topics)
    return accepted > 0 and accepted == sum(topic.anonymous for topic in topics)


def _unknown(settings: Settings, result: ReadingSet) -> Iterator[Implausible]:
    """Dimensions that settings name and that are `unknown` in all impressions."""
    values: dict[str, set[str]] = {name: set() for name in settings.dimension_names}
    for reading in _readings(result, f"{PREFIX}impressions_total"):
        if reading.value:
            for dimension in values:
                values[dimension].add(reading.labels.get(dimension, ALL))
    for dimension, seen in values.items():
        if _is_said(settings, dimension) and seen - {ALL} == {UNKNOWN}:
            what = f"{dimension}: no event has it, so it is `unknown` everywhere"
            yield Implausible(what, _advice(settings, dimension))


def _is_said(settings: Settings, dimension: str) -> bool:
    """Whether somebody wrote the dimension into the settings: not a preset."""
    is_default = dimension in {own.name for own in Settings().dimensions}
    is_mapped = any(says_itself(source, dimension) for source in settings.sources)
    return not is_default or is_mapped or dimension in settings.events.fields


def _is_mapped(settings: Settings, name: str) -> bool:
    """Whether the settings say where a field stands."""
    of_sources = (source.fields.get(name, False) for source in settings.sources)
    return name in settings.events.fields or any(said is not False for said in of_sources)


def _advice(settings: Settings, name: str) -> str:
    if not settings.reads_sources:
        return f"send {settings.events.fields.get(name, name)!r}, or map it in [events.fields]"
    where = ", ".join(_places(settings, list(settings.logs), None, name))
    return f"nothing is at {where}: correct {name} in [sources.fields]"


def _section(settings: Settings) -> str:
    return "[sources.fields]" if settings.reads_sources else "[events.fields]"


def _place(settings: Settings, logs: Sequence[str], kind: str | None, name: str) -> str:
    return ", ".join(f'"{place}"' for place in _places(settings, logs, kind, name))


def _places(
    settings: Settings, logs: Sequence[str], kind: str | None, name: str
) -> Mapping[str, None]:
    return dict.fromkeys(place_of(settings, settings.logs[log], kind, name) for log in logs)
