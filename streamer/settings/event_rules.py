"""Rules of ``[events]`` that types cannot say: which fields events have, under which names."""

from __future__ import annotations

import zoneinfo
from typing import TYPE_CHECKING

from streamer.errors import SettingsError
from streamer.settings.event_fields import ALL_FIELDS, KINDS, field_names
from streamer.settings.labels import validate_dimension_name
from streamer.settings.names import nearest

if TYPE_CHECKING:
    from streamer.settings.model import Settings


def validate_events(s: Settings) -> None:
    """Raise SettingsError where a dimension or a mapped field has an invalid name, or where
    ``[events]`` says what there is not."""
    _validate_zone_and_positions(s)
    for i, dimension in enumerate(s.dimensions):
        validate_dimension_name(dimension.name, f"at dimensions[{i}]")
    for field in s.policy_fields:
        if field in (*ALL_FIELDS, *s.kept_fields):
            raise SettingsError(
                f"policies: {field!r} is a field of events, or a dimension: use another name"
            )
    of_ratios = [field for fields in s.own_fields.values() for field in fields]
    names = (*ALL_FIELDS, *s.kept_fields, *s.policy_fields, *of_ratios)
    for ours, theirs in s.events.fields.items():
        at = f"events.fields.{ours}"
        if ours not in names:
            close = nearest(ours, names)
            meant = f"did you mean {close!r}?" if close else f"there are {', '.join(names)}"
            swapped = (
                f" Write {theirs} = {ours!r}: streamer's name comes first."
                if theirs in names
                else ""
            )
            raise SettingsError(
                f"{at} = {theirs!r}: no event field or dimension is called {ours!r}: "
                f"{meant}{swapped}"
            )
        if not theirs or "." in theirs or theirs.startswith(("$", "/")):
            raise SettingsError(
                f"{at} = {theirs!r}: must be a field at the top level of the event; a path into "
                "a nested object (with dots) is not supported: flatten the events first"
            )
    _validate_names(s)


def _validate_zone_and_positions(s: Settings) -> None:
    if s.events.positions_from not in (0, 1):
        raise SettingsError(
            f"events.positions_from = {s.events.positions_from}: must be 0 or 1, the number of the "
            "first position"
        )
    try:
        zoneinfo.ZoneInfo(s.events.zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise SettingsError(
            f"events.zone = {s.events.zone!r}: no time zone is called like this: write e.g. "
            "'Europe/Berlin' or 'UTC'"
        ) from None


def _validate_names(s: Settings) -> None:
    """Two fields of one event cannot be read from one name."""
    for kind in KINDS:
        taken: dict[str, str] = {}
        of_policies = s.policy_fields if kind == "impressions" else ()
        of_settings = (*s.kept_fields, *of_policies, *s.own_fields[kind])
        for ours in (*field_names(kind), *of_settings):
            theirs = s.events.fields.get(ours, ours)
            other = taken.setdefault(theirs, ours)
            if other != ours:
                mapped = ours if ours in s.events.fields else other
                raise SettingsError(
                    f"events.fields.{mapped} = {theirs!r}: {other!r} and {ours!r} of {kind} would "
                    f"both be read from {theirs!r}: give each a name of its own"
                )
