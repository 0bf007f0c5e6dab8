"""Rules of ``[[ratios]]``, ``[[composites]]`` (with ``windows.day_before``) and ``[[policies]]``
that types cannot say."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from streamer.errors import SettingsError
from streamer.settings import limits
from streamer.settings.durations import DAY_MS, pane_length_ms
from streamer.settings.event_fields import KINDS, field_names
from streamer.settings.labels import LOWER, NAME, VALUE_RULE, is_value, validate_names
from streamer.settings.own_metrics import (
    ASKED_FIELDS,
    COUNTS,
    JOINED,
    KNOWN_FIELDS,
    OF_KIND,
    PEOPLE,
    SIGNS,
    event_kind,
    parts_of,
    values_in,
    written,
)

if TYPE_CHECKING:
    from streamer.settings.model import Settings
    from streamer.settings.own_metrics import CompositePart, Policy, RatioPart, Where

_NUMBERS = ("score", "position", "dwell_ms", "rating", "value")
_AGAINST = ("value", "target", "day_before")


def validate_ratios(s: Settings) -> None:
    """SettingsError where a ratio cannot be."""
    if "ratios" in s.metrics.families and not s.ratios:
        raise SettingsError("metrics.families: 'ratios' needs [[ratios]], and there are none")
    sketches = sum(ratio.quantiles for ratio in s.ratios)
    if sketches > limits.MAX_RATIO_SKETCHES:
        raise SettingsError(
            f"ratios: {sketches} have quantiles = true; at most {limits.MAX_RATIO_SKETCHES}: leave "
            "it out where the ratio is enough"
        )
    validate_names("ratios", [ratio.name for ratio in s.ratios], limits.MAX_RATIOS, LOWER)
    for i, ratio in enumerate(s.ratios):
        at = f"at ratios[{i}]"
        if ratio.better not in ("higher", "lower"):
            raise SettingsError(f"better = {ratio.better!r}: 'higher' or 'lower'; {at}")
        if ratio.quantiles and ratio.numerator.field is None:
            raise SettingsError(f"quantiles = true: the numerator needs a field; {at}")
        for text in (ratio.title, ratio.unit):
            if len(text) > limits.MAX_WORDS_CHARS:
                most = limits.MAX_WORDS_CHARS
                raise SettingsError(f"{text[:40]!r}…: at most {most} characters; {at}")
        _validate_part_of_ratio(ratio.numerator, s, f"{at}.numerator")
        if ratio.denominator is not None:
            _validate_part_of_ratio(ratio.denominator, s, f"{at}.denominator")
            kind, is_count = ratio.numerator.kind, ratio.numerator.field is None
            if ratio.denominator.kind == PEOPLE and is_count and kind in ("sessions", "slates"):
                raise SettingsError(
                    f"{kind} cannot be divided by people, as some are of nobody: leave the "
                    f"denominator out where an experiment compares them by user; {at}"
                )
    of = s.own_sums
    for what, count, most in (
        ("different fields", len(of.amounts), limits.MAX_RATIO_FIELDS),
        ("different conditions", len(of.conditions), limits.MAX_RATIO_CONDITIONS),
    ):
        if count > most:
            raise SettingsError(f"ratios have {count} {what}; at most {most}")


def _validate_part_of_ratio(part: RatioPart, s: Settings, at: str) -> None:
    kinds = (*OF_KIND, *s.feedback_kinds[1:], *COUNTS)
    if part.kind not in kinds:
        raise SettingsError(
            f"kind = {part.kind!r}: one of {', '.join(kinds)} (kinds of feedback are those in "
            f"metrics.feedback); {at}"
        )
    is_numerator = at.endswith("numerator")
    if part.kind == PEOPLE and is_numerator:
        raise SettingsError(f"kind = 'people': only a denominator counts people; {at}")
    if part.kind == PEOPLE and "engagement" not in s.families:
        raise SettingsError(f"kind = 'people' needs 'engagement' in metrics.families; {at}")
    if part.kind in COUNTS and (part.field is not None or part.where):
        raise SettingsError(
            f"kind = {part.kind!r} has neither field nor where: it is made of several events; {at}"
        )
    if part.kind == "sessions" and part.field is None and part.where:
        raise SettingsError(
            "kind = 'sessions' without a field has no where: a session is made of several events; "
            f"{at}"
        )
    kind = event_kind(part.kind)
    if kind is None:
        return
    if part.field is not None:
        _validate_field(part.field, kind, KNOWN_FIELDS[kind], s, f"field = {part.field!r}", at)
    for path, where in part.where.items():
        _validate_where(part, path, where, s, at)


def _validate_field(
    field: str, kind: str, readable: tuple[str, ...], s: Settings, said: str, at: str
) -> None:
    """``readable``: of the fields that events have anyway."""
    if field in readable:
        return
    if re.match(NAME, field) is None:
        raise SettingsError(
            f"{said}: a field at the top of the event, of a-z, 0-9 and _; others can be mapped by "
            f"[events.fields] or [sources.fields]; {at}"
        )
    whose = {name: "a field of events" for kind in KINDS for name in field_names(kind)}
    whose |= dict.fromkeys(s.policy_fields, "a field of [[policies]]")
    whose |= dict.fromkeys(s.dimension_names, "a dimension")
    if field in whose:
        raise SettingsError(
            f"{said} is {whose[field]}, which ratios cannot read of {kind}: there it can be "
            f"{', '.join(readable)}, or a name of its own; {at}"
        )


def _validate_where(part: RatioPart, path: str, where: Where, s: Settings, at: str) -> None:
    kind, field = event_kind(part.kind) or "", path
    if path.startswith(JOINED):
        if kind not in ("clicks", "conversions"):
            raise SettingsError(
                f"where.{path!r}: only feedback and conversions join an impression; {at}"
            )
        kind, field = "impressions", path.removeprefix(JOINED)
    values = values_in(where)
    named = len(where) if isinstance(where, dict) else len(values)
    if not 0 < named <= limits.MAX_RATIO_VALUES:
        raise SettingsError(
            f"where.{path} has {named} values: 1 to {limits.MAX_RATIO_VALUES}; {at}"
        )
    if isinstance(where, dict) and not all(
        sign in SIGNS and math.isfinite(bound) for sign, bound in where.items()
    ):
        raise SettingsError(f"where.{path} = {where}: bounds by {' '.join(SIGNS)}; {at}")
    numbers = isinstance(where, dict) or all(type(value) in (int, float) for value in values)
    if field in s.dimension_names:
        if isinstance(where, dict):
            raise SettingsError(f"where.{path}: a dimension has values, and no bounds; {at}")
        for value in map(written, values):
            if not is_value(value):
                raise SettingsError(f"where.{path}: bad value {value!r}: {VALUE_RULE}; {at}")
        return
    _validate_field(field, kind, ASKED_FIELDS[kind], s, f"where.{path}", at)
    is_number = field in _NUMBERS or any(
        event_kind(each.kind) == kind and each.field == field
        for ratio in s.ratios
        for each, _ in parts_of(ratio)
    )
    if is_number and not numbers:
        raise SettingsError(f"where.{path} = {where!r}: the field is a number; {at}")
    if field in ("item_id", "item_category") and not all(isinstance(v, str) for v in values):
        raise SettingsError(f"where.{path} = {where!r}: ids are texts; {at}")
    texts = [value for value in values if isinstance(value, str)]
    for value in texts:
        if not 0 < len(value) <= limits.MAX_LABEL_CHARS:
            raise SettingsError(
                f"where.{path}: {value[:40]!r}: texts of 1 to {limits.MAX_LABEL_CHARS} characters; "
                f"{at}"
            )


def refuse_custom(data: Mapping[str, Any]) -> None:
    """Raise SettingsError where a document has ``[[custom]]``, with what is written instead."""
    for i, custom in enumerate(data.get("custom") or ()):
        if not isinstance(custom, dict):
            continue
        name, kind = custom.get("name", "name"), custom.get("kind", "impressions")
        where = custom.get("where") or {}
        asked = f", where = {{ {', '.join(f'{k} = {_toml(v)}' for k, v in where.items())} }}"
        said = asked if where else ""
        field = custom.get("field")
        of = "" if field is None else f", field = {_toml(field)}"
        numerator = f"{{ kind = {_toml(kind)}{of}{said} }}"
        kinds = {"mean": kind, "per_impression": "impressions", "per_user": PEOPLE}
        lines = [
            f"custom_{old}: {{ name = {_toml(f'{name}_{old}')}, numerator = {numerator}, "
            f"denominator = {{ kind = {_toml(over)}{said if old == 'mean' else ''} }} }}"
            for old, over in kinds.items()
        ]
        raise SettingsError(
            f"[[custom]] is [[ratios]] now. Write for {'; for '.join(lines)}. An experiment or an "
            f"alert then names ratio@<name>; at custom[{i}]"
        )


def with_directions(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """A document of settings in which alerts and experiments on a ratio say which direction is
    better, where that is ``lower`` and they do not say it."""
    ratios = data.get("ratios")
    said = [each for each in ratios if isinstance(each, dict)] if isinstance(ratios, list) else []
    lower = {f"ratio@{each.get('name')}" for each in said if each.get("better") == "lower"}

    def directed(row: Any, key: str) -> Any:
        name = row.get(key) if isinstance(row, dict) else None
        is_lower = isinstance(name, str) and (name in lower or name.rpartition("@p")[0] in lower)
        return {"direction": "lower", **row} if is_lower else row

    def with_metrics(table: Any) -> Any:
        metrics = table.get("metrics") if isinstance(table, dict) else None
        if not isinstance(metrics, list):
            return table
        return {**table, "metrics": [directed(metric, "name") for metric in metrics]}

    made = dict(data)
    if lower and isinstance(data.get("alerts"), list):
        made["alerts"] = [directed(alert, "metric") for alert in data["alerts"]]
    if lower and isinstance(data.get("experiments"), list):
        made["experiments"] = [with_metrics(each) for each in data["experiments"]]
    if lower and "experiments_defaults" in data:
        made["experiments_defaults"] = with_metrics(data["experiments_defaults"])
    return made


def _toml(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def validate_composites(s: Settings) -> None:
    """SettingsError where a composite cannot be."""
    _validate_day_before(s)
    if "composites" in s.metrics.families and not s.composites:
        raise SettingsError("metrics.families: 'composites' needs [[composites]]: there are none")
    names = [composite.name for composite in s.composites]
    validate_names("composites", names, limits.MAX_COMPOSITES, limits.LABEL_PATTERN)
    for i, composite in enumerate(s.composites):
        at = f"at composites[{i}]"
        parts = composite.parts
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
    names = [policy.name for policy in s.policies]
    validate_names("policies", names, limits.MAX_POLICIES, limits.LABEL_PATTERN)
    for i, policy in enumerate(s.policies):
        at = f"at policies[{i}]"
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
        if re.match(NAME, field) is None:
            raise SettingsError(f"{key} = {field!r}: a field, of a-z, 0-9 and _; {at}")
        if fields.count(field) > 1:
            raise SettingsError(
                f"{key} = {field!r} stands twice: each has a field of its own; {at}"
            )
