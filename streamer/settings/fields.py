"""Rules of ``[events.fields]`` and of the names of dimensions: what event has which fields."""

from __future__ import annotations

import re
import zoneinfo
from typing import TYPE_CHECKING

from streamer.errors import SettingsError
from streamer.settings.event_fields import KINDS, field_names
from streamer.settings.labels import RESERVED
from streamer.settings.names import nearest

if TYPE_CHECKING:
    from streamer.settings.model import Settings

_NAME = re.compile(r"^[a-z_][a-z0-9_]{0,62}$")
_ALL_FIELDS = tuple(dict.fromkeys(name for kind in KINDS for name in field_names(kind)))


def validate_fields(s: Settings) -> None:
    """Raise SettingsError where a dimension or a mapped field has an invalid name, or where
    ``[events]`` says what there is not."""
    _validate_events(s)
    for i, dimension in enumerate(s.dimensions):
        _validate_dimension(dimension.name, f"at dimensions[{i}]")
    for field in s.policy_fields:
        if field in (*_ALL_FIELDS, *s.dimension_names):
            raise SettingsError(
                f"policies: {field!r} is a field of events, or a dimension: use another name"
            )
    of_custom = [field for fields in s.custom_fields.values() for field in fields]
    known = (*_ALL_FIELDS, *s.dimension_names, *s.policy_fields, *of_custom)
    for ours, theirs in s.events.fields.items():
        at = f"events.fields.{ours}"
        if ours not in known:
            close = nearest(ours, known)
            meant = f"did you mean {close!r}?" if close else f"there are {', '.join(known)}"
            swapped = (
                f" Write {theirs} = {ours!r}: streamer's name comes first."
                if theirs in known
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


def _validate_events(s: Settings) -> None:
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


def _validate_dimension(name: str, at: str) -> None:
    if _NAME.match(name) is None:
        raise SettingsError(f"bad name {name!r}: a-z, 0-9 and _; {at}")
    whose = ""
    if name in RESERVED:
        whose = "the name of a label that streamer or Prometheus sets itself"
    elif name.startswith("__"):
        whose = "a name that Prometheus reserves (it begins with __)"
    elif name in _ALL_FIELDS:
        whose = "the name of a field of events"
    if whose:
        other = f"event_{name.strip('_')}"
        mapped = "" if name in _ALL_FIELDS else f", and [events.fields] {other} = {name!r}"
        raise SettingsError(
            f"dimension {name!r} has {whose}: use another name, e.g. {other!r}{mapped}; {at}"
        )


def _validate_names(s: Settings) -> None:
    """Two fields of one event cannot be read from one name."""
    for kind in KINDS:
        taken: dict[str, str] = {}
        of_policies = s.policy_fields if kind == "impressions" else ()
        of_settings = (*s.dimension_names, *of_policies, *s.custom_fields[kind])
        for ours in (*field_names(kind), *of_settings):
            theirs = s.events.fields.get(ours, ours)
            other = taken.setdefault(theirs, ours)
            if other != ours:
                mapped = ours if ours in s.events.fields else other
                raise SettingsError(
                    f"events.fields.{mapped} = {theirs!r}: {other!r} and {ours!r} of {kind} would "
                    f"both be read from {theirs!r}: give each a name of its own"
                )
