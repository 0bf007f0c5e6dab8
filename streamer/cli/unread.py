"""Fields that settings name and no event has: nothing is refused for want of them, and the numbers
look as if all were well."""

from __future__ import annotations

from collections.abc import Iterator

from streamer.ingest.mapping import place_of
from streamer.metrics.catalogue import PREFIX
from streamer.query.readings import Readout
from streamer.settings.labels import ALL, UNKNOWN
from streamer.settings.model import Settings


def fields_no_event_has(settings: Settings, result: Readout) -> Iterator[str]:
    """One line for each dimension that settings name and that is `unknown` in all impressions, and
    for users, where all events are nobody's."""
    values: dict[str, set[str]] = {name: set() for name in settings.dimension_names}
    accepted = anonymous = 0.0
    for reading in result.readings:
        name = reading.name.removeprefix(PREFIX)
        if name == "impressions_total" and reading.value:
            for dimension in values:
                values[dimension].add(reading.labels.get(dimension, ALL))
        accepted += reading.value if name == "accepted_total" else 0
        anonymous += reading.value if name == "anonymous_total" else 0
    for dimension, seen in values.items():
        if _is_said(settings, dimension) and seen - {ALL} == {UNKNOWN}:
            where = _advice(settings, dimension)
            yield f"{dimension}: no event has it, so it is `unknown` everywhere: {where}"
    if accepted == anonymous and _is_mapped(settings, "user_id"):
        where = _advice(settings, "user_id")
        yield f"user_id: no event has it, so there are no metrics of users: {where}"


def _is_said(settings: Settings, dimension: str) -> bool:
    """Whether somebody wrote the dimension into the settings."""
    is_default = dimension in {own.name for own in Settings().dimensions}
    return not is_default or _is_mapped(settings, dimension)


def _is_mapped(settings: Settings, name: str) -> bool:
    """Whether the settings say where a field stands."""
    return name in settings.events.fields or any(name in s.fields for s in settings.sources)


def _advice(settings: Settings, name: str) -> str:
    if not settings.reads_sources:
        return f"send {settings.events.fields.get(name, name)!r}, or map it in [events.fields]"
    logs = settings.logs.values()
    places = dict.fromkeys(place_of(settings, log, None, name) for log in logs)
    return f"nothing is at {', '.join(places)}: correct {name} in [sources.fields]"
