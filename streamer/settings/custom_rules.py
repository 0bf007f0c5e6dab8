"""Rules of ``[[custom]]`` that types cannot say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from streamer.errors import SettingsError
from streamer.settings import limits
from streamer.settings.custom import KNOWN_FIELDS
from streamer.settings.event_fields import KINDS, field_names
from streamer.settings.labels import VALUE_RULE, is_value

if TYPE_CHECKING:
    from streamer.settings.custom import Custom
    from streamer.settings.model import Settings

_NAME = re.compile(r"^[a-z][a-z0-9_]{0,62}\Z")
_FIELD = re.compile(r"^[a-z_][a-z0-9_]{0,62}\Z")


def validate_custom(s: Settings) -> None:
    """SettingsError where a custom metric cannot be."""
    if "custom" in s.metrics.families and not s.custom:
        raise SettingsError("metrics.families: 'custom' needs [[custom]], and there are none")
    if len(s.custom) > limits.MAX_CUSTOM:
        raise SettingsError(f"{len(s.custom)} custom metrics; at most {limits.MAX_CUSTOM}")
    sketches = sum(custom.quantiles for custom in s.custom)
    if sketches > limits.MAX_CUSTOM_SKETCHES:
        raise SettingsError(
            f"custom: {sketches} metrics have quantiles = true; at most "
            f"{limits.MAX_CUSTOM_SKETCHES}: leave it out where the mean is enough"
        )
    names = [custom.name for custom in s.custom]
    for i, custom in enumerate(s.custom):
        at = f"at custom[{i}]"
        if _NAME.match(custom.name) is None or names.count(custom.name) > 1:
            raise SettingsError(
                f"name = {custom.name!r}: a-z, 0-9 and _, a letter first, and no other's name; {at}"
            )
        if custom.kind not in KINDS:
            raise SettingsError(f"kind = {custom.kind!r}: one of {', '.join(KINDS)}; {at}")
        _validate_field(custom, s, at)
        _validate_where(custom, s, at)


def _validate_field(custom: Custom, s: Settings, at: str) -> None:
    field, known = custom.field, KNOWN_FIELDS[custom.kind]
    if field is None or field in known:
        return
    if _FIELD.match(field) is None:
        raise SettingsError(
            f"field = {field!r}: a field at the top of the event, of a-z, 0-9 and _; others can be "
            f"mapped by [events.fields]; {at}"
        )
    whose = {name: "a field of events" for kind in KINDS for name in field_names(kind)}
    whose |= dict.fromkeys(s.policy_fields, "a field of [[policies]]")
    whose |= dict.fromkeys(s.dimension_names, "a dimension")
    if field in whose:
        raise SettingsError(
            f"field = {field!r} is {whose[field]}, which custom metrics of {custom.kind} cannot "
            f"read: there it can be {', '.join(known)}, or a name of its own; {at}"
        )


def _validate_where(custom: Custom, s: Settings, at: str) -> None:
    for dimension, values in custom.where.items():
        if dimension not in s.dimension_names:
            raise SettingsError(
                f"where.{dimension}: dimensions are {list(s.dimension_names)}; {at}"
            )
        if not 0 < len(values) <= limits.MAX_CUSTOM_VALUES:
            raise SettingsError(
                f"where.{dimension} has {len(values)} values: 1 to {limits.MAX_CUSTOM_VALUES}; {at}"
            )
        for value in values:
            if not is_value(value):
                raise SettingsError(f"where.{dimension}: bad value {value!r}: {VALUE_RULE}; {at}")
