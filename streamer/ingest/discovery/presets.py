"""Which preset fits some records, and what it says of their fields already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from streamer.ingest.discovery.kinds import Kinds, Value, classified, find_kinds, kinds_of_topic
from streamer.ingest.discovery.profile import Profile, Seen
from streamer.settings.event_fields import LINE_TYPES, TYPE_OF_KIND
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.settings.paths import Path, path_of, through_lists
from streamer.settings.source_rules import PRESETS, paths_of, preset_alone
from streamer.settings.sources import Source, several

_BY_NAMES = ("segment", "ga4", "snowplow", "braze", "xdm")
"""Presets that the names of most events tell."""
_BY_FIELDS: Sequence[tuple[str, Sequence[str]]] = (
    ("amplitude", ("event_type", "amplitude_id")),
    ("mixpanel", ("event", "properties.distinct_id", "properties.time")),
    ("posthog", ("event.event", "event.distinct_id", "event.uuid")),
    ("posthog", ("event", "distinct_id", "uuid")),
    ("heap", ("event", "app_id", "idempotency_key")),
    ("otel", ("EventName", "Timestamp")),
    ("statsig", ("eventName", "metadata.ruleID")),
    ("launchdarkly", ("event.kind", "event.creationDate")),
    ("launchdarkly", ("kind", "creationDate", "key")),
    ("unleash", ("eventType", "featureName", "enabled")),
    ("openfeature", ("name", 'attributes["feature_flag.key"]')),
    ("otlp", ("resourceLogs[].scopeLogs[].logRecords[].eventName",)),
)
"""Presets whose events have names of the team's own, and the paths that tell them, first that of
the names."""
_WHOLE: Mapping[str, Sequence[str]] = {
    "matomo": ("idsite", "c_n", "c_p"),
    "eppo": ("experiment", "subject", "variation"),
    "optimizely": ("visitor_id", "experiment_id", "variation_id", "campaign_id"),
    "eb-nerd": ("impression_time", "article_ids_inview"),
    "retailrocket": ("visitorid", "event", "itemid"),
    "trivago": ("action_type", "reference", "impressions"),
    "criteo-attribution": ("uid", "campaign", "conversion_id", "attribution"),
    "outbrain": ("display_id", "uuid", "ad_id", "clicked"),
    "open-bandit": ("propensity_score", "click", "item_id", "user_feature_0"),
}
"""Presets that know what each record is without names of events, and the paths that tell them."""
_LEAST_SHARE = 0.5
_INSERTED = ("c", "r")
"""What Debezium calls rows that are new, or were there."""


def find_preset(
    profile: Profile, headers: Mapping[str, Seen], topic: str
) -> tuple[str, Kinds] | None:
    """The preset that fits, and what its records are, as far as the preset does not say it; None
    where none does."""
    scalars = profile.scalars
    for preset, paths in _WHOLE.items():
        if all(_is_there(path, profile) for path in paths):
            return preset, Kinds()
    for preset, paths in _BY_FIELDS:
        names = scalars.get(path_of(paths[0]))
        if names is not None and all(_is_there(path, profile) for path in paths):
            return preset, _kinds_by(preset_alone(preset), path_of(paths[0]), names)
    for preset in _BY_NAMES:
        if kinds := _kinds_of(preset_alone(preset), profile):
            return preset, kinds
    if ("specversion",) in scalars and ("type",) in scalars:
        return "cloudevents", Kinds(path=("type",), values=_classified(scalars["type",]))
    if "ce_type" in headers:
        return "cloudevents", Kinds(header="ce_type", values=_classified(headers["ce_type"]))
    for root in ((), ("payload",)):
        is_change = any(path[: len(root) + 1] == (*root, "after") for path in scalars)
        if is_change and (op := scalars.get((*root, "op"))) is not None:
            if kinds := _of_column(profile, (*root, "after"), (*root, "op"), op):
                return "debezium", kinds
            kind = kinds_of_topic(topic)
            values = (
                Value(operation, kind or "impression" if operation in _INSERTED else "", n)
                for operation, n in op.values.items()
            )
            return "debezium", Kinds((*root, "op"), values=tuple(values), is_sure=kind is not None)
    return None


def _of_column(profile: Profile, row: Path, op_at: Path, op: Seen) -> Kinds | None:
    """The kinds of inserted rows of a table that has events of several, by a column of it."""
    columns = {path: seen for path, seen in profile.scalars.items() if path[: len(row)] == row}
    found = find_kinds(Profile(profile.records, scalars=columns), {}, "")
    if found.path is None or not found.is_sure:
        return None
    inserted = [text for text in op.values if text in _INSERTED]
    values = [
        replace(value, text=text, there=value.text)
        for text in inserted
        for value in found.values
        if value.kind
    ]
    left_out = [Value(text, "", n) for text, n in op.values.items()]
    return Kinds(op_at, values=(*values, *left_out), where=found.path)


def _classified(seen: Seen) -> tuple[Value, ...]:
    return tuple(Value(text, *_kind(text, n)) for text, n in seen.values.most_common())


def _kind(text: str, records: int) -> tuple[str, int, Mapping[str, str | bool]]:
    kind, extra = classified(text)
    return kind, records, extra


def _kinds_of(source: Source, profile: Profile) -> Kinds | None:
    """What the records are, where most have a value that the preset knows; it says of the others
    what their names say."""
    paths = several(source.kind.field or ())
    known, left_out = _names_of(source)
    found = {path: profile.scalars[path] for path in map(path_of, paths) if path in profile.scalars}
    ignored = sum(seen.values[value] for seen in found.values() for value in left_out)
    for path, seen in found.items():
        of_ours = sum(n for value, n in seen.values.items() if value in known)
        of_known = of_ours + ignored
        has_user = supplied(source, "impression", "user_id", profile)
        if of_ours and has_user and of_known >= _LEAST_SHARE * profile.records:
            return _kinds_by(source, path, seen)
    return None


def _names_of(source: Source) -> tuple[dict[str, str], Set[str]]:
    """Name of events → kind, as a source knows them, and the names that it ignores."""
    rules = [(kind, rule.value) for kind, rule in source.kind.rules if rule.value is not None]
    known = {value: kind for kind, value in rules if kind is not None}
    return known, {value for kind, value in rules if kind is None}


def _kinds_by(source: Source, path: Path, seen: Seen) -> Kinds:
    """What the names at a path say: as a source knows them, of others what they sound like."""
    known, left_out = _names_of(source)
    values = (_value(left_out, known, value, n) for value, n in seen.values.most_common())
    return Kinds(path=path, values=tuple(values))


def _is_there(path: str, profile: Profile) -> bool:
    at = path_of(path)
    return at in profile.scalars or at in profile.lists or at in profile.id_lists


def _value(left_out: Set[str], known: Mapping[str, str], text: str, records: int) -> Value:
    if text in known:
        return Value(text, TYPE_OF_KIND[known[text]], records)
    if text in left_out:
        return Value(text, "", records)
    return Value(text, *_kind(text, records))


def supplied(source: Source, kind: str, name: str, profile: Profile) -> bool:
    """Whether a source reads a field of the records of a kind from where something stands."""
    said = source.fields_of(LINE_TYPES[kind]).get(name)
    if said is False:
        return True
    return said is not None and any(_stands(path, profile) for path in paths_of(said))


def _stands(path: str, profile: Profile) -> bool:
    lists, rest = through_lists(path_of(path))
    for at, _ in lists:
        if not rest and at in profile.id_lists:
            return True
        if at not in profile.lists:
            return False
        profile = profile.lists[at]
    return rest in profile.scalars


def presets_of_tables() -> dict[str, Settings]:
    """Preset of tables without a header row → settings with it alone."""
    return {
        name: parse({"sources": [{"topics": ["x"], "preset": name}]})
        for name in PRESETS
        if preset_alone(name).columns
    }


def preset_of_columns(columns: Sequence[str]) -> str | None:
    """The preset whose table has such columns."""
    return next((name for name in PRESETS if preset_alone(name).columns == tuple(columns)), None)
