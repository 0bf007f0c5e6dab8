"""Rules of ``[[custom]]``, ``[[composites]]`` (with ``windows.day_before``) and ``[[policies]]``
that types cannot say."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from streamer.errors import SettingsError
from streamer.settings import limits
from streamer.settings.durations import DAY_MS, pane_length_ms
from streamer.settings.event_fields import KINDS, field_names
from streamer.settings.labels import VALUE_RULE, is_value
from streamer.settings.own_metrics import KNOWN_FIELDS

if TYPE_CHECKING:
    from streamer.settings.model import Settings
    from streamer.settings.own_metrics import CompositePart, Custom, Policy

_NAME = re.compile(r"^[a-z][a-z0-9_]{0,62}\Z")
_FIELD = re.compile(r"^[a-z_][a-z0-9_]{0,62}\Z")
_AGAINST = ("value", "target", "day_before")


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
    field, readable = custom.field, KNOWN_FIELDS[custom.kind]
    if field is None or field in readable:
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
            f"read: there it can be {', '.join(readable)}, or a name of its own; {at}"
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


def validate_composites(s: Settings) -> None:
    """SettingsError where a composite cannot be."""
    _validate_day_before(s)
    if "composites" in s.metrics.families and not s.composites:
        raise SettingsError("metrics.families: 'composites' needs [[composites]]: there are none")
    if len(s.composites) > limits.MAX_COMPOSITES:
        raise SettingsError(f"{len(s.composites)} composites; at most {limits.MAX_COMPOSITES}")
    names = [composite.name for composite in s.composites]
    for i, composite in enumerate(s.composites):
        at = f"at composites[{i}]"
        name, parts = composite.name, composite.parts
        if re.match(limits.LABEL_PATTERN, name) is None or names.count(name) > 1:
            raise SettingsError(
                f"name = {name!r}: 1 to 64 of A-Za-z0-9_.:-, and no other's name; {at}"
            )
        least, most = limits.COMPOSITE_PARTS
        if not least <= len(parts) <= most:
            raise SettingsError(f"{len(parts)} parts: {least} to {most}; {at}")
        if len({(part.metric, part.against) for part in parts}) < len(parts):
            raise SettingsError(f"a part stands twice: add up its weights; {at}")
        for j, part in enumerate(parts):
            _validate_part(part, s, f"{at}.parts[{j}]")


def _validate_part(part: CompositePart, s: Settings, at: str) -> None:
    if part.metric.partition("@")[0] == "composite":
        raise SettingsError(f"metric = {part.metric!r}: a composite has no composites; {at}")
    if not part.weight or not math.isfinite(part.weight):
        raise SettingsError(f"weight = {part.weight}: a number other than 0; {at}")
    if part.against not in _AGAINST:
        raise SettingsError(f"against = {part.against!r}: one of {', '.join(_AGAINST)}; {at}")
    if (part.target is not None) != (part.against == "target"):
        raise SettingsError(
            f"target = {part.target} and against = {part.against!r}: against = 'target' needs a "
            f"target, and nothing else has one; {at}"
        )
    if part.target is not None and not 0 < part.target < math.inf:
        raise SettingsError(f"target = {part.target}: above 0; {at}")
    if part.against == "day_before" and not s.windows.day_before:
        raise SettingsError(
            "against = 'day_before' needs windows.day_before, which names the windows that keep "
            f"their day before, e.g. ['1h']; {at}"
        )


def _validate_day_before(s: Settings) -> None:
    lengths, panes = s.windows.lengths_ms, 0
    asked = s.windows.day_before
    if len(set(asked)) < len(asked):
        raise SettingsError(f"windows.day_before = {list(asked)}: each once")
    for label in asked:
        if label not in lengths:
            raise SettingsError(
                f"windows.day_before: {label!r} is none of windows.lengths = {list(lengths)}"
            )
        pane_ms = pane_length_ms(lengths[label])
        if DAY_MS % pane_ms:
            raise SettingsError(
                f"windows.day_before: {label!r} has panes of {pane_ms} ms, which do not divide a "
                "day evenly: use a length that divides a day, such as 1h or 6h"
            )
        panes += (DAY_MS + lengths[label]) // pane_ms
    if panes > limits.MAX_DAY_BEFORE_PANES:
        raise SettingsError(
            f"windows.day_before = {list(asked)} has {panes} panes, at most "
            f"{limits.MAX_DAY_BEFORE_PANES}: use longer windows (10m has 8,700, 1h has 1,500)"
        )


def validate_policies(s: Settings) -> None:
    """SettingsError where a policy cannot be."""
    most = limits.MAX_WEIGHT
    if not 1 <= s.metrics.max_weight <= most:
        raise SettingsError(f"metrics.max_weight = {s.metrics.max_weight}: 1 to {most:g}")
    if "off_policy" in s.metrics.families and not s.policies:
        raise SettingsError("metrics.families: 'off_policy' needs [[policies]], and there are none")
    if len(s.policies) > limits.MAX_POLICIES:
        raise SettingsError(f"{len(s.policies)} policies; at most {limits.MAX_POLICIES}")
    names = [policy.name for policy in s.policies]
    for i, policy in enumerate(s.policies):
        at = f"at policies[{i}]"
        if re.match(limits.LABEL_PATTERN, policy.name) is None or names.count(policy.name) > 1:
            raise SettingsError(
                f"name = {policy.name!r}: 1 to 64 of A-Za-z0-9_.:-, and no other's name; {at}"
            )
        if (policy.propensity is None) == (not policy.positions):
            raise SettingsError(f"one of propensity and positions says what it would show; {at}")
        _validate_positions(policy, at)
        _validate_policy_fields(policy, s, at)


def _validate_positions(policy: Policy, at: str) -> None:
    most = limits.MAX_POLICY_POSITIONS
    are_right = all(0 <= share <= 1 for share in policy.positions)
    if len(policy.positions) > most or not are_right:
        raise SettingsError(
            f"positions = {list(policy.positions)[:10]}: at most {most} numbers from 0 to 1; {at}"
        )


def _validate_policy_fields(policy: Policy, s: Settings, at: str) -> None:
    fields = [f for p in s.policies for f in (p.propensity, p.estimate) if f is not None]
    for key, field in (("propensity", policy.propensity), ("estimate", policy.estimate)):
        if field is None:
            continue
        if _FIELD.match(field) is None:
            raise SettingsError(f"{key} = {field!r}: a field, of a-z, 0-9 and _; {at}")
        if fields.count(field) > 1:
            raise SettingsError(
                f"{key} = {field!r} stands twice: each has a field of its own; {at}"
            )
