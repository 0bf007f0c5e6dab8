"""What has to be taken apart before records can be looked at: several events in one record, JSON in
texts, and several values in one text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from streamer._core import RecordDecoder
from streamer.ingest.discovery.kinds import NO, YES, find_kinds
from streamer.ingest.discovery.names import OTHER_NAMES, rank
from streamer.ingest.discovery.profile import (
    EventWithin,
    Profile,
    Seen,
    is_of_all,
    names_of,
    nearly_all,
    profile_of,
)
from streamer.ingest.lookup import parsed, values_at
from streamer.ingest.record import record_decoder
from streamer.settings.model import Settings
from streamer.settings.paths import Each, Path, text_of
from streamer.settings.sources import COMMA, Source, SourceKind

_MOST = 0.9
_PARSED = 20
"""Texts that are parsed to see whether they hold JSON."""
_COMMA = re.compile(r"-?\d{1,3}([. ]?\d{3})*(,\d{2})?")
_SEPARATORS = ("|", ",", ";", " ")
_LEAST_KINDS = 2
"""Kinds of events that elements of a list must say to be taken for events."""


@dataclass(frozen=True)
class Opening:
    """How records are opened, as settings say it."""

    each: Path = ()
    """The path to each event, which ends with `Each`; empty where a record is one."""
    json: tuple[str, ...] = ()
    split: Mapping[str, str] = field(default_factory=dict)
    decimals: Mapping[str, str] = field(default_factory=dict)

    @property
    def each_text(self) -> str | None:
        """As a setting."""
        return text_of(self.each) if self.each else None

    def events(self, record: Any) -> list[Mapping[str, Any]]:
        """The events of a record that was parsed."""
        opened = record
        if self._decoder is not None:
            opened = parsed(self._decoder.text("x", written(record)) or b"")
        found: list[Mapping[str, Any]]
        found = [each for each in values_at(opened, self.each) if isinstance(each, dict)]
        if not self.each or not isinstance(opened, dict):
            return found
        around = {n: x for n, x in opened.items() if not isinstance(x, dict | list)}
        return [EventWithin(each, around) for each in found]

    @cached_property
    def _decoder(self) -> RecordDecoder | None:
        """What takes texts apart."""
        if not (self.json or self.split or self.decimals):
            return None
        source = Source(
            topics=("x",),
            kind=SourceKind(fixed="click"),
            json=self.json,
            split=dict(self.split),
            decimals=dict(self.decimals),
            fields={"ts": "ts", "item_id": "item_id"},
        )
        return record_decoder(Settings(sources=(source,)))


def find_opening(records: Sequence[Any]) -> Opening:
    """How some parsed records are to be opened."""
    if records and sum(isinstance(one, list) for one in records) > _MOST * len(records):
        return Opening(each=(Each(),))
    profile = profile_of(one for one in records if isinstance(one, dict))
    texts = tuple(text_of(path) for path, seen in profile.scalars.items() if _is_json(seen))
    split = {
        text_of(path): by
        for path, seen in profile.scalars.items()
        if (by := _separator(path, seen)) is not None
    }
    scalars = ((text_of(p), seen) for p, seen in profile.scalars.items() if is_of_all(p))
    decimals = {at: COMMA for at, seen in scalars if at not in split and _has_comma(seen)}
    return Opening(_events_within(profile), texts, split, decimals)


def _events_within(profile: Profile) -> Path:
    """The path to events that stand in a list of each record, where the record is none itself."""
    if len({value.kind for value in find_kinds(profile, {}, "").values if value.kind}) > 1:
        return ()
    best: tuple[int, int, Path] | None = None
    for path, elements in profile.lists.items():
        kinds = find_kinds(elements, {}, "")
        told = [value for value in kinds.values if value.kind]
        of_kinds = {value.kind for value in told if any(value.is_sure for value in told)}
        has_time = any(seen.unit is not None for seen in elements.scalars.values())
        are_flags = {value.text for value in kinds.values} <= {*NO, *YES}
        if kinds.path is None or are_flags or len(of_kinds) < _LEAST_KINDS or not has_time:
            continue
        worth = (len(of_kinds), -len(path), path)
        if best is None or worth[:2] > best[:2]:
            best = worth
    return () if best is None else (*best[2], Each())


def _is_json(seen: Seen) -> bool:
    texts = [text for text in seen.values if text.startswith(("{", "["))]
    if seen.texts < seen.count or not len(texts) > _MOST * len(seen.values):
        return False
    return all(isinstance(parsed(text), dict | list) for text in texts[:_PARSED])


def _has_comma(seen: Seen) -> bool:
    """Whether values are numbers, some with a decimal comma."""
    fitting = [text for text in seen.values if _COMMA.fullmatch(text)]
    return nearly_all(len(fitting), len(seen.values)) and any("," in text for text in fitting)


def _separator(path: Path, seen: Seen) -> str | None:
    """What stands between the ids in texts that are called like a list of items."""
    wanted = ("items", "impressions", "impression", *OTHER_NAMES["items"])
    if seen.texts < seen.count or rank(names_of(path), wanted) is None:
        return None
    for by in _SEPARATORS:
        pieces = [text.split(by) for text in seen.values]
        is_list = sum(len(some) > 1 for some in pieces) > len(pieces) / 2
        if is_list and not any("-" in x or ":" in x for some in pieces[:5] for x in some):
            return by
    return None


def written(event: Mapping[str, Any]) -> bytes:
    """An event of a record as a record of its own."""
    return json.dumps(event, separators=(",", ":")).encode()
