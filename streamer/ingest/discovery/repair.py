"""Corrects a proposal until hardly a record of its own sample is refused: what is refused is not
read, one thing at a time, and said so."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec

from streamer._core import RecordDecoder
from streamer.errors import ProposalError
from streamer.ingest.discovery.drafts import Draft, through
from streamer.ingest.discovery.fields import places
from streamer.ingest.discovery.kinds import Kinds, Value
from streamer.ingest.discovery.read_records import events_read
from streamer.ingest.discovery.shapes import FoundRecord, SampledTopic, no_log
from streamer.ingest.discovery.trying import Tried, tried
from streamer.ingest.record import of_texts, record_decoder
from streamer.settings.event_fields import ELEMENT_FIELDS, EXPOSURES, FIELDS, LINE_TYPES
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.settings.paths import Each, path_of, text_of
from streamer.settings.source_rules import NEEDED, paths_of
from streamer.settings.sources import KindFields, Source

_MOST = 10
"""Corrections of one proposal."""
_HALF = 0.5
_REQUIRED = ("ts", "item_id")
_USEFUL = frozenset({"impression", "click", "conversion"})
_OF_ITEMS = "items"
"""The reason why events are refused of which an item is."""
_SHOWN = 5
"""Causes that an error names."""
_MOST_SHOWN = 12
"""Fields that a missing one may be."""


class Cause(NamedTuple):
    """Why records are refused: those of one topic, of one kind, which one value says."""

    topic: str
    reason: str
    kind: str | None
    text: str | None


_Causes = dict[Cause, list[FoundRecord]]


def corrected(
    drafts: Sequence[Draft], samples: Sequence[SampledTopic], write: Callable[[], str]
) -> Settings:
    """The settings that ``write`` gives of drafts, out of which causes of refusals are taken;
    ProposalError where too many records would be refused still."""
    for draft in drafts:
        _leave_out_unreadable(draft, drafts)
    settings = parse(tomllib.loads(write()))
    for _ in range(_MOST):
        made = tried(settings, samples)
        if not made.are_too_many_refused:
            return settings
        causes = _causes(settings, made)
        largest = sorted(causes, key=lambda cause: -len(causes[cause]))
        if not any(_correct(drafts, settings, cause, causes) for cause in largest):
            break
        settings = parse(tomllib.loads(write()))
    made = tried(settings, samples)
    if made.are_too_many_refused:
        raise _refusal(settings, drafts, made)
    return settings


def _required(kind: str) -> Sequence[str]:
    """The fields that events of a kind need; sessions need the time alone."""
    return NEEDED[EXPOSURES] if kind == "exposure" else _REQUIRED


# What cannot be read at all -----------------------------------------------------------------------


def _leave_out_unreadable(draft: Draft, drafts: Sequence[Draft]) -> None:
    """Kinds that lack what events need, and fields that stand in another list than the item."""
    if draft.shape.is_ours:
        return
    for kind in list(draft.shape.profiles):
        said = draft.said(kind)
        is_guess = not draft.shape.kinds.is_sure and kind != "exposure"
        if is_guess and (told := no_log(draft.shape.profiles[kind])):
            topics = draft.shape.topics
            raise ProposalError(f"{told}; in {', '.join(topics)}", topics, is_log=False)
        needed = _REQUIRED[:1] if kind == "session" else _required(kind)
        lacking = [name for name in needed if said.get(name, False) is False]
        if said.get("impression_id"):
            lacking = [name for name in lacking if name != "item_id"]
        if lacking and not _ignore(draft, drafts, kind, None, f"no {' and no '.join(lacking)}"):
            for name in lacking:
                draft.left_out[kind, name] = f"missing; {_candidates(draft, kind, name)}"
            what = f"{LINE_TYPES[kind]} need {' and '.join(lacking)}, and no field looks like it"
            topics = draft.shape.topics
            raise ProposalError(f"{what}; in {', '.join(topics)}", topics)
        if is_guess and _may_be_anything(draft, kind):
            topics = draft.shape.topics
            draft.shape.kinds = Kinds()
            what = "nothing says whether these are impressions, clicks or conversions"
            how = 'write fixed = "impression", or what they are, below [sources.kind]'
            raise ProposalError(f"{what}: {how}; in {', '.join(topics)}", topics)
    for kind in draft.shape.profiles:
        said = draft.said(kind)
        within = [path for path in through(said.get("item_id", False), draft.each) if path]
        for name in list(draft.shape.fields.get(kind, {})):
            lists = [path for path in through(said[name], draft.each) if path]
            if name == "item_id" or not lists:
                continue
            is_of_element = name in ELEMENT_FIELDS[LINE_TYPES[kind]]
            are_within = all(any(of.startswith(path) for of in within) for path in lists)
            if not (is_of_element and are_within):
                draft.leave_out(kind, name, "it stands in another list than item_id")


def _may_be_anything(draft: Draft, kind: str) -> bool:
    """Whether records are taken for impressions only because nothing says what they are."""
    shape, profile = draft.shape, draft.shape.profiles[kind]
    is_placed = draft.said(kind).get("position", False) is not False
    is_placed = is_placed or any(places(profile, "request_id"))
    is_shown = bool(profile.lists or profile.id_lists) or is_placed
    return shape.kinds.fixed == ("impression",) and not is_shown


def _candidates(draft: Draft, kind: str, name: str) -> str:
    """The fields that a missing one may be, with their counts."""
    scalars = draft.shape.profiles[kind].scalars.items()
    free = [(path, seen) for path, seen in scalars if name == "ts" or seen.distinct > 1]
    shown = [f"{text_of(p)} ({s.distinct:,} values in {s.count:,})" for p, s in free[:_MOST_SHOWN]]
    more = f" and {len(free) - _MOST_SHOWN} more" if len(free) > _MOST_SHOWN else ""
    return f"name one of {', '.join(shown)}{more}" if shown else "there are no fields"


def _ignore(
    draft: Draft, drafts: Sequence[Draft], kind: str, texts: Sequence[str] | None, why: str
) -> bool:
    """Ignores the records of a kind, or those with some values. Where nothing useful is left, or no
    impression of those there are, nothing is done, and the answer is no."""
    values = [v for v in draft.shape.kinds.values if v.kind == kind]
    going = [v for v in values if texts is None or v.text in texts]
    left = {k for d in drafts for k in (d.shape.profiles if d is not draft else _kinds(d, going))}
    needed = {kind} if kind == "impression" else _USEFUL
    if not going or not left & needed or not _kinds(draft, going):
        return False
    records = draft.ignore(kind, [v.text for v in going])
    shown = ", ".join(repr(v.text) for v in going)
    draft.shape.doubts.append(f"kind: {shown} ({records:,} {LINE_TYPES[kind]}) is ignored: {why}")
    return True


def _kinds(draft: Draft, going: Sequence[Value]) -> set[str]:
    """The kinds of a draft without some of its values."""
    return {v.kind for v in draft.shape.kinds.values if v.kind and v not in going}


# What is refused ----------------------------------------------------------------------------------


def _causes(settings: Settings, made: Tried) -> _Causes:
    found: _Causes = {}
    decoder = record_decoder(of_texts(settings))
    for topic, record, reason in _events(settings, decoder, made):
        cause = Cause(topic, reason, None, None)
        for event in events_read(decoder, topic, record) if settings.reads_sources else ():
            if event.reason == reason:
                cause = cause._replace(kind=event.kind, text=event.text)
                break
        found.setdefault(cause, []).append(record)
    return found


def _events(
    settings: Settings, decoder: RecordDecoder, made: Tried
) -> Iterator[tuple[str, FoundRecord, str]]:
    """The records that are refused; of those that hold several events a record of each of these."""
    for topic, record, reason in made.refused:
        source = _source(settings, topic)
        if source is None or source.each is None:
            yield topic, record, reason
            continue
        alone = [replace(record, value=one) for one in decoder.split(topic, record.value)]
        refused = tried(settings, [SampledTopic(topic, alone)]).refused
        yield from refused or [(topic, record, reason)]


def _source(settings: Settings, topic: str) -> Source | None:
    return settings.sources[settings.logs[topic].source] if settings.reads_sources else None


def _correct(drafts: Sequence[Draft], settings: Settings, cause: Cause, causes: _Causes) -> bool:
    """Whether a cause could be taken out."""
    ours = [draft for draft in drafts if draft.shape.is_ours]
    for draft in ours:
        draft.shape.is_ours = False  # where fields stand is said, and can be corrected then
    if ours:
        return True
    draft = next(draft for draft in drafts if cause.topic in draft.shape.topics)
    source = _source(settings, cause.topic)
    if source is None:
        return False
    if cause.kind is None:
        return cause.reason == "kind" and _ignore_unknown(draft, source, causes)
    return _leave_out(draft, settings, cause, causes[cause]) or _without(
        draft, drafts, settings, cause, causes[cause]
    )


def _ignore_unknown(draft: Draft, source: Source, causes: _Causes) -> bool:
    """Ignores the records whose kind nothing says."""
    if draft.shape.kinds.fixed is not None or source.kind.by_topic:
        return False
    field, before = source.kind.field, len(draft.ignored)
    there = {(value.text, *value.extra.values()) for value in draft.ignored}
    for cause, records in causes.items():
        if cause.topic not in draft.shape.topics or cause.reason != "kind" or cause.kind:
            continue
        if cause.text is not None:
            value = Value(cause.text, "", len(records), is_sure=False)
        elif isinstance(field, str):
            value = Value("", "", len(records), {"lacks": field}, is_sure=False)
        else:
            continue
        if (value.text, *value.extra.values()) not in there:
            draft.ignored.append(value)
    new = draft.ignored[before:]
    if new:
        shown = ", ".join(repr(v.text) if v.text else "records without it" for v in new[:_SHOWN])
        more = f" and {len(new) - _SHOWN} more" if len(new) > _SHOWN else ""
        draft.shape.doubts.append(f"kind: {shown}{more} is ignored: no kind is known for it")
    return bool(new)


def _leave_out(
    draft: Draft, settings: Settings, cause: Cause, records: Sequence[FoundRecord]
) -> bool:
    """Stops reading the optional field for which records are refused, if it is one."""
    kind = str(cause.kind)
    whole = draft.shape.profiles[kind].records if kind in draft.shape.profiles else 0
    for name, said in draft.said(kind).items():
        field = FIELDS.get(name)
        if said is False or field is None or name in _required(kind):
            continue
        if name == "user_id" and len(records) < _HALF * whole:
            continue
        is_of_item = cause.reason == _OF_ITEMS and name in ELEMENT_FIELDS[LINE_TYPES[kind]]
        if field.reason != cause.reason and not is_of_item:
            continue
        without = [SampledTopic(cause.topic, records)]
        if len(tried(_unread(settings, cause, name), without).refused) < _HALF * len(records):
            of = f" of {whole:,}" if whole else ""
            why = f"{len(records):,}{of} {LINE_TYPES[kind]} would be refused as {cause.reason}"
            draft.leave_out(kind, name, why)
            return True
    return False


def _unread(settings: Settings, cause: Cause, name: str) -> Settings:
    """The settings without a field of a kind of a topic."""
    at, key = settings.logs[cause.topic].source, str(cause.kind)
    sources = list(settings.sources)
    fields: KindFields = getattr(sources[at], key)
    without = KindFields(fields={**fields.fields, name: False})
    sources[at] = msgspec.structs.replace(sources[at], **{key: without})
    return msgspec.structs.replace(settings, sources=tuple(sources))


def _without(
    draft: Draft,
    drafts: Sequence[Draft],
    settings: Settings,
    cause: Cause,
    records: Sequence[FoundRecord],
) -> bool:
    """Ignores records without what events need: all with their value, or those that lack it."""
    kind = str(cause.kind)
    of_value = [v for v in draft.shape.kinds.values if (v.kind, v.text) == (kind, cause.text)]
    whole = sum(v.records for v in of_value) or (
        draft.shape.profiles[kind].records if kind in draft.shape.profiles else 0
    )
    why = f"{len(records):,} of {whole:,} are refused as {cause.reason}"
    decoder = record_decoder(of_texts(settings))
    events = [e for record in records for e in events_read(decoder, cause.topic, record)]
    refused = [e for e in events if (e.kind, e.reason) == (cause.kind, cause.reason)]
    for name in _required(kind) if len(records) < whole else ():
        path = _path_in_record(draft, kind, name)
        lacks = all(name not in event.values for event in refused)
        if path is not None and lacks and _split(draft, cause, path, whole, len(records)):
            return True
    if len(records) >= _HALF * whole:
        texts = [] if cause.text is None else [cause.text]
        return _ignore(draft, drafts, kind, texts, why)
    return False


def _path_in_record(draft: Draft, kind: str, name: str) -> str | None:
    """Where a field must stand in a record, of lists in their first element."""
    paths = list(paths_of(draft.said(kind).get(name, False)))
    if len(paths) != 1 or draft.rules_of_preset:
        return None
    return text_of(tuple(0 if isinstance(step, Each) else step for step in path_of(paths[0])))


def _split(draft: Draft, cause: Cause, path: str, whole: int, lacking: int) -> bool:
    """Counts the records of a value that have a field, and ignores the others."""
    kinds, kind, text = draft.shape.kinds, str(cause.kind), cause.text or ""
    values = kinds.values
    if kinds.fixed is not None and len(kinds.fixed) > 1:
        return False
    if kinds.fixed is not None:
        kinds, text = replace(kinds, fixed=None), ""
        values = (Value(text, kind, whole),)
    split = [v for v in values if (v.kind, v.text) == (kind, text) and "has" not in v.extra]
    if not split:
        return False
    made = [
        replace(v, records=v.records - lacking, extra={**v.extra, "has": path}) if v in split else v
        for v in values
    ]
    draft.shape.kinds = replace(kinds, values=tuple(made))
    draft.ignored.append(Value(text, "", lacking, {"lacks": path}, is_sure=False))
    what = f"{lacking:,} of {whole:,} {LINE_TYPES[kind]} are ignored: nothing is at {path}"
    draft.shape.doubts.append(f"kind: {what}")
    return True


# What is refused still ----------------------------------------------------------------------------


def _refusal(settings: Settings, drafts: Sequence[Draft], made: Tried) -> ProposalError:
    causes = _causes(settings, made)
    counts = Counter[tuple[str, str]]()
    for cause, records in causes.items():
        counts[_place(drafts, cause), cause.topic] += len(records)
    shown = [f"{n:,} {place}" for (place, _), n in counts.most_common(_SHOWN)]
    whole = made.records - made.ignored
    what = f"settings would refuse {len(made.refused):,} of {whole:,} records: {', '.join(shown)}"
    (_, topic), _ = counts.most_common(1)[0]
    return ProposalError(f"{what}", [topic])


def _place(drafts: Sequence[Draft], cause: Cause) -> str:
    """A reason, and where the field that it names would stand."""
    draft = next((d for d in drafts if cause.topic in d.shape.topics), None)
    if draft is None or cause.kind is None:
        at = "" if draft is None or cause.reason != "kind" else f" (at {draft.shape.kinds.at})"
        return f"{cause.reason}{at}"
    name = "item_id" if cause.reason == _OF_ITEMS else cause.reason
    path = next(paths_of(draft.said(cause.kind).get(name, False)), None)
    at = f"{LINE_TYPES[cause.kind]}, {path}" if path else LINE_TYPES[cause.kind]
    return f"{cause.reason} ({at})"
