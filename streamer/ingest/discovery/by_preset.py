"""What a preset reads of records by itself: their kinds, and the dimensions that it knows."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from streamer.errors import SettingsError
from streamer.ingest.discovery.drafts import Draft
from streamer.ingest.discovery.profile import Seen, profile_of
from streamer.ingest.discovery.shapes import (
    FoundRecord,
    SampledTopic,
    Shape,
    objects_of,
    parsed_records,
)
from streamer.ingest.discovery.trying import decoded_samples
from streamer.ingest.discovery.writing import written
from streamer.settings.event_fields import TYPE_OF_KIND
from streamer.settings.labels import UNKNOWN
from streamer.settings.load import parse
from streamer.settings.model import Settings

_DIMENSIONS = ("variant", "surface")
"""Those that presets know, as far as they know one."""
_LEAST_SHARE = {"variant": 0.05, "surface": 0.3}


def read_by_preset(shape: Shape, samples: Sequence[SampledTopic]) -> Mapping[str, Seen]:
    """Dimension → its values in the impressions that the preset of a shape reads; in all events
    where there are none. A shape of which the preset alone knows what records are gets their
    profiles."""
    settings = None if shape.preset is None else _settings(shape)
    if settings is None:
        return {}
    own = [sample for sample in samples if sample.topic in shape.topics]
    found: dict[str, list[FoundRecord]] = {}
    events: list[Mapping[str, Any]] = []
    for _, record, read in decoded_samples(settings, own):
        of_record = [one for one in read if not isinstance(one, str)]
        events += of_record
        for kind in dict.fromkeys(TYPE_OF_KIND[one["kind"]] for one in of_record):
            found.setdefault(kind, []).append(record)
    if not Draft(shape).knows_kinds:
        for kind, records in found.items():
            opened = objects_of(parsed_records(records), shape.opening)
            shape.profiles[kind] = profile_of((value for _, value in opened), shape.opening.each)
    shown = [one for one in events if one["kind"] == "impressions"] or events
    return {name: seen for i, name in enumerate(_DIMENSIONS) if (seen := _seen(name, i, shown))}


def _seen(name: str, place: int, events: Sequence[Mapping[str, Any]]) -> Seen | None:
    """The values of a dimension, where often enough there is one."""
    seen = Seen()
    for event in events:
        if (value := event["dimensions"][place]) not in ("", UNKNOWN):
            seen.add(value)
    return seen if seen.count and seen.count >= _LEAST_SHARE[name] * len(events) else None


def _settings(shape: Shape) -> Settings | None:
    """Those of a shape with all dimensions of presets; None where events lack what they need."""
    dimensions = "".join(f"[[dimensions]]\nname = {name!r}\n" for name in _DIMENSIONS)
    try:
        return parse(tomllib.loads(written([Draft(shape)]) + dimensions))
    except SettingsError:
        return None
